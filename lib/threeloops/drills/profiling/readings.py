"""Drills on reading a timeline: how much of it is idle, how much communication is exposed, what a step takes when the
loader no longer holds it.
"""

import random

from threeloops.drills.engine.drill import Derivation, Draw, Drill, Slip, Taught, drawn
from threeloops.inner_loop import scaling, trace_gauges
from threeloops.inner_loop.trace import COMMUNICATION, COMPUTE, STEP, Interval, Trace
from threeloops.simulate.inner_loop import step as player
from threeloops.simulate.inner_loop.training_timeline import Job, play
from threeloops.training_loop.parallelism import step_time
from threeloops.units import ms, us

TAUGHT = Taught("inner", "Profiling")
SOURCE_BREAKDOWN = "Meta, Holistic Trace Analysis, 2023 (temporal breakdown: computation, communication, idle time)"

# --- idle share ----------------------------------------------------------------------------------


def _draw_idle(rng: random.Random) -> Draw:
    """Three kernels, the second beginning in the first and on another stream; times in tenths of a millisecond."""
    first = rng.randrange(120, 200, 4)
    begin = round(first * rng.uniform(0.45, 0.6))
    second = first + rng.randrange(44, 64, 3)
    third = second + rng.randrange(60, 84, 3)
    end = third + rng.randrange(96, 130, 3)
    return drawn(first=first, begin=begin, second=second, third=third, end=end, step=end + rng.randrange(22, 34, 2))


