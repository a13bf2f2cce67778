"""A term's file, term.toml, in a folder of the teacher's: every command of the group reads it, and what one of them
adds goes below what is there, so that a teacher's own lines stay.
"""

import datetime as dt
import json
import math
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

from threeloops import checks, units
from threeloops.classroom.course import Course, write_whole
from threeloops.classroom.gradebook import checked
from threeloops.classroom.questions import HOW_FUNCTIONS
from threeloops.drills.engine.student_draws import plain_id

FILE = "term.toml"
POLICIES = ("none", "zero", "per-day")
KEYS = ("course", "timezone", "gradebook", "late", "sets", "exams", "canvas")
HOW_LATE = ("policy", "off_per_day", "last_day")
DAY = dt.timedelta(days=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class LatePolicy:
    """What a late hand-in costs. A day counts as soon as it has begun."""

    policy: str
    off_per_day: float = 0.0  # share of the set's maximum, per day
    last_day: int = 0  # after so many days a hand-in earns nothing

    def __post_init__(self) -> None:
        checks.one_of(POLICIES, late=self.policy)
        if self.policy == "per-day":
            if not self.off_per_day or not self.last_day:
                raise ValueError(
                    "late='per-day' needs both off_per_day, the share of the maximum that each day takes, and last_day,"
                    " after which nothing counts: `--off-per-day 0.1 --last-day 5`"
                )
            checks.fraction(off_per_day=self.off_per_day)
            checks.positive(off_per_day=self.off_per_day)
            checks.count(last_day=self.last_day)
        elif self.off_per_day or self.last_day:
            raise ValueError(f"late={self.policy!r} takes neither off_per_day nor last_day; only 'per-day' does")

    def points(self, raw: float, *, maximum: float, days_late: int) -> float:
        """Points that are left, never below 0: raw − off_per_day × maximum × days_late.

        >>> LatePolicy(policy="per-day", off_per_day=0.1, last_day=3).points(9, maximum=10, days_late=2)
        7.0
        >>> LatePolicy(policy="zero").points(9, maximum=10, days_late=1)
        0.0
        """
        if self.policy == "none" or days_late <= 0:
            return raw
        if self.policy == "zero" or days_late > self.last_day:
            return 0.0
        return max(0.0, raw - self.off_per_day * maximum * days_late)

    @property
    def in_words(self) -> str:
        """As it stands in exports.

        >>> LatePolicy(policy="per-day", off_per_day=0.1, last_day=3).in_words
        'per day begun 10 % of the maximum off; nothing after 3 days'
        """
        if self.policy == "none":
            return "late hand-ins keep their points"
        if self.policy == "zero":
            return "late hand-ins earn nothing"
        share, days = f"{100 * self.off_per_day:g} %", units.counted(self.last_day, "day")
        return f"per day begun {share} of the maximum off; nothing after {days}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Set:
    """A drill set that was handed out."""

    due: dt.datetime
    title: str  # what the platform calls the assignment
    functions: str = "all"  # what earns a function its points: all draws right, or the share of them
    explanation: float = 0.0  # points of each written explanation, given in the term's own list


@dataclass(frozen=True, kw_only=True)
class Term:
    """One term's settings, and where its files lie."""

    folder: Path
    course: str
    zone: ZoneInfo
    late: LatePolicy
    sets: Mapping[str, Set] = field(default_factory=dict)
    exams: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    canvas: Mapping[str, Any] = field(default_factory=dict)  # url and course
    gradebook: str | None = None  # URL of a database on a server; without it a file among what is graded

    @property
    def roster(self) -> Path:
        return self.folder / "roster.csv"

    @property
    def graded(self) -> Path:
        """Gradebook, grading key, feedback pages and the CSV files of the grader."""
        return self.folder / "graded"

    def collected(self, name: str) -> Path:
        return self.folder / "collected" / name

    def received(self, name: str) -> Path:
        """What came when, and as what: beside the hand-ins, which are students' alone."""
        return self.folder / "received" / f"{name}.csv"

    def is_graded(self, name: str) -> bool:
        return (self.graded / f"grades-{name}.csv").exists()

    def grades(self, name: str) -> Path:
        """The grader's CSV of a set.

        Raises:   ValueError when the set was not graded
        """
        path = self.graded / f"grades-{name}.csv"
        if not self.is_graded(name):
            raise ValueError(f"{name} is not graded yet: no {path}; `threeloops classroom grade {name}` makes it")
        return path

    def grading(self, root: Path) -> Course:
        """This term as the grader knows it."""
        return Course(root=root, work=self.graded, code=plain_id(self.course), server=self.gradebook or "")

    def handed_out(self, name: str) -> Set:
        """The set as it was released.

        Raises:   ValueError when it was not
        """
        if name not in self.sets:
            known = ", ".join(self.sets) or "none yet"
            raise ValueError(
                f"{name} was not released in this term (released: {known}); `threeloops classroom release {name} --due"
                " DATE` records when it is due"
            )
        return self.sets[name]


def quoted(text: str) -> str:
    """A string as TOML writes it.

    >>> quoted('a "b" – 😀')
    '"a \\\\"b\\\\" – 😀"'
    """
    return json.dumps(text, ensure_ascii=False)


def days_late(came: dt.datetime, due: dt.datetime, *, extra_days: int) -> int:
    """Days begun after the due date and the student's extra days; 0 for on time.

    >>> due = dt.datetime(2027, 4, 12, 23, 59, tzinfo=dt.UTC)
    >>> [days_late(due + dt.timedelta(hours=hours), due, extra_days=1) for hours in (-1, 24, 25, 49)]
    [0, 0, 1, 2]
    """
    return max(0, math.ceil((came - due) / DAY) - extra_days) if came > due else 0


def new(folder: Path, *, course: str, zone: str, late: LatePolicy, gradebook: str | None = None) -> Term:
    """Begin a term: its folder, and the file in it.

    Raises:   ValueError when there is one already, or for a code that is no code, or a zone that nobody knows
    """
    if not plain_id(course):
        raise ValueError(f"course={course!r} must hold a letter or a digit: it draws the students' numbers")
    _zone(zone)
    if gradebook:
        checked(gradebook)
    path = folder / FILE
    if path.exists():
        raise ValueError(f"{path} is already there; a new term needs a folder and a course code of its own")
    rows = [
        "# One term of a class; every `threeloops classroom` command reads this file.",
        f"course = {quoted(course)}  # public: with the id and the question it draws a student's numbers",
        f"timezone = {quoted(zone)}  # of due dates, and of times that a platform writes without one",
        *([f"gradebook = {quoted(gradebook)}  # the scores, on a server"] if gradebook else []),
        "",
        "[late]  # policy: none, zero or per-day",
        f"policy = {quoted(late.policy)}",
    ]
    if late.policy == "per-day":
        rows += [
            f"off_per_day = {late.off_per_day!r}  # share of the set's maximum, for each day begun",
            f"last_day = {late.last_day}  # later than so many days: 0 points",
        ]
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    write_whole(path, "\n".join(rows) + "\n")
    return read(folder)


def read(folder: Path) -> Term:
    """The term in a folder.

    Raises:   ValueError, in one sentence, when there is none, or its file is wrong
    """
    path = folder / FILE
    if not path.exists():
        raise ValueError(
            f"{path} is missing; run this in the term's folder, or name that with --term;"
            " `threeloops classroom new TERM` begins one"
        )
    try:
        written = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"{path} is no TOML file: {error}") from None
    try:
        checks.one_of(KEYS, **{key: key for key in written})
        lost = next((key for key in ("course", "timezone", "late") if key not in written), None)
        if lost:
            raise ValueError(f"{lost!r} is missing")
        checks.table(**{key: written.get(key, {}) for key in ("late", "sets", "exams", "canvas")})
        checks.one_of(HOW_LATE, **{key: key for key in written["late"]})
        zone = _zone(written["timezone"])
        if not isinstance(written.get("gradebook", ""), str):
            raise ValueError(f"gradebook={written['gradebook']!r} must be a URL, like 'postgresql://HOST/NAME'")
        return Term(
            folder=folder.resolve(),
            course=str(written["course"]),
            zone=zone,
            late=LatePolicy(**{"policy": "not said"} | written["late"]),
            sets={name: _set(name, given) for name, given in written.get("sets", {}).items()},
            exams=written.get("exams", {}),
            canvas=written.get("canvas", {}),
            gradebook=written.get("gradebook"),
        )
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None


