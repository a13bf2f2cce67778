"""Numbers that the parts ask for before they show them: a card for each, and what gives them away folded until then."""

import html
import json
import random
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from html.parser import HTMLParser
from typing import Any

import pytest

from tests.seeds import SHARES, mode, todays
from tests.site.conftest import ROOT, Page, Visit, until
from threeloops.drills.engine import answers, prediction
from threeloops.site import answering, behind, parts, predictions
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


def test_a_usual_mistake_is_named_by_the_page_and_by_python(
    visit: Callable[..., Visit], asked: dict[str, list[Question]]
) -> None:
    calls = [
        (written, one.outcome, answering.outcome_value(one.outcome, one.unit), one.unit, usual)
        for questions in asked.values()
        for one in questions
        for usual in [[[answering.outcome_value(wrong, one.unit), told] for wrong, told in one.usual]]
        for wrong, _ in one.usual
        for written in (wrong.partition(" (")[0], *(f"{usual[0][0] * away:.5g} {one.unit}" for away in (0.94, 1.04)))
    ]
    assert len({told for *_, usual in calls for _, told in usual}) > 40
    there = visit("404.html").page.evaluate("calls => calls.map(words => threeloops.compared(...words))", calls)
    here = [
        json.loads(answering.compared(written, outcome, unit, json.dumps(usual)))
        for written, outcome, _, unit, usual in calls
    ]
    differ = [(call, one, other) for call, one, other in zip(calls, there, here, strict=True) if one and one != other]
    assert not differ
    named = [call for call, one in zip(calls, there, strict=True) if one and "It looks as if you " in one["message"]]
    assert len(named) > 40


def test_every_card_has_the_mistakes_that_its_cell_names(
    pages: dict[str, Page], asked: dict[str, list[Question]]
) -> None:
    for name, questions in asked.items():
        named = sorted(told for one in questions for _, told in one.usual)
        kept = re.findall(r'data-usual="([^"]+)"', pages[f"{name}.html"].source)
        assert sorted(told for one in kept for _, told in json.loads(html.unescape(one))) == named


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
        folds = [fold.split() for fold in re.findall(r'<details class="outcome" data-behind="([^"]+)">', page.source)]
        assert {one.result for one in questions} == {result for fold in folds for result in fold}


# --- nothing gives an answer away ---

NAMES = {
    "s": ("ns", "us", "ms", "s", "min", "h", "days"),
    "B": ("B", "kB", "MB", "GB", "TB", "KiB", "MiB", "GiB", "TiB"),
    "": ("", "%"),
}
FIGURE = re.compile(r"(?<![\w.,])\d+(?:,\d{3})*(?:\.\d+)?(?!\d)")
VOID = {"area", "br", "col", "hr", "img", "input", "link", "meta", "source", "wbr"}
INLINE = {"a", "b", "code", "em", "i", "span", "strong", "sub", "sup", "tspan"}


@dataclass
class Walk(HTMLParser):
    """A page as one scrolls down it: what is told, under which folds it lies, and where headings and cards stand."""

    seen: list[tuple[str, str, tuple[str, ...]]] = field(default_factory=list)  # kind, words, folds
    folds: list[tuple[str, int]] = field(default_factory=list)  # results that a fold waits for, and its depth
    depth: int = 0
    aside: int = 0  # depth of what is not told: scripts, formulas for ears, cards, which ask

    def __post_init__(self) -> None:
        super().__init__()

    def tell(self, kind: str, words: str) -> None:
        self.seen.append((kind, words, tuple(names for names, _ in self.folds)))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        about = {name: value or "" for name, value in attrs}
        kinds = about.get("class", "").split()
        if "data-outcome" in about:
            self.tell("card", about["data-result"])
        if not self.aside and tag not in INLINE:
            self.tell("heading" if tag in ("h2", "h3", "h4") else "words", " ")
        if tag in VOID:
            self.tell("words", "" if self.aside else f" {about.get('alt', '')} ")
            return
        self.depth += 1
        if not self.aside and (tag in ("script", "style") or {"drill", "katex-mathml", "headerlink"} & set(kinds)):
            self.aside = self.depth
        if "data-behind" in about:
            self.folds.append((about["data-behind"], self.depth))
        if not self.aside and "aria-label" in about:
            self.tell("words", f" {about['aria-label']} ")

    def handle_endtag(self, tag: str) -> None:
        if tag in VOID:
            return
        if self.aside == self.depth:
            self.aside = 0
        if self.folds and self.folds[-1][1] == self.depth:
            self.folds.pop()
        self.depth -= 1
        self.tell("words", "" if tag in INLINE else " ")

    def handle_data(self, data: str) -> None:
        if not self.aside:
            self.tell("words", data)

    def below(self, result: str, *, answered: bool) -> str:
        """All in sight from a card to the first heading or card below what it folds."""
        start = self.seen.index(("card", result, ()))
        found, folded = [], False
        for kind, words, folds in self.seen[start + 1 :]:
            waits = {name for names in folds for name in names.split()}
            folded |= result in waits
            if folded and kind != "words" and not waits:
                break
            if kind != "card" and not waits - ({result} if answered else set()):
                found.append(words)
        return "".join(found)


