"""A drill on tiles that overlap: neighbours of a tile's edge are fetched by more than one block."""

import itertools
import random

from threeloops.drills.engine.drill import Derivation, Draw, Drill, Slip, Taught, drawn
from threeloops.operations import kernels

TAUGHT = Taught("inner", "The programming model")

SOURCE_HALO = "Datta et al., SC 2008, doi:10.1109/SC.2008.5222004 (stencils: ghost cells around every tile)"
FLOAT_BYTES = 4


def _draw_halo(rng: random.Random) -> Draw:
    # a reach of a fifth or a third of the tile would make two mistakes look alike
    tile, reach = rng.choice(((16, 4), (16, 7), (24, 4), (24, 6), (24, 7), (32, 5), (32, 8), (32, 9)))
    return drawn(tile=tile, rows=tile * rng.choice((40, 45, 50)), columns=tile * rng.choice((70, 80, 90)), reach=reach)


def _small_halo(rng: random.Random) -> Draw:
    tile = rng.choice((6, 8))
    return drawn(tile=tile, rows=tile * rng.choice((2, 3)), columns=tile * rng.choice((3, 4)), reach=rng.choice((2, 3)))


def _moved(p: Draw, fetched_per_tile: float, written_per_tile: float) -> float:
    return float((p.rows // p.tile) * (p.columns // p.tile) * (fetched_per_tile + written_per_tile) * FLOAT_BYTES)


def _count_halo(p: Draw) -> float:
    """For every block, the places that its pixels look at, each once; and the pixels themselves."""
    accesses = 0
    for top, left in itertools.product(range(0, p.rows, p.tile), range(0, p.columns, p.tile)):
        pixels = list(itertools.product(range(top, top + p.tile), range(left, left + p.tile)))
        around = list(itertools.product(range(-p.reach, p.reach + 1), repeat=2))
        accesses += len({(row + down, column + right) for row, column in pixels for down, right in around}) + len(
            pixels
        )
    return float(accesses * FLOAT_BYTES)


HALO = Drill(
    key="gpu-overlapping-tiles",
    taught=TAUGHT,
    title="Neighbours of a tile",
    unit="B",
    target_s=100,
    draw=_draw_halo,
    small=_small_halo,
    prompt=lambda p: (
        f"A kernel smooths an fp32 image of {p.rows:,} by {p.columns:,} pixels: each result is made of the square of"
        f" pixels up to {p.reach} rows and columns away in all directions. A block computes {p.tile} by {p.tile}"
        " results and first brings all pixels that they need into shared memory, each once; the image stands in a"
        " frame of zeros, which are fetched like pixels. Blocks share nothing. How many bytes are read from and"
        " written to global memory?"
    ),
    derive=lambda p: Derivation(
        value=float(
            kernels.tiled_stencil_bytes(
                height=p.rows,
                width=p.columns,
                tile_height=p.tile,
                tile_width=p.tile,
                reach=p.reach,
                bytes_per_element=FLOAT_BYTES,
            )
        ),
        formula="tiles × ((tile + 2 × reach)² + tile²) × 4 bytes",
        substitution=f"{p.rows} / {p.tile} × {p.columns} / {p.tile} × (({p.tile} + 2 × {p.reach})² + {p.tile}²) × 4",
        source=SOURCE_HALO,
    ),
    count=_count_halo,
    prerequisites=("gpu-tiled-traffic",),
    slips=(
        Slip("no-edge", lambda p: _moved(p, p.tile**2, p.tile**2))
        | "You fetched a tile's own pixels. Results at its edge look beyond it.",
        Slip("one-side", lambda p: _moved(p, (p.tile + p.reach) ** 2, p.tile**2))
        | "You widened the tile on one side of each direction. Results look both ways.",
        Slip("no-sharing", lambda p: _moved(p, p.tile**2 * (2 * p.reach + 1) ** 2, p.tile**2))
        | "You fetched a whole square for every result. Within a block, a pixel is fetched once.",
        Slip("no-results", lambda p: _moved(p, (p.tile + 2 * p.reach) ** 2, 0))
        | "You counted what is read. The results are written, too.",
    ),
)

DRILLS = (HALO,)
