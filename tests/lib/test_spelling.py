"""Names as people write them: which key each one means, and what is said where it means none or several."""

import pytest

from threeloops import dtypes
from threeloops.facts import hardware
from threeloops.models import catalogue
from threeloops.spelling import key_of, says_all_of

CARDS = {
    "h100-sxm5": [
        "h100 sxm",
        "H100-SXM5",
        "H100_SXM",
        "nvidia h100 sxm5 80gb",
        "h100sxm",
        "NVIDIA/H100-SXM5",
        "NVIDIA H100 80GB HBM3",
    ],
    "rtx-4090": ["4090", "RTX 4090", "rtx4090", "GeForce RTX 4090 24GB"],
    "gb200": ["GB200", "gb200 nvl72"],
    "b200-hgx": ["b200", "HGX B200"],
    "l40s": ["L40S", "nvidia l40s"],
    "a100-sxm4-80gb": ["A100-SXM4-80GB", "a100 sxm 80gb"],
    "rtx-4080": ["4080", "RTX 4080", "NVIDIA GeForce RTX 4080"],
    "rtx-4070-ti-super": ["4070 Ti Super", "RTX4070 Ti SUPER"],
    "rtx-a6000": ["A6000", "RTX A6000"],
    "rtx-6000-ada": ["RTX 6000 Ada", "NVIDIA RTX 6000 Ada Generation"],
    "a10g": ["A10G", "NVIDIA A10G"],
    "rtx-2080-ti": ["2080 Ti"],
    "rtx-3080-10gb": ["RTX 3080 10GB"],
    "rx-7900-xtx": ["7900 XTX", "AMD Radeon RX 7900 XTX"],
    "t4": ["Tesla T4"],
    "h20-96gb": ["H20"],
    "apple-m4-max-128gb": ["M4 Max 128GB", "Apple M4 Max 128 GB"],
}

