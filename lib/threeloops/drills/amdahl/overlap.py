"""Drills on parts that run side by side, where the slower one sets the pace: a loader beside its device."""

import random

from threeloops.drills.engine.drill import AsFunction, Derivation, Draw, Drill, Slip, Taught, drawn
from threeloops.inner_loop import scaling
from threeloops.simulate.inner_loop import step as player
from threeloops.units import ms

TAUGHT = Taught("inner", "Three loops")

SOURCE_OVERLAP = (
    "Mohan et al., PVLDB 14(5), 2021, arXiv:2007.06775 (data stalls: the slower of fetching and computing sets the"
    " pace)"
)


def step_of(p: Draw) -> scaling.JobStep:
    """The step before any repair."""
    return scaling.JobStep(
        loader_s=p.loader_ms * ms, device_s={"passes": p.passes_ms * ms, "optimiser": p.optimiser_ms * ms}
    )


def played_s(p: Draw, loader_ms: float, passes_ms: float) -> float:
    """The pace of the same job played on a clock, with one worker that loads."""
    run = player.play(
        num_steps=60, workers=1, batch_s=loader_ms * ms, queue=2, stages=(passes_ms * ms, p.optimiser_ms * ms)
    )
    return run.pace_s(skip=20)


# --- who sets the pace --------------------------------------------------------------------------


def _draw_pace(rng: random.Random) -> Draw:
    device = {"passes_ms": rng.randrange(700, 750, 10), "optimiser_ms": rng.randrange(100, 130, 10)}
    factors = {"loader_factor": rng.choice((1.3, 1.35, 1.4)), "passes_factor": rng.choice((2.1, 2.3, 2.5))}
    return drawn(**device, **factors, loader_ms=rng.randrange(910, 990, 5))


def _derive_pace(p: Draw) -> Derivation:
    after = step_of(p).with_faster("loader", p.loader_factor).with_faster("passes", p.passes_factor)
    return Derivation(
        value=after.total_s,
        formula="max(loader / its factor, passes / their factor + optimiser)",
        substitution=(
            f"max({p.loader_ms} / {p.loader_factor}, {p.passes_ms} / {p.passes_factor} + {p.optimiser_ms}) / 1000"
        ),
        source=SOURCE_OVERLAP,
    )


PACE = Drill(
    key="amdahl-pace-setter",
    taught=TAUGHT,
    title="The slower of two",
    unit="s",
    target_s=90,
    draw=_draw_pace,
    small=_draw_pace,
    prompt=lambda p: (
        f"A data loader needs {p.loader_ms} ms per batch and works ahead while the accelerator computes. The"
        f" accelerator needs {p.passes_ms} ms forward and backward and then {p.optimiser_ms} ms in the optimiser. The"
        f" loader is made {p.loader_factor} times faster, forward and backward {p.passes_factor} times. How long is a"
        " step now, once the pipeline is full?"
    ),
    derive=_derive_pace,
    count=lambda p: played_s(p, p.loader_ms / p.loader_factor, p.passes_ms / p.passes_factor),
    slips=(
        Slip("added", lambda p: (p.loader_ms / p.loader_factor + p.passes_ms / p.passes_factor + p.optimiser_ms) * ms)
        | "You let the loader and the accelerator take turns. They work at the same time.",
        Slip("device-only", lambda p: (p.passes_ms / p.passes_factor + p.optimiser_ms) * ms)
        | "That is how long the accelerator is busy. It cannot begin before its batch is there.",
        Slip("factors-multiplied", lambda p: step_of(p).total_s / (p.loader_factor * p.passes_factor))
        | "You divided the old step by both factors. Each acts on a runner of its own, and the slower runner"
        " counts.",
        Slip("old-loader", lambda p: p.loader_ms * ms) | "You left the loader as it was.",
        Slip("old-device", lambda p: (p.passes_ms + p.optimiser_ms) * ms)
        | "You left forward and backward as they were.",
    ),
    function=AsFunction(
        takes=("loader_ms", "passes_ms", "optimiser_ms", "loader_factor", "passes_factor"),
        limit={"loader_factor": 4},
        limit_case="a loader that gets ahead of the accelerator",
    ),
)

# --- how fast the loader must become -------------------------------------------------------------


def _draw_follow(rng: random.Random) -> Draw:
    device = {"passes_ms": rng.randrange(600, 710, 10), "optimiser_ms": rng.randrange(100, 150, 10)}
    return drawn(**device, passes_factor=rng.choice((2.2, 2.4, 2.6)), loader_ms=rng.randrange(480, 570, 10))


def _small_follow(rng: random.Random) -> Draw:
    """Loaders that must become a whole number of tenths faster."""
    busy_ms, factor, optimiser_ms = rng.choice((200, 300)), rng.choice((2, 3)), 90
    return drawn(
        passes_ms=(busy_ms - optimiser_ms) * factor,
        optimiser_ms=optimiser_ms,
        passes_factor=factor,
        loader_ms=busy_ms * rng.choice((19, 27, 34)) // 10,
    )


def _count_follow(p: Draw) -> float:
    """Make the loader a tenth faster, and again, until the accelerator no longer waits."""
    alone_s = played_s(p, 0.0, p.passes_ms / p.passes_factor)
    for tenths in range(10, 100):
        if played_s(p, p.loader_ms / (tenths / 10), p.passes_ms / p.passes_factor) <= alone_s * (1 + 1e-9):
            return tenths / 10
    raise ValueError(f"no loader up to 10 times faster is enough for {p}")


FOLLOW = Drill(
    key="amdahl-loader-must-follow",
    taught=TAUGHT,
    title="A repair that another one has to follow",
    unit="",
    target_s=90,
    draw=_draw_follow,
    small=_small_follow,
    prompt=lambda p: (
        f"A data loader needs {p.loader_ms} ms per batch and works ahead while the accelerator computes: {p.passes_ms}"
        f" ms forward and backward, then {p.optimiser_ms} ms in the optimiser. A compiler makes forward and backward"
        f" {p.passes_factor} times faster. By what factor must the loader become faster, at least, so that none of this"
        " is lost?"
    ),
    derive=lambda p: Derivation(
        value=max(1.0, p.loader_ms * ms / step_of(p).with_faster("passes", p.passes_factor).busy_s),
        formula="loader / (passes / their factor + optimiser), and 1 if the loader is quick enough already",
        substitution=f"max(1, {p.loader_ms} / ({p.passes_ms} / {p.passes_factor} + {p.optimiser_ms}))",
        source=SOURCE_OVERLAP,
    ),
    count=_count_follow,
    prerequisites=("amdahl-pace-setter",),
    slips=(
        Slip("same-factor", lambda p: p.passes_factor)
        | "You gave the loader the compiler's factor. It has to keep up with the step, and it starts from another"
        " time.",
        Slip("before", lambda p: p.loader_ms / (p.passes_ms + p.optimiser_ms))
        | "You compared with the accelerator as it was before. Which pace has to be kept now?",
        Slip("no-optimiser", lambda p: p.loader_ms / (p.passes_ms / p.passes_factor))
        | "You left the optimiser out. The loader has its time to work in, too.",
        Slip("optimiser-faster", lambda p: p.loader_ms / ((p.passes_ms + p.optimiser_ms) / p.passes_factor))
        | "You made the optimiser faster as well. The compiler touched forward and backward.",
    ),
    function=AsFunction(
        takes=("loader_ms", "passes_ms", "optimiser_ms", "passes_factor"),
        limit={"loader_ms": 100},
        limit_case="a loader that is quick enough as it is",
    ),
)

DRILLS = (PACE, FOLLOW)
