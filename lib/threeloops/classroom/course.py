"""Folders, keys and nbgrader's own stages: generate_assignment, autograde, generate_feedback, run in this process
with the book's nbgrader_config.py.
"""

import hashlib
import json
import os
import re
import secrets
import stat
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from functools import cached_property
from pathlib import Path
from typing import Any

from threeloops import checks, contents
from threeloops import quick_start as quick_start  # before nbgrader is loaded
from threeloops.classroom import gradebook
from threeloops.drills.engine.answers import parse

STAGES = ("release", "submitted", "autograded", "feedback", "solution", "source_with_tests")
KEY_BYTES = 32


def write_whole(path: Path, text: str) -> None:
    """Write a file so that it is there whole or not at all, whatever ends this process; its owner alone reads it."""
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with open(handle, "w", encoding="utf-8", newline="") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        os.replace(name, path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def grading_key(folder: Path) -> bytes:
    """The key of the hidden draws kept in this folder; made on first use, whole or not at all, readable by its owner
    alone.

    Raises:   ValueError when what is kept there is no key
    """
    path = folder / "grading.key"
    if not path.exists():
        folder.mkdir(parents=True, exist_ok=True)
        write_whole(path, secrets.token_hex(KEY_BYTES) + "\n")
    text = path.read_bytes().strip()
    if not re.fullmatch(rb"[0-9a-f]{%d}" % (2 * KEY_BYTES), text):
        raise ValueError(
            f"{path} is no grading key: {len(text)} characters, not {2 * KEY_BYTES} from 0 to f (a disk that was"
            " full?). Put the old one back; without it, delete the file, and functions are judged on other draws"
        )
    return bytes.fromhex(text.decode())


@dataclass(frozen=True, kw_only=True)
class Score:
    """One graded cell in the gradebook."""

    grade_id: str
    points: float
    maximum: float
    by_hand: bool  # it waits for a person, or a person has graded it


@dataclass(frozen=True, kw_only=True)
class Course:
    """One place to grade in: the book's sources and a work folder with everything that grading makes."""

    root: Path  # of the book
    work: Path  # build/ for a class, my/graded/ for a reader
    code: str = "home"  # the public course code
    judge: dict[str, Any] = field(default_factory=dict)  # further settings of preprocessors.Judge
    server: str = ""  # URL of a gradebook on a server; without it a file of the work folder keeps the scores

    def claim(self, whose: str) -> None:
        """Make this work folder a class's or a reader's, for good: a reader's run trusts the notebook about who wrote
        it, and would put one student's answers under another's name.

        Raises:   ValueError when it is the other's already
        """
        mark = self.work / "graded-for.txt"
        self.work.mkdir(parents=True, exist_ok=True, mode=0o700)
        kept = mark.read_text(encoding="utf-8").strip() if mark.exists() else ""
        if not kept and any(self.work.glob("grades-*.csv")):
            kept = "class"
        if kept and kept != whose:
            raise ValueError(
                f"{self.work} holds the grades of a {kept}, and this would be graded for a {whose}; choose another"
                " --into, or for one student of a class give the --roster too"
            )
        write_whole(mark, whose + "\n")

    def sets(self) -> list[str]:
        """The drill sets that can be graded."""
        return sorted(
            path.parent.name for path in self.root.glob("solutions/*/*.ipynb") if path.stem == path.parent.name
        )

    def release(self, name: str) -> Path:
        """The released notebook of a set, as `prepare` has made it."""
        return self.work / "release" / name / f"{name}.ipynb"

    def folder(self, stage: str, student: str, name: str) -> Path:
        """Where one student's notebook of a set lies at a stage."""
        return self.work / stage / student / name

    @cached_property
    def config(self) -> Any:
        """nbgrader_config.py, with this course's work folder in place of build/."""
        from traitlets.config.loader import PyFileConfigLoader

        config = PyFileConfigLoader("nbgrader_config.py", path=str(self.root)).load_config()
        for stage in STAGES:
            config.CourseDirectory[f"{stage}_directory"] = str(self.work / stage)
        config.CourseDirectory.db_url = self.database
        config.Judge.update({"course": self.code, "key_folder": str(self.work)} | self.judge)
        return config

    @property
    def database(self) -> str:
        return self.server or gradebook.kept_in(self.work)

    def __getstate__(self) -> dict[str, Any]:
        """What another process needs to make the same course; what this one has open stays here."""
        return {one.name: getattr(self, one.name) for one in fields(self)}

    def make_ready(self) -> None:
        """Load now what grading needs, for processes that are about to be forked."""
        contents.places(contents.book_root())
        parse("1 GB", like="B")
        self._judging.make_ready()
        self._telling.make_ready()

    @cached_property
    def gradebook(self) -> Any:
        """nbgrader's, opened anew in every `with`."""
        from threeloops.classroom.stages import KeptGradebook

        return KeptGradebook(self.database, self.config.CourseDirectory.course_id)

    @cached_property
    def _judging(self) -> Any:
        from threeloops.classroom.stages import KeptAutograde, Stage

        return Stage(KeptAutograde, self.config, self.gradebook)

    @cached_property
    def _telling(self) -> Any:
        from threeloops.classroom.stages import KeptFeedback, Stage

        return Stage(KeptFeedback, self.config, self.gradebook)

    def prepare(self, name: str) -> None:
        """Tell the gradebook what this set asks (generate_assignment); at once when nothing has changed."""
        from nbgrader.converters import GenerateAssignment  # type: ignore[import-untyped]

        from threeloops.classroom.stages import Stage

        checks.one_of(self.sets(), drill_set=name)
        self.work.mkdir(parents=True, exist_ok=True, mode=0o700)
        grading_key(self.work)  # before the first student rather than at each
        stamp = hashlib.sha256(self._source(name).read_bytes() + repr(self.config.WrittenAnswers).encode()).hexdigest()
        mark = self.work / "release" / name / "made-from.txt"
        gradebook.claim(self.database, self.work)
        known = gradebook.knows(self.database, self.work, name)
        if mark.exists() and mark.read_text() == stamp and known:
            return
        Stage(GenerateAssignment, self.config).run(name=name, student=".")
        if not self.server:
            (self.work / gradebook.FILE).chmod(0o600)
        mark.write_text(stamp)

    def _source(self, name: str) -> Path:
        return self.root / "solutions" / name / f"{name}.ipynb"

    def autograde(self, name: str, student: str, notebook: dict[str, Any], *, notes: Sequence[str] = ()) -> None:
        """Hand one notebook in, and judge it; with what was said of it before."""
        folder = self.folder("submitted", student, name)
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{name}.ipynb").write_text(json.dumps(notebook), encoding="utf-8", errors="replace")
        self._judging.run(name=name, student=student)
        if notes:
            path = self.folder("autograded", student, name) / f"{name}.ipynb"
            judged = self.verdicts(name, student)
            judged["metadata"]["threeloops"]["notes"] = [*notes, *judged["metadata"]["threeloops"]["notes"]]
            mode = stat.S_IMODE(path.stat().st_mode)
            write_whole(path, json.dumps(judged))
            path.chmod(mode)

    def feedback(self, name: str, student: str) -> Path:
        """Write one student's feedback page."""
        self._telling.run(name=name, student=student)
        return self.folder("feedback", student, name) / f"{name}.html"

    def scores(self, name: str, student: str) -> list[Score]:
        """What the gradebook says about one student."""
        with self.gradebook as book:
            grades = book.find_submission_notebook(name, name, student).grades
            return [
                Score(
                    grade_id=grade.name,
                    points=grade.score,
                    maximum=grade.max_score,
                    by_hand=bool(grade.needs_manual_grade or grade.manual_score is not None),
                )
                for grade in grades
            ]

    def verdicts(self, name: str, student: str) -> dict[str, Any]:
        """The judged notebook."""
        found: dict[str, Any] = json.loads(
            (self.folder("autograded", student, name) / f"{name}.ipynb").read_text(encoding="utf-8")
        )
        return found
