"""Numbers that the parts ask for before they show them: a card for each, and the result folded until then."""

import json
import re
from collections.abc import Callable
from typing import Any

import pytest

from tests.site.conftest import ROOT, Page, Visit
from threeloops.drills.engine import prediction
from threeloops.site import answering, parts, predictions
from threeloops.site.parts import Part
from threeloops.site.predictions import Question
from threeloops.units import fmt

pytestmark = [
    pytest.mark.timeout(900),
    pytest.mark.filterwarnings("ignore:.*MystReferenceResolver.app"),  # Sphinx to MyST: nothing of ours
]
# Asked for, and then measured: no one number is printed.
MEASURED = {"1_inner_loop/8_profiling", "4_driving_case_study/1_a_car_that_must_answer_in_time"}


@pytest.fixture(scope="module")
def asked() -> dict[str, list[Question]]:
    return {part.page: predictions.questions(part.cells) for part in parts.parts(ROOT)}


def names(part: Part) -> int:
    """How many predictions a part asks for."""
    code = "\n".join(parts.text(cell) for cell in part.cells if cell["cell_type"] == "code")
    return sum(match["name"].startswith("prediction") for match in predictions.ASKS.finditer(code))


def test_every_prediction_has_its_card(asked: dict[str, list[Question]]) -> None:
    lost = {part.page for part in parts.parts(ROOT) if names(part) > len(asked[part.page])}
    assert lost == MEASURED
    assert sum(map(len, asked.values())) > 100


def test_every_outcome_is_read_as_it_was_printed(asked: dict[str, list[Question]]) -> None:
    for questions in asked.values():
        for one in questions:
            value = answering.outcome_value(one.outcome, one.unit)
            assert fmt(value, one.unit).partition(" (")[0] == one.outcome.partition(" (")[0]
            written = one.outcome.partition(" (")[0]
            said = json.loads(answering.compared(written, one.outcome, one.unit))
            assert said["message"].startswith(f"You said {written}; it comes out at {one.outcome}")
            assert said["status"] == ("right" if value else "other")


def test_what_cannot_be_read_learns_nothing() -> None:
    said = json.loads(answering.compared("soon", "607 ms", "s"))
    assert said["status"] == "unreadable"
    assert "607" not in said["message"]


def test_every_card_finds_its_result_and_that_is_folded(
    pages: dict[str, Page], asked: dict[str, list[Question]]
) -> None:
    for name, questions in asked.items():
        page = pages[f"{name}.html"]
        assert re.findall(r'data-result="([^"]+)"', page.source) == [one.result for one in questions]
        assert {one.result for one in questions} <= page.ids
        assert '<details class="outcome" open' not in page.source


def test_a_number_asked_for_anew_is_another_question() -> None:
    ask, compare = "prediction = ...  # like 2", 'predicted.compare(prediction, value, "s")'
    printed = {"output_type": "stream", "text": [f"{prediction.NOT_YET}It comes out at 2 s.\n"]}
    measured, ask_again = ({"cell_type": "code", "source": ask, "outputs": []} for _ in range(2))
    result = {"cell_type": "code", "source": compare, "outputs": [printed]}
    (found,) = predictions.questions([measured, ask_again, result])
    assert (found.asked, found.answered, found.hint, found.outcome) == (1, 2, "like 2", "2 s")


def test_a_prediction_is_found_again_until_everything_is_deleted(
    visit: Callable[..., Visit], asked: dict[str, list[Question]]
) -> None:
    name, (question, *_) = next((name, found) for name, found in asked.items() if found)
    page = visit(f"{name}.html").page
    card = page.locator(f".drill[data-result={question.result}]")
    result = page.locator(f"details#{question.result}")
    card.get_by_role("textbox").fill(question.outcome.partition(" (")[0])
    card.get_by_role("textbox").press("Enter")
    said = card.get_by_text("You said")
    said.wait_for()
    page.wait_for_function("async () => (await threeloops.written()).length")
    before = said.inner_text()
    page.reload()
    said.wait_for()
    assert said.inner_text() == before
    assert card.get_by_role("textbox").input_value() == question.outcome.partition(" (")[0]
    assert result.get_attribute("open") is not None
    page.evaluate("threeloops.clear()")
    page.reload()
    card.get_by_role("textbox").wait_for()
    assert card.get_by_role("textbox").input_value() == ""
    assert result.get_attribute("open") is None


def the_result_waits_for_the_prediction(page: Any) -> None:
    """On a page with Python in it: unreadable, then read; another one skipped."""
    cards = page.locator(".drill[data-outcome]").all()
    for card in cards[:2]:
        told = {name: card.get_attribute(f"data-{name}") for name in ("outcome", "unit", "result")}
        result = page.locator(f"details#{told['result']}")
        assert result.get_attribute("open") is None
        if card is cards[0]:
            card.get_by_role("textbox").fill("soon")
            card.get_by_role("button", name="Predict").click()
            card.locator(".drill-wrong").wait_for()
            assert result.get_attribute("open") is None
            written = told["outcome"].partition(" (")[0]
            card.get_by_role("textbox").fill(written)
            card.get_by_role("textbox").press("Enter")
            said = json.loads(answering.compared(written, told["outcome"], told["unit"]))["message"]
        else:
            card.get_by_role("button", name="Skip").click()
            said = f"Skipped: it comes out at {told['outcome']}."
        card.get_by_text(said, exact=True).wait_for()
        assert result.get_attribute("open") is not None
