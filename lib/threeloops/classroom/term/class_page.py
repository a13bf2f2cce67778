"""What a class gets wrong: question by question, which mistake how often, and which part of the book to teach again.
It names no student.
"""

import csv
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from threeloops import contents, units
from threeloops.classroom.course import write_whole
from threeloops.classroom.one_submission import IN_A_GROUP
from threeloops.classroom.term.settings import Term
from threeloops.drills.engine.bank import DRILLS
from threeloops.drills.engine.function_bank import FUNCTIONS
from threeloops.drills.engine.functions import Mistake as Mistaken
from threeloops.markup import Content, each, element, lines, page, table, text

STYLE = """
body { font: 11pt/1.45 system-ui, sans-serif; max-width: 52em; margin: 0 auto; padding: 1.5em; color: #111; background: #fff }
h1 { font-size: 17pt } h2 { font-size: 12.5pt; margin-bottom: .1em } ul { margin-top: .2em }
table { border-collapse: collapse } th, td { text-align: left; padding: .25em 1em .25em 0; border-bottom: 1px solid #999 }
td.number, th.number { text-align: right } .taught { color: #333 }
""".strip()  # noqa: E501


@dataclass(frozen=True, slots=True, kw_only=True)
class Mistake:
    """One slip, and how many made it."""

    story: str
    students: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One question of the set, as the class answered it."""

    grade_id: str
    title: str
    answered: int
    right: int
    unanswered: int
    lost: float  # points, of the whole class
    mistakes: tuple[Mistake, ...]
    unnamed: int  # wrong, and no known mistake fits
    taught: str  # "chapter 3, part 3, KV cache; `python3 book.py 3.3` opens it"


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """A class and a set."""

    name: str
    students: int
    graded: int
    lines: tuple[Line, ...]  # what lost most points first

    @property
    def again(self) -> list[tuple[str, float]]:
        """(part of the book, points that the class lost on what it teaches), the most first."""
        parts = Counter[str]()
        for line in self.lines:
            parts[line.taught] += line.lost  # type: ignore[assignment]
        return [(part, lost) for part, lost in parts.most_common() if lost]


def taught(drill: str, root: Path) -> str:
    """Where the book teaches what a drill asks."""
    known = DRILLS[drill]
    return contents.taught(known.section, known.loop, root)[0]


def read(term: Term, name: str, *, root: Path) -> Page:
    """The page of a graded set.

    Raises:   ValueError when nobody has a graded notebook
    """
    with term.grades(name).open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    answers = [row for row in rows if row["question"] and row["outcome"] != "held"]  # what waits for a person is open
    if not answers:
        raise ValueError(f"nobody has a graded notebook of {name}, so there is nothing to say of the class")
    order = list(dict.fromkeys(row["question"] for row in answers))
    lines = [_line(one, [row for row in answers if row["question"] == one], root) for one in order]
    return Page(
        name=name,
        students=len({row["student"] for row in rows if row["status"] != IN_A_GROUP}),
        graded=len({row["student"] for row in answers}),
        lines=tuple(sorted(lines, key=lambda line: -line.lost)),
    )


def _line(grade_id: str, rows: Sequence[dict[str, str]], root: Path) -> Line:
    drill = rows[0]["drill"]
    stories = {slip.key: slip.story for slip in (*DRILLS[drill].slips, *_of_function(drill))}
    made = Counter(slip for row in rows for slip in row["slips"].split())
    wrong = [row for row in rows if float(row["points"]) < float(row["maximum"]) and row["outcome"] != "unanswered"]
    unanswered = sum(row["outcome"] == "unanswered" for row in rows)
    return Line(
        grade_id=grade_id,
        title=DRILLS[drill].title,
        answered=len(rows) - unanswered,
        right=len(rows) - unanswered - len(wrong),
        unanswered=unanswered,
        lost=sum(float(row["maximum"]) - float(row["points"]) for row in rows),
        mistakes=tuple(
            Mistake(story=stories.get(slip, slip), students=students) for slip, students in made.most_common()
        ),
        unnamed=sum(not row["slips"] for row in wrong),
        taught=taught(drill, root),
    )


def _of_function(drill: str) -> Sequence[Mistaken]:
    """The slips of a drill's function."""
    return FUNCTIONS[drill].slips if drill in FUNCTIONS else ()


def as_text(of: Page) -> str:
    """The page for a terminal."""
    rows = [_head(of), "", "Teach again:"]
    rows += [f"  {lost:g} points  {part}" for part, lost in of.again] or ["  nothing: the class has every point"]
    for line in (line for line in of.lines if line.lost):
        rows += ["", f"{line.grade_id}  {line.title}: {_result(line)}"]
        rows += [f"  {units.counted(one.students, 'student')}: {one.story}" for one in line.mistakes]
        rows += [f"  {units.counted(line.unnamed, 'student')}: wrong in a way that no known mistake explains"] * bool(
            line.unnamed
        )
        rows.append(f"  taught in {line.taught}")
    rows += ["", _well(of)] * bool(_well(of))
    return "\n".join(rows) + "\n"


def _head(of: Page) -> str:
    return f"{of.name}: {of.graded} of {units.counted(of.students, 'student')} handed in a notebook that was graded."


def _well(of: Page) -> str:
    """The questions at which no student lost a point."""
    right = [line.title for line in of.lines if not line.lost]
    return f"Right by everybody: {'; '.join(right)}." if right else ""


def _result(line: Line) -> str:
    none = f", {line.unanswered} unanswered" if line.unanswered else ""
    return f"{line.right} right of {line.answered + line.unanswered}{none}"


def as_html(of: Page) -> str:
    """The same as a page to show or print."""
    title = f"What the class makes of {of.name}"
    rows: list[Content] = [text(element("h1", title), element("p", _head(of))), element("h2", "Teach again")]
    if of.again:
        lost = [(element("td", f"{lost:g}", class_="number"), part.replace("`", "")) for part, lost in of.again]
        rows.append(table([element("th", "points lost", scope="col", class_="number"), "part of the book"], lost))
    else:
        rows.append(element("p", "Nothing: the class has every point."))
    for line in (line for line in of.lines if line.lost):
        rows.append(text(element("h2", line.title), element("p", f"{line.grade_id}: {_result(line)}")))
        mistakes = [(one.students, one.story) for one in line.mistakes]
        mistakes += [(line.unnamed, "wrong in a way that no known mistake explains")] * bool(line.unnamed)
        if mistakes:
            rows.append(element("ul", each("li", [f"{units.counted(n, 'student')}: {story}" for n, story in mistakes])))
        rows.append(element("p", f"Taught in {line.taught.replace('`', '')}.", class_="taught"))
    rows += each("p", [_well(of)]) if _well(of) else []
    return page(title, lines(rows), STYLE)


def write(term: Term, of: Page) -> tuple[Path, Path]:
    """Both, as files of the term."""
    folder = term.folder / "class"
    folder.mkdir(exist_ok=True)
    pages = folder / f"{of.name}.html", folder / f"{of.name}.txt"
    write_whole(pages[0], as_html(of))
    write_whole(pages[1], as_text(of))
    return pages
