"""Drills on the gaps between numbers: how wide they are, and which updates fall into them."""

import random
from fractions import Fraction

from threeloops.drills.engine.drill import AsFunction, Derivation, Draw, Drill, Slip, Taught, drawn
from threeloops.drills.engine.phrasing import people
from threeloops.drills.number_formats.ends import SOURCE_IEEE, SOURCE_TIES, form, patterns, positive
from threeloops.inner_loop import number_formats
from threeloops.simulate.inner_loop import bit_patterns

TAUGHT = Taught("inner", "Number formats")

NAMES = {7: "BF16", 10: "FP16"}  # by mantissa bits
EXPONENT_BITS = {7: 8, 10: 5}
# without those whose gap is a number of the question: 8 exponent bits, BF16, FP16
POWERS = {7: (*range(2, 10), *range(12, 21)), 10: (*range(2, 14), 15)}


# --- the gap at a value -------------------------------------------------------------------------


def _draw_gap(rng: random.Random) -> Draw:
    mantissa_bits = rng.choice((7, 10))
    power = rng.choice(POWERS[mantissa_bits])
    value = round(2**power * rng.choice((1.25, 1.375, 1.625, 1.75)))
    return drawn(mantissa_bits=mantissa_bits, exponent_bits=EXPONENT_BITS[mantissa_bits], value=value, power=power)


def _small_gap(rng: random.Random) -> Draw:
    power = rng.choice((2, 3))
    return drawn(mantissa_bits=3, exponent_bits=4, value=round(2**power * rng.choice((1.25, 1.5, 1.75))), power=power)


def _count_gap(p: Draw) -> float:
    line = positive(p)
    above = next(place for place, number in enumerate(line) if number > p.value)
    return line[above] - line[above - 1]


GAP = Drill(
    key="format-gap",
    taught=TAUGHT,
    title="How far to the next number",
    unit="",
    target_s=60,
    fewest=20,  # a gap is a power of two
    draw=_draw_gap,
    small=_small_gap,
    prompt=lambda p: (
        f"{NAMES.get(p.mantissa_bits, 'A format')} has {p.exponent_bits} exponent and {p.mantissa_bits} mantissa bits. "
        f"How far apart are neighbouring numbers around {p.value:,}?"
    ),
    derive=lambda p: Derivation(
        value=number_formats.spacing(p.value, form(p)),
        formula="2^(floor(log2 of the value) - mantissa bits)",
        substitution=f"2**(floor(log2({p.value})) - {p.mantissa_bits})",
        source=SOURCE_IEEE,
    ),
    count=_count_gap,
    slips=(
        Slip("gap-at-one", lambda p: 2.0**-p.mantissa_bits)
        | "That is the gap after 1. It doubles with every power of two.",
        Slip("relative", lambda p: p.value * 2.0**-p.mantissa_bits)
        | "You scaled the gap with the value itself. It grows in steps: it is the same from one power of two to"
        " the next.",
        Slip("next-power", lambda p: 2.0 ** (p.power + 1 - p.mantissa_bits))
        | "You took the power of two above the value. The exponent is that of the power below.",
        Slip("one-bit-more", lambda p: 2.0 ** (p.power - p.mantissa_bits - 1))
        | "That is half of the gap: what rounding can be wrong by, or what one more mantissa bit would give.",
    ),
    function=AsFunction(
        takes=("value", "exponent_bits", "mantissa_bits"),
        limit={"exponent_bits": 5, "mantissa_bits": 10, "value": 2**-17 * 1.375, "power": -17},
        limit_case="a value below the smallest normal number",
    ),
)

# --- the weight that no longer moves -------------------------------------------------------------


def _draw_stuck(rng: random.Random) -> Draw:
    mantissa_bits = rng.choice((7, 10))
    return drawn(
        mantissa_bits=mantissa_bits,
        exponent_bits=EXPONENT_BITS[mantissa_bits],
        update=rng.choice((2.5e-6, 5e-6, 1e-5, 2e-5, 4e-5, 7e-5, 1.5e-4, 3e-4, 6e-4, 1.2e-3, 2.4e-3)),
    )


def _count_stuck(p: Draw) -> float:
    """Powers of two, upwards, until one and all numbers up to the next stay where they are."""
    grid = bit_patterns.Grid(patterns(p))
    power = Fraction(1, 64)
    while any(
        grid.nearest(weight + Fraction(p.update)) != weight for weight in grid.values if power <= weight < 2 * power
    ):
        power *= 2
    return float(power)


STUCK = Drill(
    key="format-swallowed-updates",
    taught=TAUGHT,
    title="Weights too large to be trained",
    unit="",
    target_s=120,
    fewest=14,  # the answer is a power of two
    draw=_draw_stuck,
    small=lambda rng: drawn(mantissa_bits=rng.choice((2, 3)), exponent_bits=5, update=rng.choice((0.011, 0.023, 0.09))),
    prompt=lambda p: (
        f"Weights are kept in {NAMES.get(p.mantissa_bits, 'a format')}, with {p.mantissa_bits} mantissa bits and"
        f" rounding to nearest, and there is no master copy. Every step adds {people(p.update)} to each of them. From"
        " which power of two on do weights never move?"
    ),
    derive=lambda p: Derivation(
        value=number_formats.swallowed_from(p.update, form(p)),
        formula=(
            "the first power of two whose gap is more than twice the update: 2^(floor(log2 of the update) + mantissa"
            " bits + 2)"
        ),
        substitution=f"2**(floor(log2({p.update})) + {p.mantissa_bits} + 2)",
        source=SOURCE_TIES,
    ),
    count=_count_stuck,
    prerequisites=("format-gap",),
    slips=(
        Slip("whole-gap", lambda p: number_formats.swallowed_from(p.update, form(p)) / 2)
        | "You asked for a gap wider than the update. More than half a gap is rounded up and arrives.",
        Slip("no-power", lambda p: p.update * 2.0 ** (p.mantissa_bits + 1))
        | "You divided the update by half the gap at 1. Gaps are the same between two powers of two, so look for"
        " the power at which they change.",
        Slip("relative", lambda p: p.update * 2.0**p.mantissa_bits)
        | "You divided the update by the gap at 1. Gaps widen in steps, and half a gap is enough to arrive.",
        Slip("underflow", lambda p: p.update)
        | "You compared the update with itself. It exists in this format; it is lost when it is added to"
        " something much larger.",
        Slip("too-late", lambda p: number_formats.swallowed_from(p.update, form(p)) * 2)
        | "One power of two too late. Half the gap is what an update has to beat.",
    ),
)

DRILLS = (GAP, STUCK)
