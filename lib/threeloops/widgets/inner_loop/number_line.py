"""Number line explorer: choose formats and a stretch of the line, move a value along it, and read what each format
makes of it.

In a notebook:

    from threeloops.widgets.inner_loop import number_line as number_line_widget
    number_line_widget.explorer()
"""

from dataclasses import replace
from typing import Any

from threeloops.widgets.controls import Control, several, slider
from threeloops.widgets.explorer import Explorer
from threeloops.widgets.inner_loop.number_line_view import FORMATS, State, view

HIGHS = (0.002, 0.01, 0.1, 1.0, 2.0, 8.0, 32.0, 128.0, 512.0, 2048.0, 8192.0, 65536.0)
STEPS = 200  # places of the value between 0 and the right end
START = State(formats=("E2M1", "E3M2", "E4M3", "E5M2", "BF16"), high=8.0, value=3.32)


def controls(state: State) -> tuple[Control, ...]:
    """What can be turned."""
    values = sorted({*(_value(place, state.high) for place in range(STEPS + 1)), state.value})
    return (
        several("formats", "formats", FORMATS),
        slider("high", "stretch", {f"0 to {high:g}": high for high in sorted({*HIGHS, state.high})}),
        slider("value", "value", {f"{value:g}": value for value in values}),
    )


def settled(state: State, at: dict[str, Any]) -> State:
    """Another stretch keeps the value's place on the screen; without any format, the last ones stay."""
    value = at["value"]
    if at["high"] != state.high:
        value = _value(round(value / state.high * STEPS), at["high"])
    return replace(state, formats=at["formats"] or state.formats, high=at["high"], value=value)


def _value(place: int, high: float) -> float:
    """The value at a place, as few digits as tell it from its neighbours; rounding does not lead beyond the end."""
    return min(high, float(f"{place * high / STEPS:.4g}"))


def explorer(state: State = START) -> Explorer[State]:
    """The explorer, with its controls at a state; as the last line of a cell, it shows itself."""
    return Explorer(state, view=view, controls=controls, settled=settled)
