"""Drills on roofs beyond the datasheet's two: the level that binds, a processor's peak, a product blocked for a
cache, and the measured ceiling.
"""

import math
import random

from threeloops.drills.engine import catalogued
from threeloops.drills.engine.drill import Derivation, Draw, Drill, Slip, Taught, drawn
from threeloops.drills.engine.phrasing import giga, tera
from threeloops.drills.roofline.intensity import SOURCE_GEMM, SOURCE_ROOFLINE
from threeloops.foundations import processor_peak
from threeloops.inner_loop import roofline_levels, scaling
from threeloops.operations import kernels
from threeloops.units import GB, GFLOP, TFLOP, GHz, KiB, fmt_bytes, fmt_percent, fmt_si

TAUGHT = Taught("inner", "Roofline")

SOURCE_LEVELS = "Yang, Kurth, Williams, Hierarchical Roofline analysis for GPUs, 2020, doi:10.1002/cpe.5547"
SOURCE_PEAK = "Dolbeau, Theoretical peak FLOPS per instruction set: a tutorial, 2018, doi:10.1007/s11227-017-2177-5"

# --- which level binds ---------------------------------------------------------------------------

LEVEL_PARTS = ("a100-sxm4-80gb", "v100-sxm2-32gb", "h100-pcie")
HIT_SHARES = (0.45, 0.55, 0.6, 0.82, 0.85)  # memory binds with the first three, the L2 with the others


def _draw_levels(rng: random.Random) -> Draw:
    part = catalogued.part(rng.choice(LEVEL_PARTS))
    l2 = round(part["l2_bytes_per_cycle"] * part["boost_clock_hz"] / (100 * GB)) * 100 * GB
    asked, share = rng.randrange(21, 60), rng.choice((0.28, 0.31, 0.34))
    flops = round(share * asked * GB / l2 * part.peak_flops_per_s("fp32") / (10 * GFLOP)) * 10 * GFLOP
    rates = {"peak": part.peak_flops_per_s("fp32"), "memory": part["memory_bytes_per_s"], "l2": l2}
    return drawn(part=part.name, **rates, asked=asked * GB, hit=rng.choice(HIT_SHARES), flops=flops)


def _small_levels(rng: random.Random) -> Draw:
    asked, l2 = 400 * rng.choice((3, 5)), 7
    return drawn(
        part="drawn",
        peak=90,
        memory=2,
        l2=l2,
        asked=asked,
        hit=rng.choice((0.45, 0.55, 0.85)),
        flops=round(0.3 * asked / l2 * 90),
    )


def _level_times(p: Draw) -> roofline_levels.LevelTimes:
    moved = {"L2": p.asked, "memory": (1 - p.hit) * p.asked}
    return roofline_levels.level_times(
        flops=p.flops, moved_bytes=moved, peak_flops_per_s=p.peak, bytes_per_s={"L2": p.l2, "memory": p.memory}
    )


def _count_levels(p: Draw) -> float:
    """Twenty bytes at a time on three clocks; of every twenty, so many are not in the L2."""
    hits = round(20 * p.hit)
    l2_s, memory_s = 0.0, 0.0
    for byte in range(p.asked):
        l2_s += 1 / p.l2
        if byte % 20 >= hits:
            memory_s += 1 / p.memory
    return float(max(l2_s, memory_s, sum(1 / p.peak for _ in range(p.flops))))


