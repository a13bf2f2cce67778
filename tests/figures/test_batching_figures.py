"""Figures of requests that share steps: slots over time, gaps over time, the choice of a batch."""

import itertools

import pytest

from threeloops.figures import still
from threeloops.figures.product_loop import batch_choice, gap_trace, slot_timeline
from threeloops.simulate.product_loop import traffic
from threeloops.simulate.product_loop.serving_policies import continuous_batching, static_batching
from threeloops.simulate.product_loop.serving_run import run
from threeloops.simulate.product_loop.serving_steps import AffineStep

OUTPUTS = [9, 2, 4, 3, 2, 6]


def played(policy):
    return run(traffic.at_once(OUTPUTS), step_s=AffineStep(base_s=1.0), policy=policy)


def timeline():
    runs = {"static": played(static_batching(slots=3)), "continuous": played(continuous_batching(slots=3))}
    return runs, slot_timeline.slot_timeline(runs, title="A finding", caption="What to see.")


def test_a_slot_is_taken_by_one_request_at_a_time_and_held_to_the_batchs_end():
    runs, figure = timeline()
    for view, done in zip(figure.body["vconcat"], runs.values(), strict=True):
        bars = view["layer"][0]["data"]["values"]
        for slot in range(3):
            mine = sorted((bar["begin"], bar["end"]) for bar in bars if bar["slot"] == slot)
            assert all(end <= begin for (_, end), (begin, _) in itertools.pairwise(mine))
        works = sum(bar["end"] - bar["begin"] for bar in bars if bar["kind"] == slot_timeline.WORKS)
        assert works == sum(one.finished_s - one.admitted_s for one in done.moments)
    held = [bar for bar in figure.body["vconcat"][0]["layer"][0]["data"]["values"] if bar["kind"] == slot_timeline.HELD]
    # the first three: 9, 2 and 4 tokens; the others: 3, 2 and 6
    assert sorted(bar["end"] - bar["begin"] for bar in held) == [3, 4, 5, 7]
    assert not [bar for bar in figure.body["vconcat"][1]["layer"][0]["data"]["values"] if bar["kind"] != "makes tokens"]


def test_the_words_say_how_much_is_idle_and_the_drawing_has_them():
    runs, figure = timeline()
    assert runs["static"].useful_share == pytest.approx(sum(OUTPUTS) / (3 * 15))
    assert "static: 3 slots, 15 long; 42.2 % of the slots' time makes no token. Slot 1: requests 1, 4." in figure.alt
    assert "slot 2: request 2 ended, slot still held, 2 to 9" in still.svg(figure.spec)
    assert still.size(figure.png())[0] <= 640
    with pytest.raises(ValueError, match="at least one"):
        slot_timeline.slot_timeline({}, title="a", caption="b")


def test_gaps_are_drawn_where_their_tokens_come():
    figure = gap_trace.gap_trace({"whole": [(1.0, 0.02), (1.3, 0.3)], "chunks": [(1.0, 0.02)]}, title="a", caption="b")
    assert figure.body["data"]["values"][1] == {"policy": "whole", "moment": 1.3, "gap": pytest.approx(300)}
    assert "whole: median 160 ms, longest 300 ms at 1.30 s" in figure.alt
    assert still.size(figure.png())[0] <= 640
    for wrong in ({}, {str(number): [(1.0, 1.0)] for number in range(6)}):
        with pytest.raises(ValueError, match="traces; draw 1 to 5"):
            gap_trace.gap_trace(wrong, title="a", caption="b")
    with pytest.raises(ValueError, match="gap_s=0"):
        gap_trace.gap_trace({"a": [(1.0, 0)]}, title="a", caption="b")


def test_a_batch_is_chosen_against_a_limit():
    points = [(4, 0.005, 700.0), (16, 0.009, 1600.0), (64, 0.022, 2500.0)]
    figure = batch_choice.batch_choice(points, limit_s=0.02, title="a", caption="b")
    assert [row["slots"] for row in figure.body["data"]["values"]] == ["4", "16", "64"]
    assert figure.body["layer"][3]["data"]["values"][0]["gap"] == pytest.approx(20)
    assert "64 slots 22.0 ms, 2,500 tokens/s. The limit is 20.0 ms." in figure.alt
    assert still.size(figure.png())[0] <= 640
    with pytest.raises(ValueError, match="a line needs two"):
        batch_choice.batch_choice(points[:1], limit_s=0.02, title="a", caption="b")
