"""Errors to spot: one line is wrong, and only one; the rest follows from it; the right lines end in the library's
figure.
"""

import math
import re
from types import SimpleNamespace

import pytest
from tests.seeds import seeds

from threeloops.drills.engine.drill import seeded
from threeloops.room import ideas
from threeloops.room.kinds.spots import WORKED
from threeloops.room.kinds.spots.spot import Worked, drawn_case, place, spot, written_out

SEEDS = [str(seed) for seed in range(1000)]
every_answer = pytest.mark.parametrize("worked", WORKED, ids=lambda worked: worked.key)


def far(one: float, other: float) -> bool:
    return abs(one - other) > 0.045 * abs(other)


@every_answer
def test_the_right_lines_end_where_the_library_does(worked: Worked) -> None:
    for seed in map(str, seeds(len(SEEDS))):
        p, _ = drawn_case(worked, seed)
        values = written_out(worked, p, None).values
        assert all(math.isfinite(value) and value > 0 for value in values)
        assert values[-1] == pytest.approx(worked.answer(p), rel=1e-9)


@every_answer
def test_exactly_one_line_does_not_follow_from_the_lines_above_it(worked: Worked) -> None:
    for seed in map(str, seeds(len(SEEDS))):
        p, misstep = drawn_case(worked, seed)
        shown = written_out(worked, p, misstep)
        known, broken = SimpleNamespace(**vars(p)), []
        for number, (line, value) in enumerate(zip(worked.lines, shown.values, strict=True), 1):
            if line.value(known) != pytest.approx(value, rel=1e-12):
                assert far(value, line.value(known))
                broken.append(number)
            setattr(known, line.name, value)
        assert broken == [place(worked, misstep)]
        assert far(shown.values[-1], worked.answer(p)) or shown.values[-1] != worked.answer(p)


@every_answer
def test_each_misstep_changes_what_the_answer_comes_to(worked: Worked) -> None:
    for seed in map(str, seeds(200)):
        p = worked.draw(seeded("spot", seed, worked.key))
        for misstep in worked.missteps:
            assert far(written_out(worked, p, misstep).values[-1], worked.answer(p)), misstep.key


@every_answer
def test_only_the_wrong_line_is_accepted(worked: Worked) -> None:
    for seed in map(str, seeds(100)):
        p, misstep = drawn_case(worked, seed)
        asked = spot(worked, seed)
        number = place(worked, misstep)
        assert [n for n in range(1, len(worked.lines) + 1) if asked.judge(str(n)).right] == [number]
        shown = re.findall(r"^  (\d)\. (.+)$", asked.text, re.MULTILINE)
        assert [text for _, text in shown] == list(written_out(worked, p, misstep).lines)


@every_answer
def test_the_lines_are_as_they_should_be(worked: Worked) -> None:
    assert 4 <= len(worked.lines) <= 6
    assert len({misstep.line for misstep in worked.missteps}) >= 3
    assert len({misstep.key for misstep in worked.missteps}) == len(worked.missteps)
    chosen = {drawn_case(worked, seed)[1].key for seed in SEEDS[:100]}
    assert chosen == {misstep.key for misstep in worked.missteps}
    for seed in SEEDS[:20]:
        p, misstep = drawn_case(worked, seed)
        right, wrong = written_out(worked, p, None).lines, written_out(worked, p, misstep).lines
        above = place(worked, misstep) - 1
        assert right[:above] == wrong[:above]
        assert right[above] != wrong[above]


@every_answer
def test_the_verdict_names_the_mistake_and_a_wrong_line_does_not_give_it_away(worked: Worked) -> None:
    _, misstep = drawn_case(worked, "3")
    asked, number = spot(worked, "3"), place(worked, misstep)
    assert misstep.story in asked.judge(f" Line {number}. ").message
    for other in range(1, len(worked.lines) + 1):
        if other != number:
            verdict = asked.judge(str(other))
            assert misstep.story not in verdict.message
            assert verdict.slips == (f"missed:{misstep.key}",)
    assert misstep.story in asked.working


@pytest.mark.parametrize("written", ["", "0", "9", "two", "1 2", "line", "B"])
def test_what_is_no_line_is_asked_again(written: str) -> None:
    assert spot(WORKED[0], "1").judge(written).status == "unreadable"


def test_the_room_asks_them_and_their_prerequisites_exist() -> None:
    assert len(WORKED) >= 10
    assert {worked.loop for worked in WORKED} == {"inner", "training", "product", "driving"}
    for worked in WORKED:
        assert ideas.pose(worked.key, "spot", "5").text == spot(worked, "5").text
        assert set(worked.prerequisites) <= set(ideas.IDEAS)
