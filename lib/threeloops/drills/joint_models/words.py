"""Drills on what a joint model has to read: the weights for every word it thinks, and a grid of all space around the
car.
"""

import random
from fractions import Fraction

from threeloops.drills.engine.drill import Derivation, Draw, Drill, Slip, Taught, drawn
from threeloops.drills.engine.phrasing import billions
from threeloops.driving import voxel_grids
from threeloops.product_loop import serving
from threeloops.simulate.driving import voxel_scenes, word_clock
from threeloops.units import BITS_PER_BYTE, GB, TFLOP, ms

TAUGHT = Taught("driving", "End to end")
POPE = "Pope et al., 2022, arXiv:2211.05102, section 2 (prefill in one pass; a decode step reads all weights)"
BITS = 4

# --- tokens in a deadline ------------------------------------------------------------------------


def _draw_tokens(rng: random.Random) -> Draw:
    return drawn(
        parameters=rng.choice((2.9e9, 3.3e9, 3.7e9, 4.3e9)),
        bandwidth=rng.choice((137, 205, 273)),
        deadline_ms=rng.randrange(460, 640, 20),
        before_ms=rng.randrange(110, 190),
        tera=rng.choice((170, 260)),
    )


def _step_s(p: Draw, *, bits: float = BITS) -> float:
    return float(p.parameters * bits / BITS_PER_BYTE / (p.bandwidth * GB))


def _tokens(p: Draw, *, step_s: float | None = None, before_ms: float | None = None) -> float:
    return float(
        serving.most_output_tokens(
            deadline_s=p.deadline_ms * ms,
            ttft_s=(p.before_ms if before_ms is None else before_ms) * ms,
            itl_s=_step_s(p) if step_s is None else step_s,
        )
    )


def _count_tokens(p: Draw) -> float:
    step = Fraction(p.parameters) * BITS / BITS_PER_BYTE / (p.bandwidth * GB)
    return float(word_clock.tokens_until(Fraction(p.deadline_ms, 1000), first=Fraction(p.before_ms, 1000), step=step))


TOKENS = Drill(
    key="joint-tokens-in-time",
    taught=TAUGHT,
    title="How many tokens a slow planner may write",
    unit="token",
    whole="down",
    target_s=110,
    draw=_draw_tokens,
    small=_draw_tokens,
    prompt=lambda p: (
        f"A car's planner is a language model of {billions(p.parameters)} parameters in {BITS} bits, alone on a chip"
        f" with {p.bandwidth} GB/s of memory bandwidth and {p.tera} TOPS. Cameras, prompt and first token take"
        f" {p.before_ms} ms; every further token reads all weights once (leave out the cache). Its answer must be there"
        f" {p.deadline_ms} ms after the picture. How many tokens may it have at most, the first one included?"
    ),
    derive=lambda p: Derivation(
        value=_tokens(p),
        formula="floor((deadline − time to the first token) / (bytes of the weights / bandwidth)) + 1",
        substitution=(
            f"floor(({p.deadline_ms} − {p.before_ms}) / 1000 / ({p.parameters:g} × {BITS} / 8 /"
            f" ({p.bandwidth} × 1e9))) + 1"
        ),
        source=POPE,
    ),
    count=_count_tokens,
    slips=(
        Slip("no-prefill", lambda p: _tokens(p, before_ms=0))
        | "You gave the whole deadline to writing. Seeing and reading come first.",
        Slip("byte-a-parameter", lambda p: _tokens(p, step_s=_step_s(p, bits=BITS_PER_BYTE)))
        | "You read one byte a parameter. How many parameters are in a byte here?",
        Slip("bits-as-bytes", lambda p: _tokens(p, step_s=_step_s(p, bits=BITS * BITS_PER_BYTE)))
        | "You took the bits of a parameter for its bytes.",
        Slip("by-arithmetic", lambda p: _tokens(p, step_s=2 * p.parameters / (p.tera * TFLOP)))
        | "You divided operations by the chip's TOPS. One token at a time, a step waits for the weights.",
    ),
)

# --- a grid of everything ------------------------------------------------------------------------


def _draw_grid(rng: random.Random) -> Draw:
    edge = rng.choice((0.2, 0.4, 0.5))
    return drawn(
        reach=round(edge * rng.randrange(80, 130)),
        edge=edge,
        layers=rng.choice((12, 15, 20)),
        channels=rng.choice((32, 48, 64)),
    )


def _shape(p: Draw) -> tuple[int, int, int]:
    side = 2 * p.reach
    return voxel_grids.cells(extent_m=(side, side, p.layers * p.edge), edge_m=p.edge)


def _grid(p: Draw, *, channels: int | None = None, wide: int = 2) -> float:
    return voxel_grids.dense_bytes(_shape(p), channels=channels or p.channels, bytes_per_element=wide)


GRID = Drill(
    key="joint-grid-bytes",
    taught=TAUGHT,
    title="A number for every box of air",
    unit="B",
    target_s=100,
    draw=_draw_grid,
    small=lambda rng: drawn(reach=rng.choice((2, 3)), edge=0.5, layers=rng.choice((3, 5)), channels=rng.choice((2, 6))),
    prompt=lambda p: (
        f"An occupancy network keeps features for a grid around the car: {p.reach} m to each of the four sides, cells"
        f" of {p.edge:g} m on all edges, {p.layers} layers of them in height, {p.channels} channels a cell in 16 bits."
        " How many bytes is the whole grid?"
    ),
    derive=lambda p: Derivation(
        value=_grid(p),
        formula="(2 × reach / edge)² × layers × channels × 2 bytes",
        substitution=f"(2 × {p.reach} / {p.edge:g})² × {p.layers} × {p.channels} × 2",
        source="Tian et al., Occ3D, 2023, arXiv:2304.14365 (the grid's shape)",
    ),
    count=lambda p: float(voxel_scenes.bytes_dense(_shape(p), channels=p.channels, bytes_per_element=2)),
    slips=(
        Slip("one-side", lambda p: _grid(p) / 4)
        | "You took the reach for the whole side. The grid has the car in its middle.",
        Slip("flat", lambda p: _grid(p) / p.layers) | "That is a map seen from above. The grid has height, too.",
        Slip("labels", lambda p: _grid(p, channels=1))
        | "You kept one number a cell. Before a cell has a label it has features.",
        Slip("planes", lambda p: voxel_grids.planes_bytes(_shape(p), channels=p.channels, bytes_per_element=2))
        | "Those are three planes whose features are added up. The question asks for every cell.",
        Slip("fp32", lambda p: _grid(p, wide=4)) | "You counted four bytes an element. It has 16 bits.",
    ),
)

DRILLS = (TOKENS, GRID)
