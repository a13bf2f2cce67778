"""Drills on what a pipeline costs besides its bubble: bytes between stages, a slow stage, late links; and what makes
up its batch.
"""

import random

from threeloops.drills.engine.drill import AsFunction, Derivation, Draw, Drill, Slip, Taught, drawn
from threeloops.drills.pipeline.bubbles import SOURCE_1F1B
from threeloops.simulate.training_loop.pipeline_orders import FORWARD, orders
from threeloops.simulate.training_loop.pipeline_schedules import Work, run
from threeloops.training_loop.parallelism import pipelines
from threeloops.units import fmt_seconds, ms

TAUGHT = Taught("training", "Pipeline parallelism")

# --- bytes between stages ------------------------------------------------------------------------


def _draw_bytes(rng: random.Random) -> Draw:
    pp, chunks = rng.choice(((3, 3), (5, 3), (6, 3), (7, 3), (5, 4), (6, 4)))
    return drawn(
        pp=pp,
        chunks=chunks,
        m=pp * rng.choice((4, 5, 7)),
        sequence=rng.choice((2048, 4096, 8192)),
        hidden=rng.choice((5120, 6144, 8192, 12288)),
    )


def _count_bytes(p: Draw) -> float:
    """Walk the schedule, and write down every tensor that leaves a GPU for another piece of the model."""
    last, sent = p.pp * p.chunks - 1, 0
    for slots in orders(schedule="interleaved", pp=p.pp, micro_batches=p.m, chunks=p.chunks):
        for (one,) in slots:
            leaves = one.position < last if one.kind == FORWARD else one.position > 0
            sent += leaves * sum(2 for _ in range(p.sequence * p.hidden))
    return float(sent)


BYTES = Drill(
    key="pipeline-bytes-between-stages",
    taught=TAUGHT,
    title="What interleaving costs",
    unit="B",
    target_s=90,
    draw=_draw_bytes,
    small=lambda rng: drawn(pp=(pp := rng.choice((3, 5))), chunks=3, m=pp * 2, sequence=rng.choice((2, 3)), hidden=4),
    prompt=lambda p: (
        f"A pipeline of {p.pp} GPUs runs interleaved 1F1B with {p.chunks} chunks of layers per GPU. A step has {p.m}"
        f" micro-batches of one sequence of {p.sequence:,} tokens; the model is {p.hidden:,} wide and activations and"
        " their gradients are bf16. How many bytes do the GPUs send each other in a step, all of them together,"
        " forward and backward?"
    ),
    derive=lambda p: Derivation(
        value=pipelines.step_boundary_bytes(
            tensor_bytes=pipelines.boundary_bytes(
                micro_batch=1, sequence=p.sequence, hidden=p.hidden, bytes_per_element=2
            ),
            pp=p.pp,
            micro_batches=p.m,
            chunks=p.chunks,
        ),
        formula="2 directions × (GPUs × chunks − 1) × micro-batches × tokens × width × 2 bytes",
        substitution=f"2 × ({p.pp} × {p.chunks} − 1) × {p.m} × {p.sequence} × {p.hidden} × 2",
        source="Narayanan et al., 2021, arXiv:2104.04473, sections 2.2.2 and 3.2",
    ),
    count=_count_bytes,
    slips=(
        Slip("one-direction", lambda p: (p.pp * p.chunks - 1) * p.m * p.sequence * p.hidden * 2)
        | "You sent activations and no gradients. What goes forward has a twin on the way back.",
        Slip("no-chunks", lambda p: 2 * (p.pp - 1) * p.m * p.sequence * p.hidden * 2)
        | "You cut the model once per GPU. Count its pieces, and the seams between them.",
        Slip("one-micro-batch", lambda p: 2 * (p.pp * p.chunks - 1) * p.sequence * p.hidden * 2)
        | "That is one micro-batch.",
        Slip("seams-of-one-round", lambda p: 2 * (p.pp - 1) * p.chunks * p.m * p.sequence * p.hidden * 2)
        | "You forgot the way from the last GPU back to the first, between one round and the next.",
        Slip("fp32", lambda p: 2 * (p.pp * p.chunks - 1) * p.m * p.sequence * p.hidden * 4)
        | "You sent numbers of 4 bytes.",
    ),
    function=AsFunction(
        takes=("pp", "chunks", "m", "sequence", "hidden"),
        limit={"chunks": 1},
        limit_case="one chunk per GPU, the plain pipeline",
    ),
)

