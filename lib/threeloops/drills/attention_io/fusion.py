"""Drills on what a kernel saves by not sending away what it will need again: tiles, chains, and units that
overlap.
"""

import random

from threeloops.drills.engine.drill import AsFunction, Derivation, Draw, Drill, Slip, Taught, drawn
from threeloops.inner_loop import attention_cycles, fusion, gemm_tiles
from threeloops.simulate.inner_loop import unit_turns

TAUGHT = Taught("inner", "Fusion and FlashAttention")

SOURCE_TILES = "Hong and Kung, STOC 1981, doi:10.1145/800076.802486"
SOURCE_FUSION = "Williams, Waterman, Patterson, CACM 52(4), 2009, doi:10.1145/1498765.1498785 (compulsory traffic)"
SOURCE_UNITS = "Shah et al., FlashAttention-3, 2024, arXiv:2407.08608, section 3.1"

# --- tiles of a product --------------------------------------------------------------------------


def _draw_tile(rng: random.Random) -> Draw:
    tile = rng.randrange(12, 97, 2)
    return drawn(tile=tile, side=tile * rng.choice((150, 200, 250)), bytes_per_element=4)


def _small_tile(rng: random.Random) -> Draw:
    tile = rng.choice((3, 5, 6))
    return drawn(tile=tile, side=tile * rng.choice((3, 4)), bytes_per_element=4)


def _count_tile(p: Draw) -> float:
    """Multiply in tiles with a memory that holds three of them, and see what was fetched."""
    import numpy as np  # numpy, which a reader's own drills do not need

    from threeloops.simulate.inner_loop import tiled_gemm

    a, b = np.random.default_rng(seed=p.side).random((2, p.side, p.side), dtype=np.float32)
    sizes = {"tile_m": p.tile, "tile_n": p.tile, "tile_k": p.tile, "fast_bytes": 3 * p.bytes_per_element * p.tile**2}
    run = tiled_gemm.multiply(a, b, **sizes, keep_between_tiles=False)
    return 2 * run.multiply_adds / run.loaded_bytes


TILE = Drill(
    key="attention-tile-intensity",
    taught=TAUGHT,
    title="What a tile buys",
    unit="FLOP/B",
    target_s=90,
    draw=_draw_tile,
    small=_small_tile,
    prompt=lambda p: (
        f"A kernel multiplies two square matrices of {p.side:,} by {p.side:,} in {8 * p.bytes_per_element} bits. It"
        f" works in square tiles of {p.tile} by {p.tile}: for each tile of the result it fetches tile after tile of"
        " both operands, uses each up, and lets it go. Nothing is shared between tiles of the result. How many"
        " operations does it do per byte that it fetches?"
    ),
    derive=lambda p: Derivation(
        value=gemm_tiles.tile_intensity(rows=p.tile, columns=p.tile, bytes_per_element=p.bytes_per_element),
        formula="2 × side³ / (2 × side³ / tile × bytes per element), the result itself not counted",
        substitution=f"2 × {p.side} × {p.side}² / (2 × {p.side} × {p.side}² / {p.tile} × {p.bytes_per_element})",
        source=SOURCE_TILES,
    ),
    count=_count_tile,
    slips=(
        Slip("no-reuse", lambda p: 1 / p.bytes_per_element)
        | "That is the kernel without tiles. How often is a fetched number used here?",
        Slip("multiply-adds", lambda p: p.tile / p.bytes_per_element / 2)
        | "You counted multiply-adds. Each is two operations.",
        Slip("one-operand", lambda p: 2 * p.tile / p.bytes_per_element)
        | "You fetched one operand. Both come in tiles.",
        Slip("elements", lambda p: p.tile) | "That is per number fetched. How many bytes is a number?",
        Slip("each-matrix-once", lambda p: p.side / p.bytes_per_element)
        | "You fetched each matrix once. That would need a fast memory as large as the matrices.",
    ),
)

# --- a chain of kernels --------------------------------------------------------------------------


