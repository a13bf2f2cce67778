"""A number that a part asks for before it shows it, as a card on its page; and what gives it away (behind.py says what
that is), folded until the card has been answered.
"""

import ast
import html
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass

from threeloops.drills.engine import answers
from threeloops.drills.engine.prediction import NOT_YET
from threeloops.site.parts import Cell, text

ASKS = re.compile(r"^(?P<name>\w+) = \.\.\.[ \t]*(?:# *(?P<hint>.*))?$", re.MULTILINE)
OUTCOME = re.compile(
    re.escape(NOT_YET) + r"It comes out at (?P<outcome>.*)\.(?P<usual>(?:\nIf you said .*\.)*)$", re.MULTILINE
)
MISTAKE = re.compile(r"^If you said (?P<wrong>.*?), (?P<told>you .*)\.$", re.MULTILINE)
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
    usual: tuple[tuple[str, str], ...] = ()  # what usual mistakes come out at, as printed -> "you took the peak"

    @property
    def result(self) -> str:
        """The name of the result on the page."""
        return f"outcome-{self.answered}"


def questions(cells: Sequence[Cell]) -> list[Question]:
    """What a part asks and then answers; a number that is asked for and never printed is no question here."""
    found = []
    for place, cell in enumerate(cells):
        for match in ASKS.finditer(text(cell)) if cell["cell_type"] == "code" else ():
            answered, unit = comparing(match["name"], cells, after=place)
            printed = _printed(cells[answered]) if unit is not None else None
            if unit is not None and printed:
                usual = tuple((one["wrong"], one["told"]) for one in MISTAKE.finditer(printed["usual"]))
                found.append(
                    Question(
                        asked=place,
                        answered=answered,
                        hint=match["hint"] or "",
                        outcome=printed["outcome"],
                        unit=unit,
                        usual=usual,
                    )
                )
    return found


def comparing(name: str, cells: Sequence[Cell], *, after: int) -> tuple[int, str | None]:
    """The cell that compares what stands under a name, and in which unit; None where no cell does before the name is
    asked for anew.
    """
    for place in range(after + 1, len(cells)):
        source = text(cells[place]) if cells[place]["cell_type"] == "code" else ""
        if f".compare({name}," in source:
            calls = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call) and node.args]
            call = next(call for call in calls if ast.unparse(call.args[0]) == name)
            return place, str(ast.literal_eval(call.args[2]))
        if any(match["name"] == name for match in ASKS.finditer(source)):
            break
    return after, None


def _printed(cell: Cell) -> re.Match[str] | None:
    printed = "".join("".join(output["text"]) for output in cell["outputs"] if output["output_type"] == "stream")
    return OUTCOME.search(printed)


def card(question: Question, number: int) -> str:
    """The card of a question, as HTML; a script (static/cards.js) lets it be answered."""
    hint = f": {question.hint}" if question.hint else ""
    from threeloops.site import answering  # all drills, which the desk does not need to find its questions

    value = answering.outcome_value(question.outcome, question.unit)
    usual = [[answering.outcome_value(wrong, question.unit), told] for wrong, told in question.usual]
    told = {"outcome": question.outcome, "value": repr(value), "unit": question.unit, "result": question.result}
    told["example"] = answers.EXAMPLES[question.unit]
    told |= {"usual": json.dumps(usual, ensure_ascii=False)} if usual else {}
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
