"""One hand-in graded with no class around it, by the package that `packing` makes."""

import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from threeloops import contents
from threeloops.classroom import intake, one_submission
from threeloops.classroom.course import Course
from threeloops.classroom.elsewhere import packing
from threeloops.classroom.questions import questions
from threeloops.classroom.report import Answered, Result
from threeloops.drills.engine.bank import DRILLS
from threeloops.drills.engine.student_draws import plain_id
from threeloops.sandbox import walls

FAULT = "a fault of the grader, none of yours: tell your teacher, and hand in again"
WRITTEN_MAXIMUM = 3  # points of the rubric by which students mark their own explanation


@dataclass(frozen=True, kw_only=True)
class Package:
    """A package that was unpacked, and a place to grade in."""

    folder: Path
    work: Path
    settings: dict[str, Any]

    @property
    def name(self) -> str:
        """The drill set."""
        return str(self.settings["set"])

    def course(self, **judge: object) -> Course:
        """The course as the judge knows it, ready for the set."""
        if self.settings.get("functions", "all") != "all":
            judge = {"functions": self.settings["functions"]} | judge
        course = Course(root=self.root, work=self.work, code=self.settings["course"], judge=judge)
        course.prepare(self.name)
        return course

    @property
    def root(self) -> Path:
        return self.folder / packing.BOOK

    @property
    def sets(self) -> list[str]:
        """Every set that a file may be of."""
        return sorted(path.stem for path in self.root.glob("drills/*/*.ipynb") if path.stem == path.parent.name)

    @property
    def maximum(self) -> float:
        """Points of the whole set."""
        released = self.root / "drills" / self.name / f"{self.name}.ipynb"
        return sum(one.points for one in questions(json.loads(released.read_text(encoding="utf-8"))))


def opened(folder: Path, work: Path) -> Package:
    """The package in a folder. Its key, where it has one, draws the hidden numbers as the teacher's own grader does."""
    settings = json.loads((folder / packing.SETTINGS).read_text(encoding="utf-8"))
    work.mkdir(parents=True, exist_ok=True, mode=0o700)
    key = folder / packing.KEY
    if key.exists() and not (work / packing.KEY).exists():
        (work / packing.KEY).touch(mode=packing.PRIVATE)
        (work / packing.KEY).write_bytes(key.read_bytes())
    return Package(folder=folder, work=work, settings=settings)


def handed_in(package: Package, folder: Path, student: str) -> intake.Submission:
    """What lies in the folder of one student's files."""
    return intake.of_one(folder, student, package.sets, package.name)


def of(one: intake.Submission, student: str) -> intake.Submission:
    """The same, of the student whose it has turned out to be."""
    return replace(one, student=plain_id(student))


def graded(package: Package, one: intake.Submission, course: Course) -> Result:
    """The verdict on it, whatever it is.

    Raises:   ValueError when students' code should not run here, because there are no walls to run it in
    """
    if walls.problem() and not course.judge.get("apart"):
        raise ValueError(f"students' code should not run without a sandbox, and {walls.problem()}")
    return one_submission.one(course, package.name, one)


def why_not(result: Result) -> str:
    """Why a hand-in has no verdicts, in one sentence for the student who handed it in."""
    if result.status == "not graded":
        return f"Not graded: {FAULT}."
    return f"Not graded: {'; '.join(result.notes).rstrip('.')}."


def title(answer: Answered) -> str:
    """How a list of results names a question.

    >>> from threeloops.classroom.report import Answered
    >>> asked = dict(grade_id="a-batch", drill="kv-whole-requests", slips=(), points=1.0, maximum=1.0)
    >>> title(Answered(status="right", message="Right.", **asked)).partition(": ")[0]
    'a-batch'
    """
    return f"{answer.grade_id}: {DRILLS[answer.drill].title}"


def told(answer: Answered, root: Path) -> str:
    """A verdict, and where the book teaches what lost points."""
    if answer.points >= answer.maximum:
        return answer.message
    drill = DRILLS[answer.drill]
    where = contents.taught(drill.section, drill.loop, root)[0].partition("; `")[0]
    return f"{answer.message} Taught in {where}."


def said_of_all(result: Result) -> list[str]:
    """What there is to say beside the questions, a sentence each."""
    sentences = [f"{note[:1].upper()}{note[1:]}." for note in result.notes]
    if result.self_marked is not None:
        own = min(result.self_marked, WRITTEN_MAXIMUM)
        sentences.append(f"You gave your explanation {own:g} of {WRITTEN_MAXIMUM} points; they stand apart.")
    if result.waiting:
        sentences.append(f"{result.waiting} of your answers wait for your teacher.")
    return sentences


def printed(result: Result) -> str:
    """A line for the teacher's log: nothing of an answer, nothing of a key."""
    return f"{result.student}: {result.status}, {result.points:g} of {result.maximum:g}; {'; '.join(result.notes)}"
