"""Drills on what a step is made of: overlapped buckets, the sum of all parts, efficiency between two runs."""

import random

from threeloops.drills.engine.drill import AsFunction, Derivation, Draw, Drill, Slip, Taught, changed, drawn
from threeloops.simulate.training_loop import overlapped_step
from threeloops.training_loop.parallelism import step_time
from threeloops.units import ms

TAUGHT = Taught("training", "Why many GPUs")

SOURCE_DDP = "Li et al., PyTorch Distributed, VLDB 2020, arXiv:2006.15704, section 3.2.3"
SOURCE_STEP = "Narayanan et al., 2021, arXiv:2104.04473, section 2.2 (the bubble is a share of the work)"
SOURCE_SCALING = "Goyal et al., 2017, arXiv:1706.02677, section 5.4 (scaling efficiency)"

# --- gradients that leave during the backward pass -----------------------------------------------


def _sending_s(p: Draw) -> float:
    return float(p.buckets * p.bucket_ms * ms)


def _overlapped(p: Draw) -> step_time.StepTime:
    return step_time.data_parallel_step(
        forward_s=p.forward_ms * ms,
        backward_s=p.backward_ms * ms,
        send_s=_sending_s(p),
        buckets=p.buckets,
        overhead_s=p.update_ms * ms,
    )


def _draw_overlap(rng: random.Random) -> Draw:
    return drawn(
        forward_ms=rng.randrange(60, 240),
        backward_ms=rng.randrange(110, 420),
        update_ms=rng.randrange(8, 40),
        buckets=rng.randrange(3, 9),
        bucket_ms=rng.randrange(20, 140),
    )


def _derive_overlap(p: Draw) -> Derivation:
    inner = (
        f"max({p.forward_ms} + {p.backward_ms}, {p.forward_ms} + {p.backward_ms} / {p.buckets} + {p.buckets - 1} ×"
        f" {p.bucket_ms})"
    )
    return Derivation(
        value=_overlapped(p).total_s,
        formula="max(forward + backward, forward + backward / buckets + all buckets but one) + last bucket + update",
        substitution=f"({inner} + {p.bucket_ms} + {p.update_ms}) / 1000",
        source=SOURCE_DDP,
    )


def _count_overlap(p: Draw) -> float:
    slices = [p.backward_ms * ms / p.buckets] * p.buckets
    return overlapped_step.play(
        forward_s=p.forward_ms * ms, slices_s=slices, sends_s=[p.bucket_ms * ms] * p.buckets, update_s=p.update_ms * ms
    ).finished_s


OVERLAP = Drill(
    key="step-overlapped-buckets",
    taught=TAUGHT,
    title="A step with overlapped gradients",
    unit="s",
    target_s=150,
    apart=1.06,
    draw=_draw_overlap,
    small=_draw_overlap,
    prompt=lambda p: (
        f"A data-parallel step: {p.forward_ms} ms forward, {p.backward_ms} ms backward, {p.update_ms} ms for the"
        f" update. Gradients are all-reduced in {p.buckets} equal buckets that become complete at equal distances"
        f" during the backward pass, the last one at its end; each takes {p.bucket_ms} ms, one at a time, beside the"
        " computing. The update needs all of them. How long is the step?"
    ),
    derive=_derive_overlap,
    count=_count_overlap,
    slips=(
        Slip("all-hidden", lambda p: (p.forward_ms + p.backward_ms + p.update_ms) * ms)
        | "You hid all of the communication. When does the last bucket begin?",
        Slip("none-hidden", lambda p: (p.forward_ms + p.backward_ms + p.update_ms) * ms + _sending_s(p))
        | "You let the two take turns. Buckets leave while the backward pass still runs.",
        Slip(
            "half-hidden",
            lambda p: max(p.forward_ms + p.backward_ms, _sending_s(p) / ms) * ms + p.update_ms * ms + _sending_s(p) / 2,
        )
        | "You hid half of it by a rule of thumb. Follow the buckets one by one.",
        Slip("link-only", _sending_s) | "That is how long the link is busy. When can it begin, and what comes after?",
    ),
    function=AsFunction(
        takes=("forward_ms", "backward_ms", "update_ms", "buckets", "bucket_ms"),
        limit={"buckets": 1},
        limit_case="a single bucket, which is complete when the backward pass is",
    ),
)

# --- all parts of a step -------------------------------------------------------------------------


def _assembled(p: Draw) -> step_time.StepTime:
    bubble = p.compute_ms * (p.pp - 1) / (p.chunks * p.micro_batches)
    return step_time.StepTime(
        compute_s=p.compute_ms * ms,
        overlappable_s=p.beside_ms * ms,
        exposed_s=p.exposed_ms * ms,
        bubble_s=bubble * ms,
        overhead_s=p.overhead_ms * ms,
    )


def _rate(p: Draw, more_s: float = 0.0) -> float:
    """Tokens per second of one GPU if the step took that much longer."""
    return step_time.tokens_per_gpu_s(
        tokens=p.sequences * p.length, step_s=_assembled(p).total_s + more_s, num_gpus=p.gpus
    )


def _draw_assembled(rng: random.Random) -> Draw:
    pp = rng.choice((4, 6, 8, 12))
    compute = rng.randrange(2500, 9000, 100)
    return drawn(
        compute_ms=compute,
        beside_ms=round(compute * rng.uniform(0.3, 0.9)),
        exposed_ms=round(compute * rng.uniform(0.07, 0.3)),
        pp=pp,
        chunks=rng.choice((2, 3, 5)),
        micro_batches=pp * rng.choice((1, 2, 3)),
        overhead_ms=rng.randrange(100, 400, 10),
        sequences=rng.randrange(96, 640, 32),
        length=rng.choice((4096, 6144, 8192)),
        gpus=rng.choice((48, 96, 192, 384)),
    )