# Cards whose name others have, too, with more memory or less.
CARDS_OF_SEVERAL = [
    *("2080", "3080", "NVIDIA GeForce RTX 3080", "4060 Ti", "5060 Ti", "RX 7900", "AMD Radeon RX 7900"),
    *("M1 Max", "V100", "H100", "A100 PCIe", "M4 Max", "GH200"),
]
MODELS = {
    "llama-3-70b": [
        "llama3 70b",
        "Llama-3-70B-Instruct",
        "meta-llama/Meta-Llama-3-70B-Instruct",
        "Llama 3 70B",
        "meta llama 3 70b",
    ],
    "llama-2-7b": ["meta-llama/Llama-2-7b-chat-hf", "llama2-7b"],
    "llama-3-405b": ["Llama-3.1-405B", "meta-llama/Llama-3.1-405B-Instruct"],
    "gpt2": ["GPT-2", "openai-community/gpt2"],
    "gpt2-xl": ["gpt-2 xl"],
    "qwen2.5-7b": ["Qwen/Qwen2.5-7B-Instruct", "qwen 2.5 7b"],
    "mixtral-8x7b": ["mistralai/Mixtral-8x7B-Instruct-v0.1", "mixtral 8x7b"],
    "phi-3-mini": ["microsoft/Phi-3-mini-4k-instruct", "phi3 mini"],
    "gemma-3-27b": ["google/gemma-3-27b-it"],
    "deepseek-v3": ["deepseek-ai/DeepSeek-V3", "deepseekv3"],
    "qwen3-235b-a22b": ["qwen3 235b", "Qwen/Qwen3-235B-A22B"],
    "gpt3-175b": ["GPT-3", "gpt3"],
    "bloom-176b": ["bigscience/bloom"],
    "llama-4-scout": ["scout", "llama4 scout"],
    "qwen3-next-80b-a3b": ["qwen3-next", "Qwen/Qwen3-Next-80B-A3B-Instruct", "Qwen/Qwen3-Next-80B-A3B-Thinking"],
    "nemotron-3-super-120b-a12b": ["Nemotron 3 Super"],
    "llama-3.1-8b": ["meta-llama/Llama-3.1-8B-Instruct", "meta-llama/Meta-Llama-3.1-8B", "llama3.1 8b"],
    "qwen2.5-14b": ["Qwen/Qwen2.5-14B-Instruct"],
    "qwen3-30b-a3b": ["qwen3 30b", "Qwen/Qwen3-30B-A3B-Base"],
    "qwen3-30b-a3b-2507": ["Qwen/Qwen3-30B-A3B-Instruct-2507", "Qwen/Qwen3-30B-A3B-Thinking-2507"],
    "qwen3-coder-30b-a3b": ["Qwen/Qwen3-Coder-30B-A3B-Instruct", "qwen3 coder 30b"],
    "gemma-3-12b": ["google/gemma-3-12b-it", "gemma3 12b"],
    "deepseek-r1": ["deepseek-ai/DeepSeek-R1", "r1", "DeepSeek-R1-Zero"],
    "deepseek-v3.2": ["deepseek-ai/DeepSeek-V3.2"],
    "deepseek-r1-distill-qwen-32b": ["deepseek-ai/DeepSeek-R1-Distill-Qwen-32B", "r1 distill 32b"],
    "glm-4.5": ["zai-org/GLM-4.5", "glm 4.5"],
    "glm-4.5-air": ["zai-org/GLM-4.5-Air", "glm4.5 air"],
    "phi-4": ["microsoft/phi-4", "phi4"],
    "mistral-small-3-24b": ["mistralai/Mistral-Small-24B-Instruct-2501", "Mistral Small 3", "mistral small 24b"],
    "palm-540b": ["PaLM 540B"],
    "kimi-k2": ["moonshotai/Kimi-K2-Instruct", "kimi k2"],
    "deepseek-v3.1": ["deepseek-v3.1", "deepseek-ai/DeepSeek-V3.1-Base", "DeepSeek V3.1"],
    "mistral-7b-v0.3": ["mistral-7b-v0.3", "mistralai/Mistral-7B-Instruct-v0.3", "Mistral 7B v0.3"],
    "mistral-small-3.2-24b": ["Mistral-Small-3.2-24B", "mistralai/Mistral-Small-3.2-24B-Instruct-2506"],
    "glm-4.6": ["glm-4.6", "zai-org/GLM-4.6", "glm4.6"],
    "glm-4.7": ["zai-org/GLM-4.7", "GLM 4.7"],
    "deepseek-v4-flash": ["deepseek-ai/DeepSeek-V4-Flash", "deepseek v4 flash"],
    "deepseek-v4-pro": ["deepseek-ai/DeepSeek-V4-Pro", "DeepSeek V4 Pro"],
    "glm-5": ["zai-org/GLM-5", "glm5"],
    "kimi-k2.5": ["moonshotai/Kimi-K2.5"],
    "qwen3-vl-30b-a3b": ["Qwen/Qwen3-VL-30B-A3B-Instruct", "Qwen/Qwen3-VL-30B-A3B-Thinking"],
    "qwen3.6-27b": ["Qwen/Qwen3.6-27B"],
    "llama-4-maverick": ["meta-llama/Llama-4-Maverick-17B-128E-Instruct"],
    "mimo-v2-flash": ["XiaomiMiMo/MiMo-V2-Flash"],
}

