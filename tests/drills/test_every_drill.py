"""What every drill must keep: a sensible answer, slips that can be told apart, a derivation that is the grade, and a
count that agrees.
"""

import functools
import itertools
import math
import random
import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from tests.each import each
from tests.seeds import seeds

from threeloops.drills.engine.bank import DRILLS, FAMILIES
from threeloops.drills.engine.drill import Draw, Drill, seeded
from threeloops.drills.engine.judge import judge
from threeloops.drills.engine.trial import evaluated, incomplete

SEEDS, COUNTED_SEEDS = 1000, 50
APART = 0.045  # two answers that are meant to be told apart differ by more than this in every draw
# whole numbers by chance: what they measure is a size and no count, or a crossing between two estimates
ANY_SIZE = ("format-largest", "roofline-decode-batch")
every_drill = each("drill", DRILLS, by=lambda drill: drill.family)


@functools.cache
def drawn(drill: Drill, seed: int) -> Draw:
    return drill.draw(seeded("test", str(seed), drill.key))


def draws(drill: Drill, most: int = SEEDS) -> Iterator[tuple[int, object]]:
    """(seed, draw) for what this run tries of so many seeds."""
    return ((seed, drawn(drill, seed)) for seed in seeds(most))


def apart(one: float, two: float) -> bool:
    return abs(one - two) > APART * max(abs(one), abs(two))


@functools.cache
def counted(drill: Drill, seed: int) -> tuple[Any, float]:
    """A scaled-down draw, and its independent count."""
    p = drill.small(random.Random(seed))
    return p, drill.count(p)


def disagreements(drill: Drill, tried: list[int], value: Callable[[Any], float]) -> Iterator[str]:
    """Where a formula and the independent count differ by more than rounding, over scaled-down draws."""
    for seed in tried:
        p, truth = counted(drill, seed)
        predicted = value(p)
        if not math.isclose(predicted, truth, rel_tol=1e-9):
            yield f"seed {seed}: {predicted} predicted, {truth} counted from {p}"


@every_drill
def test_the_answer_is_a_sensible_number(drill: Drill) -> None:
    for seed, p in draws(drill):
        value = drill.derive(p).value
        assert math.isfinite(value), f"seed {seed}: {p}"
        assert value > 0, f"seed {seed}: {p}"


@every_drill
def test_answers_differ_from_student_to_student(drill: Drill) -> None:
    answers: set[float] = set()
    for seed in range(SEEDS):
        answers.add(float(f"{drill.derive(drawn(drill, seed)).value:.9g}"))  # rounding makes no other answer
        if len(answers) >= drill.fewest:
            return
    raise AssertionError(f"{len(answers)} answers: {sorted(answers)}")


@every_drill
def test_every_slip_is_told_apart_in_every_draw(drill: Drill) -> None:
    for seed, p in draws(drill):
        named = {"the answer": drill.derive(p).value} | {slip.key: slip.wrong(p) for slip in drill.slips}
        for (one, a), (two, b) in itertools.combinations(named.items(), 2):
            assert apart(a, b), f"{one} = {a} and {two} = {b} look alike with seed {seed}: {p}"


@every_drill
def test_every_slip_is_named_when_it_is_made(drill: Drill) -> None:
    for seed, p in draws(drill, 50):
        for slip in drill.slips:
            verdict = judge(drill, p, typed(drill, slip.wrong(p)))
            assert verdict.slips == (slip.key,), (
                f"seed {seed}: {slip.key} was taken for {verdict.status} {verdict.slips}"
            )


@every_drill
def test_a_mistake_near_the_answer_is_refused_and_named(drill: Drill) -> None:
    for seed, p in draws(drill, 50 if drill.near else 0):
        for slip in drill.near:
            assert judge(drill, p, typed(drill, slip.wrong(p))).slips == (slip.key,), f"seed {seed}"


def typed(drill: Drill, value: float) -> str:
    return f"{value!r} {drill.unit}".strip()


