"""Drills on the roofline's two ingredients: the ridge point of a machine, and the arithmetic intensity of a product.

Parts are real ones, read from the catalogue when a question is drawn. Shapes are drawn so that a forgotten operand
costs another factor than a forgotten byte or a multiply-add counted once.
"""

import random

from threeloops.drills.engine import catalogued
from threeloops.drills.engine.drill import Derivation, Draw, Drill, Slip, Taught, drawn
from threeloops.drills.engine.phrasing import tera
from threeloops.operations import kernels, roofline
from threeloops.units import fmt_si

TAUGHT = Taught("inner", "Roofline")

SOURCE_ROOFLINE = "Williams, Waterman, Patterson, CACM 52(4), 2009, doi:10.1145/1498765.1498785"
SOURCE_PART = f"{SOURCE_ROOFLINE}; rates of the part: see `threeloops sources`, read in 2026"
SOURCE_GEMM = f"{SOURCE_ROOFLINE} (each operand moved once: compulsory traffic)"


def dense(key: str, dtype: str = "bf16") -> dict[str, object]:
    """A part's name, its dense matrix peak and its memory bandwidth, as the numbers of a draw."""
    part = catalogued.part(key)
    return {"part": part.name, "peak": part.peak_flops_per_s(dtype), "memory": part["memory_bytes_per_s"]}


def roofs(p: Draw) -> str:
    """The two roofs as they stand in a prompt."""
    return f"{fmt_si(p.peak, 'FLOP/s')} dense in BF16, {fmt_si(p.memory, 'B/s')} of memory bandwidth"


# --- ridge point --------------------------------------------------------------------------------

RIDGE_PARTS = ("h100-sxm5", "a100-sxm4-80gb", "a100-sxm4-40gb", "b200-hgx", "gb200", "mi300x")
RIDGE_FORMATS = ("tf32", "bf16", "fp8")


def _draw_ridge(rng: random.Random) -> Draw:
    part = catalogued.part(rng.choice(RIDGE_PARTS))
    dtype = rng.choice([dtype for dtype in RIDGE_FORMATS if dtype in part.sparse_peaks])
    rates = {
        "sparse": part.sparse_peak_flops_per_s(dtype),
        "fp32": part.peak_flops_per_s("fp32"),
        "memory": part["memory_bytes_per_s"],
    }
    return drawn(part=part.name, dtype=dtype.upper(), **rates, link=2 * part["link_bytes_per_s_one_way"])


def _small_ridge(rng: random.Random) -> Draw:
    memory, ridge = rng.choice((2, 4)), rng.choice((37, 50, 61))
    return drawn(part="drawn", dtype="BF16", sparse=2 * memory * ridge, fp32=memory * 7, memory=memory, link=1)


def _count_ridge(p: Draw) -> float:
    """Kernels of more and more FLOPs per byte, until a second of memory traffic brings work for a whole second of
    arithmetic.
    """
    # of every four weights two are pruned away: nothing is calculated for them
    executed = sum(1 for operation in range(p.sparse) if operation % 4 < 2)
    flops_per_byte = 1
    while sum(flops_per_byte for _ in range(p.memory)) < executed:
        flops_per_byte += 1
    return float(flops_per_byte)


RIDGE = Drill(
    key="roofline-ridge-point",
    taught=TAUGHT,
    title="Where the roof turns flat",
    unit="FLOP/B",
    target_s=60,
    fewest=15,  # one answer per real part and format
    draw=_draw_ridge,
    small=_small_ridge,
    prompt=lambda p: (
        f"{p.part}, as it is sold: {fmt_si(p.sparse, 'FLOP/s')} in {p.dtype} with 2:4 sparsity,"
        f" {fmt_si(p.fp32, 'FLOP/s')} in FP32 on its CUDA cores, {fmt_si(p.memory, 'B/s')} of memory bandwidth, and"
        f" {fmt_si(p.link, 'B/s')} to other accelerators, both directions added. You multiply dense {p.dtype} matrices."
        " From what arithmetic intensity on is memory no longer the limit?"
    ),
    derive=lambda p: Derivation(
        value=roofline.ridge_point(peak_flops_per_s=p.sparse / 2, memory_bytes_per_s=p.memory),
        formula="dense peak of the format / memory bandwidth, the dense peak being half of the sparse one",
        substitution=f"{tera(p.sparse)} / 2 / {tera(p.memory)}",
        source=SOURCE_PART,
    ),
    count=_count_ridge,
    slips=(
        Slip("sparse-peak", lambda p: p.sparse / p.memory)
        | "You took the headline rate, or that of a format twice as fast. Your matrices have no zeros to skip.",
        Slip("multiply-adds", lambda p: p.sparse / 4 / p.memory)
        | "You halved once too often. Peak rates already count a multiply-add as two operations.",
        Slip("vector-peak", lambda p: p.fp32 / p.memory)
        | "You took the CUDA cores' rate. Matmuls run on tensor cores, and each has a ridge point of its own.",
        Slip("upside-down", lambda p: p.memory / (p.sparse / 2))
        | "That is how many bytes memory brings per FLOP. Which way round was the question asked?",
        Slip("link-for-memory", lambda p: p.sparse / 2 / p.link)
        | "You divided by the link to other accelerators. The operands come from this one's own memory.",
    ),
)

