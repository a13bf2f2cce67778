"""What runs in a student's repository at every push: the verdict on its notebook, as a table in the job's summary and
as the notices in which tools look for the points.

Notices and the summary: "Workflow commands for GitHub Actions",
https://docs.github.com/en/actions/reference/workflows-and-actions/workflow-commands. The two notices' titles and texts
are those of Classroom's own reporter, src/notify-classroom.js in
https://github.com/classroom-resources/autograding-grading-reporter, read 28 November 2026.
"""

import json
import os
import re
import sys
from collections.abc import Sequence
from pathlib import Path

from threeloops.classroom.elsewhere import alone
from threeloops.classroom.elsewhere.alone import Package
from threeloops.classroom.report import Result
from threeloops.classroom.transplant import UnparsableError, parsed, says
from threeloops.drills.engine.student_draws import HOME_STUDENT

NO_SUMMARY = os.devnull


def escaped(text: str) -> str:
    """A text in a workflow command: one line, in which nothing is a command of its own.

    >>> escaped("100 %\\n::warning::x")
    '100 %25%0A::warning::x'
    """
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def notice(title: str, text: str) -> str:
    """A notice that stands on the run's page."""
    return f"::notice title={title}::{escaped(text)}"


def cell(text: str) -> str:
    """A text in a table of Markdown.

    >>> cell("a | b\\n<img>")
    'a \\\\| b &lt;img>'
    """
    return re.sub(r"\s+", " ", text).replace("|", "\\|").replace("<", "&lt;").strip()


def summary(result: Result, package: Package) -> str:
    """The job's summary: a row for each question."""
    rows = [f"## {package.name}: {result.points:g} of {result.maximum:g} points", ""]
    rows += [f"{cell(sentence)}\n" for sentence in alone.said_of_all(result)]
    rows += ["| question | points | |", "| --- | ---: | --- |"]
    for answer in result.answers:
        told = cell(alone.told(answer, package.root))
        rows.append(f"| {cell(alone.title(answer))} | {answer.points:g} of {answer.maximum:g} | {told} |")
    return "\n".join(rows) + "\n"


def one(package: Package, repository: Path) -> Result:
    """The verdict on what lies in a repository.

    Raises:   ValueError, in one sentence, when it cannot be graded
    """
    handed = alone.handed_in(package, repository.resolve(), "somebody")
    student = says(handed.content or b"", "student")
    if student in ("", HOME_STUDENT) and _can_be_read(handed.content):
        raise ValueError(
            "the notebook's first code cell does not say who you are: write your id there in place of"
            f" {HOME_STUDENT!r}, and push again"
        )
    return alone.graded(package, alone.of(handed, student or "somebody"), package.course())


def _can_be_read(content: bytes | None) -> bool:
    try:
        return content is not None and bool(parsed(content))
    except UnparsableError:  # the verdict will say what it is
        return False


def main(words: Sequence[str]) -> int:
    """Grade a repository: 0 with every point, 1 otherwise."""
    folder, repository = map(Path, words)
    package = alone.opened(folder, folder / "work")
    points, maximum = 0.0, package.maximum
    try:
        result = one(package, repository)
        told = summary(result, package) if result.answers else f"{alone.why_not(result)}\n"
        points = result.points
    except ValueError as error:
        told = f"Not graded: {error}.\n"
    with Path(os.environ.get("GITHUB_STEP_SUMMARY", NO_SUMMARY)).open("a", encoding="utf-8") as file:
        file.write(told)
    print("".join(f"{line}\n" for line in told.replace("::", ": :").splitlines()))
    print(notice("Autograding complete", f"Points {points:g}/{maximum:g}"))
    print(notice("Autograding report", json.dumps({"totalPoints": points, "maxPoints": maximum})))
    return 0 if points >= maximum else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
