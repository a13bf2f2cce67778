"""Schedule explorer: three tasks on one core; turn their costs and the rule, and see who waits and who is late.

In a notebook:

    from threeloops.widgets.driving import schedule
    schedule.explorer()
"""

from threeloops.widgets.controls import Control, menu, slider
from threeloops.widgets.driving.schedule_view import MAP, PERCEPTION, RATE, RULES, State, view
from threeloops.widgets.explorer import Explorer

START = State(rule=RATE, perception=12, map=10)


def controls(state: State) -> tuple[Control, ...]:
    """What can be turned."""
    return (
        menu("rule", "rule", RULES),
        slider("perception", "perception, ms", range(PERCEPTION[0], PERCEPTION[1] + 1)),
        slider("map", "map, ms", range(MAP[0], MAP[1] + 1)),
    )


def explorer(state: State = START) -> Explorer[State]:
    """The explorer, with its controls at a state; as the last line of a cell, it shows itself."""
    return Explorer(state, view=view, controls=controls)
