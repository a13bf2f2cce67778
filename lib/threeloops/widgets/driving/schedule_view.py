"""Schedule view: what the explorer shows for a state, as figure, sentences and table. No widget in here: it is computed
and tested without a browser.

>>> shown = view(State(rule="shortest period first", perception=12, map=10))
>>> print(shown.summary)
The core is busy 86.4 % of the time. Longest responses: control 3, perception 18, map 49 ms. No task is late.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from threeloops import checks
from threeloops.driving import response_time
from threeloops.driving.response_time import Task
from threeloops.figures.driving import task_gantt
from threeloops.simulate.driving import task_schedule
from threeloops.simulate.driving.task_schedule import Periodic, Played
from threeloops.units import counted, fmt_percent
from threeloops.widgets.view import View

PERIODS = {"control": 10, "perception": 33, "map": 50}
ROUND = math.lcm(*PERIODS.values())  # after so long the clocks stand as at the start
SHOWN = 100  # ms that are drawn
CONTROL = 3  # ms that control computes
PERCEPTION, MAP = (4, 20), (2, 20)  # ms that the others may compute: from, to
RATE, SWAPPED, EDF, WHOLE = "shortest period first", "map before perception", "earliest deadline", "no preemption"
RULES = (RATE, SWAPPED, EDF, WHOLE)
COLUMNS = ("task", "computes", "every", "share", "longest by formula", "longest counted", "late")


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """Where the controls stand; costs in ms."""

    rule: str
    perception: int
    map: int

    def __post_init__(self) -> None:
        checks.one_of(RULES, rule=self.rule)
        for name, cost, (least, most) in (("perception", self.perception, PERCEPTION), ("map", self.map, MAP)):
            checks.count(at_least=least, **{name: cost})
            if cost > most:
                raise ValueError(f"{name}={cost} must be at most {most}")


def ordered(state: State) -> list[Periodic]:
    """The tasks, the highest priority first."""
    costs = {"control": CONTROL, "perception": state.perception, "map": state.map}
    names = ["control", "map", "perception"] if state.rule == SWAPPED else list(PERIODS)
    return [Periodic(name=name, cost=costs[name], period=PERIODS[name]) for name in names]


def played(state: State, *, until: int) -> Played:
    """All tasks released together, for so long."""
    return task_schedule.play(
        ordered(state), until=until, rule="edf" if state.rule == EDF else "fixed", preemptive=state.rule != WHOLE
    )


def longest(state: State) -> list[float | None]:
    """The longest response of each task by formula; None where this explorer has none to offer."""
    if state.rule == EDF:
        return [None] * len(PERIODS)
    tasks = [Task(cost=task.cost, period=task.period) for task in ordered(state)]
    if state.rule != WHOLE:
        return [response_time.response_time(task, above=tasks[:rank]) for rank, task in enumerate(tasks)]
    # clocks tick in whole milliseconds: a job below has begun a millisecond before at the latest
    return [
        response_time.non_preemptive_response_time(
            task, above=tasks[:rank], blocking=max((below.cost - 1 for below in tasks[rank + 1 :]), default=0)
        )
        for rank, task in enumerate(tasks)
    ]


def view(state: State) -> View:
    """What to show for a state."""
    whole, told = played(state, until=ROUND), longest(state)
    names = [task.name for task in whole.tasks]
    late = {name: sum(one.late for one in whole.finished if one.task == name) for name in names}
    busy = sum(task.cost / task.period for task in whole.tasks)
    worst = {name: whole.longest_response(name) for name in names}
    summary = (
        f"The core is {'busy' if busy <= 1 else 'asked for'} {fmt_percent(busy)} of the time. Longest responses:"
        f" {', '.join(f'{name} {worst[name]}' for name in names)} ms. {_late(late)}"
    )
    rows = tuple(
        (
            task.name,
            f"{task.cost} ms",
            f"{task.period} ms",
            fmt_percent(task.cost / task.period),
            _said(by_formula),
            f"{worst[task.name]} ms",
            str(late[task.name]),
        )
        for task, by_formula in zip(whole.tasks, told, strict=True)
    )
    figure = task_gantt.task_gantt(
        played(state, until=SHOWN),
        unit="ms",
        title=f"{state.rule.capitalize()}. {_late(late)[:-1]}",
        caption=f"The first {SHOWN} of {ROUND:,} ms, after which all begins anew.",
    )
    return View(columns=COLUMNS, figure=figure, summary=summary, rows=rows)


def _said(by_formula: float | None) -> str:
    if by_formula is None:
        return "–"
    return "beyond the period" if by_formula == math.inf else f"{by_formula} ms"


def _late(late: dict[str, int]) -> str:
    said: Sequence[str] = [f"{name} {counted(count, 'time')}" for name, count in late.items() if count]
    return f"Late: {', '.join(said)}." if said else "No task is late."
