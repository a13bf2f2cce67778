"""Drills on the ends of a number format: how large, how small, and how far it can count.

The formats are made up, so that no table helps: their exponents and mantissas are drawn apart from each other, and
every mistake has a value of its own.
"""

import random

from threeloops.drills.engine.drill import AsFunction, Derivation, Draw, Drill, Slip, Taught, drawn
from threeloops.inner_loop import number_formats
from threeloops.inner_loop.number_formats import Format
from threeloops.simulate.inner_loop import bit_patterns

TAUGHT = Taught("inner", "Number formats")

SOURCE_IEEE = "IEEE 754-2019, section 3.4 (binary interchange formats)"
SOURCE_TIES = "IEEE 754-2019, section 4.3.1 (roundTiesToEven)"


def form(p: Draw) -> Format:
    """The format of a draw, as IEEE 754 would lay it out."""
    return Format(name="drawn", exponent_bits=p.exponent_bits, mantissa_bits=p.mantissa_bits)


def patterns(p: Draw) -> list[bit_patterns.Number]:
    """Every number of the format of a draw, by enumeration."""
    return bit_patterns.numbers(exponent_bits=p.exponent_bits, mantissa_bits=p.mantissa_bits, specials="infinity")


def positive(p: Draw) -> list[float]:
    """Those above zero, in order."""
    return sorted(float(number.value) for number in patterns(p) if number.value is not None and number.value > 0)


def layout(p: Draw) -> str:
    """The format in words."""
    return (
        f"1 sign bit, {p.exponent_bits} exponent bits and {p.mantissa_bits} mantissa bits, laid out as IEEE 754 does it"
    )


def bias(p: Draw) -> int:
    """What the stored exponent of a draw's format is reduced by."""
    return form(p).bias


# --- the largest number -------------------------------------------------------------------------


def _small_ends(rng: random.Random) -> Draw:
    return drawn(exponent_bits=rng.choice((3, 4)), mantissa_bits=rng.choice((2, 3)))


LARGEST = Drill(
    key="format-largest",
    taught=TAUGHT,
    title="Where a format ends",
    unit="",
    target_s=90,
    fewest=18,  # beyond 3 mantissa bits the largest number and the power of two above it look alike
    draw=lambda rng: drawn(exponent_bits=rng.randrange(3, 9), mantissa_bits=rng.choice((1, 2, 3))),
    small=_small_ends,
    prompt=lambda p: f"A number format has {layout(p)}. What is its largest finite number?",
    derive=lambda p: Derivation(
        value=form(p).largest,
        formula=(
            "(2 - 2^-mantissa bits) × 2^(largest stored exponent - 1 for infinity - bias), bias = 2^(exponent bits -"
            " 1) - 1"
        ),
        substitution=f"(2 - 2**-{p.mantissa_bits}) × 2**({2**p.exponent_bits - 1} - 1 - {bias(p)})",
        source=SOURCE_IEEE,
    ),
    count=lambda p: positive(p)[-1],
    slips=(
        Slip("infinity-forgotten", lambda p: (2 - 2.0**-p.mantissa_bits) * 2.0 ** (bias(p) + 1))
        | "You used the exponent of all ones. In a format like this it says infinity or NaN, so the largest"
        " number has the exponent below it.",
        Slip("mantissa-forgotten", lambda p: 2.0 ** bias(p))
        | "That is the largest power of two. The mantissa can be all ones on top of it.",
        Slip("full-two", lambda p: 2.0 ** (bias(p) + 1))
        | "You let the digits reach 2. With few mantissa bits they stop one step short of it.",
        Slip("leading-one-forgotten", lambda p: (1 - 2.0**-p.mantissa_bits) * 2.0 ** bias(p))
        | "You took the stored digits alone. A normal number has a 1 before the point that is not stored.",
        Slip("bias-forgotten", lambda p: (2 - 2.0**-p.mantissa_bits) * 2.0 ** (2**p.exponent_bits - 2))
        | "You read the stored exponent as it stands. A bias is subtracted from it, so that it can say small"
        " powers as well.",
    ),
    function=AsFunction(
        takes=("exponent_bits", "mantissa_bits"),
        limit={"exponent_bits": 2},
        limit_case="the fewest exponent bits that leave room for infinity",
    ),
)

# --- the smallest number -------------------------------------------------------------------------