def _derive_assembled(p: Draw) -> Derivation:
    step = (
        f"(max({p.compute_ms}, {p.beside_ms}) + {p.exposed_ms} + {p.compute_ms} × ({p.pp} − 1) / ({p.chunks} ×"
        f" {p.micro_batches}) + {p.overhead_ms})"
    )
    return Derivation(
        value=_rate(p),
        formula=(
            "sequences × length / GPUs / (max(compute, beside it) + exposed + compute × (p − 1) / (v × m) + overhead)"
        ),
        substitution=f"{p.sequences} × {p.length} / {p.gpus} × 1000 / {step}",
        source=SOURCE_STEP,
    )


def _count_assembled(p: Draw) -> float:
    """A clock through the step of one GPU, then every token of the batch."""
    chunk = p.compute_ms / (p.chunks * p.micro_batches)  # one chunk of one micro-batch, forward and backward
    clock = sum(chunk for _ in range(p.pp - 1))  # filling and draining
    busy = sum(chunk for _ in range(p.chunks * p.micro_batches))
    link = 0.0
    while link < p.beside_ms:
        link += 1
    clock += busy if busy > link else link
    for wait in (p.exposed_ms, p.overhead_ms):
        clock += wait
    tokens = sum(1 for _ in range(p.sequences) for _ in range(p.length))
    return float(tokens / (clock * ms) / p.gpus)


ASSEMBLED = Drill(
    key="step-all-parts",
    taught=TAUGHT,
    title="Tokens per second from the parts of a step",
    unit="token/s",
    target_s=180,
    apart=1.06,
    draw=_draw_assembled,
    small=lambda rng: changed(_draw_assembled(rng), sequences=rng.choice((6, 7)), length=rng.choice((30, 50)), gpus=3),
    prompt=lambda p: (
        f"In a step, every GPU computes for {p.compute_ms} ms. Communication of {p.beside_ms} ms runs beside it,"
        f" another {p.exposed_ms} ms is waited for once per step, after the last micro-batch, and optimiser and"
        f" launches take {p.overhead_ms} ms. The pipeline"
        f" has {p.pp} stages, {p.chunks} chunks of layers per GPU (interleaved), and {p.micro_batches} micro-batches"
        f" per step. The batch is {p.sequences} sequences of {p.length:,} tokens on {p.gpus} GPUs. How many tokens per"
        " second does one GPU train?"
    ),
    derive=_derive_assembled,
    count=_count_assembled,
    slips=(
        Slip("no-bubble", lambda p: _rate(p, -_assembled(p).bubble_s))
        | "You forgot that a pipeline fills and drains. Who works then?",
        Slip("nothing-hidden", lambda p: _rate(p, min(p.compute_ms, p.beside_ms) * ms))
        | "You waited for all communication. Which part of it runs beside the kernels?",
        Slip("all-hidden", lambda p: _rate(p, -p.exposed_ms * ms))
        | "You hid all communication. Part of it is waited for.",
        Slip("all-gpus", lambda p: _rate(p) * p.gpus) | "That is the whole cluster. The question is one GPU.",
        Slip("not-interleaved", lambda p: _rate(p, _assembled(p).bubble_s * (p.chunks - 1)))
        | "You filled the pipeline with whole stages. What does interleaving shorten?",
    ),
)

# --- efficiency between two runs -----------------------------------------------------------------


def _draw_efficiency(rng: random.Random) -> Draw:
    few, factor = rng.choice((3, 4, 6, 8, 12)), rng.choice((5, 6, 10, 12, 20, 24))
    many_min = rng.randrange(11, 90)
    return drawn(
        few=few, many=few * factor, many_min=many_min, few_min=round(many_min * factor * rng.uniform(0.2, 0.88))
    )


def _count_efficiency(p: Draw) -> float:
    """GPU-minutes on both machines, one by one; the smaller machine's are taken for useful."""
    useful = sum(1 for _ in range(p.few) for _ in range(p.few_min))
    return useful / sum(1 for _ in range(p.many) for _ in range(p.many_min))


EFFICIENCY = Drill(
    key="step-scaling-efficiency",
    taught=TAUGHT,
    title="What scaling really gave",
    unit="",
    target_s=60,
    apart=1.06,
    draw=_draw_efficiency,
    small=_draw_efficiency,
    prompt=lambda p: (
        f"A training job takes {p.few_min:,} min on {p.few} GPUs and {p.many_min} min on {p.many}. Compared with the"
        " smaller run, what is its scaling efficiency?"
    ),
    derive=lambda p: Derivation(
        value=step_time.relative_efficiency(few=p.few, few_s=p.few_min, many=p.many, many_s=p.many_min),
        formula="GPUs × time of the smaller run / (GPUs × time of the larger run)",
        substitution=f"{p.few} × {p.few_min} / ({p.many} × {p.many_min})",
        source=SOURCE_SCALING,
    ),
    count=_count_efficiency,
    slips=(
        Slip("speed-up", lambda p: p.few_min / p.many_min)
        | "That is the speed-up. How large would it be if scaling were perfect?",
        Slip("gpus-only", lambda p: p.few / p.many) | "You compared the GPUs and left the times out.",
        Slip("against-one", lambda p: p.few_min / p.many_min / p.many)
        | "You compared with a single GPU. The smaller run had more than one.",
        Slip("upside-down", lambda p: p.many_min / p.few_min)
        | "That is the share of the time that is left. Efficiency counts the GPUs as well.",
    ),
)

DRILLS = (OVERLAP, ASSEMBLED, EFFICIENCY)
