"""Attention explorer: choose the blocks of queries and keys, and step through tiled attention with its running
softmax.

In a notebook:

    from threeloops.widgets.inner_loop import attention as attention_widget
    attention_widget.explorer()
"""

from dataclasses import replace
from typing import Any

from threeloops.widgets.controls import Control, menu, slider
from threeloops.widgets.explorer import Explorer
from threeloops.widgets.inner_loop.attention_view import BLOCKS, MASKS, State, view, walk

START = State(query_block=6, key_block=4, causal=True, step=0)
TICK_MS = 700  # while it plays: two blocks meet


def controls(state: State) -> tuple[Control, ...]:
    """What can be turned."""
    return (
        slider("query_block", "queries in a block", BLOCKS),
        slider("key_block", "keys in a block", BLOCKS),
        menu("causal", "mask", MASKS),
        slider("step", "step", range(_last(state) + 1), plays_ms=TICK_MS),
    )


def settled(state: State, at: dict[str, Any]) -> State:
    """Other blocks begin at their first step."""
    if any(at[name] != getattr(state, name) for name in ("query_block", "key_block", "causal")):
        at["step"] = 0
    return State(**at)


def _last(state: State) -> int:
    return len(walk(state.query_block, state.key_block, state.causal).visits)


def explorer(state: State = START) -> Explorer[State]:
    """The explorer, with its controls at a state; as the last line of a cell, it shows itself."""
    return Explorer(state, view=view, controls=controls, settled=settled, still=replace(state, step=_last(state) // 2))