@pytest.fixture(scope="module")
def walks(pages: dict[str, Page], asked: dict[str, list[Question]]) -> dict[str, Walk]:
    found = {name: Walk() for name, questions in asked.items() if questions}
    for name, walk in found.items():
        walk.feed(pages[f"{name}.html"].source)
    return found


def told(words: str, question: Question) -> Iterator[str]:
    """Where a text has a number within 2 % of an answer, in its unit or in a scaled one."""
    value = answering.outcome_value(question.outcome, question.unit)
    unit = question.unit
    scaled = NAMES.get(unit, tuple(f"{prefix}{unit}" for prefix in ("", "k", "M", "G", "T")))
    scales = [answers.parse(f"1 {name}", like=unit).value for name in scaled]
    for match in FIGURE.finditer(words):
        number = float(match[0].replace(",", ""))
        if any(abs(number * scale - value) <= 0.02 * abs(value) for scale in scales):
            yield " ".join(words[max(0, match.start() - 40) : match.end() + 40].split())


def test_nothing_below_a_card_gives_its_answer_away(walks: dict[str, Walk], asked: dict[str, list[Question]]) -> None:
    walked = 0
    for name, walk in walks.items():
        for one in asked[name]:
            assert not list(told(walk.below(one.result, answered=False), one)), f"{name}: {one.outcome}"
            assert list(told(walk.below(one.result, answered=True), one)), f"{name}: {one.outcome} is lost"
            walked += 1
    assert walked > 100


def test_an_answer_is_known_as_python_reads_it(asked: dict[str, list[Question]]) -> None:
    for one in (one for questions in asked.values() for one in questions):
        value, _ = behind.answer(outcome=one.outcome, unit=one.unit)
        assert value == pytest.approx(answering.outcome_value(one.outcome, one.unit), rel=1e-12, abs=0)


def test_a_number_asked_for_anew_is_another_question() -> None:
    ask, compare = "prediction = ...  # like 2", 'predicted.compare(prediction, value, "s")'
    printed = {"output_type": "stream", "text": [f"{prediction.NOT_YET}It comes out at 2 s.\n"]}
    measured, ask_again = ({"cell_type": "code", "source": ask, "outputs": []} for _ in range(2))
    result = {"cell_type": "code", "source": compare, "outputs": [printed]}
    (found,) = predictions.questions([measured, ask_again, result])
    assert (found.asked, found.answered, found.hint, found.outcome) == (1, 2, "like 2", "2 s")


HIDDEN = "fold => [...fold.children].filter(one => one.localName !== 'summary').every(one => !one.checkVisibility())"


def test_what_is_answered_or_skipped_stays_open_until_everything_is_deleted(
    visit: Callable[..., Visit], asked: dict[str, list[Question]]
) -> None:
    name, (question, second, third, *_) = next((name, found) for name, found in asked.items() if len(found) > 2)
    page = visit(f"{name}.html", width=390).page
    card, skipped = (page.locator(f".drill[data-result={one.result}]") for one in (question, second))
    result, other, last = (page.locator(f'[data-behind~="{one.result}"]').first for one in (question, second, third))
    card.get_by_role("textbox").wait_for()
    assert all(one.evaluate(HIDDEN) for one in (result, other, last))
    card.get_by_role("textbox").fill(question.outcome.partition(" (")[0])
    card.get_by_role("textbox").press("Enter")
    said = card.get_by_text("You said")
    said.wait_for()
    assert not result.evaluate(HIDDEN)
    assert other.evaluate(HIDDEN)
    skipped.get_by_role("button", name="Skip").click()
    assert not other.evaluate(HIDDEN)
    until(page, "async () => (await threeloops.written()).length == 2")
    before = said.inner_text()
    page.set_viewport_size({"width": 1366, "height": 900})
    page.reload()
    said.wait_for()
    assert said.inner_text() == before
    assert card.get_by_role("textbox").input_value() == question.outcome.partition(" (")[0]
    skipped.get_by_text("Skipped").wait_for()
    page.locator(".drill-standing", has_text="2 of ").wait_for()
    assert page.locator(".drill-title", has_text="✓ answered").count() == 2
    assert [one.evaluate(HIDDEN) for one in (result, other, last)] == [False, False, True]
    page.evaluate("threeloops.clear()")
    page.reload()
    card.get_by_role("textbox").wait_for()
    assert card.get_by_role("textbox").input_value() == ""
    assert all(one.evaluate(HIDDEN) for one in (result, other, last))


