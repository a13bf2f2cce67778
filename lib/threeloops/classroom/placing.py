"""Where in the release a submitted cell belongs.

By its grade id; where a tool has dropped that, by the cell's id (which Colab keeps in the metadata), by this book's own
mark, or because it says what a cell of the release says. An answer that is still not found is looked for by its name:
every answer is a variable or a function that the question names. An explanation has no name, so it is looked for where
it should stand. Nothing is lost by looking: code that is found nowhere stays where it was, as an added cell.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from threeloops.classroom.questions import bound, is_python, is_run, mark, own_mark, source

Cell = dict[str, Any]
ELSEWHERE = "# Answered in another cell, above."
NOBODY = 'student = ""\ncourse = ""'  # where the cell that says whose it is is gone


@dataclass(slots=True)
class Placed:
    """A submission's texts, by the release's cells."""

    answers: dict[int, str] = field(default_factory=dict)
    before: dict[int, list[str]] = field(default_factory=dict)  # more code of an answer, that runs before it
    after: dict[int, list[str]] = field(default_factory=dict)  # added code, behind a cell; -1 is the top
    notes: list[str] = field(default_factory=list)


@dataclass(slots=True)
class _Written:
    """A submitted cell, or what is left to place of it."""

    text: str
    kind: Any  # of cell
    at: int  # the cell of the release that it stands behind, or in
    own: bool  # no cell of the release: the student has added it, or a tool has dropped what told
    names: frozenset[str]
    taken: bool = False


def is_answer(cell: Cell) -> bool:
    """May the student write in this cell of the release?"""
    return bool(mark(cell, "solution") or own_mark(cell, "written") or own_mark(cell, "yours"))


def _named(released: Cell) -> frozenset[str]:
    """The names that a cell of the release asks for, its placeholders meant."""
    return bound(source(released).replace("...", "0")) if released["cell_type"] == "code" else frozenset()


def _plain(text: str) -> str:
    return "\n".join(line.rstrip() for line in text.strip().splitlines())


class _Places:
    """Looked up, because a submission may hold thousands of cells."""

    def __init__(self, released: Sequence[Cell]) -> None:
        self._by_grade_id: dict[str, int] = {}
        self._by_id: dict[str, int] = {}
        self._by_mark: dict[str, int] = {}
        self._by_text: dict[tuple[str, str], int] = {}
        self._yours = [(number, _named(cell)) for number, cell in enumerate(released) if own_mark(cell, "yours")]
        for number, cell in enumerate(released):
            if mark(cell, "grade_id") is not None:
                self._by_grade_id.setdefault(mark(cell, "grade_id"), number)
            if own_mark(cell, "written"):
                self._by_mark.setdefault(own_mark(cell, "written"), number)
            self._by_id.setdefault(cell["id"], number)
            self._by_text.setdefault((cell["cell_type"], _plain(source(cell))), number)
        self.marked = 0  # cells that a tool has left as they were

    def of(self, cell: Cell) -> int | None:
        grade_id = mark(cell, "grade_id")
        if isinstance(grade_id, str):
            self.marked += grade_id in self._by_grade_id
            return self._by_grade_id.get(grade_id)
        metadata = cell.get("metadata")
        kept = metadata.get("id") if isinstance(metadata, dict) else None  # Colab's place for it
        for key, places in (
            (cell.get("id"), self._by_id),
            (kept, self._by_id),
            (own_mark(cell, "written"), self._by_mark),
        ):
            if isinstance(key, str) and key in places:
                self.marked += 1
                return places[key]
        text = source(cell)
        if own_mark(cell, "yours"):
            names = bound(text.replace("...", "0"))
            for number, asked in self._yours:
                if asked & names:
                    self.marked += 1
                    return number
        return self._by_text.get((str(cell.get("cell_type")), _plain(text))) if text.strip() else None


def placed(released: Sequence[Cell], cells: Sequence[Cell]) -> Placed:
    """Every answer of a submission with its place, and all other code where it stood."""
    places, latest = _Places(released), -1
    forms: dict[int, list[_Written]] = {}
    written: list[_Written] = []
    for cell in cells:
        number, text = places.of(cell), source(cell)
        one = _Written(
            text=text,
            kind=cell.get("cell_type"),
            at=latest if number is None else number,
            own=number is None,
            names=bound(text),
        )
        written.append(one)
        if number is not None:
            latest = number
            forms.setdefault(number, []).append(one)
    found = Placed()
    untold: dict[str, list[str]] = {
        "lost": [],
        "elsewhere": [],
        "retyped": [],
        "prose": [],
        "nameless": [],
        "broken": [],
        "silent": [],
    }
    for number, cell in enumerate(released):
        if is_answer(cell):
            _answer(found, number, released, forms.get(number, []), written, untold)
    for one in written:
        if one.own and not one.taken and one.kind == "code" and one.text.strip():
            found.after.setdefault(one.at, []).append(one.text)
    found.notes += _told(untold, marked=places.marked > 0)
    return found


def _answer(
    found: Placed,
    number: int,
    released: Sequence[Cell],
    forms: Sequence[_Written],
    written: Sequence[_Written],
    untold: dict[str, list[str]],
) -> None:
    """Find one answer."""
    cell = released[number]
    changed = [one for one in forms if _plain(one.text) not in ("", _plain(source(cell)))]
    if cell["cell_type"] != "code":
        _explained(found, number, released, changed, written, untold)
        return
    code = [one for one in changed if one.kind == "code" or is_python(one.text)]
    if len(code) < len(changed) or any(one.kind != "code" for one in code):
        untold["prose" if len(code) < len(changed) else "retyped"].append(_called(cell))
    if code:
        _combined(found, number, code, _named(cell))
        if not is_run(found.answers[number]):
            untold["broken"].append(_called(cell))
        elif all(line.lstrip().startswith("#") for line in found.answers[number].splitlines() if line.strip()):
            untold["silent"].append(_called(cell))
    if any(re.search(rf"\b{re.escape(name)}\b", one.text) for one in code for name in _named(cell)):
        return
    if not _elsewhere(found, number, released, written, untold, has_own=bool(code)) and not forms:
        untold["lost"].append(_called(cell))
        if {"student", "course"} <= _named(cell):
            found.answers[number] = NOBODY
    elif code and _called(cell) not in untold["elsewhere"]:
        untold["nameless"].append(_called(cell))


def _combined(found: Placed, number: int, code: Sequence[_Written], names: frozenset[str]) -> None:
    """One answer out of the cells that say they are it: of doubled ones the last counts, what was split is put
    together again.
    """
    texts = [one.text for one in code]
    if len(texts) > 1 and not all(map(is_python, texts)) and is_python("\n".join(texts)):
        texts = ["\n".join(texts)]
    counts = max((n for n, text in enumerate(texts) if names & bound(text)), default=len(texts) - 1)
    found.answers[number] = texts[counts]
    found.before[number] = texts[:counts]
    found.after.setdefault(number, []).extend(texts[counts + 1 :])


def _elsewhere(
    found: Placed,
    number: int,
    released: Sequence[Cell],
    written: Sequence[_Written],
    untold: dict[str, list[str]],
    *,
    has_own: bool,
) -> bool:
    """Look for an answer in every other cell, by its name; the last one that gives it a value is meant."""
    names, cell = _named(released[number]), released[number]
    holders = [
        one
        for one in written
        if names & one.names
        and (one.own or _plain(one.text) != _plain(source(released[one.at])))
        and (one.kind == "code" or is_python(one.text))
    ]
    holder = holders[-1] if holders else None
    if holder is None:
        return False
    if holder.own and not holder.taken:
        _put_together(holder, written)
    ran_before = holder.own and holder.at < number and holder.kind == "code" and not _next_to(holder, number)
    if ran_before or holder.taken:
        if not has_own:
            found.answers[number] = ELSEWHERE
    elif has_own:
        found.after.setdefault(number, []).append(holder.text)
        holder.taken = holder.own
    else:
        found.answers[number] = holder.text
        holder.taken = holder.own
    if holder.own and holder.taken:
        holder.at = number
    untold["elsewhere"].append(_called(cell))
    return True


def _put_together(holder: _Written, written: Sequence[_Written]) -> None:
    """A cell with those behind it that are no Python without it: the student has split it."""
    here = next(n for n, one in enumerate(written) if one is holder)
    for one in written[here + 1 :]:
        whole = f"{holder.text}\n{one.text}"
        if not one.own or one.kind != "code" or one.taken or is_python(one.text) or not is_python(whole):
            return
        holder.text, one.taken = whole, True


def _next_to(one: _Written, number: int) -> bool:
    return one.at in (number - 1, number)


def _explained(
    found: Placed,
    number: int,
    released: Sequence[Cell],
    changed: Sequence[_Written],
    written: Sequence[_Written],
    untold: dict[str, list[str]],
) -> None:
    """An explanation: what its cell says, otherwise the prose around its place, or below the question in its cell."""
    if changed:
        found.answers[number] = changed[-1].text
        return
    behind = max((one.at for one in written if not one.own and one.at < number), default=-1)
    own = [one for one in written if one.own and not one.taken and one.at in (behind, number) and _is_prose(one)]
    question = _plain(source(released[number - 1])) if number else ""
    below = [
        _plain(one.text).removeprefix(question)
        for one in written
        if not one.own and one.at == number - 1 and question and _plain(one.text).startswith(question)
    ]
    texts = [
        text.strip() for text in (*below, *(_plain(one.text).removeprefix(question) for one in own)) if text.strip()
    ]
    for one in own:
        one.taken = True
    if texts:
        found.answers[number] = "\n\n".join(texts)
        untold["elsewhere"].append(_called(released[number]))
    elif not any(one.at == number and not one.own for one in written):
        untold["lost"].append(_called(released[number]))


def _is_prose(one: _Written) -> bool:
    """Text, or words in a cell of code; a cell for the shell is none."""
    return one.kind != "code" or not (is_python(one.text) or one.text.lstrip().startswith(("!", "%")))


def _called(cell: Cell) -> str:
    """How a note refers to an answer."""
    name = mark(cell, "grade_id") or own_mark(cell, "written") or cell["id"]
    return str(name).removesuffix("-answer")


def _told(untold: dict[str, list[str]], *, marked: bool) -> list[str]:
    """A sentence for each way in which an answer was not where it belongs."""
    how = (
        "the cells' ids and marks are gone; answers found by their names and places"
        if not marked
        else "found in other cells than their own"
    )
    sentences = {
        how: untold["elsewhere"],
        "read as code, though the cell's type was changed": untold["retyped"],
        "no code, for the cell was turned into text": untold["prose"],
        "the name that the question asks for does not stand in the answer's cell": untold["nameless"],
        "Python cannot read the answer's cell": untold["broken"],
        "nothing but a comment stands in the answer's cell": untold["silent"],
        "not in the notebook, nor found in another cell": untold["lost"],
    }
    return [f"{sentence}: {', '.join(names)}" for sentence, names in sentences.items() if names]
