"""Driver names: what NVIDIA's driver calls the parts of the catalogue, as torch, llama.cpp and nvidia-smi print it; and
what of such a name may be left out.
"""

import re

from threeloops import spelling

# A name that is not here leaves the part unknown, unless somebody says it: so does one of several cards with different
# memory ("NVIDIA GeForce RTX 3080" has 10 GB or 12).
DRIVER_NAMES = {
    "Tesla V100-SXM2-32GB": "v100-sxm2-32gb",
    "NVIDIA A100-SXM4-40GB": "a100-sxm4-40gb",
    "NVIDIA A100-SXM4-80GB": "a100-sxm4-80gb",
    "NVIDIA A100 80GB PCIe": "a100-pcie-80gb",
    "NVIDIA H100 80GB HBM3": "h100-sxm5",
    "NVIDIA H100 PCIe": "h100-pcie",
    "NVIDIA H200": "h200-sxm",
    "NVIDIA B200": "b200-hgx",
    "NVIDIA L4": "l4",
    "NVIDIA L40S": "l40s",
    "Tesla V100-SXM2-16GB": "v100-sxm2-16gb",
    "NVIDIA H100 NVL": "h100-nvl-94gb",
    "NVIDIA H800": "h800-sxm",
    "NVIDIA H20": "h20-96gb",
    "NVIDIA L20": "l20",
    "NVIDIA L40": "l40",
    "NVIDIA A10": "a10",
    "NVIDIA A10G": "a10g",
    "NVIDIA A40": "a40",
    "Tesla T4": "t4",
    "NVIDIA RTX A6000": "rtx-a6000",
    "NVIDIA RTX 6000 Ada Generation": "rtx-6000-ada",
    "NVIDIA GeForce RTX 2080 Ti": "rtx-2080-ti",
    "NVIDIA GeForce RTX 3090": "rtx-3090",
    "NVIDIA GeForce RTX 3090 Ti": "rtx-3090-ti",
    "NVIDIA GeForce RTX 4060": "rtx-4060",
    "NVIDIA GeForce RTX 4070": "rtx-4070",
    "NVIDIA GeForce RTX 4070 SUPER": "rtx-4070-super",
    "NVIDIA GeForce RTX 4070 Ti": "rtx-4070-ti",
    "NVIDIA GeForce RTX 4070 Ti SUPER": "rtx-4070-ti-super",
    "NVIDIA GeForce RTX 4080": "rtx-4080",
    "NVIDIA GeForce RTX 4080 SUPER": "rtx-4080-super",
    "NVIDIA GeForce RTX 5060": "rtx-5060",
    "NVIDIA GeForce RTX 5070": "rtx-5070",
    "NVIDIA GeForce RTX 5070 Ti": "rtx-5070-ti",
    "NVIDIA GeForce RTX 5080": "rtx-5080",
    "NVIDIA GeForce RTX 4090": "rtx-4090",
    "NVIDIA GeForce RTX 5090": "rtx-5090",
    "NVIDIA RTX PRO 6000 Blackwell Server Edition": "rtx-pro-6000-server",
}

_MAKERS_WORDS = {"nvidia", "geforce", "rtx", "tesla", "amd", "radeon", "rx", "instinct", "intel", "apple"}
_ANOTHER_CARD = {"ti", "super", "max", "pro", "ultra", "xt", "xtx", "gre"}


def says_all_of(typed: str, name: str) -> bool:
    """Whether nothing is left out of a part's name but its maker's words.

    >>> says_all_of("4080", "rtx-4080"), says_all_of("4080", "rtx-4080-super"), says_all_of("T4", "Tesla T4")
    (True, False, True)
    """
    return set(spelling.left_out(typed, name)) <= _MAKERS_WORDS


def is_one_of_several(key: str, typed: str) -> bool:
    """Whether a name leaves out which card of a series is meant, or its memory where the key says that there are
    several: a 2080 is no 2080 Ti, and a 4060 Ti may have 8 GB.

    >>> is_one_of_several("rtx-2080-ti", "2080"), is_one_of_several("h200-sxm", "h200")
    (True, False)
    """
    missing, memory = spelling.left_out(typed, key), re.search(r"-(\d+)gb$", key)
    return bool(set(missing) & _ANOTHER_CARD) or bool(memory and memory[1] in missing)
