"""GGUF formats: what a weight takes in the blocks of llama.cpp, by the name that a file or a table prints.

The plain formats (Q4_0 … Q8_0) have blocks of 32 weights, each with a 16-bit scale and, in the …_1 ones, a 16-bit
minimum. The K-quants (Q2_K … Q6_K) have two levels: a super-block of 256 weights has one 16-bit scale, and its 8 or
16 sub-blocks each have a few bits that say which multiple of it is theirs; in Q2_K, Q4_K and Q5_K the same again for
minima.

The small IQ formats store no number for a weight: four or eight weights share an index into a table of points, and
beside it stand signs and scales. IQ4_NL and IQ4_XS have a number for each weight, on a grid of uneven steps.

A name with a letter more (Q4_K_M, Q4_K_S, Q5_K_M) is no block format but a mixture: most tensors in Q4_K, some in
Q6_K, norms in F32. So is a file that is called Q2_K or Q3_K_L. Say which tensor has which format, and take
`mixture_bytes`.

>>> [GGUF_FORMATS[name].bits_per_weight for name in ("Q4_0", "Q8_0", "Q4_K", "Q6_K")]
[4.5, 8.5, 4.5, 6.5625]

Source: llama.cpp, ggml/src/ggml-common.h (block_q4_0 to block_q8_K, with the size of each asserted); k-quants: pull
        request 1684, 2023
"""

from collections.abc import Mapping
from dataclasses import dataclass

from threeloops import checks
from threeloops.units import BITS_PER_BYTE

PLAIN_BLOCK, SUPER_BLOCK = 32, 256
SIGNED_TOGETHER = 8  # weights whose signs are stored together, in seven bits where their product is known


@dataclass(frozen=True, slots=True, kw_only=True)
class GgufFormat:
    """A block of weights as ggml stores it: whole numbers, and scales on one level or on two."""

    name: str
    element_bits: int  # of one weight's number, or of the index that several share
    block: int  # weights of a block, or of a super-block
    together: int = 1  # weights that one index stands for, in a table of points that everybody has
    sign_bits: int = 0  # for each eight weights whose table has no signs
    scale_bits: int = 16  # the block's scale
    min_bits: int = 0  # the block's minimum; 0: the grid is symmetric
    sub_blocks: int = 0  # how many have a scale of their own inside a super-block; 0 in plain formats
    sub_scale_bits: int = 0  # of each
    sub_min_bits: int = 0
    sub_sum_bits: int = 0  # a sum of the sub-block's numbers, kept to save additions later

    def __post_init__(self) -> None:
        checks.count(element_bits=self.element_bits, block=self.block, together=self.together)
        checks.count(at_least=0, sign_bits=self.sign_bits)
        checks.count(at_least=0, scale_bits=self.scale_bits, min_bits=self.min_bits, sub_blocks=self.sub_blocks)
        checks.count(
            at_least=0,
            sub_scale_bits=self.sub_scale_bits,
            sub_min_bits=self.sub_min_bits,
            sub_sum_bits=self.sub_sum_bits,
        )
        checks.divides(part="together", part_value=self.together, whole="block", whole_value=self.block)
        if self.sub_blocks:
            checks.divides(part="sub_blocks", part_value=self.sub_blocks, whole="block", whole_value=self.block)

    @property
    def block_bytes(self) -> int:
        """Bytes of one (super-)block.

        Formula:  (block / together * element_bits + block / 8 * sign_bits + sub_blocks * (sub_scale_bits +
                  sub_min_bits + sub_sum_bits) + scale_bits + min_bits) / 8
        """
        of_sub_blocks = self.sub_blocks * (self.sub_scale_bits + self.sub_min_bits + self.sub_sum_bits)
        numbers = self.block // self.together * self.element_bits + self.block // SIGNED_TOGETHER * self.sign_bits
        return (numbers + of_sub_blocks + self.scale_bits + self.min_bits) // BITS_PER_BYTE

    @property
    def bits_per_weight(self) -> float:
        """Bits that one weight takes, its share of all scales included."""
        return self.block_bytes * BITS_PER_BYTE / self.block


def _plain(name: str, element_bits: int, *, min_bits: int = 0) -> GgufFormat:
    return GgufFormat(name=name, element_bits=element_bits, block=PLAIN_BLOCK, min_bits=min_bits)


def _k_quant(name: str, element_bits: int, *, sub_blocks: int, sub_scale_bits: int, minima: bool = False) -> GgufFormat:
    return GgufFormat(
        name=name,
        element_bits=element_bits,
        block=SUPER_BLOCK,
        min_bits=16 if minima else 0,
        sub_blocks=sub_blocks,
        sub_scale_bits=sub_scale_bits,
        sub_min_bits=sub_scale_bits if minima else 0,
    )


def _indexed(
    name: str,
    index_bits: int,
    *,
    together: int,
    sub_blocks: int,
    sub_scale_bits: int,
    sign_bits: int = 0,
    sub_min_bits: int = 0,
) -> GgufFormat:
    return GgufFormat(
        name=name,
        element_bits=index_bits,
        block=SUPER_BLOCK,
        together=together,
        sign_bits=sign_bits,
        sub_blocks=sub_blocks,
        sub_scale_bits=sub_scale_bits,
        sub_min_bits=sub_min_bits,
    )


