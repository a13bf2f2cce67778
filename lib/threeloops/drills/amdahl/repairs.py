"""Drills on several repairs: of one part again and again, of several parts, of a kernel that a trace counts; and what
to repair next.
"""

import math
import random

from threeloops.drills.amdahl.law import SOURCE_AMDAHL, WHOLE, share
from threeloops.drills.engine.drill import Derivation, Draw, Drill, Slip, Taught, drawn
from threeloops.inner_loop import scaling
from threeloops.simulate.inner_loop import ticks
from threeloops.units import ms, us

TAUGHT = Taught("inner", "Three loops")

# --- the same part twice -------------------------------------------------------------------------


def _draw_twice(rng: random.Random) -> Draw:
    factors = {
        "first": rng.choice((1.9, 2.1, 2.3)),
        "again": rng.choice((1.3, 1.35, 1.4)),
        "other": rng.choice((1.7, 1.8, 1.9)),
    }
    return drawn(attention=rng.randrange(36, 45), mlp=rng.randrange(30, 37), **factors)


def _count_twice(p: Draw) -> float:
    """Each hundredth of attention is cut down by the first repair, and what is left of it by the second."""
    attention = sum(
        ticks.one_after_another([(1, p.first)]) * ticks.one_after_another([(1, p.again)]) for _ in range(p.attention)
    )
    return float(WHOLE / (attention + ticks.one_after_another([(p.mlp, p.other), (WHOLE - p.attention - p.mlp, 1)])))


TWICE = Drill(
    key="amdahl-same-part-twice",
    taught=TAUGHT,
    title="Three repairs, two parts",
    unit="",
    target_s=120,
    draw=_draw_twice,
    small=_draw_twice,
    prompt=lambda p: (
        f"At the start, attention takes {p.attention} % of a step, feed-forward blocks {p.mlp} %, and the rest is never"
        f" touched. A fused kernel makes attention {p.first} times faster; its next release makes the fused kernel"
        f" {p.again} times faster again. A narrower format makes the feed-forward blocks {p.other} times faster."
        " Nothing overlaps. How many times faster is the step after all three?"
    ),
    derive=lambda p: Derivation(
        value=scaling.parts_speedup(shares=[share(p.attention), share(p.mlp)], factors=[p.first * p.again, p.other]),
        formula="1 / (1 − A − M + A / (first factor × second factor) + M / its factor)",
        substitution=(
            f"1 / (1 − {p.attention} / 100 − {p.mlp} / 100 + {p.attention} / 100 / ({p.first} × {p.again}) + {p.mlp} /"
            f" 100 / {p.other})"
        ),
        source=SOURCE_AMDAHL,
    ),
    count=_count_twice,
    prerequisites=("amdahl-one-part",),
    slips=(
        Slip("product", lambda p: p.first * p.again * p.other)
        | "You multiplied all three factors. Each of them acts on its own part of the step only.",
        Slip(
            "savings-added",
            lambda p: (
                1
                / (
                    1
                    - sum(
                        share(part) * (1 - 1 / f)
                        for part, f in ((p.attention, p.first), (p.attention, p.again), (p.mlp, p.other))
                    )
                )
            ),
        )
        | "You took every saving from the first profile. When the second release came, attention was shorter"
        " already.",
        Slip(
            "last-release",
            lambda p: scaling.parts_speedup(shares=[share(p.attention), share(p.mlp)], factors=[p.again, p.other]),
        )
        | "You let the second release replace the first kernel's gain. It is faster than that kernel, not than"
        " the start.",
        Slip(
            "no-second",
            lambda p: scaling.parts_speedup(shares=[share(p.attention), share(p.mlp)], factors=[p.first, p.other]),
        )
        | "You left out the next release.",
        Slip("rest-gone", lambda p: 1 / (share(p.attention) / (p.first * p.again) + share(p.mlp) / p.other))
        | "You added up the repaired parts only. What was never touched takes its time as before.",
    ),
)


def _alone(percent: int, factor: float) -> float:
    """What one repair brings by itself."""
    return scaling.amdahl_speedup(accelerated_share=share(percent), factor=factor)


# --- a faster chip, part by part ----------------------------------------------------------------


