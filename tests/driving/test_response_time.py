"""Response-time analysis against tasks that are played event by event."""

import itertools
import math
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from threeloops.driving import response_time as analysis
from threeloops.driving.response_time import Task
from threeloops.simulate.driving import task_schedule
from threeloops.simulate.driving.task_schedule import Periodic, Section

EPSILON = Fraction(1, 1000)


@st.composite
def task_sets(draw: st.DrawFn, *, most: int = 4) -> list[Task]:
    """A few tasks with whole costs and periods, by rate, that may or may not fit."""
    periods = draw(st.lists(st.integers(2, 24), min_size=1, max_size=most))
    return [Task(cost=draw(st.integers(1, max(1, period // 2))), period=period) for period in sorted(periods)]


def named(tasks: list[Task]) -> list[Periodic]:
    return [
        Periodic(name=str(rank), cost=task.cost, period=task.period, jitter=task.jitter)
        for rank, task in enumerate(tasks)
    ]


def played_once(tasks: list[Periodic], rank: int) -> object:
    """The response of the first job of a task."""
    until = tasks[rank].period
    jobs = task_schedule.play(tasks, until=until).finished
    return min((one for one in jobs if one.task == str(rank)), key=lambda one: one.release).response


@given(task_sets())
@settings(max_examples=300, deadline=None)
def test_released_together_the_first_job_takes_as_long_as_the_analysis_says(tasks: list[Task]) -> None:
    for rank, task in enumerate(tasks):
        response = analysis.response_time(task, above=tasks[:rank])
        if response == math.inf:
            assert played_once(named(tasks), rank) > task.period
        else:
            assert played_once(named(tasks), rank) == response


@given(task_sets(most=3), st.lists(st.integers(0, 20), min_size=3, max_size=3))
@settings(max_examples=200, deadline=None)
def test_no_other_clocks_are_worse(tasks: list[Task], firsts: list[int]) -> None:
    shifted = [
        Periodic(name=str(rank), cost=task.cost, period=task.period, first=first)
        for rank, (task, first) in enumerate(zip(tasks, firsts, strict=False))
    ]
    played = task_schedule.play(shifted, until=20 + 2 * math.lcm(*(task.period for task in tasks)))
    for rank, task in enumerate(tasks):
        assert played.longest_response(str(rank)) <= analysis.response_time(task, above=tasks[:rank])


@given(task_sets(most=3), st.integers(0, 3))
@settings(max_examples=200, deadline=None)
def test_a_late_first_release_costs_what_jitter_says(tasks: list[Task], jitter: int) -> None:
    late = [Task(cost=task.cost, period=task.period, jitter=min(jitter, task.period - 1)) for task in tasks]
    for rank, task in enumerate(late):
        response = analysis.response_time(task, above=late[:rank])
        if response != math.inf:
            assert played_once(named(late), rank) == response


@given(task_sets(most=3), st.integers(1, 6))
@settings(max_examples=200, deadline=None)
def test_a_lower_task_that_has_just_locked_blocks_once(tasks: list[Task], length: int) -> None:
    """The lower task enters its section a moment before all others are released, and has their ceiling."""
    above = [
        Periodic(
            name=str(rank),
            cost=task.cost,
            period=task.period,
            first=EPSILON,
            section=Section(after=task.cost - EPSILON, length=EPSILON, lock="map") if rank == 0 else None,
        )
        for rank, task in enumerate(tasks)
    ]
    lower = Periodic(name="lower", cost=length, period=1000, section=Section(after=0, length=length, lock="map"))
    for rank, task in enumerate(tasks):
        response = analysis.response_time(task, above=tasks[:rank], blocking=length - EPSILON)
        if response != math.inf:
            jobs = task_schedule.play([*above, lower], until=task.period, protocol="ceiling").finished
            assert max(one.response for one in jobs if one.task == str(rank)) == response


def test_without_a_ceiling_a_middle_task_prolongs_the_wait() -> None:
    """Priority inversion: high waits for low's lock, and low waits for middle."""
    high = Periodic(name="high", cost=3, period=100, first=2, section=Section(after=1, length=1, lock="map"))
    middle = Periodic(name="middle", cost=20, period=100, first=3)
    low = Periodic(name="low", cost=6, period=100, section=Section(after=1, length=4, lock="map"))
    response = {
        protocol: task_schedule.play([high, middle, low], until=50, protocol=protocol).longest_response("high")
        for protocol in task_schedule.PROTOCOLS
    }
    # plain: 1 alone, then 20 of middle, then 3 of low's section, then 2 of its own; ceiling: the section, then its own
    assert response == {"none": 26, "ceiling": 6}
    assert analysis.response_time(Task(cost=3, period=100), above=[], blocking=4) >= response["ceiling"]


@given(task_sets(most=3), st.integers(1, 6))
@settings(max_examples=200, deadline=None)
def test_non_preemptive_jobs_take_as_long_as_the_analysis_says(tasks: list[Task], cost: int) -> None:
    if analysis.total_utilisation(tasks) >= Fraction(95, 100):
        return
    exact = [Task(cost=Fraction(task.cost), period=Fraction(task.period)) for task in tasks]
    above = [
        Periodic(name=str(rank), cost=task.cost, period=task.period, first=EPSILON) for rank, task in enumerate(exact)
    ]
    for rank, task in enumerate(exact):
        longest = max([one.cost for one in exact[rank + 1 :]] + [Fraction(cost)])
        response = analysis.non_preemptive_response_time(task, above=exact[:rank], blocking=longest - EPSILON)
        # the longest job below begins first; the others below come later, the task and those above a moment after it
        first = Periodic(name="first", cost=longest, period=10_000)
        jobs = task_schedule.play([*above[: rank + 1], first], until=600, preemptive=False).finished
        assert max(one.response for one in jobs if one.task == str(rank)) == response


@given(task_sets(most=4))
@settings(max_examples=200, deadline=None)
def test_below_the_bound_nothing_is_late(tasks: list[Task]) -> None:
    if analysis.total_utilisation(tasks) <= analysis.utilisation_bound(tasks=len(tasks)):
        assert task_schedule.play(named(tasks), until=math.lcm(*(task.period for task in tasks))).late == 0


@pytest.mark.parametrize("tasks", [2, 3, 5, 10])
def test_a_hair_above_the_bound_some_set_is_late(tasks: int) -> None:
    """The least favourable set of Liu and Layland: periods a constant ratio apart, costs the gaps between them."""
    scale = 10**6
    periods = [round(scale * 2 ** (rank / tasks)) for rank in range(tasks)]
    costs = [later - one for one, later in itertools.pairwise(periods)]
    costs.append(2 * periods[0] - periods[-1])
    worst = [Task(cost=cost, period=period) for cost, period in zip(costs, periods, strict=True)]
    assert float(analysis.total_utilisation(worst)) == pytest.approx(analysis.utilisation_bound(tasks=tasks), abs=1e-5)
    assert task_schedule.play(named(worst), until=2 * scale).late == 0
    more = [Task(cost=worst[0].cost + scale // 1000, period=worst[0].period), *worst[1:]]
    assert task_schedule.play(named(more), until=2 * scale).late > 0


@given(task_sets(most=3).filter(lambda tasks: math.lcm(*(task.period for task in tasks)) <= 1000))
@settings(max_examples=100, deadline=None)
def test_earliest_deadline_first_is_late_only_above_one(tasks: list[Task]) -> None:
    played = task_schedule.play(named(tasks), until=math.lcm(*(task.period for task in tasks)), rule="edf")
    whole = sum(Fraction(task.cost, task.period) for task in tasks)
    assert (played.late == 0) == (whole <= 1)


def test_an_exercise_of_a_textbook() -> None:
    """Stallings, Operating Systems, chapter 10: (20, 100), (30, 145), (68, 150) lie above the bound and are in time."""
    tasks = [Task(cost=20, period=100), Task(cost=30, period=145), Task(cost=68, period=150)]
    assert analysis.total_utilisation(tasks) > analysis.utilisation_bound(tasks=3)
    assert [analysis.response_time(task, above=tasks[:rank]) for rank, task in enumerate(tasks)] == [20, 50, 138]


def test_refusals() -> None:
    with pytest.raises(ValueError, match="cost=0"):
        Task(cost=0, period=5)
    with pytest.raises(ValueError, match="blocking"):
        analysis.response_time(Task(cost=1, period=5), above=[], blocking=-1)
    full = [Task(cost=1, period=2)]
    assert analysis.non_preemptive_response_time(Task(cost=1, period=2), above=full) == math.inf
