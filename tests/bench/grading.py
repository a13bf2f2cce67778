"""How long grading takes: one submission in its sandbox against stock nbgrader on the same notebook in the same run,
one check, one release.

Run it as a script; `--smoke` is the smallest run. Aims: at most 1.3 times stock nbgrader; 20 ms per number; 50 ms per
function; 6 s for all released notebooks.
"""

import contextlib
import io
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from nbgrader.converters import Autograde  # type: ignore[import-untyped]

from tests.classroom.submissions import ROOT, SETS, asked, filled, right_number
from threeloops.classroom import sandbox
from threeloops.classroom.course import Course
from threeloops.drills.engine import sheet
from threeloops.units import fmt_seconds

SET, ROUNDS, CHECKS = "kv_cache", 7, 50


class StockCourse(Course):
    """The same course, graded by nbgrader as it comes."""

    @property
    def config(self) -> object:
        plain = Course(root=self.root, work=self.work, code=self.code).config
        for name in ("sanitize_preprocessors", "autograde_preprocessors"):
            plain.Autograde[name] = Autograde.class_traits()[name].default()
        return plain


def seconds(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def silent(work: Callable[[], object]) -> float:
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        return seconds(work)


def against_stock(folder: Path, *, rounds: int) -> None:
    notebook = filled(SET, student="ada")
    ours, stock = Course(root=ROOT, work=folder / "ours"), StockCourse(root=ROOT, work=folder / "stock")
    for course in (ours, stock):
        course.prepare(SET)
        course.autograde(SET, "ada", notebook)  # once to warm up
        print(f"{type(course).__name__}: {sum(score.points for score in course.scores(SET, 'ada')):g} points")
    pairs = [
        (seconds(lambda: ours.autograde(SET, "ada", notebook)), seconds(lambda: stock.autograde(SET, "ada", notebook)))
        for _ in range(rounds)
    ]
    mine, theirs = (statistics.median(column) for column in zip(*pairs, strict=True))
    kind = "in the sandbox" if not sandbox.problem() else "without a sandbox"
    print(
        f"one submission {kind}: {fmt_seconds(mine)}; stock nbgrader: {fmt_seconds(theirs)}; ratio {mine / theirs:.2f}"
        f" (aim 1.3), median of {rounds}, in turns"
    )


def checks(number: int) -> None:
    one = asked(SET)["one-token"]
    sheet.begin(student="ada", course="home")
    answers = (right_number(one, student="ada"), "1 GB", "nonsense", "24.5")
    times = [silent(partial(sheet.check, one.drill, answer)) for _ in range(number) for answer in answers]
    print(f"check of a number: {fmt_seconds(statistics.median(times))}, at worst {fmt_seconds(max(times))} (aim 20 ms)")

    def reserved(*, block: int, tokens: int, per_token: int, requests: int) -> int:
        return requests * -(-tokens // block) * block * per_token

    times = [silent(lambda: sheet.check_function("kv-paged-blocks", reserved)) for _ in range(number)]
    print(
        f"check of a function: {fmt_seconds(statistics.median(times))}, at worst {fmt_seconds(max(times))} (aim 50 ms)"
    )


def release(folder: Path, *, sets: str) -> None:
    words = [
        "generate_assignment",
        f"--assignment={sets}",
        "--force",
        "--no-db",
        f"--CourseDirectory.release_directory={folder}",
    ]
    environment = os.environ | {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    taken = seconds(
        lambda: subprocess.run(
            [sys.executable, "-m", "nbgrader", *words], cwd=ROOT, capture_output=True, check=True, env=environment
        )
    )
    print(
        f"{f'all {len(SETS)} released notebooks' if sets == '*' else sets} generated: {fmt_seconds(taken)} (aim 6 s for"
        " all)"
    )


def main(words: list[str]) -> None:
    smoke = "--smoke" in words
    sheet.begin()
    with tempfile.TemporaryDirectory() as place:
        checks(1 if smoke else CHECKS)
        release(Path(place) / "release", sets=SET if smoke else "*")
        against_stock(Path(place), rounds=1 if smoke else ROUNDS)


if __name__ == "__main__":
    main(sys.argv[1:])