LEVEL = Drill(
    key="roofline-binding-level",
    taught=TAUGHT,
    title="One clock per memory",
    unit="s",
    target_s=120,
    draw=_draw_levels,
    small=_small_levels,
    prompt=lambda p: (
        f"The SMs of an {p.part} ask the L2 for {fmt_bytes(p.asked, base=10)} in the course of a kernel;"
        f" {fmt_percent(p.hit)} of them are there, the rest comes from memory. The kernel does"
        f" {fmt_si(p.flops, 'FLOP')} on the CUDA cores. Rates: {fmt_si(p.peak, 'FLOP/s')}, {fmt_si(p.l2, 'B/s')} out"
        f" of the L2, {fmt_si(p.memory, 'B/s')} out of memory. Everything overlaps. How long does the kernel take at"
        " least?"
    ),
    derive=lambda p: Derivation(
        value=_level_times(p).lower_bound_s,
        formula=(
            "the longest of: FLOPs / peak, bytes asked of the L2 / its rate, bytes that the L2 did not have / the"
            " memory's rate"
        ),
        substitution=(
            f"max({tera(p.flops)} / {tera(p.peak)}, {giga(p.asked)} / {tera(p.l2)}, (1 − {p.hit}) × {giga(p.asked)} /"
            f" {tera(p.memory)})"
        ),
        source=SOURCE_LEVELS,
    ),
    count=_count_levels,
    prerequisites=("roofline-ridge-point",),
    slips=(
        Slip("no-cache", lambda p: p.asked / p.memory)
        | "You fetched every byte from memory. Part of them never left the chip.",
        Slip("added", lambda p: p.flops / p.peak + p.asked / p.l2 + (1 - p.hit) * p.asked / p.memory)
        | "You let one begin when the other has ended. All of it happens at once.",
        Slip("arithmetic-only", lambda p: p.flops / p.peak)
        | "That is the time of the arithmetic. Two memories have clocks of their own.",
        Slip("hits-from-memory", lambda p: p.hit * p.asked / p.memory)
        | "You sent the wrong share to memory. What is found in a cache is what does not travel.",
        Slip("shorter-level", lambda p: min(p.asked / p.l2, (1 - p.hit) * p.asked / p.memory))
        | "You took the quicker of the two memories. Who waits for whom?",
    ),
)

# --- peak of a processor -------------------------------------------------------------------------


def _draw_peak(rng: random.Random) -> Draw:
    cores, base = rng.choice((12, 20, 24, 28, 36, 40, 48, 56, 60)), rng.randrange(20, 29)
    return drawn(
        cores=cores,
        bits=rng.choice((256, 512)),
        units=2,
        base_ghz=base / 10,
        boost_ghz=round(base * rng.choice((1.3, 1.4, 1.6))) / 10,
    )


def _peak(p: Draw, *, ghz: float, cores: int | None = None, per_cycle: float | None = None) -> float:
    fused = processor_peak.flops_per_cycle(vector_bits=p.bits, element_bits=64, fma_units=p.units)
    return processor_peak.peak_flops_per_s(
        cores=cores or p.cores, flops_per_cycle_per_core=per_cycle or fused, clock_hz=ghz * GHz
    )


def _count_peak(p: Draw) -> float:
    """One second, cycle by cycle: every core, every unit, every lane."""
    done = 0
    for _cycle in range(round(p.base_ghz * GB)):
        for _core in range(p.cores):
            for _unit in range(p.units):
                for _lane in range(0, p.bits, 64):
                    done += len(("multiply", "add"))
    return float(done)


PEAK = Drill(
    key="roofline-processor-peak",
    taught=TAUGHT,
    title="The other chip in the server",
    unit="FLOP/s",
    target_s=90,
    draw=_draw_peak,
    small=lambda rng: drawn(
        cores=rng.choice((3, 5)), bits=rng.choice((256, 512)), units=2, base_ghz=7e-9, boost_ghz=10e-9
    ),
    prompt=lambda p: (
        f"A server processor has {p.cores} cores with 2 threads each. A core has {p.units} units for fused"
        f" multiply-adds on vectors of {p.bits} bits and starts an instruction on each of them in every cycle. The box"
        f" says {p.boost_ghz} GHz, which a single core reaches; with wide vectors on all cores the clock is"
        f" {p.base_ghz} GHz. What is the peak of the whole processor in FP64?"
    ),
    derive=lambda p: Derivation(
        value=_peak(p, ghz=p.base_ghz),
        formula="cores × units × lanes per vector × 2 (multiply and add) × clock that all cores hold",
        substitution=f"{p.cores} × {p.units} × {p.bits} / 64 × 2 × {p.base_ghz}e9",
        source=SOURCE_PEAK,
    ),
    count=_count_peak,
    slips=(
        Slip("half", lambda p: _peak(p, ghz=p.base_ghz) / 2)
        | "A factor of two is missing. A fused multiply-add is two operations, and each core has more than one"
        " unit for it.",
        Slip("double", lambda p: 2 * _peak(p, ghz=p.base_ghz))
        | "A factor of two too many. Threads of a core share its units, and look at how many bits a number has.",
        Slip("boost-clock", lambda p: _peak(p, ghz=p.boost_ghz))
        | "You took the clock from the box. Who else is at work when the whole processor is?",
        Slip("scalar", lambda p: _peak(p, ghz=p.base_ghz, per_cycle=2 * p.units))
        | "You put one number into each vector. How many fit?",
        Slip("one-core", lambda p: _peak(p, ghz=p.base_ghz, cores=1)) | "That is one core.",
    ),
)

