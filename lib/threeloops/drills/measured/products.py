"""Drills on matrix products that somebody timed: which roof they had, and how far below it they stayed."""

import functools
import random

from threeloops.drills.engine import catalogued
from threeloops.drills.engine.drill import Derivation, Draw, Drill, Slip, Taught, drawn
from threeloops.drills.engine.phrasing import tera
from threeloops.drills.measured.counted import walked_product
from threeloops.drills.measured.rows import REPLAYED, TimedCall, chosen, took
from threeloops.facts.kernel_times import MATMUL
from threeloops.operations import roofline
from threeloops.operations.expected_times import kernel_work
from threeloops.units import fmt_si

TAUGHT = Taught("inner", "Roofline")
TENSOR_CORES = Taught("inner", "GEMM and tensor cores")

SOURCE_ROOFLINE = "Williams, Waterman, Patterson, CACM 52(4), 2009, doi:10.1145/1498765.1498785"


def times(p: Draw, *, peak: float) -> roofline.Time:
    """A product's two times, with results in 16 bits."""
    work = kernel_work(MATMUL, {"m": p.m, "n": p.n, "k": p.k}, p.format)
    return roofline.time(work, peak_flops_per_s=peak, memory_bytes_per_s=p.memory)


def call_bound(call: TimedCall) -> roofline.Time:
    """The two times of a timed call."""
    work = kernel_work(MATMUL, call.sizes, call.format)
    return roofline.time(work, peak_flops_per_s=call.peak, memory_bytes_per_s=call.rate)


def shape(p: Draw) -> str:
    """A product in words."""
    return f"[{p.m:,} × {p.k:,}] by [{p.k:,} × {p.n:,}]"


# --- the share of an FP8 product's own roof --------------------------------------------------------


@functools.cache
def _fp8_calls() -> tuple[TimedCall, ...]:
    def asked(call: TimedCall) -> bool:
        bound = call_bound(call)
        return bound.compute_s > 1.2 * bound.memory_s and {"fp8", "bf16"} <= set(
            catalogued.part(call.part).sparse_peaks
        )

    return chosen(MATMUL, "fp8", where=asked)


def _draw_fp8(rng: random.Random) -> Draw:
    call = rng.choice(_fp8_calls())
    part = catalogued.part(call.part)
    return drawn(
        **call.sizes,
        format="fp8",
        device=call.device,
        engine=call.engine,
        seconds=call.seconds,
        sparse=part.sparse_peak_flops_per_s("fp8"),
        sparse_16=part.sparse_peak_flops_per_s("bf16"),
        memory=call.rate,
        row=call.source,
    )


def _derive_fp8(p: Draw) -> Derivation:
    bound = times(p, peak=p.sparse / 2)
    moved = f"({p.m} × {p.k} + {p.k} × {p.n} + 2 × {p.m} × {p.n}) / {tera(p.memory)}"
    return Derivation(
        value=bound.lower_bound_s / p.seconds,
        formula="longer of (2 × m × n × k / dense FP8 peak) and (bytes / bandwidth), over the measured time",
        substitution=f"max(2 × {p.m} × {p.n} × {p.k} / ({tera(p.sparse)} / 2), {moved}) / {p.seconds!r}",
        source=f"{SOURCE_ROOFLINE}; {p.row}",
    )


def _count_fp8(p: Draw) -> float:
    """Operation by operation, byte by byte: of every four printed operations two are done, the others are zeros that
    dense weights do not have.
    """
    operations, moved = walked_product(m=p.m, n=p.n, k=p.k, operand_bytes=1)
    done_per_s = sum(1 for operation in range(p.sparse) if operation % 4 < 2)
    return float(sorted((operations / done_per_s, moved / p.memory))[-1] / p.seconds)


FP8_SHARE = Drill(
    key="measured-fp8-share",
    taught=TENSOR_CORES,
    title="The roof of an FP8 matmul",
    unit="",
    target_s=90,
    draw=_draw_fp8,
    small=lambda rng: drawn(
        m=rng.randrange(6, 12),
        n=rng.randrange(6, 12),
        k=rng.randrange(6, 12),
        format="fp8",
        device="drawn",
        engine="drawn",
        seconds=rng.randrange(51, 99) / 10,
        sparse=2 * rng.randrange(300, 700, 10),
        sparse_16=rng.randrange(300, 700, 10),
        memory=2000,
        row="drawn in 2026",
    ),
    prompt=lambda p: (
        f"On an {p.device}, the FP8 linear layer of {p.engine} multiplied {shape(p)} in {took(p.seconds)}, with what"
        f" the layer does to its input ({REPLAYED}). Operands are FP8 (1 byte), results BF16 (2 bytes), each moved"
        f" once. The datasheet gives {fmt_si(p.sparse_16, 'FLOP/s')} in BF16 and {fmt_si(p.sparse, 'FLOP/s')} in FP8,"
        f" both with 2:4 sparsity, and {fmt_si(p.memory, 'B/s')} of memory bandwidth. The weights are dense. What"
        " share of its roof did the matmul reach?"
    ),
    derive=_derive_fp8,
    count=_count_fp8,
    slips=(
        Slip("sparse-peak", lambda p: times(p, peak=p.sparse).compute_s / p.seconds)
        | "Half of it: either the peak is still the sparse one, or a multiply-add was counted once.",
        Slip("sixteen-bit-peak", lambda p: times(p, peak=p.sparse_16 / 2).compute_s / p.seconds)
        | "You held an FP8 matmul against the dense rate of BF16. Which format do the tensor cores multiply?",
        Slip("memory-roof", lambda p: times(p, peak=p.sparse / 2).memory_s / p.seconds)
        | "You took the bytes for the roof. Compare how long the bytes and the arithmetic take.",
        Slip("upside-down", lambda p: p.seconds / times(p, peak=p.sparse / 2).compute_s)
        | "That is how many times longer it took than its roof. Turn it over.",
        Slip("share-lost", lambda p: 1 - times(p, peak=p.sparse / 2).compute_s / p.seconds)
        | "That is the share that was lost.",
    ),
)

