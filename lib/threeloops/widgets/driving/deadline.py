"""Deadline explorer: a chain's stages against the camera's period, above the cars as they are and as the newest answer
believes them to be; switch repairs on and off, let it play, or step by hand.

In a notebook:

    from threeloops.widgets.driving import deadline
    deadline.explorer()
"""

from threeloops.widgets.controls import Control, menu, slider
from threeloops.widgets.driving import deadline_replay
from threeloops.widgets.driving.deadline_view import SLOWER, START, State, view
from threeloops.widgets.explorer import Explorer

TICK_MS = 300  # while it plays: a hundred-and-twentieth of a second of the drive


def controls(state: State) -> tuple[Control, ...]:
    """What can be turned."""
    return (
        menu("shared", "backbones", {"three, one a task": False, "one, shared": True}),
        menu("int8", "convolutions", {"FP32": False, "INT8": True}),
        menu("predicted", "boxes", {"as seen": False, "moved on by the tracker": True}),
        menu("queue", "busy chain", {"drops the frame": False, "queues the frame": True}),
        menu("crowded", "processor", {"quiet": False, "two neighbour processes": True}),
        slider("slower", "times slower", {f"{one:g}": one for one in SLOWER}),
        slider("moment", "moment", range(deadline_replay.moments() + 1), plays_ms=TICK_MS),
    )


def explorer(state: State = START) -> Explorer[State]:
    """The explorer, with its controls at a state; as the last line of a cell, it shows itself."""
    return Explorer(state, view=view, controls=controls)
