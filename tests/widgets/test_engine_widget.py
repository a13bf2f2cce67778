"""The engine explorer, from state to text and by its controls: no browser needed."""

import itertools
import re

import pytest

from threeloops.product_loop.engine_step import PRECISIONS
from threeloops.widgets.product_loop import engine as widget
from threeloops.widgets.product_loop.engine_view import BATCHES, State, step, view

STATES = [
    State(precision=precision, fused=fused, captured=captured, batch=batch)
    for precision, fused, captured, batch in itertools.product(PRECISIONS, (False, True), (False, True), BATCHES)
]


def test_every_state_can_be_shown_and_its_pieces_add_up() -> None:
    for state in STATES:
        shown, now = view(state), step(state)
        told_ms = sum(
            mark["end"] - mark["start"]
            for mark in shown.figure.body["layer"][0]["data"]["values"]
            if mark["row"] == "now"
        )
        assert told_ms / 1000 == pytest.approx(now.total_s)
        assert f"{now.tokens_per_s:,.0f} tokens/s" in shown.summary
        assert shown.table.count("<tr>") == 1 + len(shown.rows)


def test_a_control_changes_what_is_said() -> None:
    shown = widget.explorer()
    first = shown.view.summary
    shown.turn(precision="int8")
    assert "as long as without any switch" in shown.view.summary, "launches set the pace"
    shown.turn(fused=True)
    assert shown.view.summary != first
    assert re.search(r"Fused, matmuls in int8: [2-9]\.\d+ times as fast", shown.view.figure.title)
    shown.turn(batch=128)
    assert shown.state.batch == 128
    assert "attention" in shown.view.summary


def test_an_unknown_batch_is_refused() -> None:
    with pytest.raises(ValueError, match="128"):
        State(precision="bf16", fused=True, captured=True, batch=3)
