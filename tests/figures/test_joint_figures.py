"""The pictures of joint models and of credit: what is drawn is what was given."""

import pytest

from threeloops.figures import still
from threeloops.figures.driving import credit_bars, module_chain


def test_a_chain_has_its_modules_and_what_teaches_them() -> None:
    figure = module_chain.module_chain(
        {"apart": ("see", "think", "act"), "together": ("see", "act")},
        passed={"apart": "boxes", "together": "tensors"},
        taught={"apart": ("labels", "tracks", "drives"), "together": ("one loss",)},
        title="A finding",
        caption="What to see.",
    )
    drawn = figure.body["layer"][0]["data"]["values"]
    assert [sum(box["kind"] == kind for box in drawn) for kind in ("compute", "control")] == [5, 4]
    assert len(figure.body["layer"][2]["data"]["values"]) == 5 + 3  # to every module, and between neighbours
    assert "together: see, act; between them: tensors; trained on: one loss." in figure.alt
    assert "tensors" in still.svg(figure.spec)
    with pytest.raises(ValueError, match="3 modules and 2 labels"):
        module_chain.module_chain(
            {"a": ("x", "y", "z")}, passed={"a": "b"}, taught={"a": ("c", "d")}, title="t", caption="c"
        )


def test_pieces_of_a_bar_follow_each_other() -> None:
    rows = {"one": {"a": 3.0, "b": 1.0}, "two": {"b": 2.0, "a": 2.0}}
    figure = credit_bars.credit_bars(rows, what="hours", title="A finding", caption="What to see.")
    drawn = figure.body["data"]["values"]
    assert [(piece["start"], piece["end"]) for piece in drawn] == [(0, 3), (3, 4), (0, 2), (2, 4)]
    assert "two: b 2.0, a 2.0." in figure.alt
    with pytest.raises(ValueError, match="at least one bar"):
        credit_bars.credit_bars({}, what="hours", title="t", caption="c")
