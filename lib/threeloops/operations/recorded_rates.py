"""Recorded rates: what recordings say of all that runs on a card: how far its clock falls under load, and what a copy
reaches of its memory's rate, and what even the smallest kernel takes.

Source: recordings of one H100 and one H200
"""

from functools import cache

from threeloops.facts import hardware
from threeloops.facts.recorded import Measured, find

RECORDED_PARTS = ("h100-sxm5", "h200-sxm")
SHORT, LONG = "gemm-bf16-m8192-n8192-k8192", "gemm_long-bf16-m8192-n8192-k8192-seconds6"
LONG_FORMAT = "bf16"
COPIED = "copy-fp32-bytes2147483648"
LAUNCHED, LAUNCHES = "launch_graph-fp32-operations1000", 1000


def sustained_share(part: str, format: str) -> float:
    """The rate of products that follow each other for six seconds over that of a few, in a format and on a part in
    which both were recorded; else 1.

    Formula:  seconds of one product of 8,192 on a side among a few / among those of six seconds; at its limit of power
              a card lowers its clock
    Measured: tests.operations.test_recorded_rates.products_per_s

    >>> round(sustained_share("h100-sxm5", "bf16"), 2), sustained_share("b200-hgx", "bf16")
    (0.85, 1.0)
    """
    return _took_s(SHORT, part) / _took_s(LONG, part) if part in RECORDED_PARTS and format == LONG_FORMAT else 1.0


@cache
def copy_share() -> float:
    """The share of the datasheet's memory rate that a copy of 2 GiB reached, on the recorded H100; taken for all
    parts.

    >>> round(copy_share(), 2)
    0.9
    """
    part = RECORDED_PARTS[0]
    copied = 2 * 2**31 / _took_s(COPIED, part)
    return copied / hardware.part(part)["memory_bytes_per_s"]


@cache
def small_kernel_s() -> float:
    """Seconds of a kernel that has next to nothing to do, in a CUDA graph of a thousand, on the recorded H100; taken
    for all parts.

    >>> 1.0 < small_kernel_s() * 1e6 < 1.3
    True
    """
    return _took_s(LAUNCHED, RECORDED_PARTS[0]) / LAUNCHES


@cache
def _took_s(case: str, part: str) -> float:
    took = find(case, part)
    assert isinstance(took, Measured)  # tests hold that the shipped recordings have it
    return took.median