def _draw_parts(rng: random.Random) -> Draw:
    shares = (rng.choice((41, 44, 47)), rng.choice((24, 26, 28)), rng.choice((13, 15, 17)))
    return drawn(
        shares=shares, factors=(rng.choice((3.9, 4.1, 4.3)), rng.choice((1.5, 1.6, 1.7)), rng.choice((1.2, 1.3)))
    )


def _derive_parts(p: Draw) -> Derivation:
    rest = WHOLE - sum(p.shares)
    return Derivation(
        value=scaling.parts_speedup(shares=[share(percent) for percent in p.shares], factors=p.factors),
        formula="1 / (sum of share / factor + what is left alone)",
        substitution=(
            f"100 / ({' + '.join(f'{percent} / {factor}' for percent, factor in zip(p.shares, p.factors, strict=True))}"
            f" + {rest})"
        ),
        source=SOURCE_AMDAHL,
    )


PARTS = Drill(
    key="amdahl-part-by-part",
    taught=TAUGHT,
    title="A faster chip, part by part",
    unit="",
    target_s=120,
    draw=_draw_parts,
    small=_draw_parts,
    prompt=lambda p: (
        f"On today's chip a step spends {p.shares[0]} % of its time in matmuls, {p.shares[1]} % in attention,"
        f" {p.shares[2]} % in normalisations and copies, the rest waiting for the network. The next chip is"
        f" {p.factors[0]}, {p.factors[1]} and {p.factors[2]} times faster at these three, and the network stays."
        " Nothing overlaps. How many times faster is the step?"
    ),
    derive=_derive_parts,
    count=lambda p: float(
        WHOLE / ticks.one_after_another([*zip(p.shares, p.factors, strict=True), (WHOLE - sum(p.shares), 1)])
    ),
    prerequisites=("amdahl-one-part",),
    slips=(
        Slip("largest", lambda p: p.factors[0])
        | "That is the chip's best figure. Each part of the step gets the factor that is its own.",
        Slip(
            "mean-of-speeds",
            lambda p: (
                sum(share(percent) * factor for percent, factor in zip(p.shares, p.factors, strict=True))
                + 1
                - share(sum(p.shares))
            ),
        )
        | "You averaged factors, weighted by time. What adds up over the parts is time.",
        Slip(
            "network-gone",
            lambda p: (
                sum(p.shares) / sum(percent / factor for percent, factor in zip(p.shares, p.factors, strict=True))
            ),
        )
        | "You left the network out, before and after. It takes its time in both.",
        Slip(
            "first-part-only",
            lambda p: scaling.amdahl_speedup(accelerated_share=share(p.shares[0]), factor=p.factors[0]),
        )
        | "You made the matmuls faster and nothing else. Two more parts gain.",
        Slip(
            "speedups-multiplied",
            lambda p: math.prod(_alone(percent, factor) for percent, factor in zip(p.shares, p.factors, strict=True)),
        )
        | "You worked out each gain from the first profile and multiplied. After the first gain, the shares are"
        " others.",
    ),
)

# --- what to attack next -------------------------------------------------------------------------


def _draw_next(rng: random.Random) -> Draw:
    return drawn(
        attention=rng.randrange(46, 60), optimiser=rng.choice((13, 15, 17, 19)), factor=rng.choice((2.6, 2.9, 3.2, 3.5))
    )


def _derive_next(p: Draw) -> Derivation:
    speedup = scaling.amdahl_speedup(accelerated_share=share(p.attention), factor=p.factor)
    return Derivation(
        value=share(p.optimiser) * speedup,
        formula="share before / (1 − share of the repaired part + that share / factor)",
        substitution=f"{p.optimiser} / (100 − {p.attention} + {p.attention} / {p.factor})",
        source=SOURCE_AMDAHL,
    )


def _count_next(p: Draw) -> float:
    optimiser = ticks.one_after_another([(p.optimiser, 1)])
    others = ticks.one_after_another([(p.attention, p.factor), (WHOLE - p.attention - p.optimiser, 1)])
    return float(optimiser / (optimiser + others))


