"""Written explanations, which nothing grades: all of a class on one page beside their rubric, and a list in which a
teacher writes the points. What is in the list counts with the rest of the set; an explanation without points earns
none yet, and waits.

The list is read before it is written anew, so that filling it in and giving the command again is all there is to do.
Points say of which text they are: where a student has handed in another one since, they stand in the list with a
question mark, and count until that is taken away or others are written.
"""

import hashlib
import html
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from threeloops import contents
from threeloops.classroom.course import write_whole
from threeloops.classroom.questions import mark as graded_mark
from threeloops.classroom.questions import own_mark, source
from threeloops.classroom.term import decisions, lists
from threeloops.classroom.term.collecting import graded_as
from threeloops.classroom.term.decisions import Decision
from threeloops.classroom.term.settings import Term
from threeloops.markup import Content, each, element, lines, page

COLUMNS = ("student", "explanation", "points", "words", "version", "text")
OTHER_TEXT = "?"  # behind points that are for another text than the one beside them
VERSION = 10  # characters of a hash: of one student's texts no two have the same; a letter before them keeps 12345e6789
LONGEST_SHOWN = 30_000  # characters of a text in the list: a spreadsheet breaks a cell of more; the page has it whole
STYLE = """
body { font: 11pt/1.45 system-ui, sans-serif; max-width: 46em; margin: 0 auto; padding: 1.5em; color: #111; background: #fff }
h1 { font-size: 17pt } h2 { font-size: 13pt; margin-top: 2em } h3 { font-size: 11pt; margin: 1.4em 0 .2em }
.text { white-space: pre-wrap; border-left: 3px solid #999; padding-left: .8em; margin: .2em 0 } .asked { white-space: pre-wrap }
""".strip()  # noqa: E501


@dataclass(frozen=True, slots=True, kw_only=True)
class Explained:
    """What one student wrote."""

    student: str
    explanation: str  # which one of the set
    text: str

    @property
    def version(self) -> str:
        """What tells this text from the same student's others."""
        return f"v{hashlib.sha256(self.text.encode()).hexdigest()[:VERSION]}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Marked:
    """One student's explanations of a set, as far as there are points for them."""

    points: float
    waiting: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Done:
    """What one run of `explanations` has found."""

    list: Path
    page: Path
    written: int
    with_points: int
    taken: int  # lines of the list that said something new
    changed: tuple[str, ...]  # who has another text now than the one that has points


def asked(name: str) -> dict[str, tuple[str, tuple[str, ...]]]:
    """(question, points of its rubric) of each explanation of a set.

    >>> ((question, rubric),) = asked("kv_cache").values()
    >>> question[:35], len(rubric)
    ('A team serves a model with 8 KV hea', 3)
    """
    cells, found = decisions.released(name)["cells"], {}
    for number, cell in enumerate(cells):
        if called := own_mark(cell, "written"):
            before = next((source(one) for one in reversed(cells[:number]) if one["cell_type"] == "markdown"), "")
            after = next((source(one) for one in cells[number + 1 :] if one["cell_type"] == "markdown"), "")
            rubric = tuple(re.findall(r"^\d+\. +(.+?)\s*$", after, re.MULTILINE))
            found[str(called)] = (re.sub(r"^#+ .*\n+", "", before).strip(), rubric)
    return found


def maximum(term: Term, name: str) -> float:
    """Points that the explanations of a set add to it."""
    return sum(maxima(term, name).values())


def maxima(term: Term, name: str) -> dict[str, float]:
    """What each explanation of a set is worth; none where nothing was said."""
    worth = term.sets[name].explanation if name in term.sets else 0.0
    return dict.fromkeys(asked(name), worth) if worth else {}


def written(term: Term, name: str, *, root: Path) -> Iterator[Explained]:
    """What students wrote, in the notebooks that were judged."""
    empty = {called: _text(cell) for cell in decisions.released(name)["cells"] if (called := own_mark(cell, "written"))}
    for path in sorted((term.grading(root).work / "autograded").glob(f"*/{name}/{name}.ipynb")):
        for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
            called, text = own_mark(cell, "written"), _text(cell)
            if called in empty and text and text != empty[called]:
                yield Explained(student=path.parent.parent.name, explanation=str(called), text=text)


