"""Number formats against the machines that implement them."""

import numpy
import pytest
import torch

from threeloops.dtypes import BITS, PEAK_FORMATS, bytes_per_element

TORCH = {
    "fp64": torch.float64,
    "fp32": torch.float32,
    "bf16": torch.bfloat16,
    "fp16": torch.float16,
    "fp8": torch.float8_e4m3fn,
    "int8": torch.int8,
}


@pytest.mark.parametrize("dtype", TORCH)
def test_plain_formats_take_what_torch_stores(dtype: str) -> None:
    assert bytes_per_element(dtype) == torch.empty(1, dtype=TORCH[dtype]).element_size()


@pytest.mark.parametrize(
    ("dtype", "block", "element_bits"), [("mxfp4", 32, 4), ("mxfp6", 32, 6), ("mxfp8", 32, 8), ("nvfp4", 16, 4)]
)
def test_block_formats_pay_for_their_scales(dtype: str, block: int, element_bits: int) -> None:
    # Pack one block and its 8-bit scale into real bits and count them.
    packed = numpy.packbits(numpy.zeros(block * element_bits + 8, dtype=numpy.uint8))
    assert bytes_per_element(dtype) * block == packed.nbytes


def test_a_block_of_fp8_pays_for_one_32_bit_scale() -> None:
    block, scale = numpy.zeros((128, 128), dtype=numpy.uint8), numpy.zeros(1, dtype=numpy.float32)
    assert bytes_per_element("fp8-block") * block.size == block.nbytes + scale.nbytes


def test_unknown_formats_are_refused_with_near_ones() -> None:
    with pytest.raises(ValueError, match="dtype='bf8' is not known; did you mean"):
        bytes_per_element("bf8")
    with pytest.raises(ValueError, match="is not known"):
        bytes_per_element("BF16")


def test_every_peak_format_that_is_stored_has_a_width() -> None:
    # bare fp6 and fp4 say nothing of their scales
    assert {name.split("_")[0] for name in PEAK_FORMATS} - set(BITS) == {"fp6", "fp4"}
