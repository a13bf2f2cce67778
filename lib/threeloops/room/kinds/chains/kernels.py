"""Follow-ups inside one GPU: tiles of a product, attention that is not fused, a step that keeps asking."""

import random

from threeloops.drills.engine.drill import Draw, changed, drawn
from threeloops.room.kinds.chains.chain import Chain, Step
from threeloops.room.kinds.chains.change import Best, Change, redrawn, told_apart
from threeloops.units import fmt_seconds, us

# --- tiles of a product --------------------------------------------------------------------------

TILES = ((128, 256), (256, 128), (192, 192), (192, 160))


def _draw_tiles(rng: random.Random) -> Draw:
    return drawn(
        m=rng.randrange(2300, 6000, 100),
        n=rng.randrange(3300, 8000, 100),
        k=rng.choice((1024, 2048, 4096)),
        tile=rng.choice((16, 32)),
        tile_m=256,
        tile_n=256,
        sms=132,
    )


TILE_STEPS = (
    Step(drill="gpu-tiled-traffic", numbers=lambda p: p),
    Step(
        drill="gpu-tiled-traffic",
        numbers=lambda p: changed(p, tile=2 * p.tile),
        text=lambda p: (
            f"Now tiles of {2 * p.tile} by {2 * p.tile}, otherwise the same: [{p.m:,}, {p.k:,}] times [{p.k:,},"
            f" {p.n:,}] in fp32, each block brings the strips that it needs, nothing stays in a cache, the result is"
            " written once. How many bytes?"
        ),
    ),
    Step(drill="gemm-quantised-share", numbers=lambda p: p),
)
TILE_CHOICE = Best(
    drill="gemm-quantised-share",
    now=lambda p: p,
    more=True,
    text=lambda p: (
        f"The result has {p.m:,} rows and {p.n:,} columns; {p.sms} SMs hold one block each, and a tile at the edge"
        " takes as long as a full one. In place of 256 by 256, which tile leaves least of the arithmetic unused?"
    ),
    changes=tuple(
        Change(
            key=f"{rows}x{columns}",
            text=lambda p, rows=rows, columns=columns: f"{rows} rows by {columns} columns",  # type: ignore[misc]
            numbers=lambda p, rows=rows, columns=columns: changed(p, tile_m=rows, tile_n=columns),  # type: ignore[misc]
        )
        for rows, columns in TILES
    ),
)
TILED = Chain(
    key="tiles",
    title="Tiles of a matmul",
    draw=redrawn(_draw_tiles, lambda p: told_apart(TILE_STEPS, p) and TILE_CHOICE.clear(p)),
    steps=TILE_STEPS,
    decision=TILE_CHOICE.decision,
)

# --- attention that is not fused -----------------------------------------------------------------


def _draw_scores(rng: random.Random) -> Draw:
    kv_heads, group = rng.choice(((8, 4), (8, 5), (4, 7)))
    return drawn(
        heads=kv_heads * group,
        kv_heads=kv_heads,
        head_dim=128,
        batch=rng.choice((3, 4, 6)),
        tokens=rng.choice((4000, 6000, 9000)),
        bytes_per_element=2,
        fewer=rng.choice((1, 2)),
        kept=rng.choice((0.5, 0.6, 0.75)),
    )


SCORE_STEPS = (
    Step(drill="attention-score-matrix", numbers=lambda p: p),
    Step(drill="attention-unfused-traffic", numbers=lambda p: p),
    Step(drill="attention-kept-statistics", numbers=lambda p: p),
)
SCORE_CHOICE = Best(
    drill="attention-score-matrix",
    now=lambda p: p,
    text=lambda p: (
        f"Suppose that no fused kernel exists for this card: {p.batch} prompts of {p.tokens:,} tokens, {p.heads} query"
        " heads, scores in 16 bits. Which change leaves the smallest score matrix?"
    ),
    changes=(
        Change(
            key="batch",
            text=lambda p: f"{p.batch - p.fewer} prompts at a time",
            numbers=lambda p: changed(p, batch=p.batch - p.fewer),
        ),
        Change(
            key="tokens",
            text=lambda p: f"prompts cut to {round(p.tokens * p.kept):,} tokens",
            numbers=lambda p: changed(p, tokens=round(p.tokens * p.kept)),
        ),
        Change(key="bytes", text=lambda p: "scores in 8 bits", numbers=lambda p: changed(p, bytes_per_element=1)),
    ),
)
SCORES = Chain(
    key="scores",
    title="Attention that is not fused",
    draw=redrawn(_draw_scores, lambda p: told_apart(SCORE_STEPS, p) and SCORE_CHOICE.clear(p)),
    steps=SCORE_STEPS,
    decision=SCORE_CHOICE.decision,
)

# --- a step that keeps asking --------------------------------------------------------------------


def _draw_asking(rng: random.Random) -> Draw:
    syncs, per_read = rng.choice((12, 20, 30)), rng.choice((3, 4))
    return drawn(
        syncs=syncs,
        kernels=syncs * per_read,
        kernel_us=rng.choice((30, 36, 44)),
        launch_us=rng.choice((16, 20, 24)),
        back_us=rng.choice((40, 70, 110)),
        quicker=rng.choice((1.2, 1.5, 2)),
        layers=syncs,
        ops=per_read,
        kernel_s=rng.choice((3, 5)) * us,
        issue_s=rng.choice((9, 12, 15)) * us,
        gap_s=rng.choice((1.1, 1.4)) * us,
        launch_s=rng.choice((40, 60)) * us,
        compile_s=rng.choice((40, 75, 120)),
        before_s=rng.choice((0.16, 0.24)),
        after_s=rng.choice((0.11, 0.13)),
    )


ASKING_STEPS = (
    Step(drill="profiling-hidden-syncs", numbers=lambda p: p),
    Step(drill="overheads-graph-replay", numbers=lambda p: p),
    Step(drill="overheads-compile-paid", numbers=lambda p: p),
)
ASKING_CHOICE = Best(
    drill="profiling-hidden-syncs",
    now=lambda p: p,
    text=lambda p: (
        f"Back to the first step: {p.kernels} kernels of {fmt_seconds(p.kernel_us * us)}, launches of"
        f" {fmt_seconds(p.launch_us * us)}, and a value read {p.syncs} times, from which the code goes on"
        f" {fmt_seconds(p.back_us * us)} later. Which change shortens it most?"
    ),
    changes=(
        Change(
            key="reads",
            text=lambda p: "half as many reads, evenly spread",
            numbers=lambda p: changed(p, syncs=p.syncs // 2),
        ),
        Change(
            key="kernels",
            text=lambda p: f"kernels {p.quicker:g} times as fast",
            numbers=lambda p: changed(p, kernel_us=p.kernel_us / p.quicker),
        ),
        Change(
            key="launches",
            text=lambda p: "launches that take half as long",
            numbers=lambda p: changed(p, launch_us=p.launch_us / 2),
        ),
    ),
)
ASKING = Chain(
    key="reads",
    title="A step that keeps asking",
    draw=redrawn(_draw_asking, lambda p: told_apart(ASKING_STEPS, p) and ASKING_CHOICE.clear(p)),
    steps=ASKING_STEPS,
    decision=ASKING_CHOICE.decision,
)
