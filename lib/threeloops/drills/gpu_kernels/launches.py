"""Drills on launching a kernel: how many blocks a grid needs, and how many threads an SM takes at a time."""

import math
import random

from threeloops.drills.engine import catalogued
from threeloops.drills.engine.drill import Derivation, Draw, Drill, Slip, Taught, drawn
from threeloops.facts import compute_capability
from threeloops.facts.compute_capability import Multiprocessor
from threeloops.inner_loop import occupancy
from threeloops.simulate.inner_loop import block_scheduler
from threeloops.units import MiB

TAUGHT = Taught("inner", "The programming model")

SOURCE_GUIDE = "NVIDIA, CUDA C++ Programming Guide, 2025 (thread hierarchy)"
SOURCE_OCCUPANCY = "NVIDIA, CUDA C++ Best Practices Guide 12.9, 2025, 11.1.1 (occupancy and register allocation)"

# --- blocks in a grid ----------------------------------------------------------------------------


def _rows(p: Draw) -> int:
    return math.isqrt(p.mebibytes * MiB // p.bytes_per_element)


def _derive_grid(p: Draw) -> Derivation:
    return Derivation(
        value=float(occupancy.grid_size(rows=_rows(p), columns=_rows(p), block_rows=p.side, block_columns=p.side)),
        formula="ceil(floor(√(bytes / bytes per element)) / threads per side)²",
        substitution=f"ceil(floor(({p.mebibytes} × {MiB} / {p.bytes_per_element})**0.5) / {p.side})²",
        source=SOURCE_GUIDE,
    )


def _count_grid(p: Draw) -> float:
    """Rows added while the matrix fits, then blocks set side by side until the last row is covered."""
    rows = 0
    while (rows + 1) ** 2 * p.bytes_per_element <= p.mebibytes * MiB:
        rows += 1
    starts = range(0, rows, p.side)
    return float(sum(1 for _ in starts for _ in starts))


GRID = Drill(
    key="gpu-blocks-in-a-grid",
    taught=TAUGHT,
    title="Sizing a launch",
    unit="",
    whole="exact",
    target_s=120,
    draw=lambda rng: drawn(mebibytes=rng.randrange(40, 200, 10), side=rng.choice((12, 20, 24)), bytes_per_element=4),
    small=lambda rng: drawn(mebibytes=1, side=rng.choice((12, 20, 24)), bytes_per_element=4),
    prompt=lambda p: (
        f"A square fp32 matrix may take {p.mebibytes} MiB, and is made as large as that allows. A kernel computes one"
        f" element per thread in blocks of {p.side} by {p.side} threads. How many blocks does the launch need?"
    ),
    derive=_derive_grid,
    count=_count_grid,
    slips=(
        Slip("one-dimension", lambda p: float(-(-_rows(p) // p.side)))
        | "You counted blocks along one side. The grid has two dimensions.",
        Slip("threads-along-a-side", lambda p: _rows(p) ** 2 / p.side)
        | "You took a block for one row of threads. It is a square.",
        Slip("bytes-for-elements", lambda p: _derive_grid(p).value * p.bytes_per_element)
        | "You took bytes for elements. An fp32 number has more than one.",
        Slip("double-precision", lambda p: _derive_grid(p).value / 2)
        | "You gave each element 8 bytes. Read again which format this is.",
        Slip("one-thread-per-block", lambda p: float(_rows(p) ** 2))
        | "You counted threads. How many of them share a block?",
    ),
)

# --- threads that are resident -------------------------------------------------------------------

# Per part, threads per block and registers per thread: register counts that are rounded up, and blocks that do not
# fill an SM evenly.
RESIDENT = {
    "a100-sxm4-80gb": (
        (320, 37),
        (352, 41),
        (224, 84),
        (352, 74),
        (160, 68),
        (288, 66),
        (480, 45),
        (544, 45),
        (224, 51),
        (608, 44),
        (224, 36),
        (192, 39),
    ),
    "h100-sxm5": (
        (320, 37),
        (352, 41),
        (448, 50),
        (192, 86),
        (320, 83),
        (192, 70),
        (416, 61),
        (96, 71),
        (320, 53),
        (352, 50),
        (608, 39),
        (480, 36),
    ),
    "rtx-4090": (
        (448, 66),
        (288, 77),
        (352, 67),
        (160, 70),
        (224, 78),
        (416, 67),
        (352, 54),
        (224, 43),
        (384, 51),
        (96, 45),
    ),
}


def _draw_resident(rng: random.Random) -> Draw:
    key = rng.choice(list(RESIDENT))
    threads, registers = rng.choice(RESIDENT[key])
    sm = compute_capability.multiprocessor(catalogued.part(key))
    return drawn(part=catalogued.part(key).name, sm=sm, threads=threads, registers=registers)


def _kernel(p: Draw) -> dict[str, int]:
    return {"threads_per_block": p.threads, "registers_per_thread": p.registers, "shared_bytes_per_block": 0}


def _resident_threads(p: Draw) -> int:
    return int(occupancy.occupancy(p.sm, **_kernel(p)).blocks * p.threads)


def _derive_resident(p: Draw) -> Derivation:
    sm: Multiprocessor = p.sm
    warps, per_warp = p.threads // 32, f"(ceil({p.registers} × 32 / {sm.register_unit}) × {sm.register_unit})"
    return Derivation(
        value=float(_resident_threads(p)),
        formula=(
            "threads per block × min(warps of an SM, quarters × (registers of a quarter / registers per warp, rounded"
            " up)) / warps per block"
        ),
        substitution=(
            f"{p.threads} × min(floor({sm.max_warps} / {warps}), floor({sm.register_partitions} × floor({sm.registers}"
            f" / {sm.register_partitions} / {per_warp}) / {warps}))"
        ),
        source=SOURCE_OCCUPANCY,
    )


RESIDENT_THREADS = Drill(
    key="gpu-resident-threads",
    taught=TAUGHT,
    title="Filling a multiprocessor",
    unit="",
    whole="exact",
    target_s=150,
    fewest=20,  # whole blocks of whole warps, up to what one multiprocessor holds
    draw=_draw_resident,
    small=lambda rng: _draw_resident(rng),
    prompt=lambda p: (
        f"On an {p.part} a kernel runs in blocks of {p.threads} threads, without shared memory; the compiler reports"
        f" {p.registers} registers per thread. An SM of this part holds {p.sm.max_warps} warps and {p.sm.registers:,}"
        f" registers in {p.sm.register_partitions} equal quarters; a warp lives in one quarter and gets its registers"
        f" in units of {p.sm.register_unit}. How many threads are resident on an SM?"
    ),
    derive=_derive_resident,
    count=lambda p: float(block_scheduler.resident_blocks(p.sm, **_kernel(p)) * p.threads),
    slips=(
        Slip("no-register-limit", lambda p: float(p.sm.max_warps * 32 // p.threads * p.threads))
        | "You let the warp limit decide alone. The registers run out first.",
        Slip("not-whole-blocks", lambda p: p.sm.registers / p.registers)
        | "You divided the registers among threads. Threads arrive in whole blocks, and registers in whole units.",
        Slip("one-block", lambda p: float(p.threads)) | "You put a single block on the SM. More of them fit.",
        Slip("warps", lambda p: _resident_threads(p) / 32) | "You counted warps. How many threads is that?",
    ),
)

DRILLS = (GRID, RESIDENT_THREADS)
