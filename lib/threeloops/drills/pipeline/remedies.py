"""Drills on what shrinks a bubble, and its price: more chunks per GPU, weight gradients put into the gaps,
activations that wait longer.
"""

import random

from threeloops.drills.engine.drill import Derivation, Draw, Drill, Slip, Taught, drawn
from threeloops.drills.pipeline.bubbles import SOURCE_ZERO, played
from threeloops.simulate.training_loop.pipeline_schedules import Work, run
from threeloops.training_loop.memory import in_flight
from threeloops.training_loop.parallelism import pipelines
from threeloops.units import MB, fmt_bytes, fmt_seconds, ms

TAUGHT = Taught("training", "Pipeline parallelism")

# --- interleaving --------------------------------------------------------------------------------


def _draw_interleaved(rng: random.Random) -> Draw:
    pp, chunks = rng.choice((5, 6, 7, 9, 10)), rng.choice((3, 4, 5))
    return drawn(pp=pp, chunks=chunks, m=pp * rng.choice((2, 3)), total_s=rng.choice(range(21, 90, 3)) * ms)


INTERLEAVED = Drill(
    key="pipeline-interleaved-idle",
    taught=TAUGHT,
    title="Round the pipeline more than once",
    unit="s",
    target_s=90,
    draw=_draw_interleaved,
    small=lambda rng: drawn(
        pp=(pp := rng.choice((3, 4))), chunks=rng.choice((3, 5)), m=3 * pp, total_s=rng.choice((3.0, 6.0))
    ),
    prompt=lambda p: (
        f"Each of {p.pp} GPUs holds {p.chunks} chunks of a model's layers, and a micro-batch visits all GPUs {p.chunks}"
        " times (interleaved 1F1B). Through all of a GPU's layers together, one micro-batch takes"
        f" {fmt_seconds(p.total_s)}, forward and backward. A step has {p.m} micro-batches. How long does a GPU stand"
        " idle in it?"
    ),
    derive=lambda p: Derivation(
        value=pipelines.bubble(
            schedule="interleaved",
            pp=p.pp,
            micro_batches=p.m,
            chunks=p.chunks,
            forward_s=p.total_s / 3,
            input_gradient_s=p.total_s / 3,
            weight_gradient_s=p.total_s / 3,
        ).idle_s,
        formula="(GPUs − 1) × time of a micro-batch / chunks",
        substitution=f"({p.pp} − 1) × {p.total_s:.12g} / {p.chunks}",
        source="Narayanan et al., 2021, arXiv:2104.04473, section 2.2.2",
    ),
    count=lambda p: played(p, schedule="interleaved", chunks=p.chunks, total_s=p.total_s).idle_s[0],
    slips=(
        Slip("not-interleaved", lambda p: (p.pp - 1) * p.total_s)
        | "That is the bubble without chunks. A GPU passes its first result on sooner when it has fewer layers to"
        " run first.",
        Slip("more-stages", lambda p: (p.pp * p.chunks - 1) * p.total_s / p.chunks)
        | "You treated every chunk as a stage with a GPU of its own. There are more pieces, but no more GPUs to"
        " wait for.",
        Slip("wrong-way", lambda p: (p.pp - 1) * p.total_s * p.chunks)
        | "You let the chunks multiply the wait. Each of them is shorter than the whole.",
        Slip("forward-only", lambda p: (p.pp - 1) * p.total_s / 3 / p.chunks)
        | "You counted forward passes alone. Backward passes are waited for as well, and take the larger part.",
    ),
    prerequisites=("pipeline-bubble-share",),
)

# --- zero bubble ---------------------------------------------------------------------------------


def _draw_zero(rng: random.Random) -> Draw:
    pp, unit = rng.choice((5, 6, 7, 9, 11)), rng.choice((4, 5, 6, 7, 8)) * ms
    forward, input_gradient, weight_gradient = rng.choice(((5, 6, 3), (6, 7, 4), (5, 5, 3)))
    return drawn(pp=pp, m=4 * pp - 1, f_s=forward * unit, d_s=input_gradient * unit, w_s=weight_gradient * unit)