def _zone(name: object) -> ZoneInfo:
    try:
        return ZoneInfo(str(name))
    except (OSError, ValueError, KeyError):  # its own error is a KeyError
        raise ValueError(f"timezone={name!r} is not known; it is written like 'Europe/Berlin' or 'UTC'") from None


def _set(name: str, given: object) -> Set:
    due = given.get("due") if isinstance(given, Mapping) else None
    if not isinstance(given, Mapping) or not isinstance(due, dt.datetime) or due.tzinfo is None:
        raise ValueError(f"sets.{name} needs a due date with its offset, like due = 2027-04-12T23:59:00+02:00")
    worth = given.get("explanation", 0.0)
    if isinstance(worth, bool) or not isinstance(worth, int | float) or not 0 <= worth < math.inf:
        raise ValueError(f"sets.{name}: explanation={worth!r} must be a number of points, like explanation = 3")
    checks.one_of(HOW_FUNCTIONS, functions=given.get("functions", "all"))
    return Set(
        due=due,
        title=str(given.get("title", name)),
        functions=str(given.get("functions", "all")),
        explanation=float(worth),
    )


def due_date(written: str, zone: ZoneInfo) -> dt.datetime:
    """A date as a teacher types it; without an hour, the last minute of that day.

    >>> str(due_date("2027-04-12", ZoneInfo("UTC"))), str(due_date("2027-04-12 18:00", ZoneInfo("UTC")))
    ('2027-04-12 23:59:00+00:00', '2027-04-12 18:00:00+00:00')
    """
    try:
        date = dt.datetime.fromisoformat(written)
    except ValueError:
        raise ValueError(f"due={written!r} is no date; it is written like 2027-04-12 or 2027-04-12T18:00") from None
    if re.fullmatch(r"[\d-]+", written):
        date = date.replace(hour=23, minute=59)
    return date if date.tzinfo else date.replace(tzinfo=zone)


def record(term: Term, table: str, values: Mapping[str, str]) -> Term:
    """Write values, TOML already, into one table of the term's file, and read that again. Every other line stays."""
    path = term.folder / FILE
    text = path.read_text(encoding="utf-8").rstrip() + "\n"
    head = f"[{table}]\n"
    if head not in text:
        text += "\n" + head
    before, _, after = text.partition(head)
    block, bracket, others = re.match(r"(.*?)(^\[|\Z)(.*)", after, re.MULTILINE | re.DOTALL).groups()  # type: ignore[union-attr]
    for key, value in reversed([*values.items()]):
        line = f"{key} = {value}"
        block, found = re.subn(rf"^{key} = .*$", lambda _, line=line: line, block, count=1, flags=re.MULTILINE)
        block = block if found else f"{line}\n{block}"
    write_whole(path, before + head + block + bracket + others)
    return read(term.folder)
