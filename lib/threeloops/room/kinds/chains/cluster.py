"""Follow-ups on a cluster: a pipeline, a run that fails, experts that are popular."""

import random

from threeloops.drills.engine.drill import Draw, changed, drawn
from threeloops.room.kinds.chains.chain import Chain, Step
from threeloops.room.kinds.chains.change import Best, Change, redrawn, slips_apart, told_apart
from threeloops.units import GB, MB, fmt_seconds

# --- a pipeline ----------------------------------------------------------------------------------


def _draw_pipeline(rng: random.Random) -> Draw:
    pp, per_stage = rng.choice((6, 10, 12)), rng.choice((5, 7))
    return drawn(
        pp=pp,
        m=rng.choice((16, 20, 28, 36)),
        compute_s=rng.choice((1.6, 2.4, 3.5)),
        stage=rng.choice((1, 2, 3)),
        layers=pp * per_stage,
        layer_bytes=rng.choice((240, 310, 370)) * MB,
        chunks=per_stage,
        quicker=rng.choice((0.9, 0.8, 0.7)),
        times=rng.choice((1.5, 2)),
    )


PIPELINE_STEPS = (
    Step(drill="pipeline-bubble-share", numbers=lambda p: p),
    Step(
        drill="pipeline-step-time",
        numbers=lambda p: p,
        text=lambda p: (
            f"Each of the {p.pp} stages computes for {p.compute_s:g} s per step, its {p.m} micro-batches together,"
            " forward and backward, under 1F1B. Links cost nothing. How long does the step take?"
        ),
    ),
    Step(drill="memory-in-flight", numbers=lambda p: changed(p, micro_batches=p.m)),
)
PIPELINE_CHOICE = Best(
    drill="pipeline-step-time",
    now=lambda p: p,
    text=lambda p: (
        f"{p.pp} equal stages compute for {p.compute_s:g} s per step each, in {p.m} micro-batches under 1F1B. Which"
        " change shortens the step most?"
    ),
    changes=(
        Change(
            key="pieces",
            text=lambda p: f"the same batch in {round(p.m * p.times)} micro-batches",
            numbers=lambda p: changed(p, m=round(p.m * p.times)),
        ),
        Change(
            key="kernels",
            text=lambda p: f"kernels that need {100 * (1 - p.quicker):.0f} % less time",
            numbers=lambda p: changed(p, compute_s=p.compute_s * p.quicker),
        ),
        Change(
            key="shorter",
            text=lambda p: f"{p.pp // 2} stages of twice the layers, on half of the GPUs",
            numbers=lambda p: changed(p, pp=p.pp // 2, compute_s=2 * p.compute_s),
        ),
    ),
)
PIPELINE = Chain(
    key="pipeline",
    title="A pipeline",
    draw=redrawn(_draw_pipeline, lambda p: told_apart(PIPELINE_STEPS, p) and PIPELINE_CHOICE.clear(p)),
    steps=PIPELINE_STEPS,
    decision=PIPELINE_CHOICE.decision,
)

# --- a run that fails ----------------------------------------------------------------------------


def _draw_failing(rng: random.Random) -> Draw:
    return drawn(
        gpus=rng.choice((1024, 1536, 2048)),
        days=rng.choice((20, 32, 45)),
        stops=rng.choice((9, 14, 22)),
        target=rng.choice((6144, 8192, 12_288)),
        gpu_years=rng.choice((6, 9, 12)),
        save_s=rng.choice((20, 45, 80)),
        steps=rng.choice((60, 120, 200)),
        step_s=rng.choice((6, 9, 12)),
        detect_s=rng.choice((300, 600, 900)),
        restart_s=rng.choice((240, 420, 780)),
        limit=rng.choice((2, 3, 5)),
    )


FAILING_STEPS = (
    Step(drill="failure-larger-run", numbers=lambda p: p),
    Step(drill="failure-save-interval", numbers=lambda p: changed(p, gpus=p.target)),
    Step(drill="failure-lost-time", numbers=lambda p: p),
)
FAILING_CHOICE = Best(
    drill="failure-lost-time",
    now=lambda p: p,
    text=lambda p: (
        f"A save after every {p.steps} steps of {p.step_s} s; {fmt_seconds(p.detect_s)} until a timeout notices a dead"
        f" rank, {fmt_seconds(p.restart_s)} until steps run again. Which change makes a failure cheapest, on average?"
    ),
    changes=(
        Change(key="saves", text=lambda p: "saves twice as often", numbers=lambda p: changed(p, steps=p.steps / 2)),
        Change(
            key="timeout",
            text=lambda p: f"a timeout of {fmt_seconds(p.detect_s / p.limit)}",
            numbers=lambda p: changed(p, detect_s=p.detect_s / p.limit),
        ),
        Change(
            key="restart",
            text=lambda p: f"images and weights kept on the nodes: {fmt_seconds(p.restart_s / 3)} to restart",
            numbers=lambda p: changed(p, restart_s=p.restart_s / 3),
        ),
    ),
)
FAILING = Chain(
    key="failing",
    title="A run that fails",
    draw=redrawn(_draw_failing, lambda p: told_apart(FAILING_STEPS, p) and FAILING_CHOICE.clear(p)),
    steps=FAILING_STEPS,
    decision=FAILING_CHOICE.decision,
)

# --- experts that are popular --------------------------------------------------------------------


def _draw_experts(rng: random.Random) -> Draw:
    ep = rng.choice((6, 9, 12))
    return drawn(
        name="A model",
        ep=ep,
        dp=3 * ep,
        percent=rng.choice((22, 28, 35)),
        tokens=rng.choice((4096, 6144, 10_240)),
        top_k=rng.choice((4, 6, 8)),
        hidden=rng.choice((2560, 4096, 5120)),
        wide=rng.choice((1408, 1536, 2048)),
        tera=rng.choice((380, 450, 520)),
        dense=rng.choice((8, 11, 14)) * GB,
        experts=ep * rng.choice((5, 7, 9)) * GB,
        per_layer=5 * ep,
        narrow=rng.choice((1.4, 1.7)),
        fair_percent=round(100 / ep * rng.choice((1.1, 1.3, 1.6))),
        fewer=rng.choice((1, 2)),
    )


EXPERT_STEPS = (
    Step(drill="memory-expert-parallel", numbers=lambda p: p),
    Step(drill="experts-busiest-gpu", numbers=lambda p: p),
    Step(
        drill="experts-busiest-gpu",
        numbers=lambda p: changed(p, percent=p.fair_percent),
        text=lambda p: (
            f"Now a loss that balances: the busiest of the {p.ep} GPUs gets {p.fair_percent} % of all choices. (Each"
            f" brings {p.tokens:,} tokens of width {p.hidden:,}, {p.top_k} experts a token, three matrices of"
            f" {p.hidden:,} by {p.wide:,} an expert, {p.tera} TFLOP/s.) How long does the last GPU compute now?"
        ),
    ),
)
EXPERT_CHOICE = Best(
    drill="experts-busiest-gpu",
    now=lambda p: p,
    text=lambda p: (
        f"Back to {p.percent} % on one of {p.ep} GPUs, and {p.top_k} experts a token. Which change lets the last GPU"
        " end soonest?"
    ),
    changes=(
        Change(
            key="balance",
            text=lambda p: f"balance: {p.fair_percent} % of the choices on the busiest",
            numbers=lambda p: changed(p, percent=p.fair_percent),
        ),
        Change(
            key="fewer",
            text=lambda p: f"{p.top_k - p.fewer} experts a token",
            numbers=lambda p: changed(p, top_k=p.top_k - p.fewer),
        ),
        Change(
            key="narrow",
            text=lambda p: f"matmuls in 8 bits, {p.narrow:g} times as fast",
            numbers=lambda p: changed(p, tera=p.tera * p.narrow),
        ),
    ),
)
EXPERTS = Chain(
    key="experts",
    title="Experts that are popular",
    draw=redrawn(
        _draw_experts,
        lambda p: (
            p.fair_percent < 0.8 * p.percent
            and told_apart(EXPERT_STEPS, p)
            and slips_apart(EXPERT_STEPS, p)
            and EXPERT_CHOICE.clear(p)
        ),
    ),
    steps=EXPERT_STEPS,
    decision=EXPERT_CHOICE.decision,
)
