"""Drills on predictions that are held against measurements."""

import random
from statistics import fmean

from threeloops.drills.engine.drill import Derivation, Draw, Drill, Slip, Taught, drawn
from threeloops.drills.measured.rows import chosen, took
from threeloops.facts.kernel_times import DECODE, kernel_table
from threeloops.operations.expected_times import errors_of, kernel_expected

# --- errors of a table -----------------------------------------------------------------------------

SEEN = 5


def _draw_errors(rng: random.Random) -> Draw:
    part, kind = rng.choice((("h100-sxm5", "bf16"), ("h200-sxm", "bf16"), ("b200-hgx", "fp8"), ("gb300", "fp8")))
    calls = [call for call in chosen(DECODE, kind, where=lambda call: call.part == part)]
    some, table = rng.sample(calls, SEEN), kernel_table(part, DECODE, kind)
    expected = [float(f"{kernel_expected(table, call.sizes).seconds:.4g}") for call in some]
    return drawn(
        pairs=tuple((expected_s, call.seconds) for expected_s, call in zip(expected, some, strict=True)),
        device=some[0].device,
        engine=some[0].engine,
        row=some[0].source,
    )


def _signed(p: Draw) -> list[float]:
    return [expected_s / took_s - 1 for expected_s, took_s in p.pairs]


def _derive_errors(p: Draw) -> Derivation:
    place = sorted(range(SEEN), key=lambda one: abs(_signed(p)[one]))[SEEN // 2]
    expected_s, took_s = p.pairs[place]
    larger, smaller = max(expected_s, took_s), min(expected_s, took_s)
    return Derivation(
        value=errors_of(_signed(p)).median,
        formula="of the five |expected / measured − 1| the third in size",
        substitution=f"({larger!r} − {smaller!r}) / {took_s!r}",
        source=f"`threeloops measured` counts errors like this; {p.row}",
    )


def _count_errors(p: Draw) -> float:
    """The error that as many are below as above."""
    sizes = [abs(expected_s - took_s) / took_s for expected_s, took_s in p.pairs]
    (middle,) = {
        size
        for size in sizes
        if sum(other < size for other in sizes) <= SEEN // 2 and sum(other > size for other in sizes) <= SEEN // 2
    }
    return float(middle)


ERRORS = Drill(
    key="measured-median-error",
    taught=Taught("inner", "Roofline"),
    title="How far off a prediction is",
    unit="",
    target_s=150,
    draw=_draw_errors,
    small=lambda rng: drawn(
        pairs=tuple((rng.randrange(20, 90), rng.randrange(20, 90)) for _ in range(SEEN)), row="drawn in 2026"
    ),
    prompt=lambda p: (
        f"A table of kernel times predicts five calls of decode attention on an {p.device} ({p.engine}) that it was"
        " not"
        " made from. Expected and measured: "
        + "; ".join(f"{took(expected_s)} and {took(took_s)}" for expected_s, took_s in p.pairs)
        + ". An error is expected over measured, less 1; its size is what counts, not its sign. What share is the"
        " median error?"
    ),
    derive=_derive_errors,
    count=_count_errors,
    wanted=lambda p: errors_of(_signed(p)).median > 0.02,
    slips=(
        Slip("mean", lambda p: fmean(map(abs, _signed(p))))
        | "That is the mean. One call that is far off moves it, and leaves the median where it is.",
        Slip("sign-kept", lambda p: abs(sorted(_signed(p))[SEEN // 2]))
        | "You kept the signs. Errors to both sides then hide each other.",
        Slip("largest", lambda p: max(map(abs, _signed(p)))) | "That is the largest of the five.",
        Slip("listed-third", lambda p: abs(_signed(p)[SEEN // 2]))
        | "You took the one that stands in the middle of the list. Put the errors in order first.",
    ),
)

DRILLS = (ERRORS,)
