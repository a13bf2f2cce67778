"""Driver names: what NVIDIA's driver calls the parts of the catalogue, as torch, llama.cpp and nvidia-smi print it."""

# A name that is not here leaves the part unknown, unless somebody says it.
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
    "NVIDIA GeForce RTX 4090": "rtx-4090",
    "NVIDIA GeForce RTX 5090": "rtx-5090",
}