# Names that leave out what others of their family differ in, and what the answer must name.
FAMILIES = {
    "llama3.1": ["llama-3.1-8b", "llama-3.1-70b", "llama-3-405b"],
    "llama 8b": ["llama-3-8b", "llama-3.1-8b"],
    "qwen3-coder": ["qwen3-coder-480b-a35b", "qwen3-coder-30b-a3b"],
    "qwen2.5": ["qwen2.5-7b", "qwen2.5-14b", "qwen2.5-32b", "qwen2.5-72b"],
    "phi": ["phi-3-mini", "phi-4"],
    "deepseek-v4": ["deepseek-v4-flash", "deepseek-v4-pro"],
    "glm": ["glm-4.5", "glm-4.6", "glm-4.7", "glm-5"],
    "palm": ["palm-540b"],
    "mistral": ["mistral-7b", "mistral-small-4"],
    "phi-3": ["phi-3-mini"],
    "Phi3": ["phi-3-mini"],
    "kimi": ["kimi-k2", "kimi-k2.5", "kimi-k3"],
    "llama 7b": ["llama-2-7b"],
    "gemma 9b": ["gemma-2-9b"],
    "qwen 7b": ["qwen2.5-7b"],
    "opt": ["opt-13b"],
    "falcon": ["falcon-7b"],
    "olmo 2": ["olmo-2-7b"],
    "minimax": ["minimax-m2.5", "minimax-m2.7"],
    "nemotron-h": ["nemotron-h-56b"],
    "nemotron 3 nano": ["nemotron-3-nano-30b-a3b"],
    "gpt-oss": ["gpt-oss-20b", "gpt-oss-120b"],
    "llama 4": ["llama-4-scout", "llama-4-maverick"],
}

# A small catalogue that does not grow, for what it must not be taken for.
KNOWN = {
    "h100-sxm5": ("NVIDIA H100 SXM5 80GB",),
    "h200-sxm": ("NVIDIA H200 SXM 141GB",),
    "l4": ("NVIDIA L4 24GB",),
    "l40s": ("NVIDIA L40S 48GB",),
    "mi300x": ("AMD Instinct MI300X 192GB OAM",),
    "b300-hgx": ("NVIDIA B300 in HGX B300 (SXM)",),
    "rtx-4090": ("NVIDIA GeForce RTX 4090 24GB",),
    "llama-2-70b": ("Llama 2 70B", "Meta"),
    "llama-3-8b": ("Llama 3 8B", "Meta"),
    "llama-3-70b": ("Llama 3 70B", "Meta"),
    "mistral-7b": ("Mistral 7B v0.1", "Mistral AI"),
    "deepseek-v3": ("DeepSeek-V3", "DeepSeek"),
    "phi-3-mini": ("Phi-3-mini-4k-instruct", "Microsoft"),
    "qwen3-32b": ("Qwen3 32B", "Alibaba"),
    "gpt2": ("GPT-2 124M", "OpenAI"),
}


@pytest.mark.parametrize("key", CARDS)
def test_every_spelling_of_a_card_is_that_card(key: str) -> None:
    assert {hardware.part_key(name, kind="hardware") for name in CARDS[key]} == {key}


@pytest.mark.parametrize("name", CARDS_OF_SEVERAL)
def test_a_card_of_several_is_asked_back(name: str) -> None:
    with pytest.raises(ValueError, match="may be .* say which"):
        hardware.part_key(name, kind="hardware")


@pytest.mark.parametrize(
    "name",
    [
        "MiMo-VL-Flash",
        "gpt-4",
        "Yi-34B",
        "falcon-h1-1.5b",
        "Qwen2.5-Math-7B",
        "TinyLlama-1.1B",
        "Llama-Guard-3-8B",
        "glm-9-plus",
    ],
)
def test_another_architecture_is_never_hinted_at(name: str) -> None:
    with pytest.raises(ValueError, match="is not known") as refused:
        catalogue.model(name)
    assert "did you mean" not in str(refused.value)


@pytest.mark.parametrize("name", ["mi301", "P40", "H100 CNX", "RTX 4000 Ada", "Strix Halo", "3060 Ti", "A800"])
def test_another_card_is_never_hinted_at(name: str) -> None:
    with pytest.raises(ValueError, match="is not known") as refused:
        hardware.part_key(name, kind="hardware")
    assert "did you mean" not in str(refused.value)


def test_a_slip_of_the_pen_is_hinted_at() -> None:
    with pytest.raises(ValueError, match="did you mean 'llama-3-8b'"):
        catalogue.model("lama3-8b")


@pytest.mark.parametrize("key", MODELS)
def test_every_spelling_of_a_model_is_that_model(key: str) -> None:
    assert {catalogue.model(name).name for name in MODELS[key]} == {key}