# --- the rate at which few rows read their weights --------------------------------------------------

FEW_ROWS, BEYOND_L2 = 256, 133e6  # rows; bytes of weights that no L2 of these cards keeps from call to call
WIDTHS = {"bf16": 2, "fp8": 1}


@functools.cache
def _thin_calls() -> tuple[TimedCall, ...]:
    return chosen(
        MATMUL,
        *WIDTHS,
        where=lambda call: (
            1 < call.sizes["m"] <= FEW_ROWS
            and WIDTHS[call.format] * call.sizes["n"] * call.sizes["k"] > BEYOND_L2
            and call_bound(call).bound == "memory"
        ),
    )


def _draw_thin(rng: random.Random) -> Draw:
    call = rng.choice(_thin_calls())
    return drawn(
        **call.sizes,
        format=call.format,
        width=WIDTHS[call.format],
        device=call.device,
        engine=call.engine,
        seconds=call.seconds,
        memory=call.rate,
        row=call.source,
    )


def _small_thin(rng: random.Random) -> Draw:
    kind = rng.choice(tuple(WIDTHS))
    return drawn(
        m=rng.randrange(2, 5),
        n=rng.randrange(10, 30),
        k=rng.randrange(10, 30),
        format=kind,
        width=WIDTHS[kind],
        seconds=rng.randrange(21, 99) / 10,
        memory=1000,
        row="drawn in 2026",
    )


def _moved(p: Draw) -> float:
    return kernel_work(MATMUL, {"m": p.m, "n": p.n, "k": p.k}, p.format).moved_bytes


def _count_thin(p: Draw) -> float:
    _, moved = walked_product(m=p.m, n=p.n, k=p.k, operand_bytes=p.width)
    return moved / float(p.seconds)


THIN = Drill(
    key="measured-thin-product",
    taught=TAUGHT,
    title="The rate at which weights are read",
    unit="B/s",
    target_s=75,
    draw=_draw_thin,
    small=_small_thin,
    prompt=lambda p: (
        f"On an {p.device}, the {p.format.upper()} linear layer of {p.engine} took {took(p.seconds)} for {p.m} tokens:"
        f" {shape(p)} ({REPLAYED}). Input and weights are {p.format.upper()}, the output is BF16; each moves once, and"
        " the weights are too large for the L2 to keep them from one replay to the next. The datasheet promises"
        f" {fmt_si(p.memory, 'B/s')}. At what rate did memory deliver?"
    ),
    derive=lambda p: Derivation(
        value=_moved(p) / p.seconds,
        formula="bytes of input, weights and output, each moved once / measured time",
        substitution=f"({p.width} × ({p.m} × {p.k} + {p.k} × {p.n}) + 2 × {p.m} × {p.n}) / {p.seconds!r}",
        source=f"{SOURCE_ROOFLINE}; {p.row}",
    ),
    count=_count_thin,
    slips=(
        Slip("other-width", lambda p: _moved(p) * (3 - p.width) / p.width / p.seconds)
        | "You gave each element the width of the other format. How many bytes has one in this layer?",
        Slip("four-bytes", lambda p: _moved(p) * 4 / p.width / p.seconds)
        | "You moved four bytes per element. That is FP32.",
        Slip("datasheet", lambda p: p.memory)
        | "That is what the datasheet promises. The question is what this call got.",
        Slip("weights-per-token", lambda p: (p.width * (p.m * p.k + p.m * p.k * p.n) + 2 * p.m * p.n) / p.seconds)
        | "You read the weights once for each token. All tokens of the call share one reading.",
        Slip("bits", lambda p: 8 * _moved(p) / p.seconds) | "You counted bits. Memory bandwidth is quoted in bytes.",
    ),
)

DRILLS = (FP8_SHARE, THIN)
