"""Several at once: everything is done once, whoever is slow, whoever is killed."""

import multiprocessing
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from submissions import ROOT, filled, maximum, write
from test_grading_durable import FULL, SET, empty_gradebook, folder, run, table  # noqa: F401  (fixtures)
from tests.sandbox.sides import comes_to_be

from threeloops.classroom.course import Course
from threeloops.classroom.workers import Crew, usual
from threeloops.sandbox import walls

needs_fork = pytest.mark.skipif(
    "fork" not in multiprocessing.get_all_start_methods(), reason="the jobs of these tests cannot be sent elsewhere"
)
needs_walls = pytest.mark.skipif(bool(walls.problem()), reason=f"a class needs the sandbox: {walls.problem()}")


def crew(do: Callable[[int], int], number: int = 2) -> Crew[int, int]:
    return Crew(do, number=number, ready=lambda: None)


def squared(number: int) -> int:
    return number * number


def killed_at(where: int, kills: Path, most: int, number: int) -> int:
    """A job that ends its process from outside the first few times."""
    if number == where and len(list(kills.iterdir())) < most:
        (kills / str(time.monotonic_ns())).touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return number


def refusing(number: int) -> int:
    if number == 3:
        raise OSError(28, "no room")
    return number


def met(place: Path, number: int) -> int:
    """The first job waits for the last one: only another process can do that meanwhile."""
    (place / str(number)).touch()
    if number == 0 and not comes_to_be((place / "5").exists):
        return -1
    return number


@pytest.mark.parametrize("number", [1, 2, 3])
def test_every_job_is_done_once(number: int) -> None:
    with crew(squared, number) as many:
        assert sorted(many.each(range(20))) == [(job, job * job) for job in range(20)]
        assert sorted(many.each([7])) == [(7, 49)], "and again"


@needs_fork
def test_a_slow_one_holds_up_nobody(tmp_path: Path) -> None:
    with crew(partial(met, tmp_path)) as many:
        done = list(many.each(range(6)))
    assert done[-1] == (0, 0)
    assert len(done) == 6


@needs_fork
@pytest.mark.parametrize(("most", "came"), [(1, 5), (9, None)])
def test_a_killed_worker_loses_nothing(most: int, came: int | None, tmp_path: Path) -> None:
    """Its job is done again by another; one that ends every worker is given up, and the others are done."""
    with crew(partial(killed_at, 5, tmp_path, most)) as many:
        done = dict(many.each(range(10)))
    assert done == {job: job for job in range(10)} | {5: came}


@needs_fork
def test_what_concerns_all_is_raised() -> None:
    others = set(multiprocessing.active_children())  # of tests before this one, in the same process
    with pytest.raises(OSError, match="no room"), crew(refusing) as many:
        list(many.each(range(10)))
    assert set(multiprocessing.active_children()) <= others


def test_few_are_not_worth_a_second_process() -> None:
    assert (usual(1), usual(3), usual(3, 2), usual(1, 8), usual(0, 2)) == (1, 1, 2, 1, 1)


def class_of(students: int, place: Path) -> dict[str, float]:
    """A class's folder, and what everybody deserves."""
    deserved = {}
    for number in range(students):
        student, wrong = f"s{number}", {"a-batch": "batch_cache = '1 GB'"} if number % 3 == 0 else {}
        write(filled(SET, student=student, wrong=wrong), place / "class", student, SET)
        deserved[student] = maximum(SET) - len(wrong)
    return deserved


def is_whole(place: Path, deserved: dict[str, float]) -> bool:
    """Table, gradebook and pages say what was deserved, once."""
    course = Course(root=ROOT, work=place / "work")
    scores = {student: sum(score.points for score in course.scores(SET, student)) for student in deserved}
    pages = all((course.folder("feedback", student, SET) / f"{SET}.html").exists() for student in deserved)
    return pages and scores == deserved == {student: row[1] for student, row in table(place).items()}


def marks(place: Path) -> dict[str, int]:
    """When each student was marked as graded, in nanoseconds: who is graded again has a new mark."""
    return {path.parent.name: path.stat().st_mtime_ns for path in (place / "work" / "kept").rglob("*.json")}


@needs_walls
@needs_fork
def test_a_class_loses_no_one_when_a_worker_is_killed(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:  # noqa: F811
    """kill -9 in the middle of one's grading, and of another's feedback page."""
    deserved = class_of(4, folder)
    real = {"autograde": Course.autograde, "feedback": Course.feedback}

    def killed_once(
        stage: str, at: str, course: Course, name: str, student: str, *rest: object, **words: object
    ) -> object:
        mark = folder / f"killed-{stage}"
        if student == at and not mark.exists():
            mark.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return real[stage](course, name, student, *rest, **words)  # type: ignore[operator]

    for stage, at in (("autograde", "s1"), ("feedback", "s2")):
        bound = partial(killed_once, stage, at)
        monkeypatch.setattr(Course, stage, lambda *given, bound=bound, **words: bound(*given, **words))
    assert run(folder, "--workers", 2) == 0
    assert len(list(folder.glob("killed-*"))) == 2
    assert {row[0] for row in table(folder).values()} == {"graded"}
    assert is_whole(folder, deserved)


@needs_walls
@needs_fork
def test_a_run_killed_with_two_workers_goes_on_where_it_stopped(folder: Path) -> None:  # noqa: F811
    """kill -9 of the one who hands out: the workers go with it, the folder is free, the next run does the rest."""
    deserved = class_of(6, folder)
    words = [sys.executable, "-m", "threeloops", "grade", folder / "class", "--into", folder / "work"]
    first = subprocess.Popen([*map(str, words), "--workers", "2"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    so_far = folder / "work" / f"so-far-{SET}.csv"
    assert comes_to_be(lambda: so_far.exists() and "s" in so_far.read_text().partition("\n")[2], 120)
    first.kill()
    first.wait()
    marks = {path.parent.name for path in (folder / "work" / "kept").rglob("*.json")}
    assert comes_to_be(lambda: run(folder, "--workers", 2) == 0)
    assert is_whole(folder, deserved)
    assert {path.parent.name for path in (folder / "work" / "kept").rglob("*.json")} == set(deserved) >= marks


@needs_walls
@needs_fork
def test_two_workers_give_the_scores_of_one(folder: Path) -> None:  # noqa: F811
    deserved = class_of(3, folder)
    tables = []
    for number in (1, 2):
        assert run(folder, "--again", "--workers", number) == 0
        assert is_whole(folder, deserved)
        tables.append((folder / "work" / f"grades-{SET}.csv").read_text())
    assert tables[0] == tables[1]
    assert FULL in deserved.values()
