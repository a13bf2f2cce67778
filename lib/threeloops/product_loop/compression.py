"""Compression: what a quantised, pruned, factorised or distilled model weighs, what it loses, and what it wins.

>>> gptq = Groups(element_bits=4, group=128, scale_bits=16, zero_bits=4)
>>> (
...     gptq.bits_per_weight,
...     round(
...         mixed_bytes(quantised_weights=7_000_000_000, wide_weights=1_000_000_000, groups=gptq, wide_bits=16) / 1e9, 2
...     ),
... )
(4.15625, 5.64)
"""

import math
from dataclasses import dataclass

from threeloops import checks
from threeloops.product_loop import serving
from threeloops.units import BITS_PER_BYTE


@dataclass(frozen=True, slots=True, kw_only=True)
class Groups:
    """Weights on a grid of whole numbers; each group has a scale, and a zero point if the grid need not be symmetric.

    Source: Frantar et al., GPTQ, 2023, arXiv:2210.17323, section 5 (groups of 128 and less); the layout qweight,
            qzeros, scales of GPTQ checkpoints
    """

    element_bits: int
    group: int  # weights that share a scale
    scale_bits: int
    zero_bits: int  # 0: symmetric, no zero point is stored

    def __post_init__(self) -> None:
        checks.count(element_bits=self.element_bits, group=self.group, scale_bits=self.scale_bits)
        checks.count(at_least=0, zero_bits=self.zero_bits)

    @property
    def bits_per_weight(self) -> float:
        """Element bits + (scale bits + zero-point bits) / group: what one weight takes in a large tensor."""
        return self.element_bits + (self.scale_bits + self.zero_bits) / self.group


def quantised_bytes(weights: int, groups: Groups) -> float:
    """Bytes of a tensor, its last, perhaps incomplete, group included.

    Formula:  (weights * element bits + ceil(weights / group) * (scale bits + zero-point bits)) / 8
    Assumes:  packed without gaps
    Source:   by definition: elements, and the scale and zero point of each group
    Counted:  simulate.product_loop.narrow_weights.packed_groups

    >>> quantised_bytes(4096, Groups(element_bits=4, group=128, scale_bits=16, zero_bits=4))
    2128.0
    """
    checks.count(weights=weights)
    return (
        weights * groups.element_bits + math.ceil(weights / groups.group) * (groups.scale_bits + groups.zero_bits)
    ) / BITS_PER_BYTE


def mixed_bytes(*, quantised_weights: int, wide_weights: int, groups: Groups, wide_bits: int) -> float:
    """Bytes of a model whose embeddings, head and norms stay wide, as most recipes leave them.

    Formula:  quantised bytes + wide weights * wide bits / 8
    Source:   by definition
    Counted:  drills.compression.weights.MODEL
    """
    checks.count(at_least=0, wide_weights=wide_weights)
    checks.count(wide_bits=wide_bits)
    return quantised_bytes(quantised_weights, groups) + wide_weights * wide_bits / BITS_PER_BYTE


def bitmask_bytes(weights: int, *, kept: int, element_bits: int) -> float:
    """Bytes of a pruned tensor: one bit per place says whether a weight stands there, then the weights that do.

    Formula:  (weights + kept * element bits) / 8
    Assumes:  unstructured pruning: any weight may be gone. Two of four is cheaper to index: see `sparsity`
    Source:   by definition: a bit for every place, and what is kept
    Counted:  simulate.product_loop.narrow_weights.masked

    >>> bitmask_bytes(1000, kept=300, element_bits=16)
    725.0
    """
    _check_pruned(weights, kept, element_bits)
    return (weights + kept * element_bits) / BITS_PER_BYTE


def index_bytes(weights: int, *, kept: int, element_bits: int, index_bits: int) -> float:
    """Bytes of a pruned tensor: every kept weight brings the number of its place along.

    Formula:  kept * (element bits + index bits) / 8
    Raises:   ValueError if the index cannot count to the number of places
    Source:   by definition: where, and what, for every weight kept
    Counted:  simulate.product_loop.narrow_weights.indexed

    >>> index_bytes(1000, kept=300, element_bits=16, index_bits=16)
    1200.0
    """
    _check_pruned(weights, kept, element_bits)
    checks.count(index_bits=index_bits)
    if weights > 2**index_bits:
        raise ValueError(
            f"index_bits={index_bits} tells {2**index_bits:,} places apart, and there are weights={weights:,}; take a"
            " wider index or cut the tensor up"
        )
    return kept * (element_bits + index_bits) / BITS_PER_BYTE


def bitmask_break_even_density(*, element_bits: int) -> float:
    """The share of kept weights below which a bitmask is smaller than the whole tensor.

    Formula:  1 - 1 / element bits: the mask costs one bit in every place
    Source:   by definition of a break-even
    Counted:  simulate.product_loop.narrow_weights.masked

    >>> bitmask_break_even_density(element_bits=16), bitmask_break_even_density(element_bits=4)
    (0.9375, 0.75)
    """
    checks.count(element_bits=element_bits)
    return 1 - 1 / element_bits


