"""What a cell of a notebook becomes on a page: prose with links that arrive, results before the code that made them,
a question as a card.
"""

import re
from collections.abc import Callable
from typing import Any

from threeloops.drills.engine import prediction
from threeloops.site import explorers
from threeloops.site.links import Places, rewritten
from threeloops.site.parts import IMPORTS, Cell, Part, text

ASKED = re.compile(r'^sheet\.ask\("(?P<key>[^"]+)"\)', re.MULTILINE)
PREDICTION = re.compile(r"^prediction = \.\.\.\s*(?:# *(?P<hint>.*))?$")
PICTURE = "image/png"
EXPLORER = re.compile(r"\w+\.explorer\(\)")
# Said to whoever has the notebook open, and not true of a page.
OF_NOTEBOOKS = re.compile(r"^This is your own copy: .*?\n\n", re.DOTALL)
# Key of a drill -> its card, as HTML.
Card = Callable[[str], str]


def prose(source: str) -> Cell:
    """A markdown cell."""
    return {"cell_type": "markdown", "metadata": {}, "source": source}


def html(markup: str) -> Cell:
    """A cell of HTML as it stands."""
    return prose(f"```{{raw}} html\n{markup}\n```")


def shown(cell: Cell, part: Part, known: Places, card: Card) -> list[Cell]:
    """The cells that stand on the page for one of the notebook."""
    source = text(cell)
    if cell["cell_type"] == "markdown":
        return [prose(rewritten(OF_NOTEBOOKS.sub("", source), part, known))]
    asked = ASKED.search(source)
    if asked:
        return [html(card(asked["key"]))]
    predicted = PREDICTION.match(source.strip())
    if predicted:
        hint = f" Write {predicted['hint']}." if predicted["hint"] else ""
        return [prose(f":::{{admonition}} Predict\n:class: tip\nCommit to a number before you read on.{hint}\n:::")]
    made = [_output(output) for output in cell["outputs"]]
    pictures = [about for output in cell["outputs"] if (about := output.get("metadata", {}).get(PICTURE))]
    metadata: dict[str, Any] = {"tags": ["hide-input"]} if pictures or is_plumbing(cell) else {}
    if pictures:
        width = {"width": f"{pictures[0]['width']}px"} if "width" in pictures[0] else {}
        metadata["mystnb"] = {"image": {"alt": pictures[0]["alt"], **width}}
    page = [{**cell, "metadata": metadata, "outputs": made}]
    explorer = explorers.shown_by(cell, part.cells)
    if explorer:
        page[0]["outputs"] = [output for output in made if PICTURE not in output.get("data", {})]
        page.append(prose(explorers.block(explorer)))
    return page


def is_plumbing(cell: Cell) -> bool:
    """Whether a code cell gets things ready and shows nothing of the subject: imports alone, or with a call for an
    explorer.

    >>> [is_plumbing({"source": words}) for words in ("import math", "import math\\nx = 2", "import w\\nw.explorer()")]
    [True, False, True]
    """
    lines = [line for line in text(cell).splitlines() if line.strip() and not line.startswith(("#", " ", ")"))]
    rest = [line for line in lines if not line.startswith(IMPORTS)]
    return not rest or (lines[0].startswith(IMPORTS) and all(EXPLORER.fullmatch(line) for line in rest))


def _output(output: dict[str, Any]) -> dict[str, Any]:
    """An output without what only JupyterLab can show."""
    if output["output_type"] == "stream":
        return {**output, "text": "".join(output["text"]).replace(prediction.NOT_YET, "")}
    data = output.get("data", {})
    if PICTURE in data:
        return {**output, "data": {PICTURE: data[PICTURE]}, "metadata": {}}
    return {**output, "metadata": {}}