def the_result_waits_for_the_prediction(page: Any) -> None:
    """On a page with Python in it: unreadable, then read; another one skipped."""
    cards = page.locator(".drill[data-outcome]").all()
    for card in cards[:2]:
        told = {name: card.get_attribute(f"data-{name}") for name in ("outcome", "unit", "result")}
        result = page.locator(f'[data-behind~="{told["result"]}"]').first
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


# --- judged without Python, where that is enough ---

UNITS = {
    "s": ("ns", "µs", "us", "ms", "s", "min", "h", "days", "sec", "S"),
    "B": ("B", "kB", "MB", "GB", "TB", "KiB", "MiB", "GiB", "TiB", "G", "gb", "bytes"),
    "token": ("", "token", "tokens", "k", "Tokens"),
    "": ("", "%", "x", "times", "GPUs"),
    "dollar": ("dollars", "$", "", "cents"),
}
SPELLINGS, FEW = 100_000, 1_000  # of all runs that are thorough, and of one that is not
JUDGED = "calls => calls.map(call => threeloops.compared(...call))"


def spellings(questions: list[Question], draw: random.Random, count: int) -> Iterator[tuple[Question, str]]:
    """What people write, near the outcome and far from it: plainly, with signs, commas, words and blunders."""
    for _ in range(count):
        one = draw.choice(questions)
        units_ = UNITS.get(one.unit, (one.unit, f"k{one.unit}", f"G{one.unit}", f"T{one.unit}", one.unit.lower()))
        unit = draw.choice(units_)
        near = draw.choice([0.5, 0.79, 0.8, 1, 1.02, 1.25, 1.26, 2, 10, 1e3, 10 ** draw.uniform(-6, 6)])
        try:
            scale = answers.parse(f"1 {unit}", like=one.unit).value
        except answers.UnreadableError:
            scale = 1.0
        figure = abs(answering.outcome_value(one.outcome, one.unit)) / near / scale
        number = draw.choice(
            [
                f"{figure:.3g}",
                f"{figure:g}",
                f"{figure:,.1f}",
                f"{figure:.0f}",
                repr(figure),
                f"~{figure:.2g}",
                "-3",
                "0",
            ]
        )
        yield one, draw.choice(["{} {}", "{}{}", "{}  {}", "{} {}"]).format(number, unit).strip()


def test_a_plain_prediction_is_judged_at_once_and_as_python_judges_it(
    visit: Callable[..., Visit], asked: dict[str, list[Question]]
) -> None:
    questions = [one for found in asked.values() for one in found]
    seeds = todays([f"spelt {number}" for number in range(SHARES)])
    count = SPELLINGS // SHARES if mode() == "thorough" else FEW
    tried = [(one, written) for seed in seeds for one, written in spellings(questions, random.Random(seed), count)]
    seen = visit("404.html")
    calls = [
        [written, one.outcome, answering.outcome_value(one.outcome, one.unit), one.unit, [], answers.EXAMPLES[one.unit]]
        for one, written in tried
    ]
    there = seen.page.evaluate(JUDGED, calls)
    here = [json.loads(answering.compared(written, one.outcome, one.unit)) for one, written in tried]
    differ = [(call, one, other) for call, one, other in zip(calls, there, here, strict=True) if one and one != other]
    assert not differ, differ[:5]
    assert sum(one is not None for one in there) > len(there) / 2
    assert not [address for address in seen.asked if "python/" in address]


def test_the_first_verdict_comes_before_python(visit: Callable[..., Visit], asked: dict[str, list[Question]]) -> None:
    seen = visit("1_inner_loop/2_roofline.html")
    question = asked["1_inner_loop/2_roofline"][0]
    card = seen.page.locator(f".drill[data-result={question.result}]")
    card.get_by_role("textbox").fill("100 TFLOP/s")
    assert not [address for address in seen.asked if "python/" in address], "a touch alone fetches nothing"
    seen.page.route("**/python/*", lambda route: None)  # Python never comes
    card.get_by_role("button", name="Predict").click()
    verdict = json.loads(answering.compared("100 TFLOP/s", question.outcome, question.unit))["message"]
    card.locator(".drill-said", has_text=verdict).wait_for()
