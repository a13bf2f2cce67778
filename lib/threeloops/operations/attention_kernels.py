"""Attention kernels: how fast causal attention is forward and backward, by the kernel that computes it.

Between Triton's kernel of early 2023 and cuDNN's on the same H100 lies a factor of three: which kernel a run used is an
input, not a detail.

>>> cudnn, flash = (
...     kernel_rates(kernel, "h100-sxm5", batch=4, num_heads=16, num_kv_heads=16, head_dim=128, tokens=4096)
...     for kernel in ("cudnn", "flash-2")
... )
>>> round(cudnn.forward_flops_per_s / flash.forward_flops_per_s, 1)
1.9

Source: recordings of one H100 and one H200; facts/kernel_times.py (forward, other cards); catalog/printed_rates.toml
"""

import functools
import math
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass

from threeloops import checks
from threeloops.facts.kernel_times import PREFILL, kernel_table
from threeloops.facts.printed_rates import attention_rates
from threeloops.facts.recorded import Measured, find
from threeloops.operations.attention import attention, attention_backward_flops
from threeloops.operations.expected_times import expected_prefill

# Which kernels are known on which parts. On Blackwell's, the kernel that was timed is that of TensorRT-LLM.
PARTS_OF = {
    "cudnn": ("h100-sxm5", "h200-sxm", "b200-hgx", "b300-hgx", "gb200", "gb300"),
    "flash-2": ("a100-sxm4-80gb", "l40s", "h100-sxm5", "h200-sxm"),
    "triton-2023": ("a100-sxm4-80gb", "h100-sxm5"),
}
RECORDED = {"cudnn": "attention_cudnn", "flash-2": "attention_causal"}  # by the names of the recordings' cases
RECORDED_PARTS = ("h100-sxm5", "h200-sxm")
LENGTHS = (512, 1024, 2048, 4096, 8192, 16384)  # of the recordings: 16 heads of 128, and 16,384 tokens in all
HEADS, HEAD_DIM, TOKENS = 16, 128, 16384
SOME_RECORDED = "h100-sxm5"  # whose ratio of backward to forward stands in where only forward was timed


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelRates:
    """FLOP/s that a causal attention kernel reaches, where half of the square counts; backward five products."""

    forward_flops_per_s: float
    backward_flops_per_s: float


def kernel_rates(
    kernel: str, part: str, *, batch: int, num_heads: int, num_kv_heads: int, head_dim: int, tokens: int
) -> KernelRates:
    """What a kernel reaches on a part.

    Formula:  recorded parts: the recording's rate at this length; other parts: the rate of the timed forward kernel,
              backward by the recorded ratio of both at this length. Triton's of 2023: the printed rates, on an H100
              times what FlashAttention-2 gained there over an A100 at 16,384 tokens, where neither waits for a launch
    Assumes:  between the lengths measured, linear in logarithms, beyond them the last; recorded rates hold for any
              heads; a head runs as the widest measured one that is not wider than it
    Raises:   ValueError for a kernel that is not known, and for a part on which it was not measured
    Measured: tests.operations.test_attention_kernels.test_a_recorded_length_is_its_recording

    >>> kernel_rates("cudnn", "l40s", batch=1, num_heads=8, num_kv_heads=8, head_dim=128, tokens=4096)
    Traceback (most recent call last):
    ValueError: part='l40s' is not known. Known: h100-sxm5, h200-sxm, b200-hgx, b300-hgx, gb200, gb300
    """
    checks.one_of(PARTS_OF, kernel=kernel)
    checks.one_of(PARTS_OF[kernel], part=part)
    if kernel == "triton-2023":
        return _triton(part, tokens)
    if part in RECORDED_PARTS:
        return KernelRates(
            forward_flops_per_s=_recorded(kernel, part, "", tokens),
            backward_flops_per_s=_recorded(kernel, part, "_backward", tokens),
        )
    forward = _timed(part, batch, num_heads, num_kv_heads, head_dim, tokens)
    ratio = _recorded(kernel, SOME_RECORDED, "_backward", tokens) / _recorded(kernel, SOME_RECORDED, "", tokens)
    return KernelRates(forward_flops_per_s=forward, backward_flops_per_s=forward * ratio)


def usual_kernel(part: str) -> str:
    """The fastest kernel that is known on a part.

    Raises:   ValueError for a part on which none was measured

    >>> usual_kernel("h100-sxm5"), usual_kernel("a100-sxm4-80gb")
    ('cudnn', 'flash-2')
    """
    checks.one_of({one for parts in PARTS_OF.values() for one in parts}, part=part)
    return next(kernel for kernel, parts in PARTS_OF.items() if part in parts)


def _triton(part: str, tokens: int) -> KernelRates:
    printed = attention_rates("triton-2023")
    gain = 1.0
    if part != printed.part:
        gain = _recorded("flash-2", part, "", TOKENS) / _timed(printed.part, 1, HEADS, HEADS, HEAD_DIM, TOKENS)
    forward, backward = (
        _between(printed.tokens, rates, tokens) * gain
        for rates in (printed.forward_flops_per_s, printed.backward_flops_per_s)
    )
    return KernelRates(forward_flops_per_s=forward, backward_flops_per_s=backward)


def _timed(part: str, batch: int, num_heads: int, num_kv_heads: int, head_dim: int, tokens: int) -> float:
    """The rate of a forward kernel, by the tables of single kernels."""
    widths = kernel_table(part, PREFILL, "bf16").measured("head_dim")
    width = max((one for one in widths if one <= head_dim), default=widths[0])
    took = expected_prefill(
        part,
        batch=batch,
        num_heads=num_heads,
        num_kv_heads=num_kv_heads,
        head_dim=width,
        tokens=tokens,
        cache="bf16",
    )
    return _forward_flops(batch, num_heads, width, tokens) / took.seconds


def _recorded(kernel: str, part: str, way: str, tokens: int) -> float:
    return _between(LENGTHS, _recorded_rates(RECORDED[kernel] + way, part), tokens)


@functools.cache
def _recorded_rates(kind: str, part: str) -> tuple[float, ...]:
    rates = []
    for tokens in LENGTHS:
        batch = TOKENS // tokens
        took = find(f"{kind}-bf16-batch{batch}-heads{HEADS}-head_dim{HEAD_DIM}-tokens{tokens}", part)
        assert isinstance(took, Measured)  # tests hold that the shipped recordings have every length
        count = _backward_flops if kind.endswith("_backward") else _forward_flops
        rates.append(count(batch, HEADS, HEAD_DIM, tokens) / took.median)
    return tuple(rates)


def _forward_flops(batch: int, num_heads: int, head_dim: int, tokens: int) -> float:
    return attention(
        batch=batch,
        num_heads=num_heads,
        num_kv_heads=num_heads,
        head_dim=head_dim,
        query_tokens=tokens,
        context_tokens=tokens,
        causal="half",
        fused=True,
        bytes_per_element=2,
    ).flops


def _backward_flops(batch: int, num_heads: int, head_dim: int, tokens: int) -> float:
    return attention_backward_flops(
        batch=batch,
        num_heads=num_heads,
        head_dim=head_dim,
        query_tokens=tokens,
        context_tokens=tokens,
        causal="half",
        recompute="scores",
    )


def _between(lengths: Sequence[int], rates: Sequence[float], length: float) -> float:
    within = min(max(length, lengths[0]), lengths[-1])
    place = min(bisect_right(lengths, within), len(lengths) - 1) - 1
    across = math.log(within / lengths[place]) / math.log(lengths[place + 1] / lengths[place])
    return float(rates[place] ** (1 - across) * rates[place + 1] ** across)
