"""Drills on a pipeline's idle time: as a share of the step, on top of the work, and with more micro-batches."""

import random

from threeloops.drills.engine.drill import Derivation, Draw, Drill, Slip, Taught, drawn
from threeloops.simulate.training_loop.pipeline_schedules import Run, Work, run
from threeloops.training_loop.parallelism import pipelines
from threeloops.units import fmt_percent, fmt_seconds, ms

TAUGHT = Taught("training", "Pipeline parallelism")
SOURCE_1F1B = "Narayanan et al., 2021, arXiv:2104.04473, section 2.2"
SOURCE_GPIPE = "Huang et al., 2019, arXiv:1811.06965 (GPipe)"
SOURCE_ZERO = "Qi et al., 2023, arXiv:2401.10241, section 2"


def even(total_s: float) -> Work:
    return Work(forward_s=total_s / 3, input_gradient_s=total_s / 3, weight_gradient_s=total_s / 3)


def played(p: Draw, *, schedule: str = "1f1b", chunks: int = 1, total_s: float = 3.0) -> Run:
    return run(schedule=schedule, pp=p.pp, micro_batches=p.m, chunks=chunks, work=even(total_s), send_s=0)


# --- the bubble as a share of the step ----------------------------------------------------------


def _pairs(stages: range, low: float, high: float) -> tuple[tuple[int, int], ...]:
    """Stages and micro-batches whose idle time lies between two shares of the work, so that no two mistakes look
    alike.
    """
    return tuple((pp, m) for pp in stages for m in range(9, 40) if low < (pp - 1) / m < high)


SMALL_BUBBLES, LARGE_BUBBLES = _pairs(range(7, 14), 0.26, 0.42), _pairs(range(6, 14), 0.3, 0.58)


def _draw_share(rng: random.Random) -> Draw:
    pp, m = rng.choice(SMALL_BUBBLES)
    return drawn(pp=pp, m=m)


def _small_share(rng: random.Random) -> Draw:
    return drawn(pp=rng.choice((3, 4, 5)), m=rng.choice((6, 7, 9)))


SHARE = Drill(
    key="pipeline-bubble-share",
    taught=TAUGHT,
    title="What the clock on the wall sees",
    unit="",
    target_s=60,
    draw=_draw_share,
    small=_small_share,
    prompt=lambda p: (
        f"A model is cut into {p.pp} equal pipeline stages and trains with {p.m} micro-batches per step under 1F1B."
        " Links cost nothing. For which share of a step, from its first pass to its last, does a GPU stand idle?"
    ),
    derive=lambda p: Derivation(
        value=pipelines.bubble(
            schedule="1f1b", pp=p.pp, micro_batches=p.m, forward_s=1, input_gradient_s=1, weight_gradient_s=1
        ).share_of_step,
        formula="(stages − 1) / (micro-batches + stages − 1)",
        substitution=f"({p.pp} − 1) / ({p.m} + {p.pp} − 1)",
        source=SOURCE_1F1B,
    ),
    count=lambda p: played(p).idle_share,
    slips=(
        Slip("over-ideal", lambda p: (p.pp - 1) / p.m)
        | "That compares idle time with working time. The question compares it with the whole step, in which the"
        " idle time is contained.",
        Slip("busy-share", lambda p: p.m / (p.m + p.pp - 1)) | "That is the share in which the GPU works.",
        Slip("all-stages-wait", lambda p: p.pp / (p.m + p.pp - 1))
        | "You made a GPU wait for every stage. For its own it does not wait.",
        Slip("twice", lambda p: 2 * (p.pp - 1) / (p.m + 2 * (p.pp - 1)))
        | "You counted filling and draining as a full wait each. Forward passes at the start and backward passes"
        " at the end add up to one.",
        Slip("no-micro-batches", lambda p: (p.pp - 1) / p.pp)
        | "That is what happens when the whole batch goes through in one piece.",
    ),
)

# --- the step with its bubble --------------------------------------------------------------------


def _draw_step(rng: random.Random) -> Draw:
    pp, m = rng.choice(LARGE_BUBBLES)
    return drawn(pp=pp, m=m, compute_s=rng.randrange(400, 2500, 20) * ms)


STEP = Drill(
    key="pipeline-step-time",
    taught=TAUGHT,
    title="Work plus waiting",
    unit="s",
    target_s=75,
    draw=_draw_step,
    small=lambda rng: drawn(pp=rng.choice((3, 4, 5)), m=rng.choice((6, 7, 9)), compute_s=rng.choice((2.0, 5.0))),
    prompt=lambda p: (
        f"Under 1F1B, each of {p.pp} equal pipeline stages computes for {fmt_seconds(p.compute_s)} per step, its {p.m}"
        " micro-batches together, forward and backward. Links cost nothing. How long does the step take?"
    ),
    derive=lambda p: Derivation(
        value=pipelines.step_s(compute_s=p.compute_s, pp=p.pp, micro_batches=p.m),
        formula="compute time × (1 + (stages − 1) / micro-batches)",
        substitution=f"{p.compute_s:.12g} × (1 + ({p.pp} − 1) / {p.m})",
        source=SOURCE_1F1B,
    ),
    count=lambda p: played(p, total_s=p.compute_s / p.m).step_s,
    slips=(
        Slip("share-of-step-added", lambda p: p.compute_s * (1 + (p.pp - 1) / (p.m + p.pp - 1)))
        | "You added the bubble fraction to the work. The fraction is one of the whole step, which is longer than"
        " the work.",
        Slip("no-bubble", lambda p: p.compute_s)
        | "You left the bubble out: stages have to wait for the first micro-batch, and at the end for its like.",
        Slip("one-after-another", lambda p: p.compute_s * p.pp)
        | "You let the stages work one after another. With micro-batches they work at the same time.",
        Slip("bubble-alone", lambda p: p.compute_s * (p.pp - 1) / p.m) | "That is the waiting alone.",
        Slip("both-ends", lambda p: p.compute_s * (1 + 2 * (p.pp - 1) / p.m))
        | "You paid a whole pass, forward and backward, per stage at either end. Filling costs forward passes,"
        " draining costs backward passes.",
    ),
    prerequisites=("pipeline-bubble-share",),
)