def test_every_key_and_every_printed_name_means_itself() -> None:
    parts = {key: hardware.part(key).name for key in hardware.part_keys()}
    for key, name in parts.items():
        assert hardware.part_key(key) == hardware.part_key(key.upper()) == hardware.part_key(name) == key
    for key in catalogue.model_keys():
        assert (
            catalogue.model(catalogue.model_entry(key).name).name == catalogue.model(key.replace("-", " ")).name == key
        )


@pytest.mark.parametrize("name", ["L40", "H20", "H800", "GB300", "MI300A", "RTX 3090", "H100 NVL", "T4", "A10"])
def test_another_card_is_never_taken_for_one_of_ours(name: str) -> None:
    with pytest.raises(ValueError, match="is not known"):
        key_of(KNOWN, hardware=name)


@pytest.mark.parametrize(
    "name",
    [
        "Llama-3.1-8B",
        "meta-llama/Llama-3.1-70B-Instruct",
        "Mistral-7B-Instruct-v0.3",
        "DeepSeek-R1",
        "DeepSeek-V3.1",
        "Phi-3-mini-128k-instruct",
        "llama-4",
        "gpt-4",
        "qwen3-30b",
        "instruct",
        "",
        " / ",
    ],
)
def test_another_model_is_never_taken_for_one_of_ours(name: str) -> None:
    with pytest.raises(ValueError, match="is not known"):
        key_of(KNOWN, model=name)


def test_a_name_that_fits_several_is_answered_with_them() -> None:
    with pytest.raises(ValueError, match="^model='llama 70b' may be 'llama-2-70b' or 'llama-3-70b'; say which$"):
        key_of(KNOWN, model="llama 70b")
    with pytest.raises(
        ValueError, match="^part='x' may be 'x-0', 'x-1', 'x-2', 'x-3', 'x-4', 'x-5' or 2 more; say which$"
    ):
        key_of({f"x-{number}": () for number in range(8)}, part="x")


@pytest.mark.parametrize("name", FAMILIES)
def test_a_family_is_asked_back_and_no_member_chosen(name: str) -> None:
    with pytest.raises(ValueError, match="^model=.* may be .* or .*; say which$") as refused:
        catalogue.model(name)
    assert all(repr(key) in str(refused.value) for key in FAMILIES[name])


def test_a_family_of_which_one_is_known_is_said_to_be_larger() -> None:
    for name, key in (("olmo", "olmo-2-7b"), ("falcon", "falcon-7b"), ("palm", "palm-540b")):
        with pytest.raises(
            ValueError, match=f"^model='{name}' may be '{key}' or another of that name, which is not known here; say"
        ):
            catalogue.model(name)


def test_what_others_differ_in_may_not_be_left_out() -> None:
    for typed, name in (("llama 7b", "llama-2-7b"), ("phi-3", "phi-3-mini"), ("qwen3", "qwen3-0.6b"), ("", "gpt2")):
        assert not says_all_of(typed, name)
    for typed, name in (("qwen3 30b", "qwen3-30b-a3b"), ("Llama-3-8B-Instruct", "llama-3-8b"), ("gpt2", "gpt2")):
        assert says_all_of(typed, name)


def test_the_nearest_is_named_under_the_name_that_was_typed() -> None:
    with pytest.raises(
        ValueError, match=r"^model='meta-llama/Llama-3\.1-70B' is not known; did you mean 'llama-3-70b' or"
    ):
        key_of(KNOWN, model="meta-llama/Llama-3.1-70B")
    with pytest.raises(ValueError, match=r"^part='' is not known\. See\.$"):
        key_of({"one": ()}, see="See.", part="")


def test_number_formats_have_the_names_of_frameworks_too() -> None:
    named = [dtypes.dtype_named(dtype=name) for name in ("bfloat16", "Float16", "half", "FP-8", "nvfp4", "E4M3")]
    assert named == ["bf16", "fp16", "fp16", "fp8", "nvfp4", "fp8"]
    with pytest.raises(ValueError, match="^cache='bf17' is not known; did you mean 'bf16'"):
        dtypes.dtype_named(cache="bf17")
