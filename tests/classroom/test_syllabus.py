"""The book over a number of weeks: nothing twice, nothing too early, no week much longer than the others."""

import itertools
import re
from dataclasses import replace

import pytest

from threeloops import cli, contents
from threeloops.classroom.term import syllabus
from threeloops.classroom.term.class_page import taught
from threeloops.classroom.term.syllabus import Step, needs, ordered, steps, weeks
from threeloops.drills.engine.bank import DRILLS

ROOT = contents.book_root()
PLACES = contents.places(ROOT)
MOST = 1.3  # of the mean


@pytest.mark.parametrize("short", [False, True])
@pytest.mark.parametrize("number", [4, 8, 14])
def test_every_part_comes_once_and_no_week_is_long(number: int, short: bool) -> None:
    planned = weeks(steps(ROOT, short=short), number)
    assert len(planned) == number
    read = [step.key for week in planned for step in week.steps]
    assert sorted(read) == sorted(f"{place.chapter}.{place.number}" for place in PLACES)
    minutes = [week.minutes for week in planned]
    assert max(minutes) <= MOST * sum(minutes) / number
    sets = [name for week in planned for step in week.steps for name in step.sets]
    assert sorted(sets) == sorted(path.name for path in (ROOT / "drills").iterdir() if path.is_dir()), "each set, once"


def test_nothing_comes_before_what_it_needs() -> None:
    order = [f"{place.chapter}.{place.number}" for place in ordered(PLACES)]
    wanted = {f"{place.chapter}.{place.number}": needs(place) for place in PLACES}
    assert sum(map(len, wanted.values())) > 40, "the cards are read"
    for part, before in wanted.items():
        for one in before:
            assert order.index(one) < order.index(part), f"{part} needs {one}"
    assert order[0] == "1.F1"


def test_a_part_moves_behind_what_it_needs_and_a_ring_is_refused() -> None:
    first, second = PLACES[0], PLACES[1]
    moved = replace(first, card=f"> **You need** more ([part 2](#2-{second.title}-·-9-min)). **You get** x")
    assert [one.number for one in ordered([moved, second])] == ["2", "1"]
    back = replace(second, card="> **You need** more ([part 1](#1-Three-·-9-min)). **You get** x")
    with pytest.raises(ValueError, match=re.escape("in a ring: 1.1 → 1.2 → 1.1")):
        ordered([moved, back])
    lost = replace(first, card="> **You need** [part 99](#99-None). **You get** x")
    with pytest.raises(ValueError, match="which the book does not have"):
        ordered([lost])


def test_the_cut_is_the_best_there_is() -> None:
    """Against every other way of cutting a few parts."""
    minutes = (40, 90, 10, 60, 70, 30)
    parts = [Step(place=PLACES[0], minutes=one, sets=()) for one in minutes]
    for number in (1, 2, 3, 6):
        best = min(
            max(sum(minutes[a:b]) for a, b in itertools.pairwise((0, *cuts, len(minutes))))
            for cuts in itertools.combinations(range(1, len(minutes)), number - 1)
        )
        assert max(week.minutes for week in weeks(parts, number)) == best
    with pytest.raises(ValueError, match="weeks=7 is more than the book's 6 parts"):
        weeks(parts, 7)


def test_minutes_are_those_of_the_headings(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["classroom", "syllabus", "--weeks", "8"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("# Three Loops in 8 weeks\n")
    assert len(re.findall(r"^## Week", out, re.MULTILINE)) == 8
    assert sum(map(int, re.findall(r"part \w+\), (\d+) min", out))) == sum(place.minutes for place in PLACES)
    for place in PLACES:
        assert syllabus.SHORT.search(place.card), f"{place.name}: the card says how long its short way is"


def test_every_drill_knows_where_it_is_taught() -> None:
    """A class page sends a teacher there."""
    for key in DRILLS:
        assert re.fullmatch(r"chapter \d, part \w+, .+; `python3 book\.py \d\.\w+` opens it", taught(key, ROOT)), key
