"""Drills on the shapes of a matrix product: tiles and waves that do not come out even, instructions, and slices of
the inner dimension.
"""

import random
from collections.abc import Callable

from threeloops.drills.engine.drill import AsFunction, Derivation, Draw, Drill, Slip, Taught, drawn
from threeloops.drills.engine.searches import wanted
from threeloops.inner_loop import gemm_tiles
from threeloops.inner_loop.matrix_instructions import INSTRUCTIONS
from threeloops.simulate.inner_loop import block_scheduler

TAUGHT = Taught("inner", "GEMM and tensor cores")
SOURCE_GUIDE = (
    "NVIDIA, Matrix Multiplication Background User's Guide, DU-09799-001, 2023, chapter 3 (tile and wave quantisation)"
)
SOURCE_PTX = "NVIDIA, PTX ISA 9.2, 2026, 9.7.14.5.7 (mma.m16n8k8)"
SOURCE_SPLIT = "Osama et al., Stream-K, PPoPP 2023, arXiv:2301.03598, section 3.2 (fixed-split)"

# --- the share that rounding up leaves -----------------------------------------------------------


def _draw_share(rng: random.Random) -> Draw:
    sms, tile_m, tile_n = rng.choice((108, 132, 148)), rng.choice((128, 192)), rng.choice((160, 256))
    return drawn(
        m=rng.randrange(1100, 2400, 20), n=rng.randrange(2500, 4000, 20), tile_m=tile_m, tile_n=tile_n, sms=sms
    )


def _small_share(rng: random.Random) -> Draw:
    def draw() -> Draw:
        return drawn(m=rng.randrange(9, 40), n=rng.randrange(20, 70), tile_m=5, tile_n=8, sms=rng.choice((5, 7, 11)))

    return wanted(draw, _uneven)


def _uneven(p: Draw) -> bool:
    """A few waves, and neither these nor the tiles come out nearly even."""
    found = _quantisation(p)
    return 1 < found.waves.count < 5 and max(found.tile_share, found.waves.efficiency) < 0.94


def _quantisation(p: Draw) -> gemm_tiles.TileQuantisation:
    return gemm_tiles.tile_quantisation(m=p.m, n=p.n, tile_m=p.tile_m, tile_n=p.tile_n, num_sms=p.sms, blocks_per_sm=1)


def _last_wave(p: Draw) -> float:
    waves = _quantisation(p).waves
    return waves.tail_blocks / waves.places


def _waves_down(p: Draw) -> float:
    found = _quantisation(p)
    return found.share * found.waves.count / (found.waves.count - 1)


def _derive_share(p: Draw) -> Derivation:
    down, across = f"ceil({p.m} / {p.tile_m})", f"ceil({p.n} / {p.tile_n})"
    return Derivation(
        value=_quantisation(p).share,
        formula="m × n / (waves × SMs × area of a tile), with waves = tiles / SMs, rounded up",
        substitution=f"{p.m} × {p.n} / (ceil({down} × {across} / {p.sms}) × {p.sms} × {p.tile_m} × {p.tile_n})",
        source=SOURCE_GUIDE,
    )


def _count_share(p: Draw) -> float:
    """Play the blocks, and count the elements of the result that exist against all that could have been computed
    until the end.
    """
    tiles = [(i, j) for i in range(0, p.m, p.tile_m) for j in range(0, p.n, p.tile_n)]
    end = max(
        placed.end_s for placed in block_scheduler.play(num_sms=p.sms, blocks_per_sm=1, durations_s=[1.0] * len(tiles))
    )
    useful = sum(
        1
        for i, j in tiles
        for row in range(p.tile_m)
        for column in range(p.tile_n)
        if i + row < p.m and j + column < p.n
    )
    return float(useful) / float(end * p.sms * p.tile_m * p.tile_n)


SHARE = Drill(
    key="gemm-quantised-share",
    taught=TAUGHT,
    title="What rounding up leaves",
    unit="",
    target_s=180,
    apart=1 / 0.95,
    wanted=_uneven,
    draw=_draw_share,
    small=_small_share,
    prompt=lambda p: (
        f"A matmul whose result has {p.m:,} rows and {p.n:,} columns is computed in tiles of {p.tile_m} rows by"
        f" {p.tile_n} columns, one block each, on a card with {p.sms} SMs that hold one block at a time. A tile at the"
        " edge takes as long as a full one. Of the arithmetic that all SMs could do until the last block ends, which"
        " share goes into the result?"
    ),
    derive=_derive_share,
    count=_count_share,
    slips=(
        Slip("tiles-only", lambda p: _quantisation(p).tile_share)
        | "You rounded up to tiles. Then the tiles come in waves.",
        Slip("waves-only", lambda p: _quantisation(p).waves.efficiency)
        | "You took every tile for a full one. Look at the edges.",
        Slip("last-wave", _last_wave) | "That is how full the last wave is. The ones before it count as well.",
        Slip("waves-down", _waves_down) | "You rounded the waves down. The rest has to run somewhere.",
        Slip("lost", lambda p: 1 - _quantisation(p).share) | "That is the share that is lost.",
    ),
    function=AsFunction(
        takes=("m", "n", "tile_m", "tile_n", "sms"),
        limit=lambda p: {"m": p.tile_m, "n": 2 * p.tile_n * p.sms},
        limit_case="tiles and waves that come out even",
    ),
)

# --- instructions of a product -------------------------------------------------------------------

MMA = INSTRUCTIONS["mma.m16n8k8"]


