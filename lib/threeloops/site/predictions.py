"""A number that a part asks for before it shows it, as a card on its page; and what gives it away (behind.py says what
that is), folded until the card has been answered.
"""

import ast
import html
import re
from collections.abc import Sequence
from dataclasses import dataclass

from threeloops.drills.engine.prediction import NOT_YET
from threeloops.site.parts import Cell, text

ASKS = re.compile(r"^(?P<name>\w+) = \.\.\.[ \t]*(?:# *(?P<hint>.*))?$", re.MULTILINE)
OUTCOME = re.compile(re.escape(NOT_YET) + r"It comes out at (?P<outcome>.*)\.$", re.MULTILINE)
FOLD = '<details class="outcome" data-behind="{names}"><summary>How it comes out</summary>'  # names of results
UNFOLD = "</details>"


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """A number that is asked for, and how it comes out."""

    asked: int  # the cell that asks
    answered: int  # the cell that shows the result
    hint: str  # like "300 ms"
    outcome: str  # as it is printed: "607 ms"
    unit: str

    @property
    def result(self) -> str:
        """The name of the result on the page."""
        return f"outcome-{self.answered}"


def questions(cells: Sequence[Cell]) -> list[Question]:
    """What a part asks and then answers; a number that is asked for and never printed is no question here."""
    found = []
    for place, cell in enumerate(cells):
        for match in ASKS.finditer(text(cell)) if cell["cell_type"] == "code" else ():
            answered, unit = _answered(match["name"], cells, after=place)
            outcome = _outcome(cells[answered]) if unit is not None else ""
            if unit is not None and outcome:
                hint = match["hint"] or ""
                found.append(Question(asked=place, answered=answered, hint=hint, outcome=outcome, unit=unit))
    return found


def _answered(name: str, cells: Sequence[Cell], *, after: int) -> tuple[int, str | None]:
    """The cell that compares what stands under a name, and in which unit; None where the name is asked for anew."""
    for place in range(after + 1, len(cells)):
        source = text(cells[place]) if cells[place]["cell_type"] == "code" else ""
        if f".compare({name}," in source:
            calls = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call) and node.args]
            call = next(call for call in calls if ast.unparse(call.args[0]) == name)
            return place, str(ast.literal_eval(call.args[2]))
        if any(match["name"] == name for match in ASKS.finditer(source)):
            break
    return after, None


def _outcome(cell: Cell) -> str:
    printed = "".join("".join(output["text"]) for output in cell["outputs"] if output["output_type"] == "stream")
    match = OUTCOME.search(printed)
    return match["outcome"] if match else ""


def card(question: Question, number: int) -> str:
    """The card of a question, as HTML; a script (static/cards.js) lets it be answered."""
    hint = f": {question.hint}" if question.hint else ""
    from threeloops.site import answering  # all drills, which the desk does not need to find its questions

    value = answering.outcome_value(question.outcome, question.unit)
    told = {"outcome": question.outcome, "value": repr(value), "unit": question.unit, "result": question.result}
    data = "".join(f' data-{name}="{html.escape(value)}"' for name, value in told.items())
    return (
        f'<section class="drill"{data} aria-label="Prediction {number}"><p class="drill-title">Predict</p>'
        f'<div class="drill-question"><p>Commit to a number before you read on{html.escape(hint)}.</p></div></section>'
    )


def without(source: str) -> str:
    """What a cell holds beside its questions.

    >>> without('pages = 3\\nprediction = ...  # like "2"')
    'pages = 3'
    """
    return ASKS.sub("", source).strip()
