"""Everything that can be asked: enough of it, and each way of asking it keeps to the same promises."""

import re
import subprocess
import sys

import pytest
from tests.each import each
from tests.seeds import seeds

from threeloops import contents
from threeloops.drills.engine.bank import DRILLS
from threeloops.room.ideas import IDEAS, LOOPS, TOPICS, pose

every_idea = each("key", {key: key for key in IDEAS}, by=lambda key: IDEAS[key].topic)


def test_there_are_at_least_a_hundred_and_twenty_ideas_and_forty_that_no_drill_asks() -> None:
    assert len(IDEAS) >= 120
    assert len(set(IDEAS) - set(DRILLS)) >= 40
    assert {idea.loop for idea in IDEAS.values()} == set(LOOPS)
    assert {"debugging", "numbers"} <= set(TOPICS)


@every_idea
def test_each_way_of_asking_says_what_it_is_and_is_the_same_twice(key: str) -> None:
    idea = IDEAS[key]
    assert idea.ask
    assert set(idea.prerequisites) <= set(IDEAS) - {key}
    for kind in idea.ask:
        one, again = pose(key, kind, "twice"), pose(key, kind, "twice")
        assert (one.idea, one.kind, one.seed, one.topic, one.loop) == (key, kind, "twice", idea.topic, idea.loop)
        assert (one.text, one.hints, one.working) == (again.text, again.hints, again.working)
        assert 0 < one.target_s <= idea.target_s
        assert len(one.hints) == 3
        assert one.judge("").status == "unreadable"
        assert "Answer" in one.text


WRITTEN = re.compile(r"(?<![\w.:/])\d[\d,]*\.?\d*(?:e[+-]?\d+)?(?![\w])")


@every_idea
def test_numbers_are_written_as_people_write_them(key: str) -> None:
    """No bare exponent, and no decimal number of more than four digits."""
    for kind in IDEAS[key].ask:
        for seed in seeds(8):
            for number in WRITTEN.findall(pose(key, kind, str(seed)).text):
                digits = number.rstrip(".,").replace(",", "").replace(".", "").lstrip("0")
                assert "e" not in number, (kind, seed, number)
                assert "." not in number.rstrip(".,") or len(digits) <= 4, (kind, seed, number)


def test_another_process_asks_the_same() -> None:
    keys = [
        next(key for key in IDEAS if kind in IDEAS[key].ask)
        for kind in ("band", "spot", "table", "trace", "scenario", "flash", "chain:car:4")
    ]
    kinds = ("band", "spot", "table", "trace", "scenario", "flash", "chain:car:4")
    here = "\n".join(pose(key, kind, "p").text for key, kind in zip(keys, kinds, strict=True))
    code = (
        "from threeloops.room.ideas import pose\nprint('\\n'.join(pose(key, kind, 'p').text for key, kind in"
        f" zip({keys!r}, {kinds!r})))"
    )
    ended = subprocess.run(
        [sys.executable, "-X", "utf8", "-c", code], capture_output=True, text=True, check=True, encoding="utf-8"
    )
    assert ended.stdout.rstrip("\n") == here


def test_every_idea_is_taught_in_a_part_that_the_chapters_have() -> None:
    """A title that no part has is a question whose answer sends the reader nowhere."""
    root = contents.book_root()
    for section, loop in sorted({(idea.section, idea.loop) for idea in IDEAS.values()}):
        assert contents.taught(section, loop, root)[1].startswith("chapters/")


def test_a_title_that_no_part_has_is_refused_by_name() -> None:
    with pytest.raises(ValueError, match="no part of the book is called 'All-reduce'"):
        contents.taught("All-reduce", "training", contents.book_root())