# --- a slow stage --------------------------------------------------------------------------------


def _draw_slow(rng: random.Random) -> Draw:
    fast = rng.choice((12, 15, 18, 21, 24, 27))
    slow_s = round(fast * rng.choice((2.3, 2.5))) * ms
    return drawn(pp=rng.choice((4, 5, 6)), m=rng.choice((13, 14, 16, 17)), fast_s=fast * ms, slow_s=slow_s)


SLOW = Drill(
    key="pipeline-slow-stage",
    taught=TAUGHT,
    title="The slowest sets the pace",
    unit="s",
    target_s=90,
    draw=_draw_slow,
    small=lambda rng: drawn(
        pp=rng.choice((3, 4, 5)), m=rng.choice((6, 9)), fast_s=rng.choice((3.0, 6.0)), slow_s=rng.choice((9.0, 10.0))
    ),
    prompt=lambda p: (
        f"A pipeline of {p.pp} stages runs GPipe with {p.m} micro-batches. A micro-batch takes {fmt_seconds(p.fast_s)}"
        f" through a stage, forward and backward together, but {fmt_seconds(p.slow_s)} through the last one, which also"
        " computes the loss over a large vocabulary. In every stage the backward pass takes twice as long as the"
        " forward pass. How long is the step?"
    ),
    derive=lambda p: Derivation(
        value=pipelines.uneven_step_s(
            forward_s=[p.fast_s / 3] * (p.pp - 1) + [p.slow_s / 3],
            backward_s=[2 * p.fast_s / 3] * (p.pp - 1) + [2 * p.slow_s / 3],
            micro_batches=p.m,
        ),
        formula="sum over the stages + (micro-batches − 1) × slowest stage",
        substitution=f"({p.pp} − 1) × {p.fast_s:.12g} + {p.slow_s:.12g} + ({p.m} − 1) × {p.slow_s:.12g}",
        source="Huang et al., 2019, arXiv:1811.06965 (GPipe): the longest path through its schedule",
    ),
    count=lambda p: (
        run(
            schedule="gpipe",
            pp=p.pp,
            micro_batches=p.m,
            work=[
                Work(forward_s=t / 3, input_gradient_s=t / 3, weight_gradient_s=t / 3)
                for t in [p.fast_s] * (p.pp - 1) + [p.slow_s]
            ],
            send_s=0,
        ).step_s
    ),
    slips=(
        Slip("average-stage", lambda p: (p.m + p.pp - 1) * ((p.pp - 1) * p.fast_s + p.slow_s) / p.pp)
        | "You spread the extra work over all stages. A pipeline does not average: the fast stages wait.",
        Slip("ignored", lambda p: (p.m + p.pp - 1) * p.fast_s) | "You left the slow stage out.",
        Slip("all-slow", lambda p: (p.m + p.pp - 1) * p.slow_s)
        | "You made every stage slow. The first micro-batch fills the pipeline at the speed of each stage.",
        Slip("paid-once", lambda p: (p.m + p.pp - 1) * p.fast_s + p.slow_s - p.fast_s)
        | "You paid the extra time once. Every micro-batch goes through that stage.",
    ),
    function=AsFunction(
        takes=("pp", "m", "fast_s", "slow_s"),
        limit=lambda p: {"slow_s": p.fast_s},
        limit_case="a last stage that is no slower than the others",
    ),
)

# --- the batch -----------------------------------------------------------------------------------


def _draw_batch(rng: random.Random) -> Draw:
    pp, dp, m = rng.choice((3, 5, 6)), rng.choice((7, 9, 11, 13)), rng.choice((17, 19, 23, 29, 31))
    return drawn(pp=pp, dp=dp, m=m, b=rng.choice((2, 4)))


def _count_batch(p: Draw) -> float:
    """Let every replica run its pipeline, and count the sequences that reach a loss."""
    reached = 0
    for _replica in range(p.dp):
        last = orders(schedule="1f1b", pp=p.pp, micro_batches=p.m)[-1]
        reached += sum(p.b for (one,) in last if one.kind == FORWARD)
    return float(reached)


