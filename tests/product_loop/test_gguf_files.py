"""GGUF files against what llama.cpp prints of them: bits per weight of Llama 3.1 8B in tools/quantize/README.md, and
sizes of Llama 3 8B in its list of types.
"""

import pytest

from threeloops.models.architecture import Attention
from threeloops.models.catalogue import model, model_keys
from threeloops.models.parameters import model_parameters
from threeloops.product_loop.gguf_files import FILE_TYPES, file_bytes, file_weights
from threeloops.units import GiB

PRINTED_BITS = {
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


@pytest.mark.parametrize("file_type", FILE_TYPES)
def test_no_weight_is_lost_and_none_is_invented(file_type: str) -> None:
    for key in model_keys():
        if any(not isinstance(layer.attention, Attention) for layer, _ in model(key).groups):
            with pytest.raises(ValueError, match=r"has (latent|layers without) attention, whose GGUF files"):
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


def test_an_unknown_type_is_refused_with_the_nearest() -> None:
    with pytest.raises(ValueError, match="file_type='Q4_K_L' is not known; did you mean 'Q4_K_"):
        file_weights(model("llama-3-8b"), file_type="Q4_K_L")
