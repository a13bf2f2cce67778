"""GGUF files against what llama.cpp prints of them: bits per weight of Llama 3.1 8B in tools/quantize/README.md, and
sizes of Llama 3 8B in its list of types.
"""

from dataclasses import replace

import pytest

from threeloops.models.catalogue import model, model_keys
from threeloops.models.parameters import model_parameters
from threeloops.product_loop.gguf_files import file_bytes, file_weights
from threeloops.product_loop.gguf_recipes import FILE_TYPES
from threeloops.units import GiB

PRINTED_BITS = {
    "IQ1_S": 2.0042,
    "IQ1_M": 2.1460,
    "IQ2_XXS": 2.3824,
    "IQ2_XS": 2.5882,
    "IQ2_S": 2.7403,
    "IQ2_M": 2.9294,
    "IQ3_XXS": 3.2548,
    "IQ3_XS": 3.4977,
    "IQ3_S": 3.6606,
    "IQ3_M": 3.7628,
    "IQ4_XS": 4.4597,
    "IQ4_NL": 4.6818,
    "Q2_K_S": 2.9697,
    "Q2_K": 3.1593,
    "Q3_K_S": 3.6429,
    "Q3_K_L": 4.2979,
    "Q4_K_S": 4.6672,
    "Q4_K_M": 4.8944,
    "Q5_K_S": 5.5704,
    "Q5_K_M": 5.7036,
    "Q6_K": 6.5633,
    "Q8_0": 8.5008,
}


@pytest.mark.parametrize(("file_type", "bits"), PRINTED_BITS.items())
def test_bits_per_weight_are_those_that_llama_cpp_prints(file_type: str, bits: float) -> None:
    llama = model("llama-3-8b")
    assert file_bytes(llama, file_type=file_type) * 8 / model_parameters(llama).total == pytest.approx(bits, abs=5e-5)


@pytest.mark.parametrize(("file_type", "gib"), [("Q4_0", 4.34), ("Q5_0", 5.21)])
def test_plain_files_have_the_size_that_llama_cpp_prints(file_type: str, gib: float) -> None:
    # its figures are of whole files, a header of some megabytes included
    assert file_bytes(model("llama-3-8b"), file_type=file_type) / GiB == pytest.approx(gib, abs=0.01)


NOT_COUNTED = {
    "deepseek-v4-flash": "residual streams",
    "deepseek-v4-pro": "residual streams",
    "nemotron-3-super-120b-a12b": "experts behind a narrower width",
    "nemotron-3-ultra-550b-a55b": "experts behind a narrower width",
    "kimi-k3": "attention over earlier residuals",
}


@pytest.mark.parametrize("file_type", FILE_TYPES)
def test_no_weight_is_lost_and_none_is_invented(file_type: str) -> None:
    for key in model_keys():
        if key in NOT_COUNTED:
            with pytest.raises(ValueError, match=f"has {NOT_COUNTED[key]}.*, whose GGUF files are not counted here"):
                file_weights(model(key), file_type=file_type)
            continue
        weights = file_weights(model(key), file_type=file_type)
        assert sum(weights.values()) == model_parameters(model(key)).total
        assert 0 < weights["F32"] < 0.01 * sum(weights.values()), key


def test_a_row_that_no_super_block_divides_is_kept_in_blocks_of_32() -> None:
    # 29,568 columns are 115.5 super-blocks
    weights = file_weights(model("qwen2.5-72b"), file_type="Q4_K_M")
    down = 80 * 29568 * 8192
    assert weights["Q5_0"] + weights["Q8_0"] == down


@pytest.mark.parametrize("file_type", FILE_TYPES)
def test_a_row_that_no_block_divides_is_kept_in_16_bits(file_type: str) -> None:
    # 1,500 wide is 46.875 blocks of 32, and 5.9 of 256
    llama = model("llama-3-8b")
    odd = replace(llama, hidden=1500)
    assert file_weights(odd, file_type=file_type)["F16"] >= 2 * odd.vocab * 1500


def test_an_unknown_type_is_refused_with_the_nearest() -> None:
    with pytest.raises(ValueError, match="file_type='Q4_K_L' is not known; did you mean 'Q4_K_"):
        file_weights(model("llama-3-8b"), file_type="Q4_K_L")


@pytest.mark.parametrize("key", ["llama-2-13b", "llama-3-70b", "mixtral-8x7b", "qwen2.5-72b", "gemma-2-27b"])
def test_a_larger_name_is_a_larger_file_on_other_shapes_too(key: str) -> None:
    """Models without shared heads, of 80 layers, of eight experts, with rows that no super-block divides."""
    for names in (
        ("IQ1_S", "IQ1_M", "IQ2_XXS", "IQ2_XS", "IQ2_S", "IQ2_M", "IQ3_XXS", "IQ3_S", "IQ4_XS", "IQ4_NL"),
        ("Q2_K_S", "Q2_K", "Q3_K_S", "Q3_K_M", "Q3_K_L"),
        ("Q4_K_S", "Q4_K_M", "Q5_K_S", "Q5_K_M", "Q6_K", "Q8_0"),
    ):
        sizes = [file_bytes(model(key), file_type=name) for name in names]
        assert sizes == sorted(sizes)


