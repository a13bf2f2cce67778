"""Cards: which cells wait for a number, and what stands before and after it in their source.

The cell stays what it is, plain code; its copy is marked so that the book's JupyterLab can show an input in its place
(lab/threeloops/static/cards.js).
"""

import json
import re
from collections.abc import Sequence
from typing import Any

from threeloops import contents
from threeloops.desk.parts import Cell, source
from threeloops.drills.engine import answers
from threeloops.drills.engine.bank import DRILLS
from threeloops.drills.engine.student_draws import HOME_COURSE, HOME_STUDENT, posed
from threeloops.site import predictions

LOADS = re.compile(r"^stand_in\.watch\(\)|^sheet\.begin\(", re.MULTILINE)
OPEN = re.compile(
    r"(?P<before>(?:#[^\n]*\n)*(?P<name>\w+) = (?:\(\n    )?)\.\.\.(?P<after>(?:\n\))?(?:  #[^\n]*)?(?:\n#[^\n]*)*)"
)
ASKS = re.compile(r"^sheet\.ask\(", re.MULTILINE)
CHECK = re.compile(
    r'(?P<before>(?s:.*)^sheet\.check\(\s*"(?P<key>[\w-]+)",\s*)\.\.\.(?P<after>\s*\)(?:  #[^\n]*)?)', re.MULTILINE
)


def carded(cells: Sequence[Cell]) -> list[Cell]:
    """The cells of a copy; those that wait for a number are marked, with what has to be run before and after them."""
    needs = _needs(cells)
    found = []
    for index, cell in enumerate(cells):
        about = _about(cell, cells[:index], cells[index + 1 :]) if cell["cell_type"] == "code" else None
        if about:
            about["needs"] = needs
            own = cell["metadata"].get("threeloops", {})
            cell = cell | {"metadata": cell["metadata"] | {"threeloops": own | {"card": about}}}
        found.append(cell)
    return found


def _needs(cells: Sequence[Cell]) -> list[str]:
    """Ids of the code cells up to the one that loads what the others use."""
    code = [cell for cell in cells if cell["cell_type"] == "code"]
    load = next((index for index, cell in enumerate(code) if LOADS.search(source(cell))), -1)
    return [cell["id"] for cell in code[: load + 1]]


def _about(cell: Cell, before: Sequence[Cell], following: Sequence[Cell]) -> dict[str, Any] | None:
    text = source(cell)
    check = CHECK.fullmatch(text)
    if check and check["key"] in DRILLS:
        drill = DRILLS[check["key"]]
        asked = drill.ask(posed(drill, course=HOME_COURSE, student=HOME_STUDENT))
        return {
            "kind": "check",
            "key": check["key"],
            "before": check["before"],
            "after": check["after"],
            "question": asked,
            "taught": _taught(check["key"]),
        }
    found = OPEN.fullmatch(text)
    if not found:
        return None
    ends = {"before": found["before"], "after": found["after"]}
    judge = next((other for other in following if other["cell_type"] == "code"), None)
    judged = judge and re.search(rf'^sheet\.check\("([\w-]+)", {found["name"]}\)', source(judge), re.MULTILINE)
    if judge and judged:
        asking = next((other for other in reversed(before) if other["cell_type"] == "code"), None)
        asks = [asking["id"]] if asking and ASKS.search(source(asking)) else []
        taught = {"taught": _taught(judged[1])} if judged[1] in DRILLS else {}
        return {"kind": "answer", "key": judged[1], **ends, "asks": asks, "then": [judge["id"]], **taught}
    if not found["name"].startswith("prediction"):
        return None
    again = [place for place, other in enumerate(following) if _opens(source(other)) == found["name"]]
    _, unit = predictions.comparing(found["name"], following[: again[0] if again else None], after=-1)
    return {"kind": "prediction", **ends, "hint": _hint(text), **({} if unit is None else {"unit": unit})}


def _taught(key: str) -> list[str]:
    """The part that teaches a drill, for whoever's answer is not right: its name, and its notebook below my/."""
    root = contents.book_root()
    _, copy = contents.taught(DRILLS[key].section, DRILLS[key].loop, root)
    return [next(place.name for place in contents.places(root) if place.copy == copy), copy]


def _opens(text: str) -> str | None:
    found = OPEN.fullmatch(text)
    return found["name"] if found else None


def refusal(told: str) -> str:
    """What is wrong with a prediction as it is written, where it is no number in the unit that is asked: whether it is
    right stays open. Words in, JSON out.

    >>> json.loads(refusal('{"written": "3.6", "unit": "FLOP/s"}'))["refusal"]
    '3.6 of what? Add the unit, like 312 TFLOP/s.'
    >>> json.loads(refusal('{"written": "3.6 TFLOP/s", "unit": "FLOP/s"}'))["refusal"]
    ''
    """
    asked = json.loads(told)
    try:
        answers.parse(str(asked["written"]), like=asked["unit"])
    except answers.UnreadableError as wrong:
        said = str(wrong)
        return json.dumps({"refusal": f"{said[:1].upper()}{said[1:]}."})
    return json.dumps({"refusal": ""})


def _hint(text: str) -> str:
    """What the cell's comments say about the number."""
    return " ".join(words.strip() for words in re.findall(r"#([^\n]*)", text)).strip()
