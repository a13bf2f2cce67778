"""One command for the teacher: collect what was handed in, grade it in the sandbox, hand the feedback pages back."""

import logging
import os
import shutil
import sys
from pathlib import Path
from typing import Any

from threeloops.classroom import grade
from threeloops.classroom.course import Course
from threeloops.classroom.hub import folder as hubs
from threeloops.drills.engine.student_draws import plain_id

KEPT_WITH_IT = ("timestamp.txt", "submission_secret.txt")  # by which nbgrader gives a page to whom it belongs


def mark(name: str, folder: Path, *, again: bool = False, workers: int | None = None) -> int:
    """Collect a set, grade it, hand the pages back; 0 when that worked.

    Raises:   ValueError when this is no hub's folder, or not the teacher's account
    """
    hub = hubs.read(folder)
    folder = folder if (folder / "hub.json").is_file() else folder.parent
    root = folder / "course"
    if os.geteuid() != root.stat().st_uid:
        raise ValueError(f"{root} belongs to {hub.teacher}; run this as {hub.teacher}, in a terminal of the hub")
    course = Course(root=root, work=root / "graded", code=hub.course)
    course.prepare(name)
    _exchange("collect", root, name, update=True)
    if not any(root.glob(f"collected/*/{name}/{name}.ipynb")):
        raise ValueError(f"nobody has handed in {name} yet")
    code = grade.grade(
        root / "collected",
        root=root,
        code=hub.course,
        roster=folder / "class.csv",
        work=course.work,
        browser=False,
        trust_students=False,
        drill_set=name,
        again=again,
        workers=workers,
    )
    given = hand_back(name, root)
    _exchange("release_feedback", root, name)
    print(f"{given} feedback pages handed back; students find them under Fetch Feedback in the assignment list.")
    return code


def hand_back(name: str, root: Path) -> int:
    """Put every page where nbgrader expects it, with what says whose it is; how many there were."""
    given = 0
    for handed in sorted((root / "collected").glob(f"*/{name}")):
        student = handed.parent.name
        page = root / "graded" / "feedback" / plain_id(student) / name / f"{name}.html"
        beside = [handed / kept for kept in KEPT_WITH_IT]
        if not page.is_file() or not all(kept.is_file() and not kept.is_symlink() for kept in beside):
            continue
        into = root / "feedback" / student / name
        into.mkdir(parents=True, exist_ok=True)
        for file in (page, *beside):
            shutil.copyfile(file, into / file.name)
        given += 1
    return given


def _exchange(what: str, root: Path, name: str, **settings: Any) -> None:
    """One step of nbgrader's exchange, with the course's own configuration, as `nbgrader collect` would do it."""
    from nbgrader.auth import Authenticator  # type: ignore[import-untyped]
    from nbgrader.coursedir import CourseDirectory  # type: ignore[import-untyped]
    from nbgrader.exchange import ExchangeError, ExchangeFactory  # type: ignore[import-untyped]
    from traitlets.config.loader import PyFileConfigLoader

    import threeloops.classroom.stages  # noqa: F401  # a gradebook that is made without starting `alembic`

    config = PyFileConfigLoader("nbgrader_config.py", path=str(root)).load_config()
    directory = CourseDirectory(config=config)
    directory.assignment_id = name
    classes = {"collect": "Collect", "release_feedback": "ReleaseFeedback"}
    make = getattr(ExchangeFactory(config=config), classes[what])
    step = make(coursedir=directory, authenticator=Authenticator(config=config), config=config)
    step.log = logging.Logger("nbgrader", logging.WARNING)  # what it warns of is the teacher's to read
    step.log.addHandler(logging.StreamHandler(sys.stdout))
    for setting, value in settings.items():
        setattr(step, setting, value)
    try:
        step.start()
    except ExchangeError as error:
        raise ValueError(f"nbgrader's {what} says: {error}") from None
