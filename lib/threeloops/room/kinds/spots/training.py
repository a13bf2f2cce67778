"""Errors to spot among many GPUs: what each of them holds, what it sends, and how long it all takes."""

import random

from threeloops.drills.engine import catalogued
from threeloops.drills.engine.bank import DRILLS
from threeloops.drills.engine.drill import Draw, drawn
from threeloops.drills.engine.phrasing import people
from threeloops.models import model_flops
from threeloops.room.kinds.spots.spot import Line, Misstep, Worked
from threeloops.units import BITS_PER_BYTE, GB, billion, day, fmt_bytes, fmt_percent, fmt_seconds, fmt_si, hour

# --- model states under ZeRO ---------------------------------------------------------------------


def _draw_states(rng: random.Random) -> Draw:
    return drawn(parameters=rng.choice((3, 5, 7, 8, 13)) * billion, dp=rng.choice((8, 12, 16, 32)))


def _gb(value: float) -> str:
    return fmt_bytes(value, base=10)


STATES = Worked(
    key="spot-model-states",
    title="A colleague's model states",
    topic="training_memory",
    loop="training",
    section="Training memory",
    target_s=75,
    draw=_draw_states,
    prompt=lambda p: (
        f"A model of {p.parameters / billion:g} billion parameters trains on {p.dp} GPUs with fp16 weights and"
        " gradients and fp32 Adam with a master copy, under ZeRO stage 2. How many bytes of model states does each GPU"
        " hold?"
    ),
    lines=(
        Line(
            name="weights",
            value=lambda v: 2 * v.parameters,
            text=lambda v: f"Weights in fp16: 2 × parameters = {_gb(v.weights)}",
        ),
        Line(
            name="gradients",
            value=lambda v: 2 * v.parameters,
            text=lambda v: f"Gradients in fp16: 2 × parameters = {_gb(v.gradients)}",
        ),
        Line(
            name="optimiser",
            value=lambda v: 12 * v.parameters,
            text=lambda v: (
                f"For the update, in fp32: master copy, momentum, variance: 12 × parameters = {_gb(v.optimiser)}"
            ),
        ),
        Line(
            name="sharded",
            value=lambda v: (v.gradients + v.optimiser) / v.dp,
            text=lambda v: (
                f"Stage 2 shards gradients and update over {v.dp} GPUs: ({_gb(v.gradients)} + {_gb(v.optimiser)}) /"
                f" {v.dp} = {_gb(v.sharded)}"
            ),
        ),
        Line(
            name="total",
            value=lambda v: v.weights + v.sharded,
            text=lambda v: f"Per GPU: {_gb(v.weights)} + {_gb(v.sharded)} = {_gb(v.total)}",
        ),
    ),
    missteps=(
        Misstep(
            key="no-master-copy",
            line="optimiser",
            value=lambda v: 8 * v.parameters,
            text=lambda v: f"For the update, in fp32: momentum, variance: 8 × parameters = {_gb(v.optimiser)}",
            story=(
                "The master copy is missing: 4 more bytes per parameter, which is how 16 becomes the 12 that"
                " circulates."
            ),
        ),
        Misstep(
            key="gradients-whole",
            line="sharded",
            value=lambda v: v.gradients + v.optimiser / v.dp,
            text=lambda v: (
                f"Sharded over {v.dp} GPUs: {_gb(v.gradients)} + {_gb(v.optimiser)} / {v.dp} = {_gb(v.sharded)}"
            ),
            story="That is stage 1. At stage 2 the gradients are sharded too.",
        ),
        Misstep(
            key="weights-sharded",
            line="total",
            value=lambda v: v.weights / v.dp + v.sharded,
            text=lambda v: f"Per GPU: {_gb(v.weights)} / {v.dp} + {_gb(v.sharded)} = {_gb(v.total)}",
            story="That is stage 3. At stage 2 every GPU keeps all weights.",
        ),
        Misstep(
            key="weights-as-elements",
            line="weights",
            value=lambda v: v.parameters,
            text=lambda v: f"Weights in fp16: {_gb(v.weights)}",
            story="Parameters were taken for bytes; a 16-bit number is two.",
        ),
    ),
    answer=lambda p: DRILLS["memory-zero-2"].derive(p).value,
    source="Rajbhandari et al., ZeRO, 2019, arXiv:1910.02054, section 5",
    prerequisites=("memory-zero-2",),
)

