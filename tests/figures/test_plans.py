"""A plan's form for a phone: all its words, each in its box by the renderer's own widths, and quantities to scale."""

from collections import Counter
from typing import Any
from xml.etree import ElementTree

import pytest

from threeloops.figures import boxes as drawn
from threeloops.figures import look, narrow, plans, still
from threeloops.figures.boxes import Arrow, Box, boxes
from threeloops.figures.driving import symptom_tree
from threeloops.figures.figure import SCHEMA, Figure
from threeloops.figures.inner_loop import fp8_datapath
from threeloops.figures.overlap_rows import NAME, Busy, overlap_rows
from threeloops.figures.product_loop import engine_plan
from threeloops.figures.training_loop import pipeline_gantt, shard_stages
from threeloops.simulate.training_loop.pipeline_schedules import Work, run
from threeloops.site.drawn.letters import SVG, held

WORDS = {"title": "A finding", "caption": "What to see."}
FIGURES = (
    symptom_tree.symptom_tree(),
    engine_plan.engine(),
    engine_plan.our_server(),
    fp8_datapath.fp8_datapath(**WORDS),
    shard_stages.shard_stages(gpus=8, **WORDS),
)


def rows(view: dict[str, Any], mark: str) -> list[dict[str, Any]]:
    return [row for layer in view["layer"] if layer["mark"]["type"] == mark for row in layer["data"]["values"]]


def widths(view: dict[str, Any]) -> list[tuple[str, float]]:
    """Every line and its pixels, as the renderer measures them."""
    drawing = held(still.svg({"$schema": SCHEMA, "config": look.config(), **view}))
    texts = [text for text in ElementTree.fromstring(drawing).iter(f"{{{SVG}}}text") if text.get("textLength")]
    return [(str(text.text), float(text.get("textLength", "0"))) for text in texts]


@pytest.mark.parametrize("figure", FIGURES, ids=lambda figure: figure.title)
def test_every_word_is_there_and_stands_in_its_box(figure: Figure) -> None:
    slim = figure.narrow_body
    assert slim is not None
    assert slim["width"] == pytest.approx(plans.WIDEST)
    assert figure.body["width"] > plans.WIDEST
    words = [Counter(" ".join(row["text"] for row in rows(view, "text")).split()) for view in (figure.body, slim)]
    assert words[0] == words[1]
    wide = dict(widths(slim))
    for row in rows(slim, "text"):
        room = min(
            (box["x2"] - box["x"], box["y2"] - box["y"])
            for box in rows(slim, "rect")
            if box["x"] <= row["x"] <= box["x2"] and box["y"] <= row["y"] <= box["y2"]
        )
        down = slim["height"] / figure.body["height"]
        assert wide.get(row["text"], 0) <= (room[1] * down if row["turned"] else room[0]), row


def test_letters_are_reckoned_about_as_wide_as_the_renderer_makes_them() -> None:
    plan = [
        Box(x=0, y=40 * place, width=600, height=30, kind="off", text=text)
        for place, text in enumerate(
            ("tensor cores and registers", "KV cache, 24.5 GB", "ALL-REDUCE (g)", "mmmm iiii 1,024 → WWW")
        )
    ]
    for text, width in widths(dict(boxes(plan, alt="", **WORDS).body)):
        assert plans.length(text, look.TEXT) == pytest.approx(width, rel=0.04)


def test_what_is_to_scale_stays_so() -> None:
    spans = [
        Busy(row=row, text=text, start_s=start, end_s=end, kind="compute")
        for row, text, start, end in (("computing", "step", 0, 8), ("network", "save", 8, 9), ("network", "", 11, 20))
    ]
    slim = overlap_rows(spans, **WORDS).narrow_body
    assert slim is not None
    bars = [box for box in rows(slim, "rect") if box["kind"] == "compute"]
    per_second = [(box["x2"] - box["x"]) / (span.end_s - span.start_s) for box, span in zip(bars, spans, strict=True)]
    assert per_second == pytest.approx([per_second[0]] * 3, rel=0.12)  # each is two pixels less than its time
    assert {row["turned"] for row in rows(slim, "text")} == {0, -90}
    assert bars[0]["x"] < NAME


def test_proportions_stay_where_words_allow_it_and_gaps_give_way_where_they_do_not() -> None:
    def ends(text: str) -> list[float]:
        plan = [Box(x=x, y=0, width=100, height=40, kind="off", text=text) for x in (0, 250, 500)]
        slim = boxes(plan, alt="", arrows=[Arrow(x=100, y=20, to_x=250, to_y=20)], **WORDS).narrow_body
        assert slim is not None
        return [box["x2"] - box["x"] for box in rows(slim, "rect")]

    assert ends("a word") == pytest.approx([100 * plans.WIDEST / 600] * 3)
    assert min(ends("representation")) > 80


def test_a_word_that_fits_nowhere_leaves_the_plan_as_it_is() -> None:
    plan = [Box(x=x, y=0, width=60, height=20, kind="off", text="straightforwardness") for x in range(0, 640, 64)]
    assert boxes(plan, alt="", **WORDS).narrow_body is None
    small = [Box(x=0, y=0, width=60, height=20, kind="off", text="small")]
    assert boxes(small, alt="", **WORDS).narrow_body is None  # it needs none


def test_a_schedule_is_drawn_anew_with_the_words_that_have_room() -> None:
    played = run(
        schedule="gpipe",
        pp=4,
        micro_batches=5,
        work=Work(forward_s=1, input_gradient_s=1, weight_gradient_s=1),
        send_s=0,
    )
    figure = pipeline_gantt.gantt(played, **WORDS)
    slim = figure.narrow_body
    assert slim is not None
    assert slim["width"] == narrow.PLOT
    labels = [[row["label"] for row in rows(view, "text")] for view in (dict(figure.body), slim)]
    assert set(labels[0]) > {"F1", "B1"}
    assert set(labels[1]) > {"1", "B1"}
    assert "F1" not in labels[1]


def test_a_chart_is_no_plan() -> None:
    view = {"width": 620, "layer": [{"mark": {"type": "rect"}, "encoding": {"x": {"field": "x", "scale": None}}}]}
    assert not plans.is_boxes(view)
    assert plans.is_boxes(drawn.boxes([Box(x=0, y=0, width=9, height=9, kind="off")], alt="", **WORDS).body)
