"""Traces to read: the right answer follows from the trace, not from what the job was meant to be, and there is
one.
"""

import cProfile
import itertools
import json
import pstats
import re
import shlex

import pytest

from threeloops.cli import main
from threeloops.inner_loop.trace_diagnosis import BY_CAUSE
from threeloops.room import ideas
from threeloops.room.kinds.traces import (
    CAUSES,
    COLUMNS,
    FIXES,
    HEALTHY,
    IDEAS,
    LOOPS,
    diagnosed,
    key_of,
    loop_of,
    picture,
    read_the_trace,
    window_of,
)
from threeloops.simulate.inner_loop import ill_jobs

MOST_CALLS = 1_000_000  # of functions: a third of a second on a laptop, and the same number on every machine
every_kind = pytest.mark.parametrize("kind", ill_jobs.KINDS)


@every_kind
def test_the_diagnosis_finds_what_the_job_was_given(kind: str) -> None:
    for seed in range(40):
        assert diagnosed(window_of(kind, str(seed)))[0] == kind


@every_kind
def test_exactly_one_answer_of_all_is_right(kind: str) -> None:
    for seed in ("1", "2", "3"):
        asked = read_the_trace(kind, seed)
        answers = itertools.product("ABC", "ABCD", "ABCD")
        right = [answer for answer in answers if asked.judge(" ".join(answer)).right]
        assert len(right) == 1
        shown = re.findall(r"^  ([A-H])  (.+)$", asked.text, re.MULTILINE)
        loops, causes, fixes = dict(shown[:3]), dict(shown[3:7]), dict(shown[7:11])
        assert (loops[right[0][0]], causes[right[0][1]], fixes[right[0][2]]) == (
            LOOPS[loop_of(kind)],
            CAUSES[kind],
            FIXES[kind],
        )
        assert len(set(causes.values())) == len(set(fixes.values())) == 4


def test_every_illness_the_diagnosis_knows_of_can_be_offered_and_all_fixes_differ() -> None:
    assert set(BY_CAUSE.values()) - {"unexplained pauses"} <= set(CAUSES)
    assert len(set(FIXES.values())) == len(FIXES) == len(CAUSES)
    assert len(IDEAS) >= 6


@every_kind
def test_the_picture_is_plain_lines_of_one_width(kind: str) -> None:
    shown = picture(window_of(kind, "5"))
    rows = re.findall(r"^  (?:loader|CPU|GPU|copies|network) +([#+.lwsq]+)$", shown, re.MULTILINE)
    assert [len(row) for row in rows] == [COLUMNS] * 5
    assert "\t" not in shown


def row(kind: str, name: str) -> str:
    (found,) = re.findall(rf"^  {name} +([#+.lwsq]+)$", picture(window_of(kind, "5")), re.MULTILINE)
    return str(found)


def test_an_illness_can_be_seen() -> None:
    assert row("starved loader", "CPU").count("w") > row(HEALTHY, "CPU").count("w")
    assert row("hidden syncs", "CPU").count("s") > COLUMNS / 4
    assert row("launch-bound", "CPU").count("l") > 0.8 * COLUMNS
    assert row("launch-bound", "GPU").count("#") < COLUMNS / 4
    assert row(HEALTHY, "GPU").count("#") > 0.9 * COLUMNS
    network, gpu = row("exposed communication", "network"), row("exposed communication", "GPU")
    assert any(sent == "#" and busy == "." for sent, busy in zip(network, gpu, strict=True))
    leaked = re.findall(r"(\d+\.\d+)", picture(window_of("memory leak", "5")).splitlines()[-1])
    assert float(leaked[-1]) > float(leaked[0]) + 1


@every_kind
def test_the_case_is_a_file_that_the_command_writes_and_reads(kind: str, tmp_path, capsys) -> None:
    asked = read_the_trace(kind, "4")
    (words,) = re.findall(r"For a viewer: threeloops (.*)", asked.working)
    command, name, *rest = shlex.split(words)
    assert main([command, path := str(tmp_path / name), *rest]) == 0
    capsys.readouterr()
    assert main([command, path, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    ill, read, because = diagnosed(window_of(kind, "4"))
    assert told["shares"]["computes"] == pytest.approx(read.busy, rel=1e-6)
    if kind != HEALTHY:
        assert (told["suspects"][0]["illness"], told["suspects"][0]["because"]) == (ill, because)


def test_neither_title_nor_topic_gives_the_illness_away() -> None:
    assert len({(idea.title, idea.topic, idea.target_s) for idea in IDEAS}) == 1


def test_the_same_seed_is_the_same_question_and_the_room_asks_it_quickly() -> None:
    for kind in ill_jobs.KINDS:
        counting = cProfile.Profile()
        asked = counting.runcall(ideas.pose, key_of(kind), "trace", "9")
        assert pstats.Stats(counting).total_calls < MOST_CALLS
        assert asked.text == read_the_trace(kind, "9").text


@pytest.mark.parametrize("written", ["", "A B", "A A A A", "D A A", "1 2 3"])
def test_what_is_no_answer_is_asked_again(written: str) -> None:
    assert read_the_trace(HEALTHY, "1").judge(written).status == "unreadable"


def test_a_wrong_answer_says_which_part_was_right() -> None:
    asked = read_the_trace("hidden syncs", "1")
    right = re.search(r"Answer: (\w) (\w) (\w)", asked.working)
    assert right
    wrong = "B" if right[2] != "B" else "C"
    verdict = asked.judge(f"{right[1]} {wrong} {right[3]}")
    assert verdict.message == f"2 of 3 right: loop and first fix. Cause: it is not {wrong}."
    assert verdict.slips[0].startswith("cause:")