# --- a ring on a network -------------------------------------------------------------------------


def _draw_ring(rng: random.Random) -> Draw:
    return drawn(
        parameters=rng.choice((3, 7, 8, 13)) * billion,
        ranks=rng.choice((6, 8, 12, 16)),
        gigabits=rng.choice((100, 200, 400)),
    )


def _ring_answer(p: Draw) -> float:
    rate = p.gigabits * GB / BITS_PER_BYTE
    return (
        DRILLS["ring-time"].derive(drawn(ranks=p.ranks, size=2 * p.parameters, rate=rate, alpha=0, link="drawn")).value
    )


RING = Worked(
    key="spot-ring-time",
    title="A colleague's all-reduce",
    topic="all_reduce",
    loop="training",
    section="Data parallelism and all-reduce",
    target_s=90,
    draw=_draw_ring,
    prompt=lambda p: (
        f"{p.ranks} machines with one GPU each all-reduce the 16-bit gradients of a model of {p.parameters / billion:g}"
        f" billion parameters by a ring, over cards of {p.gigabits} Gbit/s in each direction. Latency is negligible."
        " How long does it take?"
    ),
    lines=(
        Line(
            name="size",
            value=lambda v: 2 * v.parameters,
            text=lambda v: f"Gradients: 2 bytes × parameters = {_gb(v.size)}",
        ),
        Line(
            name="piece",
            value=lambda v: v.size / v.ranks,
            text=lambda v: f"A piece: {_gb(v.size)} / {v.ranks} = {_gb(v.piece)}",
        ),
        Line(
            name="steps",
            value=lambda v: 2 * (v.ranks - 1),
            text=lambda v: f"Steps: 2 × ({v.ranks} − 1) = {v.steps:g}, one piece each",
        ),
        Line(
            name="sent",
            value=lambda v: v.steps * v.piece,
            text=lambda v: f"Each GPU sends {v.steps:g} × {_gb(v.piece)} = {_gb(v.sent)}",
        ),
        Line(
            name="rate",
            value=lambda v: v.gigabits * GB / BITS_PER_BYTE,
            text=lambda v: f"The card: {v.gigabits} Gbit/s = {fmt_si(v.rate, 'B/s')}",
        ),
        Line(
            name="seconds",
            value=lambda v: v.sent / v.rate,
            text=lambda v: f"Time: {_gb(v.sent)} / {fmt_si(v.rate, 'B/s')} = {fmt_seconds(v.seconds)}",
        ),
    ),
    missteps=(
        Misstep(
            key="one-trip",
            line="steps",
            value=lambda v: v.ranks - 1,
            text=lambda v: f"Steps: {v.ranks} − 1 = {v.steps:g}, one piece each",
            story="After so many steps every GPU knows a piece of the sum. The pieces still have to go round.",
        ),
        Misstep(
            key="bits-as-bytes",
            line="rate",
            value=lambda v: v.gigabits * GB,
            text=lambda v: f"The card: {fmt_si(v.rate, 'B/s')}",
            story="Network cards are sold in bits per second, and eight bits are a byte.",
        ),
        Misstep(
            key="everybodys-bytes",
            line="sent",
            value=lambda v: v.steps * v.piece * v.ranks,
            text=lambda v: f"Sent: {v.steps:g} × {_gb(v.piece)} × {v.ranks} = {_gb(v.sent)}",
            story="That is what all GPUs send together. They send at the same time, each over its own card.",
        ),
        Misstep(
            key="both-directions",
            line="seconds",
            value=lambda v: v.sent / (2 * v.rate),
            text=lambda v: (
                f"Time: {_gb(v.sent)} / (2 × {fmt_si(v.rate, 'B/s')}), both directions = {fmt_seconds(v.seconds)}"
            ),
            story="A ring sends one way. What comes in at the same time does not make sending faster.",
        ),
    ),
    answer=_ring_answer,
    source="Patarasuk and Yuan, JPDC 69(2), 2009, doi:10.1016/j.jpdc.2008.09.002 (ring all-reduce)",
    prerequisites=("ring-time",),
)

# --- days of training ----------------------------------------------------------------------------


