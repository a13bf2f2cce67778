"""Deadline explorer: a chain's stages against the camera's period, above the cars as they are and as the newest answer
believes them to be; set the stages' times, switch repairs on and off, let it play, or step by hand.

In a notebook:

    from threeloops.widgets.driving import deadline
    deadline.explorer()
"""

from dataclasses import replace
from typing import Any

from threeloops.units import fmt_seconds, ms
from threeloops.widgets.controls import Control, menu, slider
from threeloops.widgets.driving import deadline_replay
from threeloops.widgets.driving.deadline_view import OWN_S, STAGES, START, State, view
from threeloops.widgets.explorer import Explorer

TICK_MS = 300  # while it plays: a hundred-and-twentieth of a second of the drive


def controls(state: State) -> tuple[Control, ...]:
    """What can be turned: the stages in a row, the time of the one that is chosen, every repair, the moment."""
    stages = Control(
        name="stage",
        label="stage",
        words=STAGES,
        values=STAGES,
        kind="tiles",
        notes=tuple(map(fmt_seconds, state.set_s)),
    )
    own = {"recorded" if one is None else f"{one / ms:.0f} ms": one for one in OWN_S}
    return (
        stages,
        slider("own_s", "time of this stage", own),
        menu("shared", "backbones", {"three, one a task": False, "one, shared": True}),
        menu("int8", "convolutions", {"FP32": False, "INT8": True}),
        menu("predicted", "boxes", {"as seen": False, "moved on by the tracker": True}),
        menu("queue", "busy chain", {"drops the frame": False, "queues the frame": True}),
        menu("crowded", "processor", {"quiet": False, "two neighbour processes": True}),
        slider("moment", "moment", range(deadline_replay.moments() + 1), plays_ms=TICK_MS),
    )


def settled(state: State, at: dict[str, Any]) -> State:
    """Where the controls stand now. The slider's time belongs to the stage that was chosen when it was turned."""
    turned = {name: value for name, value in at.items() if name != "own_s"}
    if at["stage"] != state.stage:
        return replace(state, **turned)
    own = (at["own_s"] if name == state.stage else one for name, one in zip(STAGES, state.own, strict=True))
    return replace(state, **turned, own=tuple(own))


def explorer(state: State = START) -> Explorer[State]:
    """The explorer, with its controls at a state; as the last line of a cell, it shows itself."""
    return Explorer(state, view=view, controls=controls, settled=settled)
