"""System map: choose a stage, from data to vehicle, and a number of GPUs; read what can be done there, and what the
GPUs make of a training step.

In a notebook:

    from threeloops.widgets import system_map
    system_map.explorer()
"""

from threeloops.widgets.controls import Control, Link, slider
from threeloops.widgets.explorer import Explorer
from threeloops.widgets.system_stages import STAGES
from threeloops.widgets.system_view import GPUS, State, notes, pace, view

START = State(stage="training", gpus=64)


def controls(state: State) -> tuple[Control, ...]:
    """What can be turned: the stages in a row, of which the bottleneck stands out."""
    said = notes(state.gpus)
    stages = Control(
        name="stage",
        label="stage",
        words=tuple(stage.name for stage in STAGES.values()),
        values=tuple(STAGES),
        kind="tiles",
        notes=tuple(said[key] for key in STAGES),
        marked=list(STAGES).index(pace(state.gpus)),
    )
    return stages, slider("gpus", "GPUs", sorted({*GPUS, state.gpus}))


def links(state: State) -> list[Link]:
    """The part in which the chosen stage begins to be taught."""
    stage = STAGES[state.stage]
    return [Link(words=f"Open part {stage.part}", notebook=stage.copy)]


def explorer(state: State = START) -> Explorer[State]:
    """The map, with its controls at a state; as the last line of a cell, it shows itself."""
    return Explorer(state, view=view, controls=controls, links=links, drawn=False)
