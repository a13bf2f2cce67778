"""Drills on layouts that somebody ran: what a pipeline's bubble explains of a step, and what has to be sent."""

import functools
import random
from typing import TYPE_CHECKING

from threeloops.drills.engine.drill import AsFunction, Derivation, Draw, Drill, Slip, Taught, drawn
from threeloops.drills.measured.rows import gpu_name, printed_steps
from threeloops.drills.measured.steps import cited, named
from threeloops.simulate.training_loop.pipeline_schedules import Work, run
from threeloops.training_loop.parallelism import pipelines

if TYPE_CHECKING:
    from threeloops.training_loop.parallelism.published_steps import PublishedStep

PIPELINE = Taught("training", "Pipeline parallelism")
SHARDS = Taught("training", "ZeRO and FSDP")

SOURCE_BUBBLE = "Narayanan et al., 2021, arXiv:2104.04473, sections 2.2.1 and 2.2.2"
SOURCE_ZERO = "Rajbhandari et al., ZeRO, 2019, arXiv:1910.02054, section 7"

# --- the bubble of a step --------------------------------------------------------------------------


def micro_batches_of(row: "PublishedStep") -> int:
    """Of each pipeline; 0 where they do not come out even."""
    count, left = divmod(row.job.global_batch, row.layout.dp * row.layout.micro_batch)
    return 0 if left else count


@functools.cache
def _piped() -> "tuple[PublishedStep, ...]":
    """Steps whose bubble is no longer than the work, and long enough to be seen."""
    return tuple(
        row
        for row in printed_steps()
        if row.layout.pp > 1
        and (micro_batches := micro_batches_of(row))
        and 0.05 < (row.layout.pp - 1) / (row.layout.chunks * micro_batches) < 1
    )


def _draw_bubble(rng: random.Random) -> Draw:
    row = rng.choice(_piped())
    one = row.layout
    return drawn(
        publisher=row.publisher,
        model=named(row),
        gpu=gpu_name(row.part),
        gpus=row.cluster.num_gpus,
        batch=row.job.global_batch,
        micro_batch=one.micro_batch,
        dp=one.dp,
        pp=one.pp,
        chunks=one.chunks,
        step_s=float(f"{row.measured_s:.4g}"),
        row=cited(row),
    )


def _small_bubble(rng: random.Random) -> Draw:
    pp, micro_batch, dp = rng.choice((3, 4, 5)), rng.choice((2, 3)), rng.choice((2, 3, 5))
    return drawn(
        pp=pp,
        micro_batch=micro_batch,
        dp=dp,
        chunks=rng.choice((1, 2)),
        batch=dp * micro_batch * pp * rng.choice((1, 2)),
        step_s=rng.randrange(21, 99),
        row="drawn in 2026",
    )


def _bubble_s(p: Draw, micro_batches: int = 0) -> float:
    count = micro_batches or p.batch // (p.dp * p.micro_batch)
    working = p.step_s / pipelines.step_s(compute_s=1.0, pp=p.pp, micro_batches=count, chunks=p.chunks)
    return float(p.step_s - working)


def _derive_bubble(p: Draw) -> Derivation:
    waits, works = f"({p.pp} − 1)", f"{p.chunks} × {p.batch} / ({p.dp} × {p.micro_batch})"
    return Derivation(
        value=_bubble_s(p),
        formula="step × (p − 1) / (v × m + p − 1), with m = batch / (data-parallel copies × micro-batch)",
        substitution=f"{p.step_s!r} × {waits} / ({works} + {waits})",
        source=f"{SOURCE_BUBBLE}; {p.row}",
    )


def _count_bubble(p: Draw) -> float:
    """Deal out the sequences, play the schedule on a clock, and scale it to the step."""
    left, micro_batches = p.batch, 0
    while left:
        left, micro_batches = left - p.dp * p.micro_batch, micro_batches + 1
    even = Work(forward_s=1.0, input_gradient_s=1.0, weight_gradient_s=1.0)
    schedule = "interleaved" if p.chunks > 1 else "1f1b"
    done = run(schedule=schedule, pp=p.pp, micro_batches=micro_batches, chunks=p.chunks, work=even, send_s=0)
    return float(max(done.idle_s) / done.step_s * p.step_s)