def _draw_days(rng: random.Random) -> Draw:
    part = catalogued.part(rng.choice(("h100-sxm5", "a100-sxm4-80gb", "b200-hgx")))
    return drawn(
        part=part.name,
        peak=part.peak_flops_per_s("bf16"),
        sparse=part.sparse_peak_flops_per_s("bf16"),
        parameters=rng.choice((3, 7, 13, 30)) * billion,
        tokens=rng.choice((300, 600, 1000, 1400)) * billion,
        gpus=rng.choice((96, 128, 256, 512)),
        mfu=rng.choice((0.35, 0.4, 0.45)),
    )


DAYS = Worked(
    key="spot-days-of-training",
    title="A colleague's schedule",
    topic="roofline",
    loop="training",
    section="Why many GPUs",
    target_s=90,
    draw=_draw_days,
    prompt=lambda p: (
        f"A dense model of {p.parameters / billion:g} billion parameters sees {p.tokens / billion:g} billion tokens on"
        f" {p.gpus} GPUs of the type {p.part}, {fmt_si(p.peak, 'FLOP/s')} dense in BF16 each, at an MFU of"
        f" {fmt_percent(p.mfu)}. Attention's own matmuls aside, how many days is that?"
    ),
    lines=(
        Line(
            name="flops",
            value=lambda v: 6 * v.parameters * v.tokens,
            text=lambda v: f"FLOPs: 6 × parameters × tokens = {people(v.flops)}",
        ),
        Line(
            name="one",
            value=lambda v: v.mfu * v.peak,
            text=lambda v: f"A GPU at this MFU: {v.mfu:g} × {fmt_si(v.peak, 'FLOP/s')} = {fmt_si(v.one, 'FLOP/s')}",
        ),
        Line(
            name="all",
            value=lambda v: v.gpus * v.one,
            text=lambda v: f"All of them: {v.gpus} × {fmt_si(v.one, 'FLOP/s')} = {fmt_si(v.all, 'FLOP/s')}",
        ),
        Line(
            name="seconds",
            value=lambda v: v.flops / v.all,
            text=lambda v: f"Seconds: {people(v.flops)} / {people(v.all)} = {v.seconds:,.0f}",
        ),
        Line(
            name="days",
            value=lambda v: v.seconds / day,
            text=lambda v: f"Days: {v.seconds:,.0f} / {day:,} = {v.days:.3g}",
        ),
    ),
    missteps=(
        Misstep(
            key="forward-only",
            line="flops",
            value=lambda v: 2 * v.parameters * v.tokens,
            text=lambda v: f"FLOPs: 2 × parameters × tokens = {people(v.flops)}",
            story="That is the forward pass. The backward pass computes two gradients and takes twice as much again.",
        ),
        Misstep(
            key="sparse-peak",
            line="one",
            value=lambda v: v.mfu * v.sparse,
            text=lambda v: f"A GPU at this MFU: {v.mfu:g} × {fmt_si(v.sparse, 'FLOP/s')} = {fmt_si(v.one, 'FLOP/s')}",
            story="That is the peak with 2:4 sparsity. MFU is a share of the dense one.",
        ),
        Misstep(
            key="hours-as-days",
            line="days",
            value=lambda v: v.seconds / hour,
            text=lambda v: f"Days: {v.seconds:,.0f} / {hour:,} = {v.days:.3g}",
            story="Those are hours.",
        ),
        Misstep(
            key="nodes-for-gpus",
            line="all",
            value=lambda v: v.gpus / 8 * v.one,
            text=lambda v: (
                f"All of them, 8 to a machine: {v.gpus / 8:g} × {fmt_si(v.one, 'FLOP/s')} = {fmt_si(v.all, 'FLOP/s')}"
            ),
            story="Machines were multiplied by the rate of one GPU.",
        ),
    ),
    answer=lambda p: (
        model_flops.six_n_d(num_parameters=p.parameters, tokens=p.tokens) / (p.gpus * p.peak * p.mfu) / day
    ),
    source=(
        "Kaplan et al., 2020, arXiv:2001.08361, section 2.1; Chowdhery et al., PaLM, 2022, arXiv:2204.02311, appendix B"
        " (MFU)"
    ),
    prerequisites=("roofline-mfu",),
)

WORKED = (STATES, RING, DAYS)