GGUF_FORMATS = {
    form.name: form
    for form in (
        GgufFormat(name="F32", element_bits=32, block=1, scale_bits=0),  # norms and biases stay so in every file
        GgufFormat(name="F16", element_bits=16, block=1, scale_bits=0),
        GgufFormat(name="BF16", element_bits=16, block=1, scale_bits=0),
        _plain("Q4_0", 4),
        _plain("Q4_1", 4, min_bits=16),
        _plain("Q5_0", 5),
        _plain("Q5_1", 5, min_bits=16),
        _plain("Q8_0", 8),
        GgufFormat(name="MXFP4", element_bits=4, block=PLAIN_BLOCK, scale_bits=8),  # a power of two as the scale
        _k_quant("Q2_K", 2, sub_blocks=16, sub_scale_bits=4, minima=True),
        _k_quant("Q3_K", 3, sub_blocks=16, sub_scale_bits=6),
        _k_quant("Q4_K", 4, sub_blocks=8, sub_scale_bits=6, minima=True),
        _k_quant("Q5_K", 5, sub_blocks=8, sub_scale_bits=6, minima=True),
        _k_quant("Q6_K", 6, sub_blocks=16, sub_scale_bits=8),
        _indexed("IQ1_S", 11, together=8, sub_blocks=8, sub_scale_bits=3, sub_min_bits=1),  # a bit shifts all points
        _indexed("IQ1_M", 11, together=8, sign_bits=1, sub_blocks=16, sub_scale_bits=3),  # a shift for each eight
        _indexed("IQ2_XXS", 8, together=8, sign_bits=7, sub_blocks=8, sub_scale_bits=4),
        _indexed("IQ2_XS", 9, together=8, sign_bits=7, sub_blocks=16, sub_scale_bits=4),
        _indexed("IQ2_S", 10, together=8, sign_bits=8, sub_blocks=16, sub_scale_bits=4),
        _indexed("IQ3_XXS", 8, together=4, sign_bits=7, sub_blocks=8, sub_scale_bits=4),
        _indexed("IQ3_S", 9, together=4, sign_bits=8, sub_blocks=8, sub_scale_bits=4),
        _plain("IQ4_NL", 4),  # sixteen unevenly spaced values
        _k_quant("IQ4_XS", 4, sub_blocks=8, sub_scale_bits=6),
        # Never in a file: activations beside K-quants, with one fp32 scale and a 16-bit sum for every 16 numbers.
        GgufFormat(name="Q8_K", element_bits=8, block=SUPER_BLOCK, scale_bits=32, sub_blocks=16, sub_sum_bits=16),
    )
}


def tensor_bytes(*, rows: int, columns: int, gguf_format: str) -> int:
    """Bytes of a matrix in one of these formats.

    Formula:  rows * columns / block * block_bytes
    Assumes:  blocks lie along a row, and a row has no incomplete one (llama.cpp gives such a tensor another format)
    Raises:   ValueError for an unknown name, with the known ones, or if a block does not divide the columns
    Source:   llama.cpp, ggml/src/ggml.c, ggml_row_size
    Counted:  simulate.product_loop.gguf_blocks.packed

    >>> tensor_bytes(rows=4096, columns=14336, gguf_format="Q6_K") / 2**20
    45.9375
    """
    checks.count(rows=rows, columns=columns)
    checks.one_of(GGUF_FORMATS, gguf_format=gguf_format)
    form = GGUF_FORMATS[gguf_format]
    checks.divides(part="block", part_value=form.block, whole="columns", whole_value=columns)
    return rows * columns // form.block * form.block_bytes


def mixture_bytes(weights: Mapping[str, int]) -> float:
    """Bytes of all weights of a file whose tensors have several formats, given as weights by format.

    Formula:  sum over formats of weights * bits_per_weight / 8
    Assumes:  only whole blocks; the file's header (names, vocabulary) is not counted
    Raises:   ValueError for an unknown name, with the known ones, or if no weights are given
    Source:   llama.cpp, src/llama-quant.cpp (which tensor gets which format; Q4_K_M: half of the attn_v and ffn_down
              matrices and the head in Q6_K)
    Counted:  simulate.product_loop.gguf_blocks.packed

    >>> mixture_bytes(
    ...     {"Q4_K": 6_498_025_472, "Q6_K": 1_531_969_536, "F32": 266_240}
    ... ) / 2**30  # Llama 3.1 8B in Q4_K_M; printed 4.58
    4.57...
    """
    checks.one_of(GGUF_FORMATS, **{f"format {place}": name for place, name in enumerate(weights, 1)})
    checks.count(at_least=0, **weights)
    if not sum(weights.values()):
        raise ValueError("weights is empty; a file needs at least one weight")
    return sum(number * GGUF_FORMATS[name].bits_per_weight for name, number in weights.items()) / BITS_PER_BYTE
