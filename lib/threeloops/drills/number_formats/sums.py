"""Drills on additions that are rounded: by a coin, and one after the other."""

import math
from fractions import Fraction

from threeloops.drills.engine.drill import AsFunction, Derivation, Draw, Drill, Slip, Taught, drawn
from threeloops.drills.number_formats.ends import form, positive
from threeloops.drills.number_formats.gaps import EXPONENT_BITS, NAMES
from threeloops.inner_loop import number_formats, summation

TAUGHT = Taught("inner", "Number formats")

SOURCE_STOCHASTIC = "Gupta et al., 2015, arXiv:1502.02551, section 3.1"
SOURCE_SUM = "Higham, SIAM J. Sci. Comput. 14(4), 1993, doi:10.1137/0914050"

# --- stochastic rounding -------------------------------------------------------------------------


def update(p: Draw) -> float:
    """The update of a draw: a share of the gap, in four digits."""
    return float(f"{p.share * 2.0 ** (p.power - p.mantissa_bits):.4g}")


def _derive_coins(p: Draw) -> Derivation:
    kept_as = form(drawn(exponent_bits=EXPONENT_BITS.get(p.mantissa_bits, 4), mantissa_bits=p.mantissa_bits))
    return Derivation(
        value=p.weights * number_formats.move_chance(update=update(p), weight=2.0**p.power, form=kept_as),
        formula="weights × update / gap, gap = 2^(exponent - mantissa bits)",
        substitution=f"{p.weights} × {update(p)!r} / 2**({p.power} - {p.mantissa_bits})",
        source=SOURCE_STOCHASTIC,
    )


def _count_coins(p: Draw) -> float:
    """Every weight throws its coin; the coins are spread evenly, eighths apart, and a weight moves if the sum has
    come further than its coin.
    """
    line = [Fraction(number) for number in positive(drawn(exponent_bits=4, mantissa_bits=p.mantissa_bits))]
    below = line.index(Fraction(2**p.power))
    came = (line[below] + Fraction(update(p)) - line[below]) / (line[below + 1] - line[below])
    return float(sum(Fraction(weight % 8, 8) < came for weight in range(p.weights)))


COINS = Drill(
    key="format-stochastic-moves",
    taught=TAUGHT,
    title="How many coins come up",
    unit="",
    target_s=120,
    draw=lambda rng: drawn(
        mantissa_bits=rng.choice((7, 10)),
        weights=rng.randrange(60_000, 130_000, 5_000),
        power=rng.choice((2, 3)),
        share=rng.choice((0.15, 0.3, 0.35, 0.4)),
    ),
    small=lambda rng: drawn(
        mantissa_bits=3, weights=8 * rng.choice((3, 5)), power=rng.choice((2, 3)), share=rng.choice((0.125, 0.375))
    ),
    prompt=lambda p: (
        f"A layer has {p.weights:,} weights, all between {2**p.power} and {2 ** (p.power + 1)}, kept in"
        f" {NAMES.get(p.mantissa_bits, 'a format')} ({p.mantissa_bits} mantissa bits) with stochastic rounding. A step"
        f" adds {update(p):g} to each. How many of them move, on average?"
    ),
    derive=_derive_coins,
    count=_count_coins,
    prerequisites=("format-gap",),
    slips=(
        Slip("all-move", lambda p: p.weights)
        | "You let every weight move. The update is smaller than the gap: most coins come up tails.",
        Slip("half-gap", lambda p: 2 * p.share * p.weights)
        | "You compared with half the gap. That is rounding to nearest; here the probability is the share of the"
        " whole gap that the sum has come.",
        Slip("gap-at-one", lambda p: p.share * 2**p.power * p.weights)
        | "You used the gap after 1. These weights are larger, and so are the gaps between them.",
        Slip("those-that-stay", lambda p: (1 - p.share) * p.weights)
        | "Those are the weights that stay where they are.",
    ),
)

# --- chains of additions -------------------------------------------------------------------------


def _count_chain(p: Draw) -> float:
    """A sum is written as the number of roundings behind each of its terms; adding two sums adds one to all of
    them.
    """

    def added(one: list[int], other: list[int]) -> list[int]:
        return [roundings + 1 for roundings in one + other]

    def in_order(sums: list[list[int]]) -> list[int]:
        total = sums[0]
        for following in sums[1:]:
            total = added(total, following)
        return total

    return float(max(in_order([in_order([[0] for _ in range(p.each)]) for _ in range(p.parts)])))


CHAIN = Drill(
    key="format-sum-chain",
    taught=TAUGHT,
    title="The unluckiest term of a sum",
    unit="",
    whole="exact",
    target_s=90,
    fewest=25,  # in longer chains the number of terms and that of additions look alike
    draw=lambda rng: drawn(parts=rng.choice((5, 6, 7)), each=rng.randrange(12, 37)),
    small=lambda rng: drawn(parts=rng.choice((4, 5)), each=rng.choice((9, 11))),
    prompt=lambda p: (
        f"A kernel adds {p.parts * p.each} numbers. {p.parts} threads each add an equal share, one number after the"
        f" other; then one thread adds the {p.parts} sums, one after the other. Every addition rounds. How many"
        " roundings does the unluckiest number go through?"
    ),
    derive=lambda p: Derivation(
        value=summation.split(p.parts * p.each, parts=p.parts),
        formula="terms / parts - 1 additions within a part, parts - 1 among the parts",
        substitution=f"{p.parts * p.each} / {p.parts} - 1 + {p.parts} - 1",
        source=SOURCE_SUM,
    ),
    count=_count_chain,
    slips=(
        Slip("one-thread", lambda p: p.parts * p.each - 1)
        | "That is one thread adding everything. A number is not touched by additions in other threads.",
        Slip("one-part", lambda p: p.each - 1)
        | "You stopped when the thread was done. Its sum is added to others, and rounded again.",
        Slip("parts-only", lambda p: p.parts - 1)
        | "You counted the last thread's additions alone. Before that, each share was added up.",
        Slip("terms-not-additions", lambda p: p.each + p.parts)
        | "You counted terms. Between n terms stand n - 1 additions, here and there.",
        Slip("pairwise", lambda p: math.ceil(math.log2(p.parts * p.each)))
        | "That would be adding in pairs. Here each thread adds one number after the other.",
    ),
    function=AsFunction(takes=("parts", "each"), limit={"parts": 1}, limit_case="one thread for all the terms"),
)

DRILLS = (COINS, CHAIN)
