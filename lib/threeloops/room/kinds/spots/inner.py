"""Errors to spot on one GPU: a peak from its parts, and what a faster part does to the whole."""

import random

from threeloops.drills.engine import catalogued
from threeloops.drills.engine.drill import Draw, drawn
from threeloops.inner_loop import peak_rates, scaling
from threeloops.room.kinds.spots.spot import Line, Misstep, Worked
from threeloops.units import GHz, MHz, fmt_percent, fmt_seconds, fmt_si, ms

# --- a peak from its parts -----------------------------------------------------------------------

GENERATIONS = (("a100-sxm4-80gb", "v100-sxm2-32gb"), ("h100-sxm5", "a100-sxm4-80gb"))  # a part, and the one before it


def _draw_peak(rng: random.Random) -> Draw:
    key, older = rng.choice(GENERATIONS)
    part = catalogued.part(key)
    return drawn(
        part=part.name,
        older=catalogued.part(older).name,
        sms=int(part["sms"]),
        units=int(part["matrix_units_per_sm"]),
        fmas=int(part["matrix_fmas_per_cycle_fp16"]),
        older_fmas=int(catalogued.part(older)["matrix_fmas_per_cycle_fp16"]),
        clock_hz=rng.randrange(1110, round(part["boost_clock_hz"] / MHz) + 1, 30) * MHz,
    )


PEAK = Worked(
    key="spot-peak-from-parts",
    title="A colleague's peak",
    topic="gpu_kernels",
    loop="inner",
    section="The GPU",
    target_s=60,
    draw=_draw_peak,
    prompt=lambda p: (
        f"An {p.part} has {p.sms} SMs with {p.units} tensor cores each; a tensor core does {p.fmas} multiply-adds of"
        f" 16-bit numbers per cycle. Under load the clock settles at {p.clock_hz / GHz:.2f} GHz. What is the dense"
        " 16-bit peak at that clock?"
    ),
    lines=(
        Line(
            name="cores",
            value=lambda v: v.sms * v.units,
            text=lambda v: f"Tensor cores: {v.sms} × {v.units} = {v.cores}",
        ),
        Line(
            name="per_cycle",
            value=lambda v: v.cores * v.fmas,
            text=lambda v: f"Multiply-adds per cycle: {v.cores} × {v.fmas} = {v.per_cycle:,}",
        ),
        Line(
            name="flops",
            value=lambda v: 2 * v.per_cycle,
            text=lambda v: f"FLOPs per cycle: 2 × {v.per_cycle:,} = {v.flops:,}",
        ),
        Line(
            name="peak",
            value=lambda v: v.flops * v.clock_hz,
            text=lambda v: f"Peak: {v.flops:,} × {v.clock_hz / GHz:.2f} GHz = {fmt_si(v.peak, 'FLOP/s')}",
        ),
    ),
    missteps=(
        Misstep(
            key="one-core",
            line="cores",
            value=lambda v: v.sms,
            text=lambda v: f"Tensor cores: one per SM = {v.cores}",
            story="An SM has several tensor cores; the question says how many.",
        ),
        Misstep(
            key="older-core",
            line="per_cycle",
            value=lambda v: v.cores * v.older_fmas,
            text=lambda v: f"Multiply-adds per cycle: {v.cores} × {v.older_fmas} = {v.per_cycle:,}",
            story="That is what a tensor core of the generation before does in a cycle.",
        ),
        Misstep(
            key="multiply-adds",
            line="flops",
            value=lambda v: v.per_cycle,
            text=lambda v: f"FLOPs per cycle: {v.flops:,}",
            story="A multiply-add is two FLOPs.",
        ),
        Misstep(
            key="sparse",
            line="peak",
            value=lambda v: 2 * v.flops * v.clock_hz,
            text=lambda v: f"Peak: 2 × {v.flops:,} × {v.clock_hz / GHz:.2f} GHz = {fmt_si(v.peak, 'FLOP/s')}",
            story="Doubled for 2:4 sparsity. The question asks for the dense peak.",
        ),
    ),
    answer=lambda p: peak_rates.matrix_flops_per_s(
        sms=p.sms, units_per_sm=p.units, fmas_per_cycle=p.fmas, clock_hz=p.clock_hz
    ),
    source=(
        "NVIDIA Ampere Architecture In-Depth, 2020 (units per SM, multiply-adds per unit and clock); parts: see"
        " `threeloops sources`"
    ),
    prerequisites=("gpu-peak-from-parts",),
)