# --- intensity of a product ----------------------------------------------------------------------


def _draw_gemm(rng: random.Random) -> Draw:
    k, n = rng.choice(((4096, 11008), (5120, 13824), (3584, 18944)))
    return drawn(m=rng.randrange(1200, 2150, 50), k=k, n=n, bytes_per_element=2)


def counted_product(*, m: int, k: int, n: int) -> tuple[int, int]:
    """FLOPs and bytes of a product in 16 bits that a small machine really forms, with fast memory large enough for
    all of it.
    """
    import numpy as np

    from threeloops.simulate.inner_loop import tiled_gemm

    a, b = np.ones((m, k), dtype=np.float16), np.ones((k, n), dtype=np.float16)
    whole = a.nbytes + b.nbytes + 2 * m * n
    done = tiled_gemm.multiply(a, b, tile_m=m, tile_n=n, tile_k=k, fast_bytes=whole, keep_between_tiles=True)
    return 2 * done.multiply_adds, done.moved_bytes


def _count_gemm(p: Draw) -> float:
    flops, moved_bytes = counted_product(m=p.m, k=p.k, n=p.n)
    return flops / moved_bytes


GEMM = Drill(
    key="roofline-gemm-intensity",
    taught=TAUGHT,
    title="What a matmul does with a byte",
    unit="FLOP/B",
    target_s=90,
    draw=_draw_gemm,
    small=lambda rng: drawn(m=rng.choice((3, 5)), k=rng.choice((7, 8)), n=rng.choice((10, 13)), bytes_per_element=2),
    prompt=lambda p: (
        f"A projection multiplies {p.m:,} tokens, {p.k:,} wide, by a matrix of {p.k:,} × {p.n:,}. Inputs, weights and"
        " outputs are 16-bit numbers, and each crosses the memory bus once. What is the arithmetic intensity of the"
        " matmul?"
    ),
    derive=lambda p: Derivation(
        value=kernels.gemm(m=p.m, n=p.n, k=p.k, bytes_per_element=p.bytes_per_element).arithmetic_intensity,
        formula="2 × m × k × n / ((m × k + k × n + m × n) × bytes per element)",
        substitution=(
            f"2 × {p.m} × {p.k} × {p.n} / (({p.m} × {p.k} + {p.k} × {p.n} + {p.m} × {p.n}) × {p.bytes_per_element})"
        ),
        source=SOURCE_GEMM,
    ),
    count=_count_gemm,
    slips=(
        Slip("multiply-adds", lambda p: p.m * p.k * p.n / ((p.m * p.k + p.k * p.n + p.m * p.n) * p.bytes_per_element))
        | "You counted multiply-adds. Each is a multiplication and an addition.",
        Slip("elements", lambda p: 2 * p.m * p.k * p.n / (p.m * p.k + p.k * p.n + p.m * p.n))
        | "You divided by elements. Memory is paid by the byte.",
        Slip("output-forgotten", lambda p: 2 * p.m * p.k * p.n / ((p.m * p.k + p.k * p.n) * p.bytes_per_element))
        | "You read both factors and wrote nothing. The result crosses the bus too.",
        Slip("weights-only", lambda p: 2 * p.m / p.bytes_per_element)
        | "You moved the weights alone. That is a fair shortcut for a handful of tokens; these are many.",
        Slip("weights-forgotten", lambda p: 2 * p.m * p.k * p.n / ((p.m * p.k + p.m * p.n) * p.bytes_per_element))
        | "You moved the tokens in and out, but never fetched the weights.",
    ),
)

DRILLS = (RIDGE, GEMM)