# --- how many micro-batches ----------------------------------------------------------------------


def _count_needed(p: Draw) -> float:
    """Try one number after another."""
    m = 1
    while run(schedule="1f1b", pp=p.pp, micro_batches=m, work=even(3.0), send_s=0).idle_share > p.share + 1e-9:
        m += 1
    return float(m)


NEEDED = Drill(
    key="pipeline-micro-batches-needed",
    taught=TAUGHT,
    title="How many pieces",
    unit="",
    whole="up",
    target_s=75,
    draw=lambda rng: drawn(pp=rng.choice(range(12, 40)), share=rng.choice((0.08, 0.1, 0.12, 0.15))),
    small=lambda rng: drawn(pp=rng.choice((3, 4, 5)), share=rng.choice((0.15, 0.2, 0.3))),
    prompt=lambda p: (
        f"A pipeline of {p.pp} equal stages runs 1F1B. Of a step, at most {fmt_percent(p.share)} may be lost to the"
        " bubble. What is the smallest number of micro-batches that keeps it there?"
    ),
    derive=lambda p: Derivation(
        value=pipelines.micro_batches_for(share_of_step=p.share, pp=p.pp),
        formula="(stages − 1) / share, rounded up, − (stages − 1)",
        substitution=f"ceil(({p.pp} − 1) / {p.share}) − ({p.pp} − 1)",
        source=SOURCE_1F1B,
    ),
    count=_count_needed,
    slips=(
        Slip("over-ideal", lambda p: (p.pp - 1) / p.share)
        | "You held the waiting against the work. The target is a share of the step, and the step contains the"
        " waiting.",
        Slip("rule-of-thumb", lambda p: 4 * p.pp)
        | "That is the rule of thumb, four micro-batches per stage. It leaves a bubble of a fixed size, whatever"
        " the target.",
        Slip("inverted", lambda p: (p.pp - 1) * (1 - p.share))
        | "You multiplied where the share has to divide: the smaller the bubble may be, the more micro-batches it"
        " takes.",
        Slip("doubled", lambda p: 2 * (p.pp - 1) * (1 - p.share) / p.share)
        | "You counted the wait at the start and at the end as a full pass each. Together they are one: forward"
        " passes here, backward passes there.",
    ),
    prerequisites=("pipeline-bubble-share",),
)

# --- against the right picture -------------------------------------------------------------------


def _draw_speedup(rng: random.Random) -> Draw:
    pp, m = rng.choice(LARGE_BUBBLES)
    return drawn(pp=pp, m=m)


SPEEDUP = Drill(
    key="pipeline-gain-of-micro-batches",
    taught=TAUGHT,
    title="The right picture to compare with",
    unit="",
    target_s=75,
    draw=_draw_speedup,
    small=_small_share,
    prompt=lambda p: (
        f"A model lies in {p.pp} equal stages on {p.pp} GPUs. At first a batch goes through in one piece: one GPU"
        f" works, the others wait. Then the same batch is cut into {p.m} micro-batches and runs under GPipe; no pass"
        " becomes less efficient by being smaller. How many times faster is a step?"
    ),
    derive=lambda p: Derivation(
        value=p.pp / pipelines.step_s(compute_s=1, pp=p.pp, micro_batches=p.m),
        formula="stages × micro-batches / (micro-batches + stages − 1)",
        substitution=f"{p.pp} × {p.m} / ({p.m} + {p.pp} − 1)",
        source=SOURCE_GPIPE,
    ),
    count=lambda p: (
        run(schedule="gpipe", pp=p.pp, micro_batches=1, work=even(3.0 * p.m), send_s=0).step_s
        / played(p, schedule="gpipe").step_s
    ),
    slips=(
        Slip("perfect", lambda p: p.pp)
        | "That would be all GPUs working all of the time. The pipeline has to fill and to drain.",
        Slip("as-many-as-pieces", lambda p: p.m)
        | "You counted pieces. No more of them run at a time than there are GPUs.",
        Slip("share-of-step-added", lambda p: p.pp / (1 + (p.pp - 1) / (p.m + p.pp - 1)))
        | "You lengthened the work by the bubble's share of the step. That share is one of the longer, whole"
        " step.",
        Slip("busy-share", lambda p: p.m / (p.m + p.pp - 1))
        | "That is how busy the GPUs are afterwards. How busy were they before?",
    ),
    prerequisites=("pipeline-bubble-share",),
)

DRILLS = (SHARE, STEP, NEEDED, SPEEDUP)