def _text(cell: Mapping[str, object]) -> str:
    """As it was written: in a judged notebook, prose is kept so that nothing of it acts on a page."""
    return html.unescape(source(cell)).strip().encode(errors="replace").decode()


def marked(term: Term, name: str, *, root: Path) -> dict[str, Marked]:
    """Each student's points for explanations; none where the set gives none."""
    worth = term.sets[name].explanation if name in term.sets else 0.0
    if not worth:
        return {}
    decided = decisions.of_explanations(term, name)
    wrote: dict[str, set[str]] = {student: set() for student in decided}
    for one in written(term, name, root=root):
        wrote.setdefault(one.student, set()).add(one.explanation)
    return {
        student: Marked(
            points=sum(decisions.points(one) for one in decided.get(student, {}).values()),
            waiting=len(explanations - {*decided.get(student, {})}),
        )
        for student, explanations in wrote.items()
    }


def told(term: Term, name: str, student: str) -> list[str]:
    """What a student's page says of explanations that have points."""
    worth = term.sets[name].explanation if name in term.sets else 0.0
    own = decisions.of_explanations(term, name).get(student, {}) if worth else {}
    return [
        f"Your explanation ({called}): {decisions.points(one):g} of {worth:g} points. {one.reason}".rstrip()
        for called, one in own.items()
    ]


def give(term: Term, name: str, student: str, called: str, *, points: str, words: str) -> None:
    """Give points for one explanation, of a group's notebook to whichever member asked; the list is written anew.

    Raises:   ValueError when the student wrote none, or for points that it cannot have
    """
    root, student = contents.book_root(), graded_as(term, name).get(student, student)
    look(term, name, root=root)
    own = [one for one in written(term, name, root=root) if (one.student, one.explanation) == (student, called)]
    if not own:
        raise ValueError(f"{student} has written no {called}, so there is nothing to give points for")
    given = Decision(
        set=name,
        student=student,
        what="explanation",
        points=points,
        reason=words,
        question=called,
        version=own[0].version,
    )
    _fits([given], term.handed_out(name).explanation)
    others = [one for one in _given(term, name) if (one.student, one.question) != (student, called)]
    decisions.keep_explanations(term, name, [*others, given])
    (term.folder / "explanations" / f"{name}.csv").unlink()
    look(term, name, root=root)


def look(term: Term, name: str, *, root: Path, worth: float | None = None) -> Done:
    """Take the points out of the list, if it is there, and write it and the page anew.

    Raises:   ValueError when the set was not released or graded, asks for no explanation or says not what one is
              worth, when nbgrader marks them, or the list holds what is no number of points
    """
    chosen, questions = term.handed_out(name), asked(name)
    if not questions:
        raise ValueError(f"{name} asks for no explanation, so there is nothing to give points for")
    worth = chosen.explanation if worth is None else worth
    if not worth:
        raise ValueError(
            f"nothing says what an explanation of {name} is worth; --points 3 gives its rubric three points"
        )
    term.grades(name)
    _not_in_nbgrader(term, name, root)
    wrote = {(one.student, one.explanation): one for one in written(term, name, root=root)}
    path = term.folder / "explanations" / f"{name}.csv"
    before = {(one.student, one.question): one for one in _given(term, name)}
    now = _of_list(path, name, worth, before, wrote) if path.exists() else before
    _fits(now.values(), worth)
    if now != before:
        decisions.keep_explanations(term, name, list(now.values()))
    _write(path, wrote, now)
    shown = path.with_suffix(".html")
    write_whole(shown, _page(name, questions, worth, wrote, now))
    return Done(
        list=path,
        page=shown,
        written=len(wrote),
        with_points=sum(key in now for key in wrote),
        taken=sum(now.get(key) != before.get(key) for key in {*now, *before}),
        changed=tuple(sorted(key[0] for key, one in now.items() if key in wrote and wrote[key].version != one.version)),
    )


