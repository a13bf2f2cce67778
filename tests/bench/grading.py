"""How long grading takes: a class in its sandboxes with one worker and with two, against stock nbgrader on the same
notebooks in the same run; one check; one release; a class whose workers are killed at random.

Run it as a script; `--smoke` is the smallest run. Aims: 0.25 s of processor time a submission, with the scores of stock
nbgrader; 20 ms per number; 50 ms per function; 6 s for all released notebooks; of a class whose workers are killed,
nobody lost, nobody twice, nobody wrong.
"""

import contextlib
import csv
import io
import itertools
import json
import multiprocessing
import os
import random
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))

from nbgrader.converters import Autograde, GenerateFeedback  # type: ignore[import-untyped]

from tests.classroom.submissions import ROOT, SETS, asked, filled, maximum, right_number, write
from threeloops import wall_clock
from threeloops.classroom import grade
from threeloops.classroom.course import Course
from threeloops.classroom.intake import handed_in
from threeloops.classroom.stages import Stage
from threeloops.drills.engine import sheet
from threeloops.sandbox import walls, warm_process
from threeloops.sandbox.kernel import Kernel
from threeloops.units import fmt_seconds

SET, CHECKS = "kv_cache", 50
STUDENTS, STOCK, KILLED = 60, 12, 200  # of a class, of those that stock nbgrader grades too, of the class under attack
WRONG = {"a-batch": "batch_cache = '1 GB'"}


class StockCourse(Course):
    """The same course, graded by nbgrader as it comes: its steps, its kernel, its page, made anew for each notebook."""

    @property
    def config(self) -> Any:
        plain = Course(root=self.root, work=self.work, code=self.code).config
        for name in ("sanitize_preprocessors", "autograde_preprocessors"):
            plain.Autograde[name] = Autograde.class_traits()[name].default()
        del plain["GenerateFeedback"], plain["HTMLExporter"]
        return plain

    def autograde(self, name: str, student: str, notebook: dict[str, Any], *, notes: Sequence[str] = ()) -> None:
        write(notebook, self.work / "submitted", f"{student}/{name}", name)
        Stage(Autograde, self.config).run(name=name, student=student)
        Stage(GenerateFeedback, self.config).run(name=name, student=student)


