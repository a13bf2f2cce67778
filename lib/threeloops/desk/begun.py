"""How far the reader is: read from their own copies, from the last grades and from the interview room's history.

>>> Begun(run=12, cells=38, right=2, checks=3).words
'12 of 38 cells run, 2 of 3 checks right'
"""

import functools
import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from threeloops import wall_clock
from threeloops.classroom.report import MARKS
from threeloops.desk.parts import source
from threeloops.room.history import History, HistoryError
from threeloops.room.progress import progress

CHECK = re.compile(r"^sheet\.check(_function)?\(", re.MULTILINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Begun:
    """One notebook of the reader's."""

    run: int = 0
    cells: int = 0
    right: int = 0
    checks: int = 0

    @property
    def done(self) -> bool:
        """Whether every check in it was answered rightly, or, where it has none, every cell run."""
        return self.right == self.checks if self.checks else 0 < self.cells == self.run

    @property
    def words(self) -> str:
        if not self.run:
            return ""
        checks = f", {self.right} of {self.checks} checks right" if self.checks else ""
        return f"{self.run} of {self.cells} cells run{checks}"


def begun(copy: Path) -> Begun:
    """How far a notebook is, as it was last saved; nothing of one that is not there or cannot be read."""
    try:
        return _begun(copy, copy.stat().st_mtime_ns)
    except OSError:
        return Begun()


@functools.lru_cache(maxsize=256)
def _begun(copy: Path, _changed: int) -> Begun:
    try:
        cells = json.loads(copy.read_text(encoding="utf-8"))["cells"]
        code = [cell for cell in cells if cell["cell_type"] == "code" and source(cell).strip()]
        checks = [cell for cell in code if CHECK.search(source(cell))]
        return Begun(
            run=sum(cell.get("execution_count") is not None for cell in code),
            cells=len(code),
            right=sum(_is_right(cell) for cell in checks),
            checks=len(checks),
        )
    except (ValueError, KeyError, TypeError):
        return Begun()


def _is_right(cell: dict[str, Any]) -> bool:
    printed = "".join(
        "".join(output["text"]) for output in cell.get("outputs", ()) if output.get("output_type") == "stream"
    )
    return any(line.startswith("Right.") for line in printed.splitlines())


def marks(root: Path) -> dict[str, str]:
    """Drill set -> its last mark, as `book.py grade` has left it: "8 / 13"."""
    try:
        found = json.loads((root / "my" / "graded" / MARKS).read_text(encoding="utf-8"))
        return {name: f"{mark['points']:g} / {mark['maximum']:g}" for name, mark in found.items()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return {}


def room_words(history: Path) -> str:
    """What waits in the interview room, in a sentence."""
    try:
        report = progress(History(history), now=wall_clock.now())
    except HistoryError:
        return "Its history cannot be read at the moment."
    if not report.topics:
        return "Nothing answered yet. A sprint asks ten questions against the clock; your first is your placement."
    due = "1 question is due" if report.due_now == 1 else f"{report.due_now} questions are due"
    return f"{due} now, {report.due_week} within a week."


def opened(root: Path) -> frozenset[str]:
    """The notebooks that the reader has had before them, below my/."""
    return frozenset(path for path in _here(root).get("opened", ()) if isinstance(path, str))


def _here(root: Path) -> dict[str, Any]:
    try:
        found = json.loads((root / "my" / "lab" / "here.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def last_place(root: Path) -> str:
    """The notebook that the reader had before them last, below my/; empty if that is not known or it is gone."""
    path = str(_here(root).get("path", ""))
    inside = ".." not in Path(path).parts and not Path(path).is_absolute()
    return path if inside and (root / "my" / path).is_file() else ""
