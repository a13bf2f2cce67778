"""Response times of periodic tasks that share one processor under fixed priorities.

A task is released every period, computes for at most its cost, and must finish within its deadline. Times may be
floats, whole numbers or fractions: with fractions the results are exact.

>>> camera, plan, log = Task(cost=20, period=100), Task(cost=30, period=145), Task(cost=68, period=150)
>>> response_time(log, above=[camera, plan])  # 68 + 2 * 20 + 30
138
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from threeloops import checks

Time = Any  # seconds, or any other unit throughout: int, float or Fraction


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """Worst-case cost of a job, time between two releases, and by how much a release may be late (jitter)."""

    cost: Time
    period: Time
    jitter: Time = 0

    def __post_init__(self) -> None:
        checks.positive(cost=self.cost, period=self.period)
        checks.non_negative(jitter=self.jitter)


def total_utilisation(tasks: Sequence[Task]) -> Time:
    """The share of time that the processor works.

    Formula:  sum of cost / period
    Source:   Liu and Layland, Journal of the ACM 20(1), 1973, doi:10.1145/321738.321743
    Counted:  drills.deadlines.waits.UTILISATION

    >>> total_utilisation([Task(cost=2, period=8), Task(cost=3, period=12)])
    0.5
    """
    checks.count(tasks=len(tasks))
    return sum(task.cost / task.period for task in tasks)


def utilisation_bound(*, tasks: int) -> float:
    """The utilisation up to which rate-monotonic priorities meet every deadline, whatever the periods.

    Formula:  n * (2^(1/n) - 1); falls to ln 2 = 0.693 for many tasks
    Assumes:  deadline = period, no blocking, priority by rate (the shorter the period, the higher). Sufficient, not
              necessary: a set above the bound may still be schedulable
    Source:   Liu and Layland, Journal of the ACM 20(1), 1973, doi:10.1145/321738.321743, theorem 5
    Counted:  simulate.driving.task_schedule.play

    >>> round(utilisation_bound(tasks=3), 4)
    0.7798
    """
    checks.count(tasks=tasks)
    return float(tasks * (2 ** (1 / tasks) - 1))


def response_time(task: Task, *, above: Sequence[Task], blocking: Time = 0) -> Time:
    """The longest time from a release to its finish, preemptive; infinite where it exceeds the period.

    Formula:  w = cost + blocking + sum over tasks above of ceil((w + their jitter) / their period) * their cost, from
              the smallest w on until it stays; the response is w + own jitter
    Assumes:  all tasks are released together at the worst moment; each of higher priority may preempt at once; blocking
              is the longest section of a task of lower priority that must be waited for, once (priority ceiling);
              preemption itself is free, and no task suspends itself (to wait for a GPU, say). Beyond the period the
              next job waits as well, and this formula no longer holds
    Source:   Joseph and Pandya, The Computer Journal 29(5), 1986; Audsley, Burns, Richardson, Tindell and Wellings,
              Software Engineering Journal 8(5), 1993 (blocking, jitter)
    Counted:  simulate.driving.task_schedule.play

    >>> brake, plan = Task(cost=1, period=4), Task(cost=3, period=10)
    >>> response_time(plan, above=[brake]), response_time(brake, above=[], blocking=2)
    (4, 3)
    """
    checks.non_negative(blocking=blocking)
    window, longer = 0, task.cost + blocking
    while longer != window:
        window = longer
        if window + task.jitter > task.period:
            return math.inf
        longer = task.cost + blocking + sum(_releases_within(window, other) * other.cost for other in above)
    return window + task.jitter


def non_preemptive_response_time(task: Task, *, above: Sequence[Task], blocking: Time = 0) -> Time:
    """The longest response where a job that has begun runs to its end, as a copy or a kernel does.

    Formula:  start of job q: w = blocking + q * cost + sum over tasks above of (floor(w / period) + 1) * cost, until
              it stays; response = max over q of w + cost - q * period, over the jobs of the longest busy time
    Assumes:  blocking is the longest cost of a task of lower priority, less the smallest step of time where time has
              one; no jitter; utilisation of this task and those above below 1 (else infinite)
    Source:   George, Rivierre and Spuri, INRIA report RR-2966, 1996; Davis, Burns, Bril and Lukkien, Real-Time Systems
              35, 2007 (why every job of the busy time counts)
    Counted:  simulate.driving.task_schedule.play

    >>> brake, plan = Task(cost=1, period=4), Task(cost=3, period=10)
    >>> non_preemptive_response_time(brake, above=[], blocking=3)
    4
    """
    checks.non_negative(blocking=blocking)
    if total_utilisation([task, *above]) >= 1:
        return math.inf
    busy = _busy_time(task, above, blocking)
    responses = []
    for job in range(math.ceil(busy / task.period)):
        start, later = None, blocking + job * task.cost
        while later != start:
            start = later
            later = (
                blocking + job * task.cost + sum((math.floor(start / other.period) + 1) * other.cost for other in above)
            )
        responses.append(later + task.cost - job * task.period)
    return max(responses)


def _releases_within(window: Time, other: Task) -> Time:
    return math.ceil((window + other.jitter) / other.period)


def _busy_time(task: Task, above: Sequence[Task], blocking: Time) -> Time:
    """How long this task and those above keep the processor without a pause."""
    busy, longer = 0, blocking + task.cost
    while longer != busy:
        busy = longer
        longer = blocking + sum(math.ceil(busy / other.period) * other.cost for other in (task, *above))
    return busy
