"""Sensor explorer: number, size, bits and rate of the cameras, and how full their cable, lanes, link and memory bus
are.

In a notebook:

    from threeloops.widgets.driving import sensor_data as sensor_widget
    sensor_widget.explorer()
"""

from threeloops.widgets.controls import Control, menu, slider
from threeloops.widgets.driving.sensor_data_view import BITS, MOST_CAMERAS, RATES, SIZES, State, view
from threeloops.widgets.explorer import Explorer

START = State(cameras=2, size="3840 × 2160", bits=12, rate=30)


def controls(state: State) -> tuple[Control, ...]:
    """What can be turned."""
    return (
        slider("cameras", "cameras", range(1, MOST_CAMERAS + 1)),
        menu("size", "pixels", SIZES.keys()),
        slider("bits", "bits a pixel", BITS),
        slider("rate", "frames/s", RATES),
    )


def explorer(state: State = START) -> Explorer[State]:
    """The explorer, with its controls at a state; as the last line of a cell, it shows itself."""
    return Explorer(state, view=view, controls=controls)
