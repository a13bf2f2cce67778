"""Placement explorer: choose a chip with its power mode, the engine of the camera stage and how many of its bytes go
through the memory, and see which engine, or the memory, is the bottleneck.

In a notebook:

    from threeloops.widgets.driving import placement as placement_widget
    placement_widget.explorer()
"""

from threeloops.widgets.controls import Control, menu, slider
from threeloops.widgets.driving.placement_view import CAMERA_ON, CHIPS, IN_MEMORY, State, view
from threeloops.widgets.explorer import Explorer

START = State(chip="AGX Orin 64GB", camera="gpu", in_memory=1.0)


def controls(state: State) -> tuple[Control, ...]:
    """What can be turned."""
    engines = {{"gpu": "GPU", "dla": "DLAs"}[engine]: engine for engine in CAMERA_ON}
    return (
        menu("chip", "chip", CHIPS.keys()),
        menu("camera", "camera stage", engines),
        slider("in_memory", "in memory", {f"{100 * share:.0f} %": share for share in IN_MEMORY}),
    )


def explorer(state: State = START) -> Explorer[State]:
    """The explorer, with its controls at a state; as the last line of a cell, it shows itself."""
    return Explorer(state, view=view, controls=controls)