def _schedule(p: Draw) -> str:
    return "1F1B" if p.chunks == 1 else f"interleaved 1F1B with {p.chunks} pieces of the model on each GPU"


BUBBLE = Drill(
    key="measured-bubble-seconds",
    taught=PIPELINE,
    title="The bubble of a published step",
    unit="s",
    target_s=120,
    draw=_draw_bubble,
    small=_small_bubble,
    prompt=lambda p: (
        f"{p.publisher} trained {p.model}, on {p.gpus} GPUs ({p.gpu}): {p.dp} data-parallel copies of pipelines of"
        f" {p.pp} stages, {_schedule(p)}, micro-batches of {p.micro_batch}. A step over {p.batch:,} sequences took"
        f" {p.step_s:.4g} s. Stages are even, links cost nothing, and nothing but the pipeline waits. How many seconds"
        " of the step is each GPU idle in the bubble?"
    ),
    derive=_derive_bubble,
    count=_count_bubble,
    slips=(
        Slip("over-work", lambda p: p.step_s * (p.pp - 1) * p.dp * p.micro_batch / (p.chunks * p.batch))
        | "You held (p − 1)/(v m) against the step. It is the bubble over the work, and the step holds both.",
        Slip("copies-forgotten", lambda p: _bubble_s(p, p.batch // p.micro_batch))
        | "You gave one pipeline all micro-batches. The data-parallel copies share them.",
        Slip(
            "each-pass",
            lambda p: p.step_s * 2 * (p.pp - 1) / (p.chunks * p.batch / (p.dp * p.micro_batch) + 2 * (p.pp - 1)),
        )
        | "You counted the bubble once for each pass. A micro-batch in this formula is both passes together.",
        Slip("working", lambda p: p.step_s - _bubble_s(p)) | "Those are the seconds in which it works.",
    ),
    function=AsFunction(
        takes=("pp", "chunks", "dp", "batch", "micro_batch", "step_s"),
        limit={"dp": 1},
        limit_case="a single data-parallel copy",
    ),
)

# --- another layout of the same job ----------------------------------------------------------------


def _stretch(row: "PublishedStep") -> float:
    """The step over the work in it."""
    one = row.layout
    return pipelines.step_s(compute_s=1.0, pp=one.pp, micro_batches=micro_batches_of(row), chunks=one.chunks)


@functools.cache
def _pairs() -> "tuple[tuple[PublishedStep, PublishedStep], ...]":
    """Two layouts of one job whose bubbles differ, in both orders."""
    rows = [row for row in printed_steps() if row.layout.pp > 1 and micro_batches_of(row)]

    def job(row: "PublishedStep") -> tuple[object, ...]:
        return row.model, row.part, row.format, row.cluster.num_gpus, row.job.global_batch, row.job.sequence

    return tuple(
        (before, after)
        for before in rows
        for after in rows
        if job(before) == job(after) and not 0.94 < _stretch(after) / _stretch(before) < 1.06
    )


def _draw_changed(rng: random.Random) -> Draw:
    before, after = rng.choice(_pairs())
    return drawn(
        publisher=before.publisher,
        model=named(before),
        gpu=gpu_name(before.part),
        gpus=before.cluster.num_gpus,
        batch=before.job.global_batch,
        before=_degrees(before),
        after=_degrees(after),
        step_s=float(f"{before.measured_s:.4g}"),
        printed_s=after.measured_s,
        row=f"{cited(before)}; {after.key}",
    )


def _degrees(row: "PublishedStep") -> tuple[int, ...]:
    one = row.layout
    return one.tp, one.pp, one.dp, one.micro_batch, one.chunks


def _over_work(p: Draw, layout: tuple[int, ...]) -> float:
    """What the step of a layout takes longer than the work in it, as a share of the work."""
    _, pp, dp, micro_batch, chunks = layout
    micro_batches = p.batch // (dp * micro_batch)
    return pipelines.step_s(compute_s=1.0, pp=pp, micro_batches=micro_batches, chunks=chunks) - 1


def _changed_s(p: Draw) -> float:
    return float(p.step_s * (1 + _over_work(p, p.after)) / (1 + _over_work(p, p.before)))


def _derive_changed(p: Draw) -> Derivation:
    after, before = (
        f"(1 + ({pp} − 1) / ({chunks} × {p.batch} / ({dp} × {micro_batch})))"
        for _, pp, dp, micro_batch, chunks in (p.after, p.before)
    )
    return Derivation(
        value=_changed_s(p),
        formula=(
            "step × (1 + (p − 1)/(v m) after) / (1 + (p − 1)/(v m) before), with m = batch / (data-parallel copies ×"
            f" micro-batch); printed: {p.printed_s:.4g} s, and the rest has other causes"
        ),
        substitution=f"{p.step_s!r} × {after} / {before}",
        source=f"{SOURCE_BUBBLE}; {p.row}",
    )


def _count_changed(p: Draw) -> float:
    """Both schedules on a clock, with as much work for each GPU in all."""
    took = []
    for _, pp, dp, micro_batch, chunks in (p.before, p.after):
        micro_batches = len(range(0, p.batch, dp * micro_batch))
        work = Work(
            forward_s=1 / micro_batches, input_gradient_s=1 / micro_batches, weight_gradient_s=1 / micro_batches
        )
        took.append(run(schedule="1f1b", pp=pp, micro_batches=micro_batches, chunks=chunks, work=work, send_s=0).step_s)
    return float(p.step_s * took[1] / took[0])


def _told(layout: tuple[int, ...]) -> str:
    tp, pp, dp, micro_batch, chunks = layout
    pieces = f" with {chunks} pieces of the model on each GPU" if chunks > 1 else ""
    return (
        f"tensor-parallel {tp}, {pp} pipeline stages{pieces}, {dp} data-parallel copies, micro-batches of {micro_batch}"
    )


CHANGED = Drill(
    key="measured-layout-changed",
    taught=Taught("training", "The optimisation stack"),
    title="What the bubble says of another layout",
    unit="s",
    target_s=180,
    draw=_draw_changed,
    small=lambda rng: drawn(
        batch=24,
        before=(1, 2, 2, 2, 1),
        after=(1, rng.choice((4, 6)), 2, rng.choice((2, 3)), 1),
        step_s=rng.randrange(20, 60),
        printed_s=1.0,
        row="drawn in 2026",
    ),
    prompt=lambda p: (
        f"{p.publisher} ran {p.model}, on {p.gpus} GPUs ({p.gpu}), {p.batch:,} sequences a step, 1F1B (interleaved"
        f" where a GPU has several pieces): {_told(p.before)}. A step took {p.step_s:.4g} s. The same job was run in"
        f" another layout: {_told(p.after)}. If the pipeline's bubble were all that changes, how long would that step"
        " take?"
    ),
    derive=_derive_changed,
    count=_count_changed,
    prerequisites=("measured-bubble-seconds",),
    slips=(
        Slip("upside-down", lambda p: p.step_s * p.step_s / _changed_s(p))
        | "You took the factor the wrong way round. Which layout has the larger bubble?",
        Slip("as-before", lambda p: p.step_s)
        | "You left the step as it was. Count how many stages wait for how many micro-batches in each layout.",
        Slip("bubbles-alone", lambda p: p.step_s * _over_work(p, p.after) / _over_work(p, p.before))
        | "You scaled the whole step by the bubbles. The work in it stays the same.",
        Slip("each-pass", lambda p: p.step_s * (1 + 2 * _over_work(p, p.after)) / (1 + 2 * _over_work(p, p.before)))
        | "You counted the bubble once for each pass. A micro-batch in this formula is both passes together.",
    ),
)

DRILLS = (BUBBLE, CHANGED)