# --- a product blocked for a cache ---------------------------------------------------------------


def _draw_blocked(rng: random.Random) -> Draw:
    tile, bytes_per_element = rng.choice((112, 144, 176, 208, 240)), rng.choice((4, 8))
    size = tile * rng.randrange(21, 40)
    return drawn(size=size, bytes_per_element=bytes_per_element, cache=_capacity(tile, bytes_per_element, 16), step=16)


def _small_blocked(rng: random.Random) -> Draw:
    tile = rng.choice((4, 6))
    return drawn(size=tile * rng.choice((5, 7)), bytes_per_element=rng.choice((4, 8)), cache=None, step=2, tile=tile)


def _capacity(tile: int, bytes_per_element: int, step: int) -> int:
    """A whole number of KiB that holds three tiles of this side, and none of the next."""
    needed = 3 * tile**2 * bytes_per_element
    return math.ceil(needed / KiB) * KiB


def _tile(p: Draw) -> int:
    if p.cache is None:
        return int(p.tile)
    return int(math.isqrt(p.cache // (3 * p.bytes_per_element)) // p.step * p.step)


def _derive_blocked(p: Draw) -> Derivation:
    tile = _tile(p)
    work = kernels.tiled_gemm(
        m=p.size, n=p.size, k=p.size, tile_m=tile, tile_n=tile, bytes_per_element=p.bytes_per_element
    )
    return Derivation(
        value=work.moved_bytes,
        formula=(
            "side of the tile b: the largest step for which 3 × b² × bytes fit; traffic = (2 × N³ / b + N²) × bytes per"
            " element"
        ),
        substitution=f"(2 × {p.size} × {p.size} × {p.size} / {tile} + {p.size}²) × {p.bytes_per_element}",
        source=(
            f"{SOURCE_GEMM}; Lam, Rothberg, Wolf, The cache performance and optimizations of blocked algorithms, 1991,"
            " doi:10.1145/106972.106981"
        ),
    )


def _count_blocked(p: Draw) -> float:
    """A machine with a small fast memory multiplies with ever larger tiles until three of them no longer fit."""
    import numpy as np

    from threeloops.simulate.inner_loop import tiled_gemm

    a = np.ones((p.size, p.size), dtype=np.float32 if p.bytes_per_element == 4 else np.float64)
    fast = 3 * p.tile**2 * p.bytes_per_element
    return float(
        tiled_gemm.multiply(
            a, a, tile_m=p.tile, tile_n=p.tile, tile_k=p.tile, fast_bytes=fast, keep_between_tiles=False
        ).moved_bytes
    )


def _blocked_bytes(p: Draw, *, tile: float, reads: float = 2, writes: float = 1) -> float:
    return float((reads * p.size**3 / tile + writes * p.size**2) * p.bytes_per_element)


BLOCKED = Drill(
    key="roofline-blocked-product",
    taught=TAUGHT,
    title="As much of it as the cache holds",
    unit="B",
    target_s=150,
    draw=_draw_blocked,
    small=_small_blocked,
    prompt=lambda p: (
        f"A processor multiplies two square matrices of {p.size:,} by {p.size:,} numbers of {p.bytes_per_element} bytes"
        " in square tiles. One tile of each factor and one of the result lie in a cache of"
        f" {fmt_bytes(p.cache, base=2)} together, which holds nothing else; the side of a tile is the largest multiple"
        f" of {p.step} for which all three fit. The tile of the result stays until it is done and is then written;"
        " tiles of the factors are fetched whenever they are needed. How many bytes cross the memory bus?"
    ),
    derive=_derive_blocked,
    count=_count_blocked,
    prerequisites=("roofline-gemm-intensity",),
    slips=(
        Slip("one-tile", lambda p: _blocked_bytes(p, tile=_tile(p) * math.sqrt(3)))
        | "You gave the whole cache to one tile. How many have to lie in it at once?",
        Slip("once", lambda p: _blocked_bytes(p, tile=p.size))
        | "You moved each matrix once. That takes a cache as large as the matrices.",
        Slip("one-factor", lambda p: _blocked_bytes(p, tile=_tile(p), reads=1))
        | "You fetched the tiles of one factor. A matmul has two.",
        Slip("elements", lambda p: _blocked_bytes(p, tile=_tile(p)) / p.bytes_per_element)
        | "You counted numbers. The bus is paid by the byte.",
        Slip("no-tiles", lambda p: _blocked_bytes(p, tile=1))
        | "You fetched two numbers for every multiplication. What are the tiles for?",
    ),
)

# --- the measured ceiling ------------------------------------------------------------------------

CEILING_PARTS = ("h100-sxm5", "h200-sxm", "a100-sxm4-80gb")


def _draw_ceiling(rng: random.Random) -> Draw:
    part = catalogued.part(rng.choice(CEILING_PARTS))
    peak = part.peak_flops_per_s("bf16")
    rates = {
        "ceiling": round(rng.choice((0.66, 0.7, 0.74)) * peak / TFLOP),
        "now": round(rng.choice((0.36, 0.39, 0.42)) * peak / TFLOP),
    }
    return drawn(part=part.name, peak=peak / TFLOP, **rates, share=rng.choice((0.35, 0.4, 0.45, 0.5, 0.55)))


def _count_ceiling(p: Draw) -> float:
    """A step of 20 slices of time: those of the product are done again at the ceiling, in FLOP one by one."""
    slices = round(20 * p.share)
    flops = slices * p.now
    after = (20 - slices) + sum(1 / p.ceiling for _ in range(flops))
    return float(20 / after)


CEILING = Drill(
    key="roofline-measured-ceiling",
    taught=TAUGHT,
    title="What a week of tuning can win",
    unit="",
    target_s=120,
    draw=_draw_ceiling,
    small=lambda rng: drawn(
        part="drawn", peak=100, ceiling=rng.choice((60, 70)), now=rng.choice((35, 40)), share=rng.choice((0.45, 0.55))
    ),
    prompt=lambda p: (
        f"A matmul takes {fmt_percent(p.share)} of a training step on an {p.part} and runs at {p.now} TFLOP/s."
        f" The datasheet promises {p.peak:g} TFLOP/s; the best matmul of any shape measured on this"
        f" very card reaches {p.ceiling}. A colleague tunes the matmul until it stands at that measured ceiling. How"
        " many times faster is the step then?"
    ),
    derive=lambda p: Derivation(
        value=scaling.amdahl_speedup(accelerated_share=p.share, factor=p.ceiling / p.now),
        formula="1 / (1 − share + share × rate now / measured ceiling)",
        substitution=f"1 / (1 − {p.share} + {p.share} × {p.now} / {p.ceiling})",
        source=f"{SOURCE_ROOFLINE}; Amdahl, AFIPS 30, 1967, doi:10.1145/1465482.1465560",
    ),
    count=_count_ceiling,
    slips=(
        Slip("datasheet", lambda p: 1 / (1 - p.share + p.share * p.now / p.peak))
        | "You let the matmul reach the datasheet. Has any matmul on this card?",
        Slip("product-alone", lambda p: p.ceiling / p.now)
        | "That is how much faster the matmul gets. The step holds other work too.",
        Slip("time-left", lambda p: 1 - p.share + p.share * p.now / p.ceiling)
        | "That is the share of its time that the step still takes. Turn it over.",
        Slip("time-saved", lambda p: p.share * (1 - p.now / p.ceiling))
        | "That is the share of its time that the step has lost. The question was how many times faster.",
    ),
)

DRILLS = (LEVEL, PEAK, BLOCKED, CEILING)
