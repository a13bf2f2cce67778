"""Periodic tasks on one processor, played event by event with exact times: who runs when, and how long each job takes.

Knows no analysis: it keeps a list of jobs, and lets the one of highest priority run until something happens.

>>> brake, plan = Periodic(name="brake", cost=1, period=4), Periodic(name="plan", cost=3, period=10)
>>> played = play([brake, plan], until=20)
>>> played.longest_response("plan"), [(one.start, one.end) for one in played.slices if one.task == "plan"]
(4, [(1, 4), (10, 12), (13, 14)])
"""

import heapq
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from threeloops import checks

Time = Any  # whole numbers or fractions: then nothing is rounded
RULES = ("fixed", "edf")
PROTOCOLS = ("none", "ceiling")


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """A stretch of a job that holds a lock: begins after so much of its work, lasts so long."""

    after: Time
    length: Time
    lock: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Periodic:
    """A task: first released at `first`; with jitter, its first release comes late and the others do not."""

    name: str
    cost: Time
    period: Time
    first: Time = 0
    jitter: Time = 0
    deadline: Time = None  # the period, if not said
    section: Section | None = None

    def release(self, job: int) -> Time:
        return self.first if job == 0 else self.first + job * self.period - self.jitter

    def counts_from(self, job: int) -> Time:
        """When this job should have been released: its response counts from here."""
        return self.first + job * self.period - self.jitter

    @property
    def relative_deadline(self) -> Time:
        return self.period if self.deadline is None else self.deadline


@dataclass(frozen=True, slots=True, kw_only=True)
class Slice:
    """A stretch of time in which one job ran; `locked` where it held its lock. Jobs of a task count from 0."""

    task: str
    job: int
    start: Time
    end: Time
    locked: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Finished:
    task: str
    job: int
    release: Time
    finish: Time
    response: Time
    late: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Played:
    tasks: tuple[Periodic, ...]
    until: Time
    slices: tuple[Slice, ...]
    finished: tuple[Finished, ...]

    def longest_response(self, name: str) -> Time:
        """The longest response of a task's finished jobs."""
        return max(one.response for one in self.finished if one.task == name)

    @property
    def late(self) -> int:
        """Jobs that finished after their deadline."""
        return sum(one.late for one in self.finished)


@dataclass(slots=True)
class _Job:
    rank: int
    number: int
    task: Periodic
    done: Time = 0

    @property
    def in_section(self) -> bool:
        section = self.task.section
        return section is not None and section.after <= self.done < section.after + section.length

    def next_stop(self) -> Time:
        """Work until the job enters or leaves its section, or ends."""
        section = self.task.section
        stops = [self.task.cost] + ([section.after, section.after + section.length] if section else [])
        return min(stop for stop in stops if stop > self.done) - self.done


@dataclass(slots=True)
class _Processor:
    tasks: tuple[Periodic, ...]
    rule: str
    preemptive: bool
    protocol: str
    ready: list[_Job] = field(default_factory=list)
    holders: dict[str, _Job] = field(default_factory=dict)
    running: _Job | None = None

    def choose(self) -> _Job:
        """The job that runs now."""
        if self.running is not None and not self.preemptive:
            return self.running
        able = [job for job in self.ready if not self._waits(job)]
        return min(able, key=self._urgency)

    def _waits(self, job: _Job) -> bool:
        section = job.task.section
        return job.in_section and section is not None and self.holders.get(section.lock, job) is not job

    def _urgency(self, job: _Job) -> tuple[Time, int, int]:
        """Smaller runs first; whoever holds a lock under a ceiling is as urgent as the most urgent that may want it."""
        if self.rule == "edf":
            return job.task.counts_from(job.number) + job.task.relative_deadline, job.rank, job.number
        holds = job.task.section is not None and self.holders.get(job.task.section.lock) is job
        if self.protocol == "ceiling" and holds and job.task.section is not None:
            wanted = [r for r, t in enumerate(self.tasks) if t.section and t.section.lock == job.task.section.lock]
            return min(wanted), -1, job.number  # before the task whose priority it has borrowed
        return job.rank, 0, job.number

    def take_lock(self, job: _Job) -> None:
        if job.in_section and job.task.section is not None:
            self.holders[job.task.section.lock] = job

    def drop_lock(self, job: _Job) -> None:
        if not job.in_section and job.task.section is not None and self.holders.get(job.task.section.lock) is job:
            del self.holders[job.task.section.lock]


def play(
    tasks: Sequence[Periodic], *, until: Time, rule: str = "fixed", preemptive: bool = True, protocol: str = "none"
) -> Played:
    """All jobs released before `until`, each to its end. The tasks' order is their priority, the first one highest;
    with rule "edf" the earliest absolute deadline is. Locks are plain, or raise their holder to a ceiling.
    """
    checks.one_of(RULES, rule=rule)
    checks.one_of(PROTOCOLS, protocol=protocol)
    releases = [(task.release(0), rank, 0) for rank, task in enumerate(tasks)]
    heapq.heapify(releases)
    here = _Processor(tasks=tuple(tasks), rule=rule, preemptive=preemptive, protocol=protocol)
    now: Time = 0
    slices: list[Slice] = []
    finished: list[Finished] = []
    while here.ready or (releases and releases[0][0] < until):
        if not here.ready:
            now = max(now, releases[0][0])
        while releases and releases[0][0] <= now and releases[0][0] < until:
            _, rank, number = heapq.heappop(releases)
            here.ready.append(_Job(rank=rank, number=number, task=tasks[rank]))
            heapq.heappush(releases, (tasks[rank].release(number + 1), rank, number + 1))
        job = here.running = here.choose()
        here.take_lock(job)
        span = job.next_stop()
        if releases and releases[0][0] < until:
            span = min(span, releases[0][0] - now)
        _extend(slices, Slice(task=job.task.name, job=job.number, start=now, end=now + span, locked=job.in_section))
        now, job.done = now + span, job.done + span
        here.drop_lock(job)
        if job.done == job.task.cost:
            here.ready.remove(job)
            here.running = None
            finished.append(_finished(job, now))
    return Played(tasks=tuple(tasks), until=until, slices=tuple(slices), finished=tuple(finished))


def _extend(slices: list[Slice], new: Slice) -> None:
    """Add a stretch, as part of the one before where nothing happened between them."""
    last = slices[-1] if slices else None
    if last and (last.task, last.job, last.end, last.locked) == (new.task, new.job, new.start, new.locked):
        slices[-1] = replace(last, end=new.end)
    else:
        slices.append(new)


def _finished(job: _Job, now: Time) -> Finished:
    response = now - job.task.counts_from(job.number)
    late = response > job.task.relative_deadline
    release = job.task.release(job.number)
    return Finished(task=job.task.name, job=job.number, release=release, finish=now, response=response, late=late)