BATCH = Drill(
    key="pipeline-global-batch",
    taught=TAUGHT,
    title="What multiplies the batch",
    unit="",
    whole="exact",
    target_s=45,
    draw=_draw_batch,
    small=lambda rng: drawn(pp=rng.choice((3, 5)), dp=rng.choice((2, 4)), m=rng.choice((7, 11)), b=rng.choice((2, 4))),
    prompt=lambda p: (
        f"{p.dp} replicas of a model train together, each a pipeline of {p.pp} stages. A replica runs {p.m}"
        f" micro-batches of {p.b} sequences before the optimiser steps. From how many sequences is one optimiser step"
        " made?"
    ),
    derive=lambda p: Derivation(
        value=pipelines.global_batch(micro_batch=p.b, micro_batches=p.m, dp=p.dp),
        formula="sequences of a micro-batch × micro-batches × replicas",
        substitution=f"{p.b} × {p.m} × {p.dp}",
        source="Narayanan et al., 2021, arXiv:2104.04473, section 3 (B = b · m · d)",
    ),
    count=_count_batch,
    slips=(
        Slip("times-stages", lambda p: p.b * p.m * p.dp * p.pp)
        | "You let stages multiply the batch. All stages work on the same sequences, one after another.",
        Slip("micro-batches-counted", lambda p: p.m * p.dp)
        | "You counted micro-batches. The question is about sequences.",
        Slip("one-replica", lambda p: p.b * p.m)
        | "That is one replica; the optimiser steps on the sum of all replicas' gradients.",
        Slip("one-micro-batch-each", lambda p: p.b * p.dp)
        | "You stepped after every micro-batch. Their gradients are added up first.",
    ),
)


# --- links under 1F1B ---------------------------------------------------------------------------


def _draw_late(rng: random.Random) -> Draw:
    pp = rng.choice((5, 6, 7, 9))
    return drawn(pp=pp, total_s=rng.choice(range(12, 40, 3)) * ms, send_s=rng.choice((5, 7, 9)) * ms)


def _count_late(p: Draw) -> float:
    """The pace in the middle of a long step: what twenty rounds of pp micro-batches more take."""
    work = Work(forward_s=p.total_s / 3, input_gradient_s=p.total_s / 3, weight_gradient_s=p.total_s / 3)
    short, long = (
        run(schedule="1f1b", pp=p.pp, micro_batches=rounds * p.pp, work=work, send_s=p.send_s).step_s
        for rounds in (20, 40)
    )
    return float((long - short) / (20 * p.pp))


LATE = Drill(
    key="pipeline-late-links",
    taught=TAUGHT,
    title="A round trip with few under way",
    unit="s",
    target_s=120,
    draw=_draw_late,
    small=lambda rng: drawn(pp=rng.choice((3, 4, 5)), total_s=rng.choice((6.0, 9.0)), send_s=rng.choice((2.0, 3.0))),
    prompt=lambda p: (
        f"1F1B on {p.pp} equal stages keeps {p.pp} micro-batches under way and starts a new one only when an old one"
        f" has come back. A micro-batch takes {fmt_seconds(p.total_s)} through a stage, forward and backward together,"
        f" and each hop from stage to stage adds {fmt_seconds(p.send_s)}, in either direction. In the middle of a long"
        " step, how much time passes from one micro-batch's return to the next one's, on average?"
    ),
    derive=lambda p: Derivation(
        value=pipelines.one_f_one_b_pace_s(pass_s=p.total_s, pp=p.pp, send_s=p.send_s),
        formula="(stages × pass + 2 × (stages − 1) × hop) / stages under way",
        substitution=f"({p.pp} × {p.total_s:.12g} + 2 × ({p.pp} − 1) × {p.send_s:.12g}) / {p.pp}",
        source="Little, 1961, doi:10.1287/opre.9.3.383 (what is under way over the time it is under way); "
        + SOURCE_1F1B,
    ),
    count=_count_late,
    slips=(
        Slip("hidden", lambda p: p.total_s)
        | "You let the links hide. Something else would have to be under way meanwhile, and 1F1B has nothing in"
        " reserve.",
        Slip("round-trip", lambda p: p.pp * p.total_s + 2 * (p.pp - 1) * p.send_s)
        | "That is the round trip of one micro-batch. Several are under way.",
        Slip("one-way", lambda p: p.total_s + (p.pp - 1) * p.send_s / p.pp) | "You counted the hops of one direction.",
        Slip("all-hops", lambda p: p.total_s + 2 * (p.pp - 1) * p.send_s)
        | "You charged every micro-batch with all hops. While one is on a link, others compute.",
    ),
    prerequisites=("pipeline-step-time",),
    function=AsFunction(
        takes=("pp", "total_s", "send_s"), limit={"pp": 1}, limit_case="a single stage, with no hop to make"
    ),
)

DRILLS = (BYTES, SLOW, BATCH, LATE)