def test_what_is_small_beside_experts_is_kept_wide() -> None:
    # Mixtral's value and key projections, 32 layers of 1,024 x 4,096 each, stand in Q8_0 beside 2-bit experts
    weights = file_weights(model("mixtral-8x7b"), file_type="Q2_K")
    assert weights["Q8_0"] == 2 * 32 * 1024 * 4096
    assert weights["Q5_K"] == 32 * 4096 * 4096


def test_a_file_of_experts_in_mxfp4_weighs_what_llama_cpp_prints() -> None:
    # ggml-org/llama.cpp, issue 15253, 2025: "file type = MXFP4 MoE, file size = 59.02 GiB (4.34 BPW)", and of its
    # tensors 433 in f32, 146 in q8_0, 108 in mxfp4
    held = file_weights(model("gpt-oss-120b"), file_type="MXFP4_MOE")
    assert set(held) == {"F32", "Q8_0", "MXFP4"}
    assert file_bytes(model("gpt-oss-120b"), file_type="MXFP4_MOE") / 2**30 == pytest.approx(59.02, abs=0.005)
    # shared experts are no stack: only routed ones are in MXFP4
    scout = model("llama-4-scout")
    assert file_weights(scout, file_type="MXFP4_MOE")["MXFP4"] == model_parameters(scout).routed_experts


def test_a_file_of_latent_attention_weighs_what_llama_cpp_prints() -> None:
    # ikawrakow/ik_llama.cpp, pull request 259, 2025: "deepseek2 671B Q4_K - Medium, 376.65 GiB, 671.03 B". That file
    # still rebuilt keys and values by one matrix, all of it in Q4_K: files of today take 0.06 GiB more
    deepseek = model("deepseek-r1")
    assert file_bytes(deepseek, file_type="Q4_K_M") / 2**30 == pytest.approx(376.65, abs=0.1)
    assert sum(file_weights(deepseek, file_type="Q4_K_M").values()) == 671_026_404_352


@pytest.mark.parametrize(
    ("key", "printed_gb"), [("qwen3.5-27b", 28.6), ("qwen3.5-35b-a3b", 36.9), ("qwen3.5-397b-a17b", 421.5)]
)
def test_a_hybrids_file_in_q8_0_weighs_what_its_catalogue_prints(key: str, printed_gb: float) -> None:
    # ggml-org/Llama-macOS, pull request 63, 2026: sizes of files that are published in Q8_0
    assert file_bytes(model(key), file_type="Q8_0") / 1e9 == pytest.approx(printed_gb, abs=0.05)


def test_a_hybrids_file_in_q4_k_m_weighs_what_llama_cpp_prints() -> None:
    # ggml-org/llama.cpp, pull request 16095, 2025-11-28: "qwen3next ?B Q4_K - Medium, 45.10 GiB, 79.67 B"
    hybrid = model("qwen3-next-80b-a3b")
    assert file_bytes(hybrid, file_type="Q4_K_M") / GiB == pytest.approx(45.10, rel=0.003)
    assert sum(file_weights(hybrid, file_type="Q4_K_M").values()) / 1e9 == pytest.approx(79.67, abs=0.005)


def test_every_matrix_of_a_hybrid_is_quantised_and_its_place_counted_among_its_like() -> None:
    # what a converter writes of Qwen3.5 27B, by hand: three delta nets, then one attention with a gate beside queries
    hidden, conv, values, wide = 5120, 2 * 16 * 128 + 48 * 128, 48 * 128, 17408
    feeding = 3 * hidden * wide
    delta = hidden * (conv + values + 2 * 48) + values * hidden
    attending = hidden * (2 * 24 * 256 + 2 * 4 * 256) + 24 * 256 * hidden
    narrow = 48 * (delta + feeding) + 16 * (attending + feeding) + 2 * 248_320 * hidden
    weights = file_weights(model("qwen3.5-27b"), file_type="Q8_0")
    assert weights["Q8_0"] == narrow


def test_an_indexers_matrices_are_in_the_file() -> None:
    plain, chosen = model("deepseek-v3"), model("deepseek-v3.2")
    more = sum(file_weights(chosen, file_type="Q8_0").values()) - sum(file_weights(plain, file_type="Q8_0").values())
    wide = file_weights(chosen, file_type="Q8_0")["F32"] - file_weights(plain, file_type="Q8_0")["F32"]
    # queries of 64 heads from 1,536, one key and a weight a head from 7,168; its key's norm alone stays in F32
    assert more - wide == 61 * (64 * 128 * 1536 + (128 + 64) * 7168)
    assert wide == 61 * 2 * 128
