"""The pictures of queues and capacity: what is drawn is what was given."""

import pytest

from threeloops.figures import curves
from threeloops.figures.product_loop import bound_bars


def test_curves_hold_their_points_and_marks() -> None:
    figure = curves.curves(
        {"p50": [(1, 2.0), (3, 4.0)], "p99": [(1, 9.0), (3, 30.0)]},
        x="load",
        y="seconds",
        title="A finding",
        caption="What to see.",
        marks={"here": (2, 3.0)},
        steps=True,
    )
    lines, marks = figure.body["layer"]
    assert figure.body["data"]["values"][-1] == {"line": "p99", "x": 3, "y": 30.0}
    assert lines["mark"]["interpolate"] == "step-after"
    assert marks["data"]["values"][0]["words"] == "here: 3 at 2"
    assert "p99: from 9 at 1 to 30 at 3. Marked: here: 3 at 2." in figure.alt


def test_a_peak_in_the_middle_is_said() -> None:
    figure = curves.curves({"a": [(0, 1.0), (5, 8.0), (9, 2.0)]}, x="s", y="waiting", title="T", caption="C", dots=True)
    assert "from 1 at 0 over 8 at 5 to 2 at 9" in figure.alt
    two = curves.curves(
        {"a": [(0, 1.0)], "b": [(5, 8.0)]}, x="s", y="waiting", title="T", caption="C", dots=True, apart=True
    )
    assert two.body["facet"]["row"]["sort"] == ["a", "b"]
    assert [row["line"] for row in two.body["data"]["values"]] == ["a", "b"]
    with pytest.raises(ValueError, match="0 lines"):
        curves.curves({}, x="s", y="n", title="T", caption="C")


def test_the_longest_bar_is_named() -> None:
    figure = bound_bars.bound_bars(
        {"chat": {"memory": 1.5, "rate": 4.2}, "essay": {"memory": 9.0, "rate": 2.0}},
        what="GPUs",
        title="T",
        caption="C",
    )
    numbers = [row["number"] for row in figure.body["data"]["values"]]
    assert numbers == ["1.5", "4.2 ← decides", "9.0 ← decides", "2.0"]
    assert "essay: memory 9.0, rate 2.0; memory is the largest." in figure.alt
    with pytest.raises(ValueError, match="at least one load"):
        bound_bars.bound_bars({}, what="GPUs", title="T", caption="C")
