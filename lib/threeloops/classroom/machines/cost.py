"""What grading a class costs: minutes on the wall, from processor seconds a submission that were measured
(tests/bench/machines.py --record).
"""

import datetime
import json
import math
from dataclasses import dataclass
from importlib import resources

from threeloops import checks
from threeloops.sandbox.walls import Limits

RECORD = "measured.json"
MINUTE_S = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class Way:
    """Processor seconds of one way to grade."""

    start_s: float  # until a worker is ready for its first submission; all get ready at once
    submission_s: float  # on a worker, its student's side included
    entering_s: float  # where the results come together, one after the other

    def __post_init__(self) -> None:
        checks.positive(submission_s=self.submission_s)
        checks.non_negative(start_s=self.start_s, entering_s=self.entering_s)


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """Both ways, and on what they were measured."""

    date: datetime.date
    machine: str
    drill_set: str
    submissions: int
    here: Way  # --workers N: the workers themselves write into the gradebook
    there: Way  # --workers tcp://...: what is entered comes from other machines


def measured() -> Measured:
    """The recorded measurement.

    >>> record = measured()
    >>> record.here.submission_s > 0, record.there.entering_s > 0
    (True, True)
    """
    told = json.loads(resources.files(__package__).joinpath(RECORD).read_text(encoding="utf-8"))
    ways = {name: Way(**told.pop(name)) for name in ("here", "there")}
    return Measured(**told | ways | {"date": datetime.date.fromisoformat(told["date"])})


def wall_s(way: Way, *, submissions: int, cores: int) -> float:
    """Seconds on the wall for a class.

    Formula:  start + max(b w + r e, w + n e), with n submissions on c cores, b = ceil(n / c) of them one after the
              other on a core, r = n - (b - 1) c in the last round, w a submission's seconds and e those of entering it
    Assumes:  every core is the job's own and as fast as the one measured, every submission takes the same, the network
              takes nothing; no hand-in is slow or ended
    Raises:   ValueError unless both counts are whole and at least 1
    Source:   two stages in a row, of which the second takes one at a time; counted one by one in
              tests/classroom/test_cost.py

    >>> way = Way(start_s=5.0, submission_s=0.25, entering_s=0.01)
    >>> wall_s(way, submissions=300, cores=2), wall_s(way, submissions=300, cores=100)
    (42.52, 8.25)
    """
    checks.count(submissions=submissions, cores=cores)
    rounds = math.ceil(submissions / cores)
    last = submissions - (rounds - 1) * cores
    busy = rounds * way.submission_s + last * way.entering_s
    return way.start_s + max(busy, way.submission_s + submissions * way.entering_s)


def processor_s(way: Way, *, submissions: int, cores: int) -> float:
    """Processor seconds in all: every core starts once, every submission is graded and entered once.

    >>> processor_s(Way(start_s=5.0, submission_s=0.25, entering_s=0.01), submissions=300, cores=2)
    88.0
    """
    checks.count(submissions=submissions, cores=cores)
    return cores * way.start_s + submissions * (way.submission_s + way.entering_s)


CLASSES, HERE, THERE = (300, 3_000), (2, 8), (16, 32)  # hand-ins, and cores of one machine and of several
BEGIN, END = "<!-- measured: tests/bench/machines.py --record writes this -->", "<!-- until here -->"


def page(record: Measured) -> str:
    """What TEACHING.md says between its two marks.

    >>> BEGIN in page(measured()) and END in page(measured())
    True
    """
    rows = ["| hand-ins | cores | where | minutes | processor minutes |", "| ---: | ---: | --- | ---: | ---: |"]
    ways = (
        (record.here, "one machine, `--workers N`", HERE),
        (record.there, "several machines, `--workers tcp://…`", THERE),
    )
    for submissions in CLASSES:
        for way, where, sizes in ways:
            for cores in sizes:
                wall, busy = (
                    f"{ask(way, submissions=submissions, cores=cores) / MINUTE_S:.1f}" for ask in (wall_s, processor_s)
                )
                rows.append(f"| {submissions:,} | {cores} | {where} | {wall} | {busy} |")
    there, day = record.there, f"{record.date:%d %B %Y}".lstrip("0")
    where = f"{record.machine}; {record.submissions} hand-ins of `{record.drill_set}`, students' code included"
    said = (
        "What a class costs when every core is free and no student's code hangs (one that does takes a core for up to"
        f" {Limits().total_s:g} s), by the processor seconds of {day} ({where}):"
    )
    most = (
        f"Your machine enters {1 / there.entering_s:.0f} results a second from others: beyond"
        f" {there.submission_s / there.entering_s:.0f} cores of workers, more of them gain nothing."
    )
    return "\n".join((BEGIN, said, "", *rows, "", most, END))
