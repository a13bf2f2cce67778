"""Drills on systolic arrays, the matrix units of a TPU: whole tiles in memory, and whole tiles in the array."""

import random

from threeloops.drills.engine.drill import Derivation, Draw, Drill, Slip, Taught, changed, drawn
from threeloops.inner_loop.kernels import systolic
from threeloops.units import GHz

TAUGHT = Taught("inner", "GEMM and tensor cores")
JOUPPI = "Jouppi et al., 2017, arXiv:1704.04760, section 2"
GUIDE = "Google Cloud, Cloud TPU performance guide, read in 2026 (chunks of 128 × 8; tensors in HBM are rounded up)"

# --- whole tiles in memory -----------------------------------------------------------------------

SUBLANES, LANES = 8, 128


def _draw_layout(rng: random.Random) -> Draw:
    return drawn(
        batch=rng.randrange(40, 400),
        rows=rng.choice((5, 6, 9, 10, 11, 12, 13, 17, 18, 19, 20)),  # up to four lie in smaller tiles
        columns=rng.choice((40, 48, 56, 72, 80, 88, 96, 144, 160, 168, 176, 192, 200)),
        element=rng.choice((2, 4)),
    )


def _laid_out(p: Draw, *, sublanes: int = SUBLANES, lanes: int = LANES) -> float:
    return float(
        systolic.laid_out_bytes(shape=(p.batch, p.rows, p.columns), tile=(sublanes, lanes), bytes_per_element=p.element)
    )


def _count_layout(p: Draw) -> float:
    """Every element falls into a tile; tiles that hold any are stored."""
    tiles = {
        (one, row // SUBLANES, column // LANES)
        for one in range(p.batch)
        for row in range(p.rows)
        for column in range(p.columns)
    }
    return float(sum(SUBLANES * LANES * p.element for _tile in tiles))


LAYOUT = Drill(
    key="systolic-layout",
    taught=TAUGHT,
    title="An array in whole tiles",
    unit="B",
    capacity=True,
    target_s=90,
    draw=_draw_layout,
    small=lambda rng: changed(_draw_layout(rng), batch=rng.randrange(2, 6)),
    prompt=lambda p: (
        f"XLA has laid out an array [{p.batch}, {p.rows}, {p.columns}] of {p.element}-byte numbers in a TPU's HBM in"
        f" the order given, its last two dimensions in whole tiles of {SUBLANES} × {LANES}. How much memory does the"
        " array take?"
    ),
    derive=lambda p: Derivation(
        value=_laid_out(p),
        formula="first dimension × ceil(second / 8) × 8 × ceil(last / 128) × 128 × bytes of a number",
        substitution=(
            f"{p.batch} × ceil({p.rows} / {SUBLANES}) × {SUBLANES} × ceil({p.columns} / {LANES}) × {LANES} ×"
            f" {p.element}"
        ),
        source=GUIDE,
    ),
    count=_count_layout,
    slips=(
        Slip("nothing-padded", lambda p: _laid_out(p, sublanes=1, lanes=1))
        | "Those are the numbers alone. What does the rest of a tile hold?",
        Slip("lanes-only", lambda p: _laid_out(p, sublanes=1))
        | "You rounded up the last dimension alone. A tile has two sides.",
        Slip("sublanes-only", lambda p: _laid_out(p, lanes=1))
        | "You rounded up the second dimension alone. A tile has two sides.",
        Slip("turned", lambda p: _laid_out(p, sublanes=LANES, lanes=SUBLANES))
        | "You turned the tile: which of its sides lies along the last dimension?",
        Slip("square-tiles", lambda p: _laid_out(p, sublanes=LANES))
        | "You took tiles as large as the matrix unit. Memory is laid out in smaller ones.",
    ),
)

# --- few rows through a large array --------------------------------------------------------------


def _draw_few(rng: random.Random) -> Draw:
    side = rng.choice((128, 256))
    return drawn(
        side=side,
        rows=rng.randrange(12, side - 20),
        inner=rng.randrange(280, 1_200, 8),
        columns=rng.randrange(500, 2_400, 8),
        ghz=rng.choice((0.94, 1.05, 1.5, 1.75)),
    )


def _small_few(rng: random.Random) -> Draw:
    side = rng.choice((5, 7))
    return drawn(
        side=side, rows=rng.randrange(2, side), inner=rng.randrange(8, 20), columns=rng.randrange(12, 40), ghz=0.94
    )


def _few_s(p: Draw) -> float:
    cycles = systolic.systolic_cycles(rows=p.rows, inner=p.inner, columns=p.columns, side=p.side)
    return float(cycles / (p.ghz * GHz))


def _share_of_tiles(p: Draw) -> float:
    """Weights that exist over weights that stand in tiles."""
    return float(
        p.inner
        * p.columns
        / systolic.laid_out_bytes(shape=(p.inner, p.columns), tile=(p.side, p.side), bytes_per_element=1)
    )


def _count_few(p: Draw) -> float:
    """Tick by tick: a row of the next tile is shifted in, and a row of inputs enters while there are any."""
    ticks = 0
    for _across in range(0, p.columns, p.side):
        for _down in range(0, p.inner, p.side):
            shifted = entered = 0
            while shifted < p.side or entered < p.rows:
                shifted, entered, ticks = shifted + 1, entered + 1, ticks + 1
    return float(ticks / (p.ghz * GHz))


FEW = Drill(
    key="systolic-few-rows",
    taught=TAUGHT,
    title="Few rows through a systolic array",
    unit="s",
    target_s=120,
    draw=_draw_few,
    small=_small_few,
    prompt=lambda p: (
        f"A TPU's matrix unit is a square of {p.side} × {p.side} cells at {p.ghz} GHz. A tile of weights"
        " stands in it while rows of inputs flow through, one row per cycle; meanwhile the next tile of weights is"
        f" shifted in, a row per cycle, too. {p.rows} tokens are multiplied by a matrix of {p.inner:,} × {p.columns:,}"
        " weights, and the next matmul follows at once, its first tile like any other. How long is it from this"
        " matmul's first row to the next one's?"
    ),
    derive=lambda p: Derivation(
        value=_few_s(p),
        formula="ceil(inner / side) × ceil(columns / side) × max(rows, side) / clock",
        substitution=(
            f"ceil({p.inner} / {p.side}) × ceil({p.columns} / {p.side}) × max({p.rows}, {p.side}) / ({p.ghz} × 1e9)"
        ),
        source=f"{JOUPPI} (a row per cycle; a second tile hides the cycles that it takes to shift one in)",
    ),
    count=_count_few,
    slips=(
        Slip("rows-only", lambda p: _few_s(p) * p.rows / p.side)
        | "Your rows are through before the next tile stands. What does the unit wait for?",
        Slip("in-turn", lambda p: _few_s(p) * (p.rows + p.side) / p.side)
        | "You shifted the next tile in when the rows were through. Both go on at once.",
        Slip("parts-of-tiles", lambda p: _few_s(p) * _share_of_tiles(p))
        | "You counted parts of tiles. A tile at the edge takes as long as a full one.",
        Slip("peak", lambda p: _few_s(p) * _share_of_tiles(p) * p.rows / p.side)
        | "That is the arithmetic at the unit's peak, as if every cell had work in every cycle.",
        Slip("two-operations", lambda p: 2 * _few_s(p))
        | "You gave a cell two cycles for a multiply-add. It makes one in each cycle.",
    ),
)

DRILLS = (LAYOUT, FEW)