# --- a faster part -------------------------------------------------------------------------------


def _draw_part(rng: random.Random) -> Draw:
    return drawn(
        step_ms=rng.randrange(240, 900, 20),
        share=rng.choice((0.3, 0.35, 0.4, 0.45)),
        factor=rng.choice((1.3, 1.4, 1.5, 2.8, 3.2)),
    )


PART = Worked(
    key="spot-faster-part",
    title="A colleague's speed-up",
    topic="amdahl",
    loop="inner",
    section="Three loops",
    target_s=60,
    draw=_draw_part,
    prompt=lambda p: (
        f"A training step takes {p.step_ms} ms, {fmt_percent(p.share)} of it in attention; nothing overlaps. A fused"
        f" kernel makes attention {p.factor} times faster. How many times faster is the step?"
    ),
    lines=(
        Line(
            name="part_s",
            value=lambda v: v.share * v.step_ms * ms,
            text=lambda v: f"Attention: {v.share:g} × {v.step_ms} ms = {fmt_seconds(v.part_s)}",
        ),
        Line(
            name="rest_s",
            value=lambda v: v.step_ms * ms - v.part_s,
            text=lambda v: f"Everything else: {v.step_ms} ms minus that = {fmt_seconds(v.rest_s)}",
        ),
        Line(
            name="new_s",
            value=lambda v: v.part_s / v.factor,
            text=lambda v: f"Fused attention: {fmt_seconds(v.part_s)} / {v.factor} = {fmt_seconds(v.new_s)}",
        ),
        Line(
            name="step_s",
            value=lambda v: v.rest_s + v.new_s,
            text=lambda v: f"New step: {fmt_seconds(v.rest_s)} + {fmt_seconds(v.new_s)} = {fmt_seconds(v.step_s)}",
        ),
        Line(
            name="speedup",
            value=lambda v: v.step_ms * ms / v.step_s,
            text=lambda v: f"Speed-up: {v.step_ms} ms / {fmt_seconds(v.step_s)} = {v.speedup:.3g}",
        ),
    ),
    missteps=(
        Misstep(
            key="rest-whole",
            line="rest_s",
            value=lambda v: v.step_ms * ms,
            text=lambda v: f"Everything else: {fmt_seconds(v.rest_s)}",
            story="Attention's own time stands in the rest as well, and is counted twice from here on.",
        ),
        Misstep(
            key="saved-for-left",
            line="new_s",
            value=lambda v: v.part_s * (1 - 1 / v.factor),
            text=lambda v: f"Fused attention: {fmt_seconds(v.part_s)} × (1 − 1 / {v.factor}) = {fmt_seconds(v.new_s)}",
            story="That is the time saved, not the time that is left.",
        ),
        Misstep(
            key="part-vanishes",
            line="step_s",
            value=lambda v: v.rest_s,
            text=lambda v: f"New step: {fmt_seconds(v.step_s)}",
            story="Attention got faster; it did not vanish.",
        ),
        Misstep(
            key="of-the-part",
            line="speedup",
            value=lambda v: v.part_s / v.new_s,
            text=lambda v: f"Speed-up: {fmt_seconds(v.part_s)} / {fmt_seconds(v.new_s)} = {v.speedup:.3g}",
            story="That is the speed-up of attention. The question is about the step.",
        ),
    ),
    answer=lambda p: scaling.amdahl_speedup(accelerated_share=p.share, factor=p.factor),
    source="Amdahl, AFIPS Spring Joint Computer Conference, 1967, doi:10.1145/1465482.1465560",
    prerequisites=("amdahl-one-part",),
)

WORKED = (PEAK, PART)