def seconds(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def silent(work: Callable[[], object]) -> float:
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        return seconds(work)


def spent() -> float:
    """Processor time of this process and of all that it has waited for."""
    return sum(os.times()[:4])


def side_spent(pid: int) -> float:
    """Processor time of a process and of all below it, with that of those they have waited for. Whatever a sandbox has
    started is gone without a trace once it is closed.
    """
    total, family = 0.0, [pid]
    for member in family:
        with contextlib.suppress(OSError):
            for thread in Path(f"/proc/{member}/task").iterdir():
                family += map(int, (thread / "children").read_text().split())
            ticks = Path(f"/proc/{member}/stat").read_text().rpartition(")")[2].split()[11:15]
            total += sum(map(int, ticks)) / os.sysconf("SC_CLK_TCK")
    return total


@contextlib.contextmanager
def sides(folder: Path) -> Iterator[Path]:
    """While this holds, a file says what the students' sides of all workers have taken."""
    told, close = folder / "sides.txt", Kernel.close
    told.write_text("")

    def closed(kernel: Kernel) -> None:
        with told.open("a") as file:
            file.write(f"student-{time.monotonic_ns()} {side_spent(kernel.side.pid)}\n")
            close(kernel)
            if isinstance(kernel.side, warm_process.Forked):  # and of the one that it was forked from, all until now
                pid = warm_process._template().process.pid
                file.write(f"warm-{pid} {side_spent(pid)}\n")

    Kernel.close = closed  # type: ignore[assignment, method-assign]
    try:
        yield told
    finally:
        Kernel.close = close  # type: ignore[method-assign]


def of_sides(told: Path) -> Iterator[float]:
    """What each process that was started for students has taken in the end."""
    lines = (line.split() for line in told.read_text().splitlines())
    yield from {name: float(taken) for name, taken in lines}.values()


def class_of(folder: Path, students: int) -> dict[str, float]:
    """A class's folder, and what everybody deserves."""
    deserved = {}
    for number in range(students):
        student, wrong = f"student-{number:04d}", WRONG if number % 3 == 0 else {}
        write(filled(SET, student=student, wrong=wrong), folder / "class", student, SET)
        deserved[student] = maximum(SET) - len(wrong)
    return deserved


def graded(folder: Path, work: Path, workers: int | str) -> None:
    """The class, graded as `threeloops grade` does."""
    course = Course(root=ROOT, work=work)
    silent(lambda: grade._grade_class(handed_in(folder / "class", [SET]), course, trust_students=True, workers=workers))


def points(course: Course, students: Iterable[str]) -> dict[str, float]:
    return {student: sum(score.points for score in course.scores(SET, student)) for student in students}


def taken(folder: Path, work: Path, workers: int, students: int) -> tuple[float, float, float]:
    """Processor seconds a submission outside and inside of the sandbox, and seconds in all."""
    Course(root=ROOT, work=work).prepare(SET)
    with sides(folder) as told:
        before = spent()
        wall = seconds(partial(graded, folder, work, workers))
        return (spent() - before) / students, sum(of_sides(told)) / students, wall


def against_stock(folder: Path, *, students: int, stock: int) -> None:
    deserved = class_of(folder, students)
    for workers in (1, 2):
        work = folder / f"by-{workers}"
        outside, inside, wall = taken(folder, work, workers, students)
        right = points(Course(root=ROOT, work=work), deserved) == deserved
        print(
            f"{students} submissions by {workers}: {fmt_seconds(outside + inside)} of processor time each (aim 250 ms),"
            f" {fmt_seconds(inside)} of it the student's side; {fmt_seconds(wall)} in all; scores"
            f" {'right' if right else 'WRONG'}"
        )
    theirs = StockCourse(root=ROOT, work=folder / "stock")
    theirs.prepare(SET)
    some = dict(itertools.islice(deserved.items(), stock))
    before = spent()
    for student in some:
        theirs.autograde(SET, student, json.loads((folder / "class" / student / f"{SET}.ipynb").read_text()))
    took = (spent() - before) / stock
    same = points(theirs, some) == some
    print(f"stock nbgrader, {stock} of them: {fmt_seconds(took)} each; {'the same' if same else 'OTHER'} scores")


def killed_at_random(folder: Path, *, students: int, each: int) -> None:
    """A class of two workers, one of which is killed after every few results, whatever it is at."""
    deserved, kills, chance = class_of(folder, students), 0, random.Random(7)
    work = folder / "killed"
    Course(root=ROOT, work=work).prepare(SET)
    run = multiprocessing.get_context("spawn").Process(target=graded, args=(folder, work, 2))
    run.start()
    while run.is_alive():
        wall_clock.pause(chance.uniform(0, 0.2))
        workers = children(run.pid or 0)
        if workers and len(list((work / "kept").glob("*/*.json"))) >= (kills + 1) * each:
            with contextlib.suppress(ProcessLookupError):
                os.kill(chance.choice(workers), signal.SIGKILL)
                kills += 1
    run.join()
    print(verdict(work, deserved, kills))


def verdict(work: Path, deserved: dict[str, float], kills: int) -> str:
    """What became of a class under attack."""
    with (work / f"grades-{SET}.csv").open(newline="", encoding="utf-8") as file:
        rows = Counter((row["student"], row["question"]) for row in csv.DictReader(file))
    found = points(Course(root=ROOT, work=work), deserved)
    lost = deserved.keys() - {student for student, question in rows if question}
    double = [row for row, count in rows.items() if count > 1]
    wrong = [student for student in deserved if found[student] != deserved[student]]
    return (
        f"{len(deserved):,} submissions, {kills} workers killed: {len(lost)} lost, {len(double)} double, {len(wrong)}"
        " wrong (aim 0, 0, 0)"
    )


def children(pid: int) -> list[int]:
    with contextlib.suppress(OSError):
        return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    return []


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
        print("in the sandbox" if not walls.problem() else f"without a sandbox: {walls.problem()}")
        against_stock(Path(place) / "class", students=2 if smoke else STUDENTS, stock=1 if smoke else STOCK)
        killed_at_random(Path(place) / "attacked", students=3 if smoke else KILLED, each=1 if smoke else 6)


if __name__ == "__main__":
    main(sys.argv[1:])
