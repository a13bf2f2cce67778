"""What a chapter's parts come to, a line each: words of the short way and of all, pictures, cells and lines that are
too long, minutes that the card says. The limits are held by tests/policy/test_notebooks.py.

    python tests/chapters/parts_in_figures.py
"""

import ast
import json
import re
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
STOP = "**You can stop here.**"
LONGEST_LINE = 95
LONGEST_CELL = 15  # lines beside imports
WORDS_A_MINUTE, LINES_A_MINUTE = 80.0, 10.0  # of text whose numbers are followed, and of code
CELL_MINUTES, ANSWER_MINUTES = 0.25, 3.0  # to run a cell and look at it; to answer a question

Cell = dict[str, Any]


def source(cell: Cell) -> str:
    """The text of a cell."""
    return "".join(cell["source"])


def parts(path: Path) -> dict[str, list[Cell]]:
    """Heading of a part -> its cells."""
    found: dict[str, list[Cell]] = {}
    for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
        if cell["cell_type"] == "markdown" and source(cell).startswith("## "):
            found[source(cell).splitlines()[0]] = []
        if found:
            found[next(reversed(found))].append(cell)
    return found


def words(cells: list[Cell]) -> int:
    """Words of prose, captions in code not counted."""
    return sum(len(source(cell).split()) for cell in cells if cell["cell_type"] == "markdown")


def short_way(cells: list[Cell]) -> list[Cell]:
    """The cells up to the line that says one may stop."""
    stops = [place for place, cell in enumerate(cells) if STOP in source(cell)]
    return cells[: stops[0] + 1] if stops else []


def minutes(cells: list[Cell]) -> float:
    """A reader's time, reckoned: reading, running, answering.

    The rates come from one newcomer, who read the short ways of all 22 parts of chapters 1 and 2 in one sitting and
    said for each how long it takes: in the median the reckoning is what that reader said, two in three lie within an
    eighth of it, and the farthest is three tenths off.
    """
    code = [cell for cell in cells if cell["cell_type"] == "code"]
    asked = sum("sheet.ask(" in source(cell) or "prediction = ..." in source(cell) for cell in code)
    read = words(cells) / WORDS_A_MINUTE + sum(lines_to_read(source(cell)) for cell in code) / LINES_A_MINUTE
    return read + CELL_MINUTES * len(code) + ANSWER_MINUTES * asked


def pictures(cells: list[Cell]) -> int:
    """Drawn pictures that stand in the committed part."""
    return sum("image/png" in output.get("data", {}) for cell in cells for output in cell.get("outputs", []))


def lines_to_read(code: str) -> int:
    """Lines of a cell without its imports: those are a list of rooms, read at a glance."""
    tree = ast.parse(code)
    imports = sum(
        (node.end_lineno or node.lineno) - node.lineno + 1
        for node in tree.body
        if isinstance(node, ast.Import | ast.ImportFrom)
    )
    return code.count("\n") + 1 - imports


def told(path: Path) -> list[str]:
    """A chapter's lines."""
    lines = [f"{path.stem}: {sum(words(cells) for cells in parts(path).values()):,} words"]
    for heading, cells in parts(path).items():
        code = [cell for cell in cells if cell["cell_type"] == "code"]
        said = re.search(r"· (\d+) min", heading)
        short = short_way(cells)
        lines.append(
            f"  {heading.removeprefix('## ').partition(' · ')[0]:<42} {words(cells):>6,} words,"
            f" {words(short):>5,} on the short way in {minutes(short):>3.0f} min; all {minutes(cells):>3.0f} min,"
            f" the card says {said[1] if said else '–':>3}; {pictures(cells):>2} pictures;"
            f" cells over {LONGEST_CELL} lines: {sum(lines_to_read(source(cell)) > LONGEST_CELL for cell in code)},"
            f" lines over {LONGEST_LINE}:"
            f" {sum(len(line) > LONGEST_LINE for cell in code for line in source(cell).splitlines())}"
        )
    return lines


if __name__ == "__main__":
    for chapter in sorted((ROOT / "chapters").glob("*.ipynb")):
        print("\n".join(told(chapter)))
