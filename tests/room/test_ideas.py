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
QUOTED = re.compile(r"“[^”]*”|Source: .*")  # what a source prints is its own affair


INDENTED = re.compile(r"^  .*$", re.MULTILINE)  # how code stands among sentences


def read_by_somebody(key: str, kind: str, seed: str) -> dict[str, str]:
    """Everything that a question shows, but for its replies; of a task in code, what is no code."""
    asked = pose(key, kind, seed)
    shown = {
        "text": asked.text,
        "working": QUOTED.sub("", asked.working),
        **{f"hint {place}": hint for place, hint in enumerate(asked.hints, 1)},
    }
    return {place: INDENTED.sub("", text) for place, text in shown.items()} if asked.starter else shown


def oddly_written(text: str) -> list[str]:
    """Numbers in a text with a bare exponent or a power in a programmer's spelling, and decimals of more than four
    digits.
    """
    odd = ["**"] if "**" in text else []
    for number in WRITTEN.findall(text):
        digits = number.rstrip(".,").replace(",", "").replace(".", "").lstrip("0")
        odd += [number] if "e" in number or ("." in number.rstrip(".,") and len(digits) > 4) else []
    return odd


@every_idea
def test_numbers_are_written_as_people_write_them(key: str) -> None:
    """In questions, hints and workings, and in what a drill says of a mistake."""
    for kind in IDEAS[key].ask:
        for seed in seeds(8):
            for place, text in read_by_somebody(key, kind, str(seed)).items():
                assert not oddly_written(text), (kind, seed, place)
    for slip in DRILLS[key].slips if key in DRILLS else ():
        assert not oddly_written(slip.story), slip.key


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
