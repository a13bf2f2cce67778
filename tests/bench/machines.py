"""What grading through a scheduler of Dask's costs, beside processes of this machine; and a class of a thousand whose
workers are killed at random.

Run it as a script; `--smoke` is the smallest run, `--record` keeps what was measured for the table in TEACHING.md,
`--attack` is the thousand alone. All processes listen on this machine's loopback alone. Aim: nobody lost, nobody twice,
nobody wrong.
"""

import contextlib
import json
import multiprocessing
import os
import platform
import random
import signal
import sys
import tempfile
import time
from functools import partial
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))

from tests.bench.grading import (
    SET,
    class_of,
    graded,
    of_sides,
    points,
    seconds,
    side_spent,
    sides,
    spent,
    taken,
    verdict,
)
from tests.classroom.machines import grading, machines
from tests.classroom.submissions import ROOT
from threeloops import wall_clock
from threeloops.classroom.course import Course
from threeloops.classroom.machines import cost
from threeloops.units import fmt_seconds

STUDENTS, ATTACKED, EACH, WORKERS = 60, 1_000, 60, 2


def here(folder: Path, students: int) -> dict[str, float]:
    """Processes of this machine."""
    deserved = class_of(folder, students)
    before = spent()
    with sides(folder) as told:
        graded(folder, folder / "ready", 1)  # the templates and the warm process, for both
    whole = spent() - before + sum(of_sides(told))
    outside, inside, wall = taken(folder, folder / "here", WORKERS, students)
    each = outside + inside
    told_right(folder / "here", deserved)
    print(f"{students} by {WORKERS} processes: {fmt_seconds(each)} of processor time each; {fmt_seconds(wall)} in all")
    return {"start_s": max(0.0, whole - students * each), "submission_s": each, "entering_s": 0.0}


def there(folder: Path, students: int, side_s: float) -> dict[str, float]:
    """A scheduler and workers; the student's side, which leaves no trace there, is put in. A few go first, so that
    everybody is ready.
    """
    work = folder / "work"
    with machines(folder / "machines") as started:
        nanny = started.workers(WORKERS).pid
        class_of(folder, WORKERS)
        graded(folder, work, started.address)
        start = sum(map(side_spent, grading(nanny)))
        deserved, before = class_of(folder, students + WORKERS), spent()
        wall = seconds(partial(graded, folder, work, started.address))
        entering = (spent() - before) / students
        each = (sum(map(side_spent, grading(nanny))) - start) / students
    told_right(work, deserved)
    print(
        f"{students} by {WORKERS} workers of Dask: {fmt_seconds(each + side_s)} of processor time each there, and"
        f" {fmt_seconds(entering)} here to enter it; {fmt_seconds(wall)} in all"
    )
    return {"start_s": max(0.0, start / WORKERS - each), "submission_s": each + side_s, "entering_s": entering}


def told_right(work: Path, deserved: dict[str, float]) -> None:
    assert points(Course(root=ROOT, work=work), deserved) == deserved


def measured(folder: Path, students: int) -> dict[str, Any]:
    one = here(folder / "here", students)
    with sides(folder) as told:
        graded(folder / "here", folder / "sides", 1)
    lines = [line.split() for line in told.read_text().splitlines()]
    side_s = sum(float(taken_s) for name, taken_s in lines if name.startswith("student-")) / students
    ways = {"here": one, "there": there(folder / "there", students, side_s)}
    return {
        "date": wall_clock.today().isoformat(),
        "machine": processor(),
        "drill_set": SET,
        "submissions": students,
        **{name: {key: round(value, 4) for key, value in way.items()} for name, way in ways.items()},
    }


def processor() -> str:
    """What it runs on, and how much else does: processor seconds grow beside other work."""
    told = Path("/proc/cpuinfo").read_text() if Path("/proc/cpuinfo").exists() else ""
    names = [line.partition(":")[2].strip() for line in told.splitlines() if line.startswith("model name")]
    load = f", load {os.getloadavg()[0]:.0f}" if hasattr(os, "getloadavg") else ""
    return f"{names[0] if names else platform.machine()}, {os.cpu_count()} cores{load}"


def attacked(folder: Path, *, students: int, each: int) -> None:
    """A worker is killed after every few results, whatever it is at; its nanny starts another."""
    deserved, kills, chance = class_of(folder, students), 0, random.Random(11)
    work = folder / "attacked"
    with machines(folder / "machines") as started:
        nanny = started.workers(WORKERS).pid
        run = multiprocessing.get_context("spawn").Process(target=graded, args=(folder, work, started.address))
        begun = time.monotonic()
        run.start()
        while run.is_alive():
            wall_clock.pause(chance.uniform(0, 1))
            workers = grading(nanny)
            if workers and len(list((work / "kept").glob("*/*.json"))) >= (kills + 1) * each:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(chance.choice(workers), signal.SIGKILL)
                    kills += 1
        run.join()
        assert run.exitcode == 0, started.log()
    print(f"{students:,} in {fmt_seconds(time.monotonic() - begun)} by {WORKERS} workers of Dask")
    print(verdict(work, deserved, kills))


def record(told: dict[str, Any]) -> None:
    """Keep it, and say it on the teacher's page."""
    (Path(cost.__file__).parent / cost.RECORD).write_text(json.dumps(told, indent=1) + "\n", encoding="utf-8")
    page = ROOT / "TEACHING.md"
    before, _, rest = page.read_text(encoding="utf-8").partition(cost.BEGIN)
    page.write_text(before + cost.page(cost.measured()) + rest.partition(cost.END)[2], encoding="utf-8")


def main(words: list[str]) -> None:
    smoke = "--smoke" in words
    with tempfile.TemporaryDirectory() as place:
        if "--attack" not in words:
            for part in ("here", "there"):
                (Path(place) / part).mkdir()
            told = measured(Path(place), 2 if smoke else STUDENTS)
            if "--record" in words:
                record(told)
        attacked(Path(place) / "attacked", students=3 if smoke else ATTACKED, each=1 if smoke else EACH)


if __name__ == "__main__":
    main(sys.argv[1:])