def _draw_chain(rng: random.Random) -> Draw:
    unary, binary = rng.choice(((4, 1), (4, 2), (5, 1), (5, 2), (6, 1), (6, 2)))
    return drawn(
        unary=unary,
        binary=binary,
        rows=rng.choice((3000, 4000, 5000, 6000, 7000)),
        width=rng.choice((1200, 1600, 1800, 2200, 2400)),
        bytes_per_element=2,
    )


def _small_chain(rng: random.Random) -> Draw:
    unary, binary = rng.choice(((3, 2), (4, 1), (4, 2)))
    return drawn(unary=unary, binary=binary, rows=rng.choice((6, 9)), width=rng.choice((4, 5)), bytes_per_element=2)


def _steps(p: Draw) -> list[fusion.Operation]:
    """The chain by name: first the operations on two tensors, then those on one."""
    names = [f"t{index}" for index in range(p.binary + p.unary + 1)]
    inputs = [(names[i], f"other{i}") if i < p.binary else (names[i],) for i in range(p.binary + p.unary)]
    return [fusion.Operation(names[i + 1], inputs[i]) for i in range(p.binary + p.unary)]


def _derive_chain(p: Draw) -> Derivation:
    steps = _steps(p)
    sizes = {name: p.rows * p.width * p.bytes_per_element for step in steps for name in (*step.inputs, step.output)}
    fused = fusion.fused_bytes(steps, sizes=sizes, needed=(steps[-1].output,))
    return Derivation(
        value=fusion.separate_bytes(steps, sizes=sizes) - fused,
        formula=(
            "(2 per operation on one tensor + 3 per operation on two − what the fused kernel reads from outside and"
            " writes) × bytes of a tensor"
        ),
        substitution=(
            f"(2 × {p.unary} + 3 × {p.binary} − (1 + {p.binary} + 1)) × {p.rows} × {p.width} × {p.bytes_per_element}"
        ),
        source=SOURCE_FUSION,
    )


def _count_chain(p: Draw) -> float:
    """Run the chain both ways."""
    import numpy as np  # numpy, which a reader's own drills do not need

    from threeloops.simulate.inner_loop import fused_steps

    steps = _steps(p)
    outside = {name for step in steps for name in step.inputs} - {step.output for step in steps}
    tensors = {name: np.full((p.rows, p.width), 0.5, dtype=np.float16) for name in outside}
    chain = [(step.output, np.add if len(step.inputs) == 2 else np.negative, step.inputs) for step in steps]
    apart, together = (
        fused_steps.separate_kernels(chain, tensors),
        fused_steps.one_kernel(chain, tensors, rows=2, needed=(steps[-1].output,)),
    )
    return float(apart.moved_bytes - together.moved_bytes)


def _wide(p: Draw, tensors: int) -> float:
    return float(tensors * p.rows * p.width * p.bytes_per_element)


CHAIN = Drill(
    key="attention-fused-chain",
    taught=TAUGHT,
    title="What one kernel for all of them saves",
    unit="B",
    target_s=90,
    draw=_draw_chain,
    small=_small_chain,
    prompt=lambda p: (
        f"A chain of {p.unary + p.binary} elementwise kernels works on tensors of {p.rows:,} by {p.width:,} in"
        f" {8 * p.bytes_per_element} bits. In {p.unary} of them the running tensor is changed by itself; in {p.binary}"
        " it is combined with a further tensor of the same size, a new one each time. Only the last result is needed."
        " How many bytes of traffic does one fused kernel save?"
    ),
    derive=_derive_chain,
    count=_count_chain,
    slips=(
        Slip("fused-traffic", lambda p: _wide(p, 2 + p.binary))
        | "That is what the fused kernel still moves. The question is what it saves.",
        Slip("separate-traffic", lambda p: _wide(p, 2 * p.unary + 3 * p.binary))
        | "That is what the separate kernels move. The fused one is not free.",
        Slip("writes-only", lambda p: _wide(p, p.unary + p.binary - 1))
        | "You saved what is no longer written. It is no longer read either.",
        Slip("further-tensors-saved", lambda p: _wide(p, 2 * p.unary + 3 * p.binary - 2))
        | "You saved the further tensors too. They come from outside, and the fused kernel reads them as well.",
        Slip("thirty-two-bit", lambda p: _wide(p, 2 * (p.unary + p.binary - 1)) / p.bytes_per_element * 4)
        | "You took four bytes per number. Read again how the tensors are stored.",
    ),
    function=AsFunction(
        takes=("unary", "binary", "rows", "width", "bytes_per_element"),
        limit={"unary": 1, "binary": 0},
        limit_case="a single kernel, with which nothing can be fused",
    ),
)

