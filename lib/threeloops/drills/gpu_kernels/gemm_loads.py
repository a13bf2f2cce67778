"""Drills on loads: what wider ones can buy where nothing is reused, and where rows begin that do not come out
even.
"""

import random

from threeloops.drills.engine.drill import Derivation, Draw, Drill, Slip, Taught, drawn
from threeloops.drills.engine.phrasing import tera
from threeloops.inner_loop import gemm_tiles
from threeloops.operations import kernels, roofline
from threeloops.units import GFLOP, TB, TFLOP

TAUGHT = Taught("inner", "GEMM and tensor cores")

SOURCE_ALIGNMENT = "NVIDIA, CUDA C++ Programming Guide, 2025 (device memory accesses: size and alignment)"
SOURCE_ROOFLINE = "Williams, Waterman, Patterson, CACM 52(4), 2009, doi:10.1145/1498765.1498785"

# --- a kernel without reuse ----------------------------------------------------------------------


def _draw_saxpy(rng: random.Random) -> Draw:
    """A measured rate below the roof by a factor that is neither 2 nor 4."""
    bandwidth, headroom = rng.randrange(12, 80) / 10 * TB, rng.choice((1.15, 1.25, 1.35, 1.45, 1.6, 2.3, 2.5, 3.0))
    return drawn(
        bandwidth=bandwidth, peak=rng.choice((20, 40, 70)) * TFLOP, rate=round(bandwidth / 6 / headroom / GFLOP) * GFLOP
    )


def _headroom(p: Draw, bytes_per_operation: float) -> float:
    return float(p.bandwidth / bytes_per_operation / p.rate)


def _derive_saxpy(p: Draw) -> Derivation:
    # intensity does not depend on the number of elements
    saxpy = kernels.elementwise(elements=1, flops_per_element=2, inputs=2, bytes_per_element=4)
    roof = roofline.attainable_flops_per_s(
        arithmetic_intensity=saxpy.arithmetic_intensity, peak_flops_per_s=p.peak, memory_bytes_per_s=p.bandwidth
    )
    return Derivation(
        value=roof / p.rate,
        formula="2 operations / (3 × 4 bytes) × bandwidth / measured rate",
        substitution=f"2 / (3 × 4) × {tera(p.bandwidth)} / {p.rate:g}",
        source=SOURCE_ROOFLINE,
    )


def _count_saxpy(p: Draw) -> float:
    """Run it on the toy machine, four numbers per load, and time the sectors at the card's bandwidth."""
    import numpy as np  # numpy, which a reader's own drills do not need

    from threeloops.simulate.inner_loop import simt, toy_kernels

    x, y = np.ones((2, 512), dtype=np.float32)
    run = simt.launch(toy_kernels.saxpy_wide, 512, 2.0, x, y, grid=(1,), block=(128,))
    return float(run.flops / (run.moved_bytes / p.bandwidth) / p.rate)


SAXPY = Drill(
    key="gemm-saxpy-headroom",
    taught=TAUGHT,
    title="What wider loads can buy",
    unit="",
    target_s=120,
    draw=_draw_saxpy,
    small=lambda rng: _draw_saxpy(rng),
    prompt=lambda p: (
        "A SAXPY (y becomes a times x plus y, in fp32) over arrays much larger than any cache runs at"
        f" {p.rate / GFLOP:,.0f} GFLOP/s. The card's memory delivers {p.bandwidth / TB:g} TB/s, its fp32 units"
        f" {p.peak / TFLOP:g} TFLOP/s. An engineer rewrites it with loads of 128 bits. At best, how many times as fast"
        " can it become?"
    ),
    derive=_derive_saxpy,
    count=_count_saxpy,
    slips=(
        Slip("against-the-peak", lambda p: p.peak / p.rate)
        | "You compared it with the arithmetic units. Which resource does a SAXPY use up?",
        Slip("write-forgotten", lambda p: _headroom(p, 4)) | "You moved two arrays. The result goes back to memory.",
        Slip("multiply-adds", lambda p: _headroom(p, 12))
        | "You gave the roof in multiply-adds. The measured rate counts both operations.",
        Slip("in-numbers", lambda p: _headroom(p, 1.5)) | "You took the bandwidth for numbers per second. It is bytes.",
    ),
)

# --- rows that begin anywhere --------------------------------------------------------------------


def _draw_rows(rng: random.Random) -> Draw:
    """Rows of bf16 numbers that begin at multiples of 4 or 8 bytes, not of 16."""
    return drawn(
        rows=rng.randrange(2000, 9000, 500), columns=8 * rng.randrange(4000, 16_000, 125) + rng.choice((2, 4, 6))
    )


def _loads(p: Draw, width_bytes: int) -> float:
    return float(p.rows * 2 * p.columns / width_bytes)


def _derive_rows(p: Draw) -> Derivation:
    width = gemm_tiles.load_bytes(row_elements=p.columns, bytes_per_element=2)
    return Derivation(
        value=_loads(p, width),
        formula="rows × bytes per row / greatest common divisor of (bytes per row, 16)",
        substitution=f"{p.rows} × (2 × {p.columns}) / {width}",
        source=SOURCE_ALIGNMENT,
    )


def _count_rows(p: Draw) -> float:
    """Try the widths, widest first, until one is aligned at the start of every row; then walk over the matrix with
    it.
    """
    starts = [row * 2 * p.columns for row in range(p.rows)]
    width = next(width for width in (16, 8, 4, 2) if not any(start % width for start in starts))
    return float(sum(1 for start in starts for _ in range(start, start + 2 * p.columns, width)))


ROWS = Drill(
    key="gemm-unaligned-rows",
    taught=TAUGHT,
    title="Rows that begin anywhere",
    unit="",
    whole="exact",
    loose="digits",
    target_s=120,
    draw=_draw_rows,
    small=lambda rng: drawn(rows=rng.choice((12, 20)), columns=8 * rng.randrange(3, 9) + rng.choice((2, 4, 6))),
    prompt=lambda p: (
        f"A bf16 matrix of {p.rows:,} rows and {p.columns:,} columns is stored row by row without gaps and begins at a"
        " multiple of 256 bytes. A thread may load up to 16 bytes at once, but only 2, 4, 8 or 16 from an address that"
        " is divisible by that number of bytes. A kernel uses one width for all rows. How many such"
        " loads, counted per thread, does it take at least to read the matrix once?"
    ),
    derive=_derive_rows,
    count=_count_rows,
    slips=(
        Slip("widest", lambda p: _loads(p, 16)) | "You loaded 16 bytes at once. Where does the second row begin?",
        Slip("number-by-number", lambda p: _loads(p, 2))
        | "You loaded number by number. The rows' beginnings allow more than that.",
        Slip("per-warp", lambda p: _derive_rows(p).value / 32)
        | "You counted once per warp. The question counts per thread.",
        Slip("one-row", lambda p: _derive_rows(p).value / p.rows) | "You read a single row.",
    ),
)

DRILLS = (SAXPY, ROWS)
