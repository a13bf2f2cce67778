"""The student's own cells, set into the released notebook.

A submission is a file that anybody may have written with any tool. Only the sources of its answer cells, and of code
cells that the student added, are taken; everything else, every test, point and mark, comes from the release. Deleted,
edited, doubled or relabelled cells then cannot matter.
"""

import copy
import json
import re
from collections.abc import Iterator
from typing import Any

from threeloops.classroom.questions import Notebook, mark, own_mark, source

LARGEST_FILE_BYTES = 20_000_000
LONGEST_CELL = 100_000  # characters
MOST_ADDED_CELLS = 200
MOST_CELLS = 5_000
MOST_BRACKETS = 1_000_000  # each object takes some hundred bytes once it is read, however few it takes in the file


class UnparsableError(ValueError):
    """Not a notebook; the message says what is wrong with it."""


def parsed(content: bytes) -> Notebook:
    """The notebook in a file's bytes.

    Raises:   UnparsableError, in one sentence, for whatever is not a notebook of format 4
    """
    if len(content) > LARGEST_FILE_BYTES:
        raise UnparsableError(
            f"the file is larger than {LARGEST_FILE_BYTES:,} bytes; clear the outputs and hand it in again"
        )
    if content.count(b"{") + content.count(b"[") > MOST_BRACKETS:
        raise UnparsableError(
            f"the file holds more than {MOST_BRACKETS:,} lists and objects; clear the outputs and hand it in again"
        )
    try:
        notebook = json.loads(content)
    except (ValueError, RecursionError):
        raise UnparsableError(
            "the file is not JSON, so it is no notebook (cut off on its way, or merged with conflict marks?)"
        ) from None
    if not isinstance(notebook, dict) or not isinstance(notebook.get("cells"), list):
        raise UnparsableError("the file holds no list of cells, so it is no notebook of format 4")
    if len(notebook["cells"]) > MOST_CELLS:
        raise UnparsableError(f"the notebook has {len(notebook['cells']):,} cells; at most {MOST_CELLS:,} are read")
    if notebook.get("nbformat") != 4:
        raise UnparsableError(
            f"the notebook's format is {str(notebook.get('nbformat'))[:20]}, not 4; open and save it in JupyterLab"
        )
    return notebook


def _readable(notebook: Notebook) -> Iterator[dict[str, Any]]:
    """The cells that can be read at all."""
    for cell in notebook["cells"]:
        if (
            isinstance(cell, dict)
            and isinstance(cell.get("source", ""), str | list)
            and len(source(cell)) <= LONGEST_CELL
        ):
            yield cell


def is_answer(cell: dict[str, Any]) -> bool:
    """May the student write in this cell of the release?"""
    return bool(mark(cell, "solution") or own_mark(cell, "written") or own_mark(cell, "yours"))


class _Places:
    """Where in the release a submitted cell belongs: by its grade_id, or by its cell id where a tool has dropped or
    bent the metadata. Looked up, because a submission may hold thousands of cells.
    """

    def __init__(self, released: list[dict[str, Any]]) -> None:
        self._by_grade_id: dict[str, int] = {}
        self._by_id: dict[str, int] = {}
        for number, cell in enumerate(released):
            if mark(cell, "grade_id") is not None:
                self._by_grade_id.setdefault(mark(cell, "grade_id"), number)
            self._by_id.setdefault(cell["id"], number)

    def of(self, cell: dict[str, Any]) -> int | None:
        grade_id = mark(cell, "grade_id")
        if not isinstance(grade_id, str):
            return self._by_id.get(cell["id"]) if isinstance(cell.get("id"), str) else None
        return self._by_grade_id.get(grade_id)


def _chosen(released: dict[str, Any], candidates: list[dict[str, Any]]) -> str:
    """The source to take: of doubled cells the last one in which something was written."""
    sources = [source(cell) for cell in candidates if cell.get("cell_type") == released["cell_type"]]
    changed = [text for text in sources if text.strip() != source(released).strip()]
    return changed[-1] if changed else source(released)


def disarmed(prose: str) -> str:
    """A student's prose without HTML and links: a teacher's page shows it, and must run nothing from it.

    >>> disarmed("a <b>bold</b> [claim](javascript:alert(1)), as https://a.b/ says")
    'a &lt;b>bold&lt;/b> [claim] (javascript:alert(1)), as https&#58;//a.b/ says'
    """
    return re.sub(r":(?=//)", "&#58;", re.sub(r"\](?=[(:\[])", "] ", prose.replace("<", "&lt;")))


def transplanted(release: Notebook, submission: Notebook) -> dict[str, Any]:
    """The release with the student's answers in it, and the student's added code cells where they stood."""
    result: dict[str, Any] = copy.deepcopy(dict(release))
    cells = list(_readable(submission))
    place: dict[int, list[dict[str, Any]]] = {number: [] for number in range(-1, len(result["cells"]))}
    forms: dict[int, list[dict[str, Any]]] = {number: [] for number in range(len(result["cells"]))}
    places, latest = _Places(result["cells"]), -1
    for cell in cells:
        number = places.of(cell)
        if number is not None:
            forms[number].append(cell)
            latest = number
        elif cell.get("cell_type") == "code" and mark(cell, "grade_id") is None and source(cell).strip():
            place[latest].append(cell)
    for number, released in enumerate(result["cells"]):
        released["source"] = _chosen(released, forms[number]) if is_answer(released) else source(released)
        if is_answer(released) and released["cell_type"] == "markdown":
            released["source"] = disarmed(released["source"])
    added = iter(range(MOST_ADDED_CELLS))
    merged = [_added(cell, number) for cell, number in zip(place[-1], added, strict=False)]
    for number, released in enumerate(result["cells"]):
        merged.append(released)
        merged += [_added(cell, count) for cell, count in zip(place[number], added, strict=False)]
    result["cells"] = merged
    return result


def _added(cell: dict[str, Any], number: int) -> dict[str, Any]:
    """A student's own code cell, stripped to its source."""
    return {
        "cell_type": "code",
        "execution_count": None,
        "id": f"added-{number}",
        "metadata": {},
        "outputs": [],
        "source": source(cell),
    }
