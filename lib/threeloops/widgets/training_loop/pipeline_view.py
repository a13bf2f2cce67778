"""Pipeline view: what the explorer shows for a state, as figure, sentences and table. No widget in here: it is
computed and tested without a browser.

>>> shown = view(State(schedule="1f1b", pp=4, micro_batches=8, step=4))
>>> print(shown.summary)
Step 4 of 31, time 4: rank 1 waits; rank 2 waits; rank 3 waits; rank 4 runs B1. In flight: 4, 3, 2, 1.
"""

import functools
from bisect import bisect_right
from dataclasses import dataclass

from threeloops import checks
from threeloops.figures.training_loop import pipeline_gantt
from threeloops.simulate.training_loop.pipeline_orders import BACKWARD, FORWARD, WEIGHT_GRADIENT
from threeloops.simulate.training_loop.pipeline_schedules import Run, Work, run
from threeloops.units import fmt_percent
from threeloops.widgets.view import View

SCHEDULES = {
    "GPipe": "gpipe",
    "1F1B": "1f1b",
    "interleaved 1F1B, 2 chunks": "interleaved",
    "zero bubble H1": "zb-h1",
    "zero bubble H2": "zb-h2",
    "DualPipe": "dualpipe",
}
STAGES = (2, 4, 6, 8)
COLUMNS = ("rank", "now", "in flight", "most in flight", "idle in the step")
# Units of time that a part of the step shows: so many that two digits fit into the bar of a forward pass. A step that
# is hardly longer is shown whole.
PART, WHOLE = 28, 36
SHOWN = {"around the moment": False, "the whole step": True}
EVEN = Work(forward_s=1, input_gradient_s=1, weight_gradient_s=1, overlapped_s=3)


def micro_batch_choices(schedule: str, pp: int) -> tuple[int, ...]:
    """Numbers of micro-batches that a schedule can have."""
    whole = (pp, 2 * pp, 3 * pp, 4 * pp)
    if schedule in ("gpipe", "1f1b"):
        return tuple(sorted({1, pp // 2, *whole}))
    return whole[1:] if schedule in ("zb-h2", "dualpipe") else whole


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """Where the controls stand."""

    schedule: str
    pp: int
    micro_batches: int
    step: int  # how many moments, at which anything begins or ends, have passed
    whole: bool = False  # a long step is drawn whole, with bars too narrow for their names

    def __post_init__(self) -> None:
        checks.one_of(SCHEDULES.values(), schedule=self.schedule)
        checks.count(at_least=0, step=self.step)
        if self.pp not in STAGES:
            raise ValueError(f"pp={self.pp!r} must be one of {', '.join(map(str, STAGES))}")
        choices = micro_batch_choices(self.schedule, self.pp)
        if self.micro_batches not in choices:
            raise ValueError(
                f"micro_batches={self.micro_batches!r} must be one of {', '.join(map(str, choices))} for"
                f" {self.schedule!r} and pp={self.pp}"
            )
        last = len(moments(self.schedule, self.pp, self.micro_batches)) - 1
        if self.step > last:
            raise ValueError(f"step={self.step} must be at most {last}, where the last pass has ended")


@functools.lru_cache(maxsize=32)
def played(schedule: str, pp: int, micro_batches: int) -> Run:
    """The schedule with even stages, where F, D and W take one unit of time each."""
    return run(
        schedule=schedule,
        pp=pp,
        micro_batches=micro_batches,
        chunks=2 if schedule == "interleaved" else 1,
        work=EVEN,
        send_s=0,
    )


@functools.lru_cache(maxsize=32)
def moments(schedule: str, pp: int, micro_batches: int) -> tuple[float, ...]:
    """The times at which a pass begins or ends."""
    slots = [slot for rank in played(schedule, pp, micro_batches).operations for slot in rank]
    return tuple(sorted({round(time_s, 6) for slot in slots for time_s in (slot.start_s, slot.end_s)}))


def view(state: State) -> View:
    """What to show for a state: everything that has begun by its step, and what each rank does right after."""
    done = played(state.schedule, state.pp, state.micro_batches)
    times = moments(state.schedule, state.pp, state.micro_batches)
    now_s = times[state.step]
    doing = [_doing(done, rank, now_s) for rank in range(state.pp)]
    alive = [_alive(done, rank, now_s) for rank in range(state.pp)]
    label = next(name for name, key in SCHEDULES.items() if key == state.schedule)
    figure = pipeline_gantt.gantt(
        done,
        title=f"{label}: ranks are idle for {fmt_percent(done.idle_share)} of the step",
        caption=(
            f"{state.pp} stages, {state.micro_batches} micro-batches; a forward pass takes 1, a whole backward pass 2."
            f" Shown up to time {now_s:g}."
        ),
        now_s=now_s,
        span_s=_span(done.step_s, now_s, whole=state.whole),
    )
    told = "; ".join(f"rank {rank + 1} {what}" for rank, what in enumerate(doing))
    summary = (
        f"Step {state.step} of {len(times) - 1}, time {now_s:g}: {told}. In flight:"
        f" {', '.join(f'{number:g}' for number in alive)}."
    )
    peaks, idle = done.peak_alive(), [fmt_percent(idle_s / done.step_s) for idle_s in done.idle_s]
    rows = tuple(
        (f"{rank + 1}", doing[rank], f"{alive[rank]:g}", f"{peaks[rank]:g}", idle[rank]) for rank in range(state.pp)
    )
    return View(columns=COLUMNS, figure=figure, summary=summary, rows=rows)


def _span(step_s: float, now_s: float, *, whole: bool) -> tuple[float, float]:
    """From when to when is drawn: where the step is long, what lies around the moment, most of it before."""
    if whole or step_s <= WHOLE:
        return 0, step_s
    start_s = min(max(0.0, now_s - 0.75 * PART), step_s - PART)
    return start_s, start_s + PART


def _doing(done: Run, rank: int, now_s: float) -> str:
    slots = done.operations[rank]
    last = bisect_right(slots, now_s + 1e-6, key=lambda slot: slot.start_s) - 1
    if last >= 0 and now_s < slots[last].end_s - 1e-6:
        return f"runs {pipeline_gantt.name(slots[last].passes)}"
    return "is done" if last == len(slots) - 1 else "waits"


def _alive(done: Run, rank: int, now_s: float) -> float:
    """Micro-batches that have begun their forward pass and not ended their backward pass (weight gradients
    included).
    """
    alive = 0
    for passes, start_s, end_s in done.operations[rank]:
        if start_s <= now_s + 1e-6:
            alive += sum(one.kind == FORWARD for one in passes)
            if end_s <= now_s + 1e-6:
                alive -= sum(one.kind in (BACKWARD, WEIGHT_GRADIENT) for one in passes)
    return alive / done.chunks