def _count_instructions(p: Draw) -> float:
    """Walk over the product in steps of one instruction."""
    return float(sum(1 for _ in range(0, p.m, 16) for _ in range(0, p.n, 8) for _ in range(0, p.k, 8)))


def _times(factor: float) -> Callable[[Draw], float]:
    return lambda p: factor * MMA.count(m=p.m, n=p.n, k=p.k)


COUNT = Drill(
    key="gemm-matrix-instructions",
    taught=TAUGHT,
    title="Instructions of a matmul",
    unit="",
    whole="exact",
    loose="digits",
    target_s=100,
    draw=lambda rng: drawn(
        m=rng.randrange(1000, 4000, 200), n=rng.randrange(1000, 9000, 200), k=rng.randrange(600, 3000, 200)
    ),
    small=lambda rng: drawn(m=rng.randrange(20, 60), n=rng.randrange(20, 60), k=rng.randrange(20, 60)),
    prompt=lambda p: (
        f"A [{p.m:,}, {p.k:,}] by [{p.k:,}, {p.n:,}] matmul runs on the warp-wide instruction mma.m16n8k8; edges that"
        " do not come out even are filled up with zeros. How many of these instructions are issued, counting one per"
        " warp?"
    ),
    derive=lambda p: Derivation(
        value=float(MMA.count(m=p.m, n=p.n, k=p.k)),
        formula="ceil(m / 16) × ceil(n / 8) × ceil(k / 8)",
        substitution=f"ceil({p.m} / 16) × ceil({p.n} / 8) × ceil({p.k} / 8)",
        source=SOURCE_PTX,
    ),
    count=_count_instructions,
    slips=(
        Slip("operations", _times(2))
        | "You divided operations by multiply-adds. Both sides must count the same thing.",
        Slip("one-group", _times(8))
        | "You gave the instruction the share of one group of four lanes. The shape is the whole warp's.",
        Slip("per-lane", _times(32)) | "You counted once per lane. A warp issues it once.",
        Slip("four-by-four", _times(16))
        | "You counted in cubes of 4 by 4 by 4, which is what a unit did in a cycle once. Take the instruction's"
        " shape.",
        Slip("one-step", lambda p: float(-(-p.m // 16) * -(-p.n // 8)))
        | "You covered the result once. How many steps does the inner dimension take?",
    ),
)

# --- slices of the inner dimension ---------------------------------------------------------------


def _slices(p: Draw) -> float:
    sizes = {"m": p.m, "n": p.n, "k": p.k, "tile_m": p.tile, "tile_n": p.tile}
    return float(
        gemm_tiles.split_k(**sizes, splits=p.splits, bytes_per_element=4, partial_bytes_per_element=4).moved_bytes
    )


def _whole(p: Draw) -> float:
    return float(_slices(p) - 8 * p.splits * p.m * p.n)


def _count_slices(p: Draw) -> float:
    import numpy as np  # numpy, which a reader's own drills do not need

    from threeloops.simulate.inner_loop import split_k

    a, b = np.ones((p.m, p.k), dtype=np.float32), np.ones((p.k, p.n), dtype=np.float32)
    return float(split_k.multiply(a, b, tile=p.tile, splits=p.splits, fast_bytes=12 * p.tile**2).moved_bytes)


SLICES = Drill(
    key="gemm-split-k-traffic",
    taught=TAUGHT,
    title="The price of slices",
    unit="B",
    target_s=150,
    draw=lambda rng: drawn(
        m=128 * rng.choice((1, 2)),
        n=128 * rng.choice((3, 5)),
        k=rng.randrange(6000, 12_001, 250),
        tile=128,
        splits=rng.randrange(14, 31, 2),
    ),
    small=lambda rng: drawn(
        m=4 * rng.choice((1, 2)),
        n=4 * rng.choice((3, 5)),
        k=rng.randrange(30, 60),
        tile=4,
        splits=rng.choice((3, 4, 5)),
    ),
    prompt=lambda p: (
        f"A [{p.m}, {p.k:,}] by [{p.k:,}, {p.n}] matmul in fp32 has too few tiles of {p.tile} by {p.tile} to fill a"
        f" card, so the inner dimension is cut into {p.splits} slices. Each slice of each tile is a block: it fetches"
        " its part of both operands and writes its fp32 sums; a second kernel reads all the sums and writes the"
        " result. Nothing stays in a cache. How many bytes cross the memory bus?"
    ),
    derive=lambda p: Derivation(
        value=_slices(p),
        formula="(m × k × n / tile + k × n × m / tile + m × n + 2 × slices × m × n) × 4 bytes",
        substitution=(
            f"({p.m} × {p.k} × {p.n} / {p.tile} + {p.k} × {p.n} × {p.m} / {p.tile} + {p.m} × {p.n} + 2 × {p.splits} ×"
            f" {p.m} × {p.n}) × 4"
        ),
        source=SOURCE_SPLIT,
    ),
    count=_count_slices,
    slips=(
        Slip("no-sums", _whole) | "You left out the sums of the slices. They go out to memory, and come back.",
        Slip("written-only", lambda p: _whole(p) + 4.0 * p.splits * p.m * p.n)
        | "You wrote the slices' sums. A second kernel reads them again.",
        Slip("operands-per-slice", lambda p: _slices(p) + (p.splits - 1) * 8.0 * p.m * p.n * p.k / p.tile)
        | "You fetched all of the operands for every slice. A slice needs its own part.",
        Slip("double-precision", lambda p: _whole(p) + 16.0 * p.splits * p.m * p.n)
        | "You gave the sums 8 bytes each. Read again in which format they are kept.",
    ),
)

DRILLS = (SHARE, COUNT, SLICES)
