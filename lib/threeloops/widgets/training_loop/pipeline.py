"""Pipeline explorer: choose a schedule, stages and micro-batches, and step through who works on what and who waits.

In a notebook:

    from threeloops.widgets.training_loop import pipeline as pipeline_widget
    pipeline_widget.explorer()
"""

from dataclasses import replace
from typing import Any

from threeloops.widgets.controls import Control, menu, slider
from threeloops.widgets.explorer import Explorer
from threeloops.widgets.training_loop.pipeline_view import (
    SCHEDULES,
    SHOWN,
    STAGES,
    State,
    micro_batch_choices,
    moments,
    view,
)

START = State(schedule="1f1b", pp=4, micro_batches=8, step=0)
TICK_MS = 600  # while it plays: a step, slow enough to be followed


def controls(state: State) -> tuple[Control, ...]:
    """What can be turned."""
    return (
        menu("schedule", "schedule", SCHEDULES),
        slider("pp", "stages", STAGES),
        slider("micro_batches", "micro-batches", micro_batch_choices(state.schedule, state.pp)),
        menu("whole", "shown", SHOWN),
        slider("step", "step", range(_last(state) + 1), plays_ms=TICK_MS),
    )


def settled(state: State, at: dict[str, Any]) -> State:
    """Another schedule takes the nearest number of micro-batches that it can have; another picture is shown whole."""
    choices = micro_batch_choices(at["schedule"], at["pp"])
    at["micro_batches"] = min(choices, key=lambda choice: abs(choice - at["micro_batches"]))
    if any(at[name] != getattr(state, name) for name in ("schedule", "pp", "micro_batches")):
        at["step"] = len(moments(at["schedule"], at["pp"], at["micro_batches"])) - 1
    return State(**at)


def _last(state: State) -> int:
    return len(moments(state.schedule, state.pp, state.micro_batches)) - 1


def explorer(state: State = START) -> Explorer[State]:
    """The explorer, with its controls at a state; as the last line of a cell, it shows itself."""
    return Explorer(state, view=view, controls=controls, settled=settled, still=replace(state, step=_last(state)))
