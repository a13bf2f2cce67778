"""Facts to know: each comes from the catalogue or a formula, is judged within 5 %, and is told apart from what is
quoted in its place.
"""

import math
import re
import tomllib
from pathlib import Path

import pytest

from threeloops import units
from threeloops.drills.engine import answers
from threeloops.drills.engine.answers import parse
from threeloops.room import examples, ideas
from threeloops.room.kinds import flash as module
from threeloops.room.kinds.flash import BAND, Flash, flash, judged
from threeloops.room.kinds.flash_numbers import DERIVED, DRIVING, FLASHES, INNER, TRAINING

every_fact = pytest.mark.parametrize("asked", FLASHES, ids=lambda asked: asked.key)
CATALOG = Path(module.__file__).parents[2] / "facts" / "catalog"


def said(value: float, unit: str) -> str:
    return f"{value!r} {unit}".strip()


@every_fact
def test_the_value_is_accepted_and_its_neighbourhood_no_further_than_the_band(asked: Flash) -> None:
    number, question = asked.number(), flash(asked, "1")
    assert math.isfinite(number.value)
    assert number.value > 0
    for factor, right in (
        (1, True),
        (1 + BAND - 0.001, True),
        (1 - BAND + 0.001, True),
        (1 + BAND + 0.001, False),
        (1 - BAND - 0.001, False),
    ):
        counted = number.whole and factor != 1
        assert question.judge(said(number.value * factor, number.unit)).right == (right and not counted)
    for near in (number.value - 1, number.value + 1) if number.whole else ():
        assert question.judge(said(near, number.unit)).slips == ("off-by-one",)
    assert number.exactness.told in question.text
    assert module.shown(number) in question.working
    assert "Source: " in question.working


@every_fact
def test_what_is_quoted_in_its_place_is_wrong_and_named(asked: Flash) -> None:
    number = asked.number()
    assert len({slip for slip, _, _ in number.near}) == len(number.near)
    for slip, value, _ in number.near:
        verdict = judged(number, said(value, number.unit))
        assert not verdict.right
        assert verdict.slips
        within = 0.0 if number.whole else BAND
        first = next(key for key, other, _ in number.near if abs(value - other) <= within * abs(other))
        assert verdict.slips == (first,), slip


@every_fact
def test_no_example_and_no_request_to_write_again_tells_a_number_to_know(asked: Flash) -> None:
    number, question = asked.number(), flash(asked, "1")
    for written in examples.every(number.unit):
        assert not question.judge(written).right
    again = question.judge("lots")
    assert again.status == "unreadable"
    assert examples.example(number.unit, asked.question, whole=number.whole) in again.message
    digits = units.fmt(number.value, number.unit).split(" ")[0]
    assert not re.search(
        rf"(?<![\d.,]){re.escape(digits)}(?![\d.,])",
        f"{again.message} {question.text.split('Answer with')[1]}".replace("5 %", ""),
    )


def test_parts_facts_are_what_the_catalogue_files_say() -> None:
    """Read again from the files, without the library that reads them."""
    parts = {
        key: row
        for path in CATALOG.glob("*.toml")
        for key, row in tomllib.loads(path.read_text(encoding="utf-8")).get("parts", {}).items()
    }
    rows = (*INNER, *TRAINING, *DRIVING)
    for (key, fact), asked in zip(rows, FLASHES, strict=False):
        table, _, name = fact.rpartition(".")
        assert asked.number().value == parts[key][table or "facts"][name]["value"]
        assert str(parts[key][table or "facts"][name]["printed"]) in flash(asked, "1").working


def test_derived_facts_are_what_everybody_quotes() -> None:
    """By hand: 16 bytes (ZeRO, section 3.1), 6 FLOPs (Kaplan, 2.1), 512 and 128 KiB, 65,504, 8192² × 2 bytes, 989.4 /
    3.35 and 312 / 2.039.
    """
    values = {asked.key: asked.number().value for asked in DERIVED}
    assert values["fact-state-per-parameter"] == 16
    assert values["fact-flops-per-parameter"] == 6
    assert values["fact-kv-llama-2-7b"] == parse("512 KiB/token", like="B/token").value
    assert values["fact-kv-llama-3-8b"] == parse("128 KiB/token", like="B/token").value
    assert values["fact-largest-fp16"] == 65504
    assert values["fact-score-matrix"] == parse("128 MiB", like="B").value
    assert values["fact-ridge-h100"] == pytest.approx(295.3, abs=0.1)
    assert values["fact-ridge-a100"] == pytest.approx(153.0, abs=0.1)
    assert values["fact-h100-over-a100"] == pytest.approx(3.17, abs=0.01)
    assert values["fact-weights-llama-3-70b"] == pytest.approx(141.1e9, rel=0.001)
    assert values["fact-metres-per-picture"] == pytest.approx(1.204, abs=0.001)


def test_there_are_enough_and_the_room_asks_them() -> None:
    assert len({asked.key for asked in FLASHES}) == len(FLASHES) >= 20
    assert len({asked.question for asked in FLASHES}) == len(FLASHES)
    for asked in FLASHES:
        assert ideas.pose(asked.key, "flash", "x").text == flash(asked, "x").text


@pytest.mark.parametrize(
    ("written", "unit", "said"),
    [
        ("460", "B", "460 of what? Add the unit"),
        ("1234,567 ms", "s", "write a decimal point, not a comma"),
        ("18.7 Gb", "B", "'Gb' could mean bits or bytes"),
        ("5 m", "B", "does not measure what was asked"),
    ],
)
def test_what_cannot_be_read_is_told_why_with_an_example_that_is_no_answer(written: str, unit: str, said: str) -> None:
    told = examples.read(written, unit)
    assert isinstance(told, str)
    assert said in told
    assert answers.EXAMPLES[unit] not in told


def test_gib_for_gb_is_told_on_a_number_card() -> None:
    asked = next(one for one in FLASHES if one.key == "fact-h100-sxm5-memory-bytes")
    assert flash(asked, "1").judge("80 GiB").slips == ("decimal-as-binary",)
    assert flash(asked, "1").judge("640 GB").slips == ("bits-and-bytes",)
