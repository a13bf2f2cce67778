"""A prediction's verdict, and the mistakes that a page names beside it."""

import json
import re
from pathlib import Path

import pytest

from threeloops.drills.engine import answers, prediction

CHAPTERS = sorted(Path(__file__).parents[2].glob("chapters/*.ipynb"))
BOX = re.compile(r"^If you said ([^,\n]*(?:,\d{3})*[^,\n]*), (.*)\.$", re.MULTILINE)
USUAL = {16e9: "you counted weights", 32e9: "you forgot the optimiser"}


@pytest.mark.parametrize(("said", "named"), [("16 GB", "weights"), ("31 GB", "optimiser"), ("60 GB", "")])
def test_a_number_near_a_usual_mistake_is_told_which(said: str, named: str) -> None:
    told = prediction.verdict(said, 150e9, "B", USUAL)
    assert ("It looks as if you" in told) == bool(named)
    assert named in told


def test_a_usual_mistake_that_lies_near_is_no_good_prediction() -> None:
    usual = {128e9: "you forgot a part", 0: "you thought it was free", 134e9: "you rounded down"}
    for said, named in (("128 GB", "a part"), ("133 GB", "rounded down"), ("0 GB", "free"), ("142 GB", "")):
        told = prediction.verdict(said, 150e9, "B", usual)
        assert named in told
        assert told.endswith(prediction.WELL) == (not named)


def test_a_good_prediction_names_no_mistake_and_a_page_names_all() -> None:
    assert prediction.verdict("140 GB", 150e9, "B", USUAL).endswith(prediction.WELL)
    assert "looks" not in prediction.verdict("skip", 150e9, "B", USUAL)
    shown = prediction.verdict(..., 150e9, "B", USUAL)
    assert [mistake for _, mistake in BOX.findall(shown)] == list(USUAL.values())


def outputs(path: Path) -> list[str]:
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    return ["".join(one.get("text", "")) for cell in cells for one in cell.get("outputs", []) if "text" in one]


TIMES = {"min": 60.0, "h": 3600.0, "days": 86_400.0}
BASES = ("FLOP/B", "FLOP/s", "FLOP", "token/s", "token", "B", "s")


def number(told: str) -> float:
    """In base units where it has a prefix, so that two of them can be held against each other."""
    figure, unit = re.match(r"([\d.,]+(?:e-?\d+)?)\s*(.*)", told.partition(" (")[0]).groups()
    found = [base for base in BASES if re.fullmatch(rf".{{0,1}}{base}s?", unit)]
    if found and unit not in TIMES:
        return answers.parse(told.partition(" (")[0], like=found[0]).value
    return float(figure.replace(",", "")) * TIMES.get(unit, 1.0)


@pytest.mark.parametrize("path", CHAPTERS, ids=lambda path: path.stem)
def test_what_a_page_calls_a_mistake_is_not_the_answer(path: Path) -> None:
    """Nor so near that it would count as a good prediction of it."""
    for text in outputs(path):
        boxes = BOX.findall(text)
        if boxes:
            came = number(re.search(r"It comes out at (.*)\.$", text, re.MULTILINE)[1])
            for said, mistake in boxes:
                assert abs(number(said) - came) > prediction.LIKE * max(came, number(said)), mistake
