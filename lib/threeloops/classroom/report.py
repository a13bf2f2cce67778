"""What the grader tells: a table, a line per question for a lone reader, and for a class two CSV files."""

import csv
import json
import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from threeloops.classroom.course import Course
from threeloops.classroom.questions import questions
from threeloops.drills.engine.bank import DRILLS

MARKS = "marks.json"  # a lone reader's last mark of every set, in the folder of their grades


@dataclass(frozen=True, slots=True, kw_only=True)
class Answered:
    """One question of one student."""

    grade_id: str
    drill: str
    status: str
    message: str
    slips: tuple[str, ...]
    points: float
    maximum: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """One submission's end."""

    student: str
    status: str  # graded, timed out, died, unparsable, no notebook, missing, not graded
    notes: tuple[str, ...] = ()
    answers: tuple[Answered, ...] = ()
    self_marked: float | None = None
    by_hand: float = 0.0  # points that a teacher gave
    waiting: int = 0  # cells that wait for a teacher

    @property
    def points(self) -> float:
        return sum(answer.points for answer in self.answers)

    @property
    def maximum(self) -> float:
        return sum(answer.maximum for answer in self.answers)


def result(course: Course, name: str, student: str, notes: Iterable[str] = ()) -> Result:
    """A graded submission, from the judged notebook and the gradebook: verdicts from the one, points from the
    other.
    """
    notebook = course.verdicts(name, student)
    scores = {score.grade_id: score for score in course.scores(name, student)}
    recorded = {
        cell["metadata"]["nbgrader"]["grade_id"]: cell["metadata"]["threeloops"]
        for cell in notebook["cells"]
        if _is_judged(cell)
    }
    answers = [
        Answered(
            grade_id=asked.grade_id,
            drill=asked.drill,
            status=recorded[asked.grade_id]["status"],
            message=recorded[asked.grade_id]["message"],
            slips=tuple(recorded[asked.grade_id]["slips"]),
            points=scores[asked.grade_id].points,
            maximum=scores[asked.grade_id].maximum,
        )
        for asked in questions(notebook)
    ]
    summary = notebook["metadata"]["threeloops"]
    judged_ids = {answer.grade_id for answer in answers}
    return Result(
        student=student,
        status=summary["status"],
        notes=(*notes, *summary["notes"]),
        answers=tuple(answers),
        self_marked=summary["self_marked"],
        by_hand=sum(score.points for grade_id, score in scores.items() if grade_id not in judged_ids),
        waiting=sum(score.by_hand for score in scores.values()),
    )


def _is_judged(cell: dict[str, Any]) -> bool:
    return "nbgrader" in cell["metadata"] and "status" in cell["metadata"].get("threeloops", {})


def table(results: Sequence[Result], *, written_maximum: float) -> str:
    """One line per student: status, automatic points, self-marked points, and what there is to say."""
    rows = [("student", "status", "automatic", "self-marked", "")]
    for one in results:
        automatic = f"{one.points:g} / {one.maximum:g}" if one.answers else "-"
        marked = "-" if one.self_marked is None else f"{min(one.self_marked, written_maximum):g} / {written_maximum:g}"
        waiting = (
            (f"{one.waiting} graded by hand or waiting for it ({one.by_hand:g} points so far)",) if one.waiting else ()
        )
        rows.append((one.student, one.status, automatic, marked, "; ".join((*one.notes, *waiting))))
    widths = [max(len(row[column]) for row in rows) for column in range(4)]
    return "\n".join(
        "  ".join([*(cell.ljust(width) for cell, width in zip(row, widths, strict=False)), row[4]]).rstrip()
        for row in rows
    )


def lines(one: Result) -> str:
    """One line per question, for a teacher who wants to know what went wrong."""
    width = max(len(answer.grade_id) for answer in one.answers)
    return "\n".join(
        f"  {answer.grade_id.ljust(width)}  {answer.points:g} / {answer.maximum:g}  {answer.message}"
        for answer in one.answers
    )


def slip_counts(results: Sequence[Result]) -> Counter[tuple[str, str]]:
    """How often each slip was made at each question."""
    return Counter((answer.grade_id, slip) for one in results for answer in one.answers for slip in answer.slips)


def write_grades(path: Path, results: Sequence[Result], *, more: bool = False) -> None:
    """One row per student and question; a student without answers has one row. More of them go below what is there."""
    with path.open("a" if more else "w", newline="", encoding="utf-8") as file:
        rows = csv.writer(file)
        if not more:
            rows.writerow(("student", "status", "question", "drill", "outcome", "slips", "points", "maximum", "notes"))
        for one in results:
            notes = "; ".join(one.notes)
            if not one.answers:
                rows.writerow((one.student, one.status, "", "", "", "", 0, "", notes))
            for answer in one.answers:
                made = " ".join(answer.slips)
                rows.writerow(
                    (
                        one.student,
                        one.status,
                        answer.grade_id,
                        answer.drill,
                        answer.status,
                        made,
                        f"{answer.points:g}",
                        f"{answer.maximum:g}",
                        notes,
                    )
                )


def write_slips(path: Path, results: Sequence[Result]) -> None:
    """One row per question and slip, the most frequent first, with the sentence that the students were shown."""
    stories = {(key, slip.key): slip.story for key, drill in DRILLS.items() for slip in drill.slips}
    drills = {answer.grade_id: answer.drill for one in results for answer in one.answers}
    with path.open("w", newline="", encoding="utf-8") as file:
        rows = csv.writer(file)
        rows.writerow(("question", "slip", "students", "told"))
        for (grade_id, slip), students in slip_counts(results).most_common():
            rows.writerow((grade_id, slip, students, stories.get((drills[grade_id], slip), "")))


class Bar:
    """How far a class is: one bar on a terminal, a line for each in a log."""

    def __init__(self, total: int) -> None:
        from tqdm import tqdm  # type: ignore[import-untyped]

        tqdm.monitor_interval = 0  # no thread beside processes that are forked
        self._bar = tqdm(total=total, unit="", file=sys.stderr, disable=not sys.stderr.isatty(), dynamic_ncols=True)
        self._total, self._done = total, 0

    def __enter__(self) -> "Bar":
        return self

    def __exit__(self, *_: object) -> None:
        self._bar.close()

    def tell(self, student: str, status: str) -> None:
        """One more is done."""
        self._done += 1
        if self._bar.disable:
            print(f"[{self._done}/{self._total}] {student}: {status}", file=sys.stderr, flush=True)
        else:
            self._bar.set_postfix_str(f"{student}: {status}", refresh=False)
            self._bar.update()


def keep_mark(name: str, one: Result, folder: Path) -> None:
    """Remember a reader's mark of a drill set: the start page shows it."""
    path = folder / MARKS
    try:
        marks = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        marks = {}
    marks[name] = {"points": one.points, "maximum": one.maximum}
    path.write_text(json.dumps(marks, indent=1) + "\n", encoding="utf-8")