ZERO = Drill(
    key="pipeline-zero-bubble-idle",
    taught=TAUGHT,
    title="Work that no stage waits for",
    unit="s",
    target_s=90,
    draw=_draw_zero,
    small=lambda rng: drawn(
        pp=rng.choice((3, 4, 5)), m=rng.choice((9, 11)), f_s=6.0, d_s=rng.choice((7.0, 8.0)), w_s=rng.choice((3.0, 4.0))
    ),
    prompt=lambda p: (
        f"A pipeline of {p.pp} equal stages. Through one stage, a micro-batch takes {fmt_seconds(p.f_s)} forward,"
        f" {fmt_seconds(p.d_s)} for the gradients of the stage's input and {fmt_seconds(p.w_s)} for the gradients of"
        " its weights. Under ZB-H1, which puts weight gradients off until there is nothing better to do and keeps no"
        f" more micro-batches than 1F1B, with {p.m} micro-batches: how long does a GPU stand idle per step?"
    ),
    derive=lambda p: Derivation(
        value=pipelines.bubble(
            schedule="zb-h1",
            pp=p.pp,
            micro_batches=p.m,
            forward_s=p.f_s,
            input_gradient_s=p.d_s,
            weight_gradient_s=p.w_s,
        ).idle_s,
        formula="(stages − 1) × (forward + input gradient − weight gradient)",
        substitution=f"({p.pp} − 1) × ({p.f_s:.12g} + {p.d_s:.12g} − {p.w_s:.12g})",
        source=SOURCE_ZERO,
    ),
    count=lambda p: run(
        schedule="zb-h1",
        pp=p.pp,
        micro_batches=p.m,
        work=Work(forward_s=p.f_s, input_gradient_s=p.d_s, weight_gradient_s=p.w_s),
        send_s=0,
    ).idle_s[0],
    slips=(
        Slip("1f1b", lambda p: (p.pp - 1) * (p.f_s + p.d_s + p.w_s))
        | "That is 1F1B, where the next stage waits for weight gradients too.",
        Slip("not-waited-for", lambda p: (p.pp - 1) * (p.f_s + p.d_s))
        | "You took the weight gradients out of the wait. Put off, they also fill a part of what remains.",
        Slip("h2", lambda p: (p.pp - 1) * (p.f_s + p.d_s - 2 * p.w_s))
        | "That is ZB-H2, which fills both ends, for nearly twice the activations.",
        Slip("all-stages-wait", lambda p: p.pp * (p.f_s + p.d_s - p.w_s))
        | "You made a GPU wait for every stage. For its own it does not wait.",
    ),
    prerequisites=("pipeline-bubble-share",),
)

# --- activations under interleaving --------------------------------------------------------------


def _draw_held(rng: random.Random) -> Draw:
    pp, chunks = rng.choice(((5, 3), (7, 3), (6, 2), (9, 2), (7, 2), (5, 2)))
    return drawn(
        pp=pp,
        chunks=chunks,
        m=pp * rng.choice((5, 6)),
        layers=pp * chunks * rng.choice((2, 3)),
        layer_bytes=rng.choice(range(110, 400, 30)) * MB,
    )


def _count_held(p: Draw) -> float:
    played = run(
        schedule="interleaved",
        pp=p.pp,
        micro_batches=p.m,
        chunks=p.chunks,
        work=Work(forward_s=1, input_gradient_s=1, weight_gradient_s=1),
        send_s=0,
    )
    first = [layer for layer in range(p.layers) if layer * p.pp * p.chunks // p.layers % p.pp == 0]
    return float(played.peak_alive()[0] * len(first) * p.layer_bytes)


HELD = Drill(
    key="pipeline-interleaved-memory",
    taught=TAUGHT,
    title="Longer to warm up",
    unit="B",
    capacity=True,
    target_s=120,
    draw=_draw_held,
    small=lambda rng: drawn(
        pp=(pp := rng.choice((3, 4, 5))),
        chunks=(v := rng.choice((2, 3))),
        m=4 * pp,
        layers=2 * pp * v,
        layer_bytes=rng.choice((3, 5)),
    ),
    prompt=lambda p: (
        f"A model of {p.layers} layers runs interleaved 1F1B, as in Megatron-LM, on {p.pp} GPUs with {p.chunks} chunks"
        f" each and {p.m} micro-batches per step. A layer keeps {fmt_bytes(p.layer_bytes, base=10)} of activations per"
        " micro-batch. How many bytes of them does the first GPU hold when it holds most?"
    ),
    derive=lambda p: Derivation(
        value=in_flight.micro_batches_in_flight(
            schedule="interleaved", stage=0, pp=p.pp, micro_batches=p.m, chunks=p.chunks
        )
        * p.layers
        / p.pp
        * p.layer_bytes,
        formula="(chunks × GPUs + GPUs − 1) passes of layers / (chunks × GPUs) layers each × bytes of a layer",
        substitution=f"({p.chunks} × {p.pp} + {p.pp} − 1) × {p.layers} / ({p.chunks} × {p.pp}) × {p.layer_bytes}",
        source="Korthikanti et al., 2022, arXiv:2205.05198, section 4.2.3",
    ),
    count=_count_held,
    slips=(
        Slip("plain-1f1b", lambda p: p.layers * p.layer_bytes)
        | "That is 1F1B without chunks: as many micro-batches as GPUs. Interleaving starts more before the first"
        " backward pass.",
        Slip("one-micro-batch", lambda p: p.layers / p.pp * p.layer_bytes)
        | "That is one micro-batch on this GPU's layers.",
        Slip("gpipe", lambda p: p.m * p.layers / p.pp * p.layer_bytes)
        | "You kept the whole step's micro-batches, as GPipe does.",
        Slip("passes-as-micro-batches", lambda p: (p.chunks * p.pp + p.pp - 1) * p.layers / p.pp * p.layer_bytes)
        | "Each pass in the warm-up goes through one chunk, not through all layers of the GPU.",
    ),
    prerequisites=("memory-in-flight",),
)

DRILLS = (INTERLEAVED, ZERO, HELD)