# --- two units in turn ---------------------------------------------------------------------------


# FLOPs per cycle of a multiprocessor, and heads of such a width that no two mistakes come to the same share.
TURN_WIDTHS = {
    2048: tuple(range(88, 257, 8)),
    4096: (48, 56, 72, 80, 96, 112, 120, 136, 144, 152, *range(176, 257, 8)),
    8192: (*range(48, 121, 8), 136, 144, 152, 160, 168, 192, 200, 216, 224, 232, 240),
}


def _draw_units(rng: random.Random) -> Draw:
    flops = rng.choice((2048, 4096, 8192))
    head_dim = rng.choice(TURN_WIDTHS[flops])
    return drawn(
        head_dim=head_dim, flops=flops, exponentials=16, rows=rng.choice((64, 128)), columns=rng.choice((96, 176))
    )


def _derive_units(p: Draw) -> Derivation:
    rates = attention_cycles.UnitRates(matrix_flops_per_clock=p.flops, exponentials_per_clock=p.exponentials)
    return Derivation(
        value=attention_cycles.tile_cycles(
            query_rows=p.rows, key_rows=p.columns, head_dim=p.head_dim, rates=rates
        ).matrix_share_in_turn,
        formula=(
            "cycles of the matmuls / (cycles of the matmuls + cycles of the exponentials), per pair of query and key"
        ),
        substitution=f"4 × {p.head_dim} / {p.flops} / (4 × {p.head_dim} / {p.flops} + 1 / {p.exponentials})",
        source=SOURCE_UNITS,
    )


def _count_units(p: Draw) -> float:
    """One group of warps on a clock: every product and every exponential of its tiles, one after the other."""
    products = sum(2 * p.head_dim * p.columns for _ in range(2) for _ in range(p.rows))
    work = {"matrix_cycles": products / p.flops, "exponential_cycles": p.rows * p.columns / p.exponentials}
    return unit_turns.play(groups=1, tiles=5, **work).matrix_busy


def _share(p: Draw, flops_per_pair: float) -> float:
    products = flops_per_pair / p.flops
    return float(products / (products + 1 / p.exponentials))


UNITS = Drill(
    key="attention-units-in-turn",
    taught=TAUGHT,
    title="Matmuls wait for exponentials",
    unit="",
    target_s=120,
    draw=_draw_units,
    small=_draw_units,
    prompt=lambda p: (
        f"In one clock cycle, a multiprocessor does {p.flops:,} FLOPs on its tensor cores and {p.exponentials}"
        f" exponentials on another unit. A single group of warps computes attention on it in tiles of {p.rows} queries"
        f" by {p.columns} keys, {p.head_dim} wide: scores, exponentials, output, each after the other. All else is"
        " free. What share of the tensor cores' peak does it reach?"
    ),
    derive=_derive_units,
    count=_count_units,
    slips=(
        Slip("one-product", lambda p: _share(p, 2 * p.head_dim))
        | "You counted one of the two matmuls, or multiply-adds. Scores and output are a matmul each.",
        Slip("exponentials-share", lambda p: 1 - _share(p, 4 * p.head_dim))
        | "That is the share of the time in which the other unit works.",
        Slip("width-only", lambda p: _share(p, p.head_dim))
        | "You charged a pair with as many FLOPs as the head is wide. Multiply, add, and do it for two matmuls.",
        Slip("ratio", lambda p: p.flops / (4 * p.head_dim * p.exponentials))
        | "That is one unit's time over the other's. A share is of the whole time.",
    ),
)

DRILLS = (TILE, CHAIN, UNITS)
