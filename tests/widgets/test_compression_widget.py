"""The compression explorer and its figures, from state to text: no browser needed."""

import itertools
import re

import pytest

from threeloops.facts.compressed_glyphs import ACCURACIES, BITS, NETWORKS, SPARSITIES
from threeloops.figures.product_loop import grid_marks, plain_lines
from threeloops.simulate.product_loop import narrow_weights
from threeloops.widgets.product_loop import compression as widget
from threeloops.widgets.product_loop.compression_view import State, accuracy, stored_bytes, view, weights_of

STATES = [
    State(bits=bits, sparsity=share, network=network)
    for bits, share, network in itertools.product(BITS, SPARSITIES, NETWORKS)
]
WHOLE = State(bits=16, sparsity=0.0, network="teacher")


def test_the_recorded_table_is_whole_and_says_what_the_chapter_says() -> None:
    assert set(ACCURACIES) == set(NETWORKS)
    for shares in ACCURACIES.values():
        assert tuple(shares) == SPARSITIES
        assert all(len(row) == len(BITS) and 1 / 16 < min(row) <= max(row) < 1 for row in shares.values())
    assert accuracy(WHOLE) > 0.95
    by_labels, distilled = (State(bits=8, sparsity=0.0, network=name) for name in list(NETWORKS)[1:])
    assert accuracy(distilled) > accuracy(by_labels) + 0.1


@pytest.mark.parametrize(("bits", "sparsity"), [(8, 0.0), (4, 0.5), (4, 0.8), (2, 0.3)])
def test_bytes_are_those_of_really_packed_weights(bits: int, sparsity: float) -> None:
    weights = weights_of("teacher")
    kept = round(weights * (1 - sparsity))
    places = [1] * kept + [0] * (weights - kept)
    packed = min(len(narrow_weights.masked(places, bits=bits)), weights * bits)
    scales = 16 * (weights // 16)
    assert stored_bytes(State(bits=bits, sparsity=sparsity, network="teacher")) == (packed + scales) / 8


def test_a_mask_is_only_kept_where_it_pays() -> None:
    dense, thin = (stored_bytes(State(bits=2, sparsity=share, network="teacher")) for share in (0.0, 0.3))
    assert thin == dense  # a third of two bits is less than the mask's one
    assert stored_bytes(State(bits=2, sparsity=0.7, network="teacher")) < dense


def test_every_state_can_be_shown() -> None:
    for state in STATES:
        shown = view(state)
        assert len(shown.rows) == len(BITS)
        assert shown.rows[BITS.index(state.bits)][1] in shown.summary
        assert state.network in shown.figure.title


def test_the_summary_counts_points_and_times() -> None:
    assert "as the teacher as trained" in view(WHOLE).summary
    assert "1.0 times smaller" in view(WHOLE).summary
    assert "points less" in view(State(bits=3, sparsity=0.0, network="teacher")).summary


def test_what_so_few_questions_cannot_tell_apart_is_not_called_a_difference() -> None:
    for bits, sparsity in ((8, 0.0), (8, 0.3)):
        assert (
            "within 0.25 points of the teacher" in view(State(bits=bits, sparsity=sparsity, network="teacher")).summary
        )
    worst = {other.bits: view(other).summary for other in STATES if other.sparsity == 0 and other.network == "teacher"}
    assert "0.0 points" not in "".join(worst.values())


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"bits": 7}, "bits=7 must be one of 16, 8, 6, 5, 4, 3, 2"),
        ({"sparsity": 0.25}, "sparsity=0.25 must be one of"),
        ({"network": "pupil"}, "network='pupil' must be one of teacher"),
    ],
)
def test_impossible_states_are_refused(change: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        State(**({"bits": 8, "sparsity": 0.0, "network": "teacher"} | change))  # type: ignore[arg-type]


def test_a_turned_control_changes_state_figure_and_words() -> None:
    explorer = widget.explorer()
    before = explorer.panel.shown
    explorer.turn(bits=3)
    explorer.turn(network="student, distilled")
    explorer.turn(sparsity=0.5)
    assert explorer.state == State(bits=3, sparsity=0.5, network="student, distilled")
    assert "student, distilled, 3 bits, 50 % pruned" in explorer.view.summary
    assert explorer.panel.shown != before


def test_lines_below_the_axis_are_told_and_not_drawn() -> None:
    figure = plain_lines.plain_lines(
        {"one": [(8, 0.9), (2, 0.3)]}, x="bits", y="share", percent=True, low=0.7, title="It falls", caption="A line."
    )
    assert "30.0 % at 2" in figure.alt
    assert [row["value"] for row in figure.body["layer"][0]["data"]["values"]] == [0.9]
    with pytest.raises(ValueError, match="0 lines; draw 1"):
        plain_lines.plain_lines({}, x="bits", y="share", title="None", caption="None.")


def test_a_grid_has_a_tick_where_its_largest_weight_is() -> None:
    figure = grid_marks.grid_marks({"a row": ([0.7, -0.2], 0.1)}, title="A grid", caption="Ticks.")
    ticks, dots = (layer["data"]["values"] for layer in figure.body["layer"])
    assert len(ticks) == 15
    assert max(tick["value"] for tick in ticks) == pytest.approx(max(dot["value"] for dot in dots))
    with pytest.raises(ValueError, match="a row without weights"):
        grid_marks.grid_marks({"a row": ([], 0.1)}, title="A grid", caption="Ticks.")