@every_drill
def test_the_answer_is_right_in_every_draw(drill: Drill) -> None:
    for seed, p in draws(drill, 50):
        value = drill.derive(p).value
        assert judge(drill, p, typed(drill, value)).right, f"seed {seed}"
        assert seed >= 5 or judge(drill, p, drill.shown(value)).right, f"the book's own {drill.shown(value)} is refused"
        if not drill.whole:
            near, beyond = (value * (1 + edge * drill.tolerance) for edge in (0.9, 1.1))
            assert judge(drill, p, typed(drill, near)).right, f"seed {seed}"
            assert not judge(drill, p, typed(drill, beyond)).right, f"seed {seed}"


@every_drill
def test_the_neighbour_of_a_count_is_refused_and_told_why(drill: Drill) -> None:
    """One too few of what is needed, one too many of what fits, one beside what simply is so many."""
    for seed, p in draws(drill, SEEDS if drill.whole else 0):
        value = drill.derive(p).value
        for near in (value - 1, value + 1):
            safe = drill.loose == "bound" and (near > value) == (drill.whole == "up")
            enough = safe and abs(near - value) <= drill.tolerance * value
            verdict = judge(drill, p, typed(drill, near))
            assert verdict.right == enough, f"seed {seed}: {near} beside {value}"
            assert verdict.right or verdict.slips, f"seed {seed}: {near} beside {value} has no name"


@every_drill
def test_what_counts_things_says_so_and_nothing_else_does(drill: Drill) -> None:
    whole = drill.unit in ("", "token") and drill.key not in ANY_SIZE
    assert bool(drill.whole) == (whole and all(drill.derive(p).value % 1 == 0 for _, p in draws(drill, 50)))
    if drill.whole in ("up", "down"):
        p = drawn(drill, 0)
        value = drill.derive(p).value
        fraction = value + (-0.4 if drill.whole == "up" else 0.4)
        assert judge(drill, p, typed(drill, fraction)).slips == (f"not-rounded-{drill.whole}",)


@every_drill
def test_the_independent_count_agrees(drill: Drill) -> None:
    assert not list(disagreements(drill, seeds(COUNTED_SEEDS), lambda p: drill.derive(p).value))


@every_drill
def test_replacing_the_formula_by_any_slip_would_be_noticed(drill: Drill) -> None:
    for slip in drill.slips:
        assert any(disagreements(drill, list(range(COUNTED_SEEDS)), slip.wrong)), (
            f"nobody would notice if {slip.key} were the reference"
        )


@every_drill
def test_the_derivation_ends_in_the_graded_number(drill: Drill) -> None:
    for seed, p in draws(drill, 50):
        derivation = drill.derive(p)
        assert evaluated(derivation.substitution) == pytest.approx(derivation.value, rel=1e-9), f"seed {seed}"
        # what is shown has fewer digits, and still the same order of signs
        assert evaluated(derivation.in_numbers) == pytest.approx(derivation.value, rel=drill.tolerance / 4), (
            f"seed {seed}"
        )
        assert derivation.formula
        assert re.search(r"\d{4}", derivation.source), "a source has a year"


@every_drill
def test_the_question_states_unit_and_tolerance(drill: Drill) -> None:
    for _, p in draws(drill, 50):
        assert drill.exactness.told in drill.ask(p)


FIGURE = re.compile(r"(?<![\dA-Za-z.])\d+(?:,\d{3})*(?:\.\d+)?(?: ?(?:%|[A-Za-zµ]+(?:/[A-Za-z]+)?))?")


@every_drill
def test_no_question_holds_its_answer(drill: Drill) -> None:
    """Whoever copies out a figure, with what stands behind it, is not right: other seeds in every run."""
    for seed in seeds(SEEDS)[-8:]:
        p = drawn(drill, seed)
        for figure in FIGURE.findall(drill.prompt(p)):
            if figure.endswith("illion") and drill.unit:  # of parameters there, of something else in an answer
                if drill.unit != "token":
                    continue
                figure += " tokens"  # which people write without the word
            assert not judge(drill, p, figure).right, f"seed {seed}: {figure} in {drill.prompt(p)}"


@every_drill
def test_the_definition_is_complete(drill: Drill) -> None:
    assert not list(incomplete(drill))
    assert set(drill.prerequisites) <= set(DRILLS)


def test_no_key_is_used_twice() -> None:
    assert sum(len(drills) for drills in FAMILIES.values()) == len(DRILLS)