NEXT = Drill(
    key="amdahl-next-target",
    taught=TAUGHT,
    title="What the next profile will say",
    unit="",
    target_s=75,
    draw=_draw_next,
    small=_draw_next,
    prompt=lambda p: (
        f"In a profile, attention takes {p.attention} % of a step and the optimiser {p.optimiser} %. A fused kernel"
        f" makes attention {p.factor} times faster; the optimiser is not touched, and nothing overlaps. What share of"
        " the new step will the optimiser take?"
    ),
    derive=_derive_next,
    count=_count_next,
    prerequisites=("amdahl-one-part",),
    slips=(
        Slip("old-share", lambda p: share(p.optimiser))
        | "That is its share before. It takes the same time, of a shorter step.",
        Slip("part-vanishes", lambda p: p.optimiser / (WHOLE - p.attention))
        | "You took attention out of the step altogether. A faster kernel still takes some time.",
        Slip(
            "upside-down",
            lambda p: (
                share(p.optimiser) / scaling.amdahl_speedup(accelerated_share=share(p.attention), factor=p.factor)
            ),
        )
        | "You made its share smaller. When a part beside it shrinks, what stays weighs more.",
        Slip("times-the-factor", lambda p: share(p.optimiser) * p.factor)
        | "You multiplied by the kernel's own factor. The step has not become that much shorter.",
    ),
)

# --- a kernel in a trace -------------------------------------------------------------------------


def _draw_calls(rng: random.Random) -> Draw:
    calls, old_us = rng.choice((72, 96, 120, 144)), rng.randrange(1700, 2300, 100)
    step_ms = round(calls * old_us * us / ms / rng.choice((0.34, 0.38, 0.42)))
    return drawn(calls=calls, old_us=old_us, new_us=rng.randrange(400, 650, 50), step_ms=step_ms)


def _step_s(p: Draw, saved_us: float) -> float:
    return float(p.step_ms * ms - saved_us * us)


def _count_calls(p: Draw) -> float:
    """The step in microseconds, call after call."""
    clock = p.step_ms * ms / us - sum(p.old_us for _ in range(p.calls))  # all that is not this kernel
    for _ in range(p.calls):
        clock += p.new_us
    return float(clock * us)


CALLS = Drill(
    key="amdahl-kernel-calls",
    taught=TAUGHT,
    title="A kernel that a trace counts",
    unit="s",
    target_s=75,
    draw=_draw_calls,
    small=lambda rng: drawn(
        calls=rng.choice((5, 7)),
        old_us=rng.choice((1500, 1900)),
        new_us=rng.choice((500, 700)),
        step_ms=rng.choice((25, 31)),
    ),
    prompt=lambda p: (
        f"A trace of one training step, {p.step_ms} ms on the clock: a kernel appears {p.calls} times,"
        f" {p.old_us * us / ms:g} ms each, and nothing runs beside it. Its replacement takes {p.new_us * us / ms:g} ms"
        " per call. How long will the step be?"
    ),
    derive=lambda p: Derivation(
        value=scaling.changed_calls_s(
            whole_s=p.step_ms * ms, num_calls=p.calls, before_s=p.old_us * us, after_s=p.new_us * us
        ),
        formula="step − calls × (old time of a call − new time of a call)",
        substitution=f"{p.step_ms}e-3 − {p.calls} × ({p.old_us}e-6 − {p.new_us}e-6)",
        source=f"{SOURCE_AMDAHL}, applied to measured times",
    ),
    count=_count_calls,
    slips=(
        Slip("one-call", lambda p: _step_s(p, p.old_us - p.new_us))
        | "You replaced one call. The trace shows many in every step.",
        Slip("kernel-gone", lambda p: _step_s(p, p.calls * p.old_us))
        | "You took the kernel out. Its replacement takes time, too.",
        Slip("whole-step", lambda p: p.step_ms * ms * p.new_us / p.old_us)
        | "You made the whole step as much faster as the kernel. Only the kernel's own time shrinks.",
        Slip("new-for-saved", lambda p: _step_s(p, p.calls * p.new_us))
        | "You took off what the replacement takes. What is saved is the difference.",
        Slip("kernel-only", lambda p: p.calls * p.new_us * us)
        | "That is the kernel's own time in the new step. The rest is still there.",
    ),
)

DRILLS = (TWICE, PARTS, NEXT, CALLS)
