"""Block formats: a few bits per value, and one scale that a block of values shares. llama.cpp's (Q4_0, Q4_K, …) are
in `product_loop/gguf_formats.py`.

>>> MXFP4.bits_per_element, NVFP4.bits_per_element, MXFP8_E4M3.bits_per_element
(4.25, 4.5, 8.25)

Source: OCP Microscaling Formats (MX) v1.0, 2023, sections 5 and 6.3; NVIDIA, "Pretraining Large Language Models with
        NVFP4", 2025, arXiv:2509.25149
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from threeloops import checks
from threeloops.inner_loop.number_formats import E2M1, E2M3, E3M2, E4M3, E5M2, FP32, Format, rounded
from threeloops.units import BITS_PER_BYTE

# E8M0: eight exponent bits and nothing else, so powers of two from 2^-127 to 2^127, and one pattern for NaN.
E8M0_BITS, E8M0_EXPONENTS = 8, (-127, 127)


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockFormat:
    """Elements in a small format, one scale per block, and in some formats one more per tensor."""

    name: str
    element: Format
    block: int  # elements that share a scale
    scale: Format | None = None  # None: a power of two in E8M0
    tensor_scale_bits: int = 0

    def __post_init__(self) -> None:
        checks.count(block=self.block)
        checks.count(tensor_scale_bits=self.tensor_scale_bits, at_least=0)

    @property
    def scale_bits(self) -> int:
        return E8M0_BITS if self.scale is None else self.scale.bits

    @property
    def bits_per_element(self) -> float:
        """Bits that one element takes in a large tensor, its share of the block's scale included."""
        return self.element.bits + self.scale_bits / self.block


MXFP8_E5M2 = BlockFormat(name="MXFP8 E5M2", element=E5M2, block=32)
MXFP8_E4M3 = BlockFormat(name="MXFP8 E4M3", element=E4M3, block=32)
MXFP6_E3M2 = BlockFormat(name="MXFP6 E3M2", element=E3M2, block=32)
MXFP6_E2M3 = BlockFormat(name="MXFP6 E2M3", element=E2M3, block=32)
MXFP4 = BlockFormat(name="MXFP4", element=E2M1, block=32)
NVFP4 = BlockFormat(name="NVFP4", element=E2M1, block=16, scale=E4M3, tensor_scale_bits=32)
# DeepSeek-V3's activations, arXiv:2412.19437, section 3.3.2
FP8_TILES = BlockFormat(name="FP8 tiles", element=E4M3, block=128, scale=FP32)
BLOCK_FORMATS = {form.name: form for form in (FP8_TILES, MXFP8_E5M2, MXFP8_E4M3, MXFP6_E3M2, MXFP6_E2M3, MXFP4, NVFP4)}


def stored_bytes(elements: int, form: BlockFormat) -> float:
    """Bytes of a whole tensor, the last block's scale and the tensor's own included.

    Formula:  (elements × element bits + ceil(elements / block) × scale bits + tensor scale bits) / 8
    Assumes:  elements packed without gaps; padding for a chip's layout would come on top
    Counted:  simulate.inner_loop.packed_blocks.packed

    >>> stored_bytes(4096, NVFP4)
    2308.0
    """
    checks.count(elements=elements)
    blocks = math.ceil(elements / form.block)
    return (elements * form.element.bits + blocks * form.scale_bits + form.tensor_scale_bits) / BITS_PER_BYTE


@dataclass(frozen=True, slots=True, kw_only=True)
class Quantised:
    """A tensor in a block format: what is stored, and the values it stands for."""

    form: BlockFormat
    elements: tuple[float, ...]  # numbers of the element format
    scales: tuple[float, ...]  # one per block, as stored
    tensor_scale: float

    @property
    def values(self) -> tuple[float, ...]:
        return tuple(
            element * self.scales[place // self.form.block] * self.tensor_scale
            for place, element in enumerate(self.elements)
        )


def quantised(values: Sequence[float], form: BlockFormat) -> Quantised:
    """The values in a block format, every block scaled by its own largest value, elements rounded to nearest even and
    saturated.

    Formula:  MX: scale = 2^(floor(log2 of the block's largest) - largest exponent of the element format)
              others: scale = block's largest / largest element, rounded to the scale format
              NVFP4: the same after division by the tensor scale = largest / (448 × 6)
    Assumes:  blocks along the values as given; elements are divided by the scale as stored, not by the ideal one
    Source:   OCP MX v1.0, section 6.3 (a recommendation: implementations may choose otherwise); arXiv:2509.25149,
              appendix on quantisation
    Counted:  simulate.inner_loop.packed_blocks.unpacked
    Measured: measure.inner_loop.number_formats.cast

    >>> quantised([0.1, -0.7, 3.0, 24.0], MXFP4).values
    (0.0, -0.0, 4.0, 24.0)
    """
    if not values:
        raise ValueError("values is empty; a block format needs at least one value")
    tensor_scale = _tensor_scale(values, form)
    blocks = [values[start : start + form.block] for start in range(0, len(values), form.block)]
    scales = tuple(_block_scale(max(map(abs, block)) / tensor_scale, form) for block in blocks)
    elements = tuple(
        rounded(value / (scale * tensor_scale), form.element, overflow="saturate") if scale else 0.0
        for block, scale in zip(blocks, scales, strict=True)
        for value in block
    )
    return Quantised(form=form, elements=elements, scales=scales, tensor_scale=tensor_scale)


def _tensor_scale(values: Sequence[float], form: BlockFormat) -> float:
    """Puts the largest block scale at the top of the scale format; a tensor of zeros keeps 1."""
    largest = max(map(abs, values))
    return (
        largest / (form.scale.largest * form.element.largest)
        if form.scale and form.tensor_scale_bits and largest
        else 1.0
    )


def _block_scale(largest: float, form: BlockFormat) -> float:
    if form.scale:
        return rounded(largest / form.element.largest, form.scale, overflow="saturate")
    low, high = E8M0_EXPONENTS
    exponent = math.frexp(largest)[1] - 1 - form.element.largest_exponent if largest else low
    return 2.0 ** min(max(exponent, low), high)
