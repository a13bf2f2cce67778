"""Drills on the work inside a kernel: the traffic of tiles, and the instructions of a divergent branch.

The sides of the matrices differ, and so do the two sides of the branch, so that each mistake leads to a number of its
own.
"""

import random
from typing import Any

from threeloops.drills.engine.drill import Derivation, Draw, Drill, Slip, Taught, drawn
from threeloops.inner_loop import coalescing
from threeloops.operations import kernels

TAUGHT = Taught("inner", "The programming model")

SOURCE_TILES = "Hong and Kung, STOC 1981, doi:10.1145/800076.802486"
SOURCE_SIMT = "Lindholm et al., IEEE Micro 28(2), 2008, doi:10.1109/MM.2008.31 (SIMT warps)"
FLOAT_BYTES = 4

# --- traffic of a tiled product ------------------------------------------------------------------


def _draw_tiles(rng: random.Random) -> Draw:
    tile = rng.choice((16, 32))
    return drawn(
        m=tile * rng.choice((60, 75)),
        n=tile * rng.choice((130, 150)),
        k=tile * rng.choice((80, 85, 90, 95, 100, 105, 110)),
        tile=tile,
    )


def _count_tiles(p: Draw) -> float:
    import numpy as np

    from threeloops.simulate.inner_loop import simt, toy_kernels  # numpy, which a reader's own drills do not need

    a, b, c = (
        np.ones((p.m, p.k), dtype=np.float32),
        np.ones((p.k, p.n), dtype=np.float32),
        np.zeros((p.m, p.n), dtype=np.float32),
    )
    run = simt.launch(
        toy_kernels.matmul_tiled,
        p.n,
        p.k,
        p.tile,
        True,
        a,
        b,
        c,
        grid=(p.n // p.tile, p.m // p.tile),
        block=(p.tile, p.tile),
    )
    return float(run.moved_bytes)


TILES = Drill(
    key="gpu-tiled-traffic",
    taught=TAUGHT,
    title="What a tile saves",
    unit="B",
    target_s=120,
    draw=_draw_tiles,
    small=lambda rng: drawn(m=8 * rng.choice((1, 2)), n=8 * rng.choice((4, 5)), k=8 * rng.choice((3, 6)), tile=8),
    prompt=lambda p: (
        f"A kernel multiplies a [{p.m:,}, {p.k:,}] by a [{p.k:,}, {p.n:,}] matrix in fp32. Each block computes a tile"
        f" of {p.tile} by {p.tile} elements of the result and brings the strips that it needs through shared memory."
        " Nothing stays in a cache between blocks. How many bytes cross the memory bus?"
    ),
    derive=lambda p: Derivation(
        value=kernels.tiled_gemm(
            m=p.m, n=p.n, k=p.k, tile_m=p.tile, tile_n=p.tile, bytes_per_element=FLOAT_BYTES
        ).moved_bytes,
        formula="(m × k × ⌈n / tile⌉ + k × n × ⌈m / tile⌉ + m × n) × 4 bytes",
        substitution=(
            f"({p.m} × {p.k} × ceil({p.n} / {p.tile}) + {p.k} × {p.n} × ceil({p.m} / {p.tile}) + {p.m} × {p.n}) × 4"
        ),
        source=SOURCE_TILES,
    ),
    count=_count_tiles,
    slips=(
        Slip(
            "untiled",
            lambda p: kernels.tiled_gemm(m=p.m, n=p.n, k=p.k, tile_m=1, tile_n=1, bytes_per_element=4).moved_bytes,
        )
        | "You fetched both operands anew for every element of the result. Within a tile they are shared.",
        Slip("once", lambda p: kernels.gemm(m=p.m, n=p.n, k=p.k, bytes_per_element=4).moved_bytes)
        | "You moved each matrix once. Blocks share nothing here, and each fetches its own strips.",
        Slip("one-operand", lambda p: 4.0 * (p.m * p.k * p.n / p.tile + p.m * p.n))
        | "You fetched one operand. A block needs a strip of both.",
        Slip("tile-squared", lambda p: 4.0 * (2 * p.m * p.n * p.k / p.tile**2 + p.m * p.n))
        | "You divided by the tile's area. A fetched number is used once per row or per column of the tile.",
    ),
)

# --- a divergent branch --------------------------------------------------------------------------


def _split_by_parity(w: Any, common: int, then: int, other: int, x: Any) -> None:
    """A kernel that counts its own steps: first all lanes, then the even ones, then the odd ones."""
    value = w.load(x, 0)
    even, odd = w.branch(w.thread.x % 2 == 0)
    # the load is one of the common instructions
    for side, steps in ((w.where(True), common - 1), (even, then), (odd, other)):
        with side:
            for _ in range(steps):
                value = w.add(value, 1.0)


def _count_branch(p: Draw) -> float:
    import numpy as np

    from threeloops.simulate.inner_loop import simt  # numpy, which a reader's own drills do not need

    run = simt.launch(
        _split_by_parity, p.common, p.then, p.other, np.zeros(1, dtype=np.float32), grid=(p.warps,), block=(32,)
    )
    return float(run.issued)


BRANCH = Drill(
    key="gpu-divergent-branch",
    taught=TAUGHT,
    title="Both sides of a branch",
    unit="",
    whole="exact",
    target_s=60,
    draw=lambda rng: drawn(
        warps=rng.randrange(500, 1500, 100),
        common=rng.choice((20, 30)),
        then=rng.choice((90, 110)),
        other=rng.choice((40, 50)),
    ),
    small=lambda rng: drawn(
        warps=rng.choice((2, 3)), common=rng.choice((2, 4)), then=rng.choice((11, 13)), other=rng.choice((5, 6))
    ),
    prompt=lambda p: (
        f"Every thread of a kernel executes {p.common} instructions, and then threads with an even number {p.then}"
        f" more, those with an odd number {p.other} more. {p.warps} full warps run. How many instructions do the"
        " schedulers issue, counting one per warp?"
    ),
    derive=lambda p: Derivation(
        value=float(coalescing.issued_instructions(warps=p.warps, common=p.common, sides=[p.then, p.other])),
        formula="warps × (instructions before + one side + other side)",
        substitution=f"{p.warps} × ({p.common} + {p.then} + {p.other})",
        source=SOURCE_SIMT,
    ),
    count=_count_branch,
    slips=(
        Slip("longer-side", lambda p: p.warps * (p.common + max(p.then, p.other)))
        | "You let the two sides run at once. A warp has one instruction at a time.",
        Slip("average", lambda p: p.warps * (p.common + (p.then + p.other) / 2))
        | "You averaged the sides. That would be right if whole warps differed, not lanes.",
        Slip("per-thread", lambda p: p.warps * 32.0 * (p.common + p.then + p.other))
        | "You counted per thread. One issue serves all the lanes of a warp.",
        Slip("no-common", lambda p: float(p.warps * (p.then + p.other)))
        | "You left out what stands before the branch.",
        Slip("shorter-side", lambda p: p.warps * (p.common + min(p.then, p.other)))
        | "You issued one side, the shorter. Both have takers in every warp.",
    ),
)

DRILLS = (TILES, BRANCH)