def _draw_smallest(rng: random.Random) -> Draw:
    exponent_bits = rng.choice((4, 5, 6, 7, 8))
    # With 4 exponent bits, 6 mantissa bits make the gap at one as small as the smallest normal number.
    return drawn(exponent_bits=exponent_bits, mantissa_bits=rng.randrange(1, 6 if exponent_bits == 4 else 11))


SMALLEST = Drill(
    key="format-smallest",
    taught=TAUGHT,
    title="The last number before zero",
    unit="",
    target_s=90,
    draw=_draw_smallest,
    small=_small_ends,
    prompt=lambda p: (
        f"A number format has {layout(p)}, subnormal numbers included. What is its smallest number above zero?"
    ),
    derive=lambda p: Derivation(
        value=form(p).smallest_subnormal,
        formula="2^(1 - bias - mantissa bits), bias = 2^(exponent bits - 1) - 1",
        substitution=f"2**(1 - {bias(p)} - {p.mantissa_bits})",
        source=f"{SOURCE_IEEE}; subnormal numbers",
    ),
    count=lambda p: positive(p)[0],
    prerequisites=("format-largest",),
    slips=(
        Slip("normal", lambda p: 2.0 ** (1 - bias(p)))
        | "That is the smallest normal number. Below it the leading 1 is dropped, and the numbers go on.",
        Slip("exponent-zero", lambda p: 2.0 ** (-bias(p) - p.mantissa_bits))
        | "You gave what rounds to zero, or went one power too low: a stored exponent of 0 means the same power"
        " as a stored exponent of 1.",
        Slip("gap-at-one", lambda p: 2.0**-p.mantissa_bits)
        | "That is the gap after 1. Towards zero the gaps shrink with the exponent.",
        Slip("reciprocal", lambda p: 1 / form(p).largest)
        | "You took the reciprocal of the largest number. The range is not symmetric: subnormal numbers reach"
        " further down.",
        Slip("bias-too-large", lambda p: 2.0 ** (2 - 2**p.exponent_bits - p.mantissa_bits))
        | "You subtracted the largest stored exponent. The bias is about half of that, so that large numbers can"
        " be said too.",
    ),
)

# --- a counter -----------------------------------------------------------------------------------


COUNTER = Drill(
    key="format-counter",
    taught=TAUGHT,
    title="A counter that stops",
    unit="",
    whole="exact",
    target_s=60,
    fewest=10,  # a counter stops at a power of two below a million
    draw=lambda rng: drawn(exponent_bits=rng.choice((7, 8)), mantissa_bits=rng.choice((3, 4, *range(9, 17)))),
    small=lambda rng: drawn(exponent_bits=4, mantissa_bits=rng.choice((2, 3))),
    prompt=lambda p: (
        f"A number format has {layout(p)}. A counter kept in it starts at 0, and 1 is added to it a million times, each"
        " sum rounded to the nearest number, ties to even. What does it show at the end?"
    ),
    derive=lambda p: Derivation(
        value=number_formats.counting_limit(form(p)),
        formula="2^(mantissa bits + 1), where the gap becomes 2 and half of it no longer moves the sum",
        substitution=f"2**({p.mantissa_bits} + 1)",
        source=SOURCE_TIES,
    ),
    count=lambda p: bit_patterns.Grid(patterns(p)).running_sum([1.0] * 2 ** (p.mantissa_bits + 3)),
    slips=(
        Slip("no-hidden-bit", lambda p: 2.0**p.mantissa_bits)
        | "There the gap is 1 and counting still works. The 1 before the point is a digit too.",
        Slip("gap-not-half", lambda p: 2.0 ** (p.mantissa_bits + 2))
        | "You waited until half the gap is more than 1. At exactly half a gap the tie goes to the even"
        " neighbour, which is where the counter stands.",
        Slip("exponent-bits", lambda p: 2.0**p.exponent_bits)
        | "You used the exponent bits. They say how large a number may be, not how finely it is written.",
        Slip("integer", lambda p: 2.0 ** (p.exponent_bits + p.mantissa_bits))
        | "You counted as a whole-number type of that width would. Here some of the bits are an exponent.",
        Slip("million", lambda p: 1e6)
        | "You assumed that every addition arrives. Look at the gap between neighbours as the sum grows.",
    ),
)

DRILLS = (LARGEST, SMALLEST, COUNTER)