def distillation_flops(*, teacher_parameters: float, student_parameters: float, tokens: float) -> float:
    """FLOPs of training a student on a teacher's outputs.

    Formula:  tokens * (6 * student parameters + 2 * teacher parameters): the student learns, the teacher only answers
    Assumes:  dense models, attention's own products left out, the teacher's outputs not kept from before
    Source:   Kaplan et al., 2020, arXiv:2001.08361, section 2.1 (2N forward, 6N in training); Hinton et al., 2015,
              arXiv:1503.02531, section 2
    Counted:  drills.compression.pruning.STUDENT

    >>> distillation_flops(teacher_parameters=70e9, student_parameters=8e9, tokens=1e9) / 1e18
    188.0
    """
    checks.positive(teacher_parameters=teacher_parameters, student_parameters=student_parameters, tokens=tokens)
    return tokens * (6 * student_parameters + 2 * teacher_parameters)


def break_even_tokens(*, teacher_parameters: float, student_parameters: float, training_tokens: float) -> float:
    """Tokens to be served until the student's training has paid for itself.

    Formula:  distillation FLOPs / (2 * (teacher parameters - student parameters))
    Assumes:  a FLOP costs the same in training and in serving
    Raises:   ValueError for a student that is not smaller
    Source:   by definition of a break-even, with the 2 and 6 FLOPs per parameter and token of Kaplan et al., 2020,
              arXiv:2001.08361
    Counted:  drills.compression.pruning.STUDENT

    >>> round(break_even_tokens(teacher_parameters=70e9, student_parameters=8e9, training_tokens=1e9) / 1e9, 3)
    1.516
    """
    spent = distillation_flops(
        teacher_parameters=teacher_parameters, student_parameters=student_parameters, tokens=training_tokens
    )
    if student_parameters >= teacher_parameters:
        raise ValueError(
            f"student_parameters={student_parameters:g} are not fewer than teacher_parameters={teacher_parameters:g};"
            " serving it would save nothing"
        )
    return spent / (2 * (teacher_parameters - student_parameters))


def step_speedup(
    *,
    weights_bytes: float,
    narrow_bytes: float,
    cache_bytes: float,
    tokens: int,
    flops_per_token: float,
    memory_bytes_per_s: float,
    peak_flops_per_s: float,
) -> float:
    """How many times shorter a step becomes when weights are stored narrow and widened on the chip: nearly all in
    decoding, nothing in prefill.

    Formula:  step time with weights_bytes / step time with narrow_bytes, each by serving.decode_step_s
    Units:    tokens go through the step together: the batch of a decode step, the prompt of a prefill.
              peak_flops_per_s is in FLOP/s
    Assumes:  arithmetic stays in the wide format, and widening is free; real kernels lose some of it
    Source:   Frantar et al., GPTQ, 2023, arXiv:2210.17323, section 5 (speed-up of generation from moving less, none
              of arithmetic)
    Counted:  drills.compression.weights.FASTER

    >>> llama = {
    ...     "weights_bytes": 16e9,
    ...     "narrow_bytes": 4e9,
    ...     "cache_bytes": 0,
    ...     "flops_per_token": 16e9,
    ...     "memory_bytes_per_s": 2e12,
    ...     "peak_flops_per_s": 1e15,
    ... }
    >>> step_speedup(tokens=1, **llama), step_speedup(tokens=4000, **llama)
    (4.0, 1.0)
    """
    one = {
        "cache_bytes": cache_bytes,
        "batch": tokens,
        "flops_per_token": flops_per_token,
        "memory_bytes_per_s": memory_bytes_per_s,
        "peak_flops_per_s": peak_flops_per_s,
    }
    wide, narrow = (serving.decode_step_s(weights_bytes=read, **one) for read in (weights_bytes, narrow_bytes))  # type: ignore[arg-type]
    return wide / narrow


def noise_power(step: float) -> float:
    """Mean squared error of rounding to a grid, when the error falls anywhere between two points equally often.

    Formula:  step^2 / 12
    Assumes:  steps small against the signal, nothing clipped
    Source:   Bennett, "Spectra of Quantized Signals", Bell System Technical Journal 27(3), 1948; Kester, MT-001,
              Analog Devices, 2008 (q / sqrt(12))
    Counted:  simulate.product_loop.narrow_weights.noise_power
    """
    checks.positive(step=step)
    return step**2 / 12


def sqnr_db(bits: int, *, crest: float) -> float:
    """Signal to quantisation noise of a uniform grid of 2^bits points that just holds the signal, in decibels.

    Formula:  10 log10(3 * 4^bits / crest^2) = 6.02 bits + 4.77 - 20 log10(crest)
    Units:    crest is the peak over the root mean square: sqrt(2) for a sine (1.76 dB more than 6.02 bits), sqrt(3)
              for evenly spread values (0 dB), and the larger the outlier, the worse
    Source:   Kester, "Taking the Mystery out of the Infamous Formula, SNR = 6.02N + 1.76dB", MT-001, Analog Devices,
              2008 (the sine)
    Counted:  simulate.product_loop.narrow_weights.noise_power

    >>> round(sqnr_db(8, crest=2**0.5), 2)
    49.93
    """
    checks.count(bits=bits)
    _check_crest(crest)
    return 10 * math.log10(3 * 4**bits / crest**2)


def _check_crest(crest: float) -> None:
    checks.positive(crest=crest)
    if crest < 1:
        raise ValueError(f"crest={crest} is below 1; no signal's peak is smaller than its root mean square")


def _check_pruned(weights: int, kept: int, element_bits: int) -> None:
    checks.count(weights=weights, element_bits=element_bits)
    checks.count(at_least=0, kept=kept)
    if kept > weights:
        raise ValueError(f"kept={kept:,} is more than weights={weights:,}; pruning only takes away")
