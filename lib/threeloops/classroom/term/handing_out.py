"""A drill set for students: the released notebook with the course code in its first cell, and a note to post beside
it.
"""

import json
import re
from pathlib import Path

from threeloops import checks
from threeloops.classroom.questions import questions, source
from threeloops.classroom.term.settings import Set, Term

WHO = "who"  # id of the cell in which a student writes who they are
CODE = re.compile(r'^course = ".*?"', re.MULTILINE)


def known(name: str, root: Path) -> None:
    """Refuse a set that the book does not have."""
    checks.one_of(
        sorted(path.parent.name for path in root.glob("drills/*/*.ipynb") if path.stem == path.parent.name),
        drill_set=name,
    )


def hand_out(term: Term, name: str, handed: Set, *, root: Path) -> list[Path]:
    """Write what students get; returns the files."""
    folder = term.folder / "released" / name
    folder.mkdir(parents=True, exist_ok=True)
    notebook = json.loads((root / "drills" / name / f"{name}.ipynb").read_text(encoding="utf-8"))
    (who,) = [cell for cell in notebook["cells"] if cell["id"] == WHO]
    coded, found = CODE.subn(f"course = {json.dumps(term.course)}", source(who))
    if not found:
        raise ValueError(f"the notebook of {name} has no line for the course code; update the book")
    who["source"] = coded.splitlines(keepends=True)
    file, note = folder / f"{name}.ipynb", folder / f"{name}.txt"
    file.write_text(json.dumps(notebook, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    note.write_text(_note(term, name, handed, len(questions(notebook))), encoding="utf-8")
    return [file, note]


def _note(term: Term, name: str, handed: Set, asked: int) -> str:
    due = f"{handed.due.astimezone(term.zone):%A, %d %B %Y, %H:%M}"
    return (
        f"{handed.title}: {asked} questions, due {due} ({term.zone}).\n"
        f"{term.late.in_words.capitalize()}.\n\n"
        f"1. Put {name}.ipynb into the folder my/drills/{name} of your copy of the book and open it with"
        f" `python3 book.py drills/{name}`.\n"
        "2. In its first code cell write your id, the one by which this course lists you, in place of reader. The"
        f" course code, {term.course}, is filled in; leave it as it is. Your numbers are drawn from both.\n"
        "3. Answer, and run every cell once from top to bottom.\n"
        f"4. Hand in that one file, {name}.ipynb, under this name.\n"
        "5. Later, to have an answer looked at again: add a text cell `Regrade THE QUESTION'S HEADING: your reason` and"
        " hand in again.\n"
    )