def _given(term: Term, name: str) -> list[Decision]:
    return [one for own in decisions.of_explanations(term, name).values() for one in own.values()]


def _not_in_nbgrader(term: Term, name: str, root: Path) -> None:
    release = json.loads(term.grading(root).release(name).read_text(encoding="utf-8"))
    if any(own_mark(cell, "written") and graded_mark(cell, "grade") for cell in release["cells"]):
        raise ValueError(
            f"explanations of {name} have points in nbgrader already (WrittenAnswers.points in nbgrader_config.py):"
            " `nbgrader formgrader` gives them"
        )


def _of_list(
    path: Path,
    name: str,
    worth: float,
    before: Mapping[tuple[str, str], Decision],
    wrote: Mapping[tuple[str, str], Explained],
) -> dict[tuple[str, str], Decision]:
    """What the list says: points for whoever has some there, none for whoever has none; the rest is as it was."""
    (headings, numbered), found = lists.rows(path), dict(before)
    lost = next((one for one in COLUMNS[:5] if one not in map(lists.heading, headings)), None)
    if lost:
        raise ValueError(f"{path} has no column {lost!r}; it has {', '.join(headings)}")
    for line, row in numbered:
        key = (row["student"], row["explanation"])
        if key not in wrote and key not in before:
            raise ValueError(f"{path}, line {line}: {row['student']!r} has written no {row['explanation']!r}")
        if row["points"].endswith(OTHER_TEXT) and key in before:
            if (row["points"].rstrip(OTHER_TEXT), row["words"]) != (before[key].points, before[key].reason):
                raise ValueError(
                    f"{path}, line {line}: {key[0]} has other points or words; take the question mark away"
                )
            continue
        if not row["points"]:
            if row["words"]:
                raise ValueError(f"{path}, line {line}: words for {key[0]}, and no points; 0 is written as 0")
            found.pop(key, None)
            continue
        given = Decision(
            set=name,
            student=key[0],
            what="explanation",
            points=row["points"].replace(",", "."),
            reason=row["words"],
            question=key[1],
            version=row["version"],
        )
        try:
            _fits([given], worth)
        except ValueError as error:
            raise ValueError(f"{path}, line {line}: {error}") from None
        found[key] = given
    return found


def _fits(given: Iterable[Decision], worth: float) -> None:
    for one in given:
        if decisions.points(one) > worth:
            raise ValueError(
                f"points={one.points} of {one.student} is more than an explanation is worth, {worth:g}; write at most"
                " that, or say --points again"
            )
        if len(one.reason) > decisions.LONGEST:
            raise ValueError(f"words for {one.student} have more than {decisions.LONGEST:,} characters")


def _write(path: Path, wrote: Mapping[tuple[str, str], Explained], now: Mapping[tuple[str, str], Decision]) -> None:
    rows = []
    for key, one in sorted(wrote.items()):
        given = now.get(key)
        points, words = (given.points, given.reason) if given else ("", "")
        points += OTHER_TEXT * bool(given and given.version != one.version)
        rows.append([*key, points, words, one.version, one.text[:LONGEST_SHOWN]])
    lists.write(path, COLUMNS, rows, marked=True)


def _page(
    name: str,
    questions: Mapping[str, tuple[str, tuple[str, ...]]],
    worth: float,
    wrote: Mapping[tuple[str, str], Explained],
    now: Mapping[tuple[str, str], Decision],
) -> str:
    rows: list[Content] = [element("h1", f"{name}: explanations")]
    for called, (question, rubric) in questions.items():
        rows += [element("h2", f"{called}, {worth:g} points"), element("p", question, class_="asked")]
        rows.append(element("ol", each("li", rubric)))
        own = [one for one in wrote.values() if one.explanation == called]
        for one in sorted(own, key=lambda one: one.version):  # in no order of names
            given = now.get((one.student, called))
            points = f"{decisions.points(given):g} points" if given else "no points yet"
            rows += [element("h3", f"{one.student}: {points}"), element("p", one.text, class_="text")]
    return page(f"{name}: explanations", lines(rows), STYLE)