def _small_idle(rng: random.Random) -> Draw:
    p = _draw_idle(rng)
    return drawn(**{name: value // 2 for name, value in vars(p).items()})


def _kernels(p: Draw) -> tuple[tuple[int, int], ...]:
    return ((0, p.first), (p.begin, p.second), (p.third, p.end))


def _derive_idle(p: Draw) -> Derivation:
    bars = [Interval(row=COMPUTE, name="kernel", start_s=a / 10 * ms, end_s=b / 10 * ms) for a, b in _kernels(p)]
    trace = Trace(intervals=(*bars, Interval(row=STEP, name="step", start_s=0, end_s=p.step / 10 * ms)))
    return Derivation(
        value=trace_gauges.gauges(trace).idle,
        formula="1 − (length of the union of all kernels) / step",
        substitution=f"1 − ({p.second / 10} + ({p.end / 10} − {p.third / 10})) / {p.step / 10}",
        source=SOURCE_BREAKDOWN,
    )


def _count_idle(p: Draw) -> float:
    """Look at the device once in every tenth of a millisecond."""
    idle = sum(all(not a <= tick < b for a, b in _kernels(p)) for tick in range(p.step))
    return float(idle / p.step)


IDLE = Drill(
    key="profiling-idle-share",
    taught=TAUGHT,
    title="Idle share from a table",
    unit="",
    target_s=90,
    draw=_draw_idle,
    small=_small_idle,
    prompt=lambda p: (
        f"A profiler lists the kernels of a step that takes {p.step / 10:g} ms: one from 0 to {p.first / 10:g} ms, one"
        f" on a second stream from {p.begin / 10:g} to {p.second / 10:g} ms, one from {p.third / 10:g} to"
        f" {p.end / 10:g} ms. For which share of the step does the GPU run nothing?"
    ),
    derive=_derive_idle,
    count=_count_idle,
    slips=(
        Slip("overlap-twice", lambda p: 1 - (p.first + p.second - p.begin + p.end - p.third) / p.step)
        | "You added the lengths of all kernels. Two of them run at the same time for a while.",
        Slip("busy", lambda p: 1 - _derive_idle(p).value)
        | "That is the share in which it works. The question asks for the rest.",
        Slip("to-the-last-kernel", lambda p: (p.third - p.second) / p.end)
        | "You stopped the clock with the last kernel. The step is longer than that.",
        Slip("one-gap", lambda p: (p.third - p.second) / p.step)
        | "You counted the pause between kernels. Is it the only one?",
        Slip("second-stream-forgotten", lambda p: 1 - (p.first + p.end - p.third) / p.step)
        | "You left out the second stream. A GPU that runs one kernel is not idle, whichever stream's it is.",
    ),
)

# --- exposed communication -----------------------------------------------------------------------


def _draw_exposed(rng: random.Random) -> Draw:
    buckets, slice_us = rng.choice((5, 6, 7)), rng.randrange(1500, 3100, 20)
    return drawn(buckets=buckets, slice_us=slice_us, bucket_us=round(slice_us * rng.uniform(1.4, 1.49) / 10) * 10)


def _s(microseconds: float) -> float:
    return float(microseconds * us)


def _derive_exposed(p: Draw) -> Derivation:
    sent_s = step_time.bucketed_s(slices_s=[_s(p.slice_us)] * p.buckets, sends_s=[_s(p.bucket_us)] * p.buckets)
    return Derivation(
        value=sent_s - _s(p.buckets * p.slice_us),
        formula="backward / buckets + buckets × time of a bucket − backward",
        substitution=f"{p.slice_us}e-6 + {p.buckets} × {p.bucket_us}e-6 − {p.buckets} × {p.slice_us}e-6",
        source=(
            "Li et al., PyTorch Distributed, VLDB 2020, arXiv:2006.15704, section 3.2 (buckets, overlap with backward)"
        ),
    )


def _count_exposed(p: Draw) -> float:
    """Play the step and see how long the network goes on after the last kernel of backward."""
    job = Job(
        layers=p.buckets,
        products=1,
        product_s=_s(p.slice_us) / 2,  # backward has two products per layer
        vectors=0,
        vector_s=1e-6,
        launch_s=0.0,
        batch_s=0.0,
        workers=1,
        copy_s=0.0,
        network_s=_s(p.bucket_us) * p.buckets,
        buckets=p.buckets,
        noise=0.0,
    )
    played = play(job, steps=3, seed=0)
    last = played.trace.of(COMPUTE, name="matmul")[-1].end_s
    return played.trace.of(COMMUNICATION)[-1].end_s - last


EXPOSED = Drill(
    key="profiling-exposed-communication",
    taught=TAUGHT,
    title="What overlap cannot hide",
    unit="s",
    target_s=150,
    draw=_draw_exposed,
    small=lambda rng: drawn(
        buckets=rng.choice((3, 4)), slice_us=rng.choice((100, 130)), bucket_us=rng.choice((150, 190))
    ),
    prompt=lambda p: (
        f"In a trace, backward takes {p.buckets * p.slice_us * us / ms:g} ms. Gradients leave in {p.buckets} equal"
        f" buckets, one after each {p.buckets}th of backward; a bucket's all-reduce takes {p.bucket_us * us / ms:g} ms,"
        " and the network carries one at a time. The optimiser waits for the last. For how long does the GPU compute"
        " nothing?"
    ),
    derive=_derive_exposed,
    count=_count_exposed,
    slips=(
        Slip("nothing-hidden", lambda p: _s(p.buckets * p.bucket_us))
        | "You hid nothing. The first buckets travel while backward still runs.",
        Slip("from-the-start", lambda p: _s(p.buckets * (p.bucket_us - p.slice_us)))
        | "You let the network begin together with backward. What could it have sent at that moment?",
        Slip("last-bucket", lambda p: _s(p.bucket_us))
        | "You exposed the last bucket alone. Is the network free when its gradients are ready?",
        Slip("all-but-one", lambda p: _s((p.buckets - 1) * p.bucket_us))
        | "You hid one bucket and exposed the others. Ask when the network began and how long it is busy.",
        Slip("hidden-part", lambda p: _s((p.buckets - 1) * p.slice_us))
        | "That is how long both work at once. The question is about what comes after backward.",
    ),
)

# --- the loader is fixed -------------------------------------------------------------------------


def _draw_loader(rng: random.Random) -> Draw:
    workers = rng.choice((3, 5))
    return drawn(
        workers=workers,
        more=workers * 3 + 1,
        step_ms=rng.randrange(210, 420, 5),
        idle=rng.choice((0.36, 0.38, 0.42, 0.44)),
    )


def _derive_loader(p: Draw) -> Derivation:
    before = scaling.JobStep(loader_s=p.step_ms * ms, device_s={"kernels": (1 - p.idle) * p.step_ms * ms})
    return Derivation(
        value=before.with_faster("loader", p.more / p.workers).total_s,
        formula="max(step × workers before / workers after, (1 − idle share) × step)",
        substitution=f"max({p.step_ms}e-3 × {p.workers} / {p.more}, (1 − {p.idle}) × {p.step_ms}e-3)",
        source=(
            "Mohan et al., Analyzing and Mitigating Data Stalls in DNN Training, VLDB 2021, arXiv:2007.06775 (prefetch"
            " stalls)"
        ),
    )


def _count_loader(p: Draw) -> float:
    """Play the job with the new workers."""
    busy = (1 - p.idle) * p.step_ms * ms
    return player.play(
        num_steps=60, workers=p.more, batch_s=p.step_ms * ms * p.workers, queue=4, stages=(busy,)
    ).pace_s(skip=20)


LOADER = Drill(
    key="profiling-loader-fixed",
    taught=TAUGHT,
    title="When the loader is fixed",
    unit="s",
    target_s=75,
    draw=_draw_loader,
    small=lambda rng: drawn(workers=2, more=7, step_ms=rng.randrange(210, 420, 5), idle=rng.choice((0.36, 0.42))),
    prompt=lambda p: (
        f"A training step takes {p.step_ms} ms with {p.workers} loader workers, and the GPU is idle for"
        f" {100 * p.idle:g} % of it, always waiting for a batch. With {p.more} workers the loader is that much faster."
        " How long does a step take then?"
    ),
    derive=_derive_loader,
    count=_count_loader,
    slips=(
        Slip("loader-alone", lambda p: p.step_ms * p.workers / p.more * ms)
        | "You made the step as fast as the loader. The GPU has its own work to do.",
        Slip("idle", lambda p: p.idle * p.step_ms * ms)
        | "That is what is saved at best. The question asks for what is left.",
        Slip("idle-shrinks", lambda p: p.step_ms * (1 - p.idle + p.idle * p.workers / p.more) * ms)
        | "You shortened the idle time in proportion. Loading runs beside computing: what is not in the way costs"
        " nothing.",
        Slip("faster-both", lambda p: p.step_ms * (1 - p.idle) * p.workers / p.more * ms)
        | "You made the GPU's work faster too. Workers do not run kernels.",
        Slip("unchanged", lambda p: p.step_ms * ms) | "You changed nothing. Whom was the GPU waiting for?",
    ),
)

DRILLS = (IDLE, EXPOSED, LOADER)
