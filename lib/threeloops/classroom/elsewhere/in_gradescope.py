"""What runs in Gradescope's container for one hand-in: who handed it in, from submission_metadata.json; the verdict, by
the judge; results.json, with a test for each question.

The fields that are read and written stand in Gradescope's "Autograder Specifications"
(https://gradescope-autograders.readthedocs.io/en/latest/specs/) and "Submission Metadata"
(https://gradescope-autograders.readthedocs.io/en/latest/submission_metadata/), read 28 November 2026. Whatever goes
wrong, results.json says it in one sentence; what only the teacher may know is printed, and Gradescope shows that to
instructors alone.
"""

import contextlib
import json
import os
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from threeloops.classroom.elsewhere import alone, whose
from threeloops.classroom.elsewhere.alone import Package
from threeloops.classroom.intake import Submission
from threeloops.classroom.report import Result
from threeloops.classroom.term.people import Person
from threeloops.classroom.transplant import says
from threeloops.sandbox import walls

HIDDEN, SHOWN = "hidden", "visible"
METADATA = "submission_metadata.json"
PLACE = "three-loops-work"  # what is made while grading lies here


def results(result: Result, package: Package) -> dict[str, Any]:
    """A verdict as Gradescope shows it: a test for each question. Their scores are what counts."""
    if not result.answers:
        return refusal(alone.why_not(result))
    tests = [
        {
            "name": alone.title(answer),
            "score": answer.points,
            "max_score": answer.maximum,
            "output": alone.told(answer, package.root),
            "visibility": SHOWN,
        }
        for answer in result.answers
    ]
    return {"output": "\n".join(alone.said_of_all(result)), "stdout_visibility": HIDDEN, "tests": tests}


def refusal(sentence: str) -> dict[str, Any]:
    """What Gradescope shows where there is nothing to score; without a score it would show an error of its own."""
    return {"score": 0.0, "output": sentence, "stdout_visibility": HIDDEN}


def users(base: Path) -> list[dict[str, Any]]:
    """Who handed it in, as Gradescope says.

    Raises:   ValueError when it does not say
    """
    try:
        told = json.loads((base / METADATA).read_text(encoding="utf-8"))
        found = told["users"]
    except (OSError, ValueError, KeyError, TypeError):
        raise ValueError("the platform does not say who handed this in; tell your teacher") from None
    return [one for one in found if isinstance(one, dict)] if isinstance(found, list) else []


def asked(base: Path, package: Package) -> tuple[Submission, dict[str, Any]]:
    """What lies in the folder `submission`, under the id of its student, and how its code is kept apart.

    Raises:   ValueError, in one sentence for the student who handed it in, when it cannot be graded
    """
    people = [Person(**given) for given in package.settings["people"]]
    handed = alone.handed_in(package, base / "submission", "submission")
    try:
        student = whose.of_group(users(base), people, says(handed.content or b"", "student"))
    except ValueError:
        print("To try this autograder yourself, put yourself on the class list and pack it anew.")
        raise
    return alone.of(handed, student), _judge(package, base)


def verdict(package: Package, handed: Submission, judge: dict[str, Any]) -> dict[str, Any]:
    """The results of a hand-in; what went wrong in the grader is printed."""
    course = package.course(**judge)
    result = alone.graded(package, handed, course)
    print(alone.printed(result))
    log = course.folder("logs", result.student, package.name).with_suffix(".txt")
    if log.exists():
        print(log.read_text(encoding="utf-8", errors="replace"))
    return results(result, package)


def _judge(package: Package, base: Path) -> dict[str, Any]:
    """How students' code is kept apart: in the sandbox, or as nobody where the teacher has said that this will do.

    Raises:   ValueError when neither can be had
    """
    problem = walls.problem()
    if not problem:
        return {}
    if not package.settings["without_sandbox"]:
        print(f"There is no sandbox here: {problem}. `--no-sandbox` packs an autograder that does without.")
        raise ValueError(
            "the grader's sandbox cannot be built on this platform, which is no fault of yours; tell your teacher"
        )
    closed = [package.folder, package.work, *(base / name for name in ("submission", "results", METADATA))]
    close(closed)
    apart = walls.problem_apart(closed)
    if apart:
        print(f"There is no sandbox here ({problem}), and {apart}.")
        raise ValueError(
            "your code cannot be kept apart from the grader on this platform, which is no fault of yours;"
            " tell your teacher"
        )
    print(f"Without a sandbox ({problem}): the hand-in's code runs as nobody.")
    return {"apart": True, "sandboxed": False}


def close(paths: Sequence[Path]) -> None:
    """Leave these to their owner."""
    for path in paths:
        with contextlib.suppress(OSError):
            path.chmod(0o700 if path.is_dir() else 0o600)


def _told(base: Path, package: Package) -> dict[str, Any]:
    try:
        handed, judge = asked(base, package)
    except ValueError as error:
        print(f"Not graded: {error}.")
        return refusal(f"Not graded: {error}.")
    return verdict(package, handed, judge)


def main(words: Sequence[str]) -> int:
    """Grade what is there, or with --prepare make ready for it; 0 in any case: a container that ends otherwise is an
    autograder that failed.
    """
    base = Path(words[0])
    package = alone.opened(base / "source", base / PLACE)
    if "--prepare" in words:
        package.course()
        problem = walls.problem()
        print("The sandbox works here." if not problem else f"While setting up there is no sandbox: {problem}.")
        return 0
    try:
        told = _told(base, package)
    except Exception:  # its words are not for students
        traceback.print_exc()
        told = refusal(f"Not graded: {alone.FAULT}.")
    path = base / "results" / "results.json"
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(told, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
    path.chmod(0o644)  # the folder is closed where students' code could look
    return 0


if __name__ == "__main__":
    os.umask(0o077)
    sys.exit(main(sys.argv[1:]))
