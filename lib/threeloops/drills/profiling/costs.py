"""Drills on what looking costs: values read in the middle of a step, and the profiler's own share of what it
shows.
"""

import random

from threeloops.drills.engine.drill import Derivation, Draw, Drill, Slip, Taught, drawn
from threeloops.inner_loop import device_reads, scaling
from threeloops.simulate.inner_loop.training_timeline import OPTIMISER_KERNELS, Job, play
from threeloops.units import ms, us

TAUGHT = Taught("inner", "Profiling")

# --- values read in the middle of a step ---------------------------------------------------------


def _draw_syncs(rng: random.Random) -> Draw:
    syncs, launch_us = rng.choice((12, 14, 16, 18)), rng.choice((21, 23))
    return drawn(
        syncs=syncs,
        kernels=syncs * rng.choice((4, 5)),
        kernel_us=rng.randrange(40, 56, 2),
        launch_us=launch_us,
        back_us=rng.randrange(60, 100, 5),
    )


def _small_syncs(rng: random.Random) -> Draw:
    """A number of kernels that the played job can have: three times its products, and the optimiser's."""
    kernels, syncs = rng.choice(((16, 4), (16, 2), (28, 4), (28, 7)))
    return drawn(
        syncs=syncs,
        kernels=kernels,
        kernel_us=rng.choice((28, 40)),
        launch_us=rng.choice((21, 23)),
        back_us=rng.choice((80, 115)),
    )


def _derive_syncs(p: Draw) -> Derivation:
    queue = {"issue_s": p.launch_us * us, "kernel_s": p.kernel_us * us, "return_s": p.back_us * us}
    return Derivation(
        value=device_reads.read_s(num_kernels=p.kernels, num_reads=p.syncs, **queue),
        formula="reads × (launch + kernels per read × kernel + return), kernels being longer than launches",
        substitution=f"{p.syncs} × ({p.launch_us}e-6 + {p.kernels} / {p.syncs} × {p.kernel_us}e-6 + {p.back_us}e-6)",
        source="PyTorch documentation, CUDA semantics (asynchronous execution), 2026",
    )


def _count_syncs(p: Draw) -> float:
    """Play steps of so many equal kernels, and see how far apart they end."""
    job = Job(
        layers=1,
        products=(p.kernels - OPTIMISER_KERNELS) // 3,
        product_s=p.kernel_us * us,
        vectors=0,
        vector_s=p.kernel_us * us,
        launch_s=p.launch_us * us,
        batch_s=0.0,
        workers=1,
        copy_s=0.0,
        syncs=p.syncs,
        sync_return_s=p.back_us * us,
        buckets=1,
        noise=0.0,
    )
    return play(job, steps=5, seed=0).step_s(skip=2)


def _syncs_s(microseconds: float) -> float:
    return float(microseconds * us)


SYNCS = Drill(
    key="profiling-hidden-syncs",
    taught=TAUGHT,
    title="A value read in every layer",
    unit="s",
    target_s=150,
    draw=_draw_syncs,
    small=_small_syncs,
    prompt=lambda p: (
        f"A step runs {p.kernels} equal kernels of {p.kernel_us} µs; the CPU needs {p.launch_us} µs to ask for one and"
        f" does not wait, except that it calls .item() after every {p.kernels // p.syncs} kernels, the last ones"
        f" included. From the end of a kernel until the code goes on take {p.back_us} µs. How long does a step take?"
    ),
    derive=_derive_syncs,
    count=_count_syncs,
    slips=(
        Slip("kernels-only", lambda p: _syncs_s(p.kernels * p.kernel_us))
        | "You added the kernels. Between them the GPU waits, and for whom?",
        Slip("returns-only", lambda p: _syncs_s(p.kernels * p.kernel_us + p.syncs * p.back_us))
        | "You added the way back. When the code goes on, the device's queue is empty: what must happen before it"
        " runs again?",
        Slip("launches-exposed", lambda p: _syncs_s(p.kernels * (p.kernel_us + p.launch_us) + p.syncs * p.back_us))
        | "You put a launch before every kernel. Between two reads the CPU asks ahead while the device works.",
        Slip("every-kernel", lambda p: _syncs_s(p.kernels * (p.kernel_us + p.back_us)))
        | "You read a value after every kernel. Count how often the code reads.",
        Slip("loss-only", lambda p: _syncs_s(p.syncs * (p.launch_us + p.back_us)))
        | "That is what reading costs. The kernels take time too.",
    ),
)

# --- the profiler's own share --------------------------------------------------------------------


def _draw_overhead(rng: random.Random) -> Draw:
    """Times of one operation are drawn in tenths of a microsecond."""
    bare, more, ops = rng.randrange(26, 40), rng.randrange(26, 44), rng.randrange(4200, 7600, 100)
    loop = round(ops * rng.uniform(0.4, 0.5) / 100) * 100
    step_us = ops * more / 10 / rng.uniform(0.22, 0.3)
    times = {"bare_us": loop * bare / 10, "watched_us": loop * (bare + more) / 10, "step_us": step_us}
    return drawn(ops=ops, loop=loop, **{name: int(float(f"{value:.4g}")) for name, value in times.items()})


def _cost_us(p: Draw) -> float:
    return float((p.watched_us - p.bare_us) / p.loop)


def _count_overhead(p: Draw) -> float:
    """Take the profiler's part away from one operation after another."""
    left = p.step_us
    for _ in range(p.ops):
        left -= _cost_us(p)
    return float(left * us)


OVERHEAD = Drill(
    key="profiling-overhead",
    taught=TAUGHT,
    title="What the profiler adds",
    unit="s",
    target_s=120,
    draw=_draw_overhead,
    small=lambda rng: drawn(**{name: value // 100 for name, value in vars(_draw_overhead(rng)).items()}),
    prompt=lambda p: (
        f"Under the profiler a step takes {p.step_us * us / ms:g} ms and shows {p.ops:,} operations. A loop of"
        f" {p.loop:,} tiny operations takes {p.bare_us * us / ms:g} ms without the profiler and"
        f" {p.watched_us * us / ms:g} ms with it. If every operation is delayed alike, how long does the step take"
        " without the profiler?"
    ),
    derive=lambda p: Derivation(
        value=scaling.changed_calls_s(whole_s=p.step_us * us, num_calls=p.ops, before_s=_cost_us(p) * us, after_s=0.0),
        formula="step with profiler − operations × (loop with − loop without) / operations of the loop",
        substitution=f"{p.step_us}e-6 − {p.ops} × ({p.watched_us}e-6 − {p.bare_us}e-6) / {p.loop}",
        source="PyTorch documentation, torch.profiler, 2026 (recording has a cost per event)",
    ),
    count=_count_overhead,
    slips=(
        Slip("same-ratio", lambda p: p.step_us * p.bare_us / p.watched_us * us)
        | "You slowed the step as much as the loop, in proportion. The delay is a price per operation, however"
        " long the operation is.",
        Slip("ignored", lambda p: p.step_us * us) | "That is the step while it is being watched.",
        Slip("one-loop", lambda p: (p.step_us - (p.watched_us - p.bare_us)) * us)
        | "You took away the delay of the loop. The step has another number of operations.",
        Slip("delay", lambda p: p.ops * _cost_us(p) * us)
        | "That is what the profiler adds. The question asks for what is left without it.",
        Slip("added", lambda p: (p.step_us + p.ops * _cost_us(p)) * us)
        | "You added the delay. It is already part of what was recorded.",
    ),
)

DRILLS = (SYNCS, OVERHEAD)
