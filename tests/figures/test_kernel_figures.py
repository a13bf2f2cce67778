"""The pictures of the programming model: what is drawn stands where the machine put it."""

import json
import re

import pytest

from threeloops.figures import still
from threeloops.figures.inner_loop import asked_words, block_timeline
from threeloops.inner_loop import coalescing
from threeloops.simulate.inner_loop import block_scheduler

TWO = {"32 words per row": 32, "33 words per row": 33}


SAID = {"title": "A finding", "caption": "What to see."}


def rows(figure):
    return figure.spec["data"]["values"]


def test_every_lane_of_every_layout_is_drawn_at_its_bank():
    figure = asked_words.banks(TWO, column=5, **SAID)
    at_32, at_33 = ([cell["x"] for cell in panel["data"]["values"]] for panel in figure.spec["hconcat"])
    assert at_32 == [5] * 32
    assert sorted(at_33) == list(range(32))
    labels = re.findall(r'aria-label="lane (\d+), bank (\d+)"', still.svg(figure.spec))
    assert sorted(labels) == sorted((str(lane), str(bank)) for at in (at_32, at_33) for lane, bank in enumerate(at))


def test_sectors_are_those_that_the_machine_fetches():
    for name, stride in (("side by side", 1), ("every third", 3), ("down a column", 64)):
        figure = asked_words.sectors({name: range(0, 32 * stride, stride)}, **SAID)
        sectors = coalescing.sectors_per_request(stride_elements=stride, bytes_per_element=4)
        cells = figure.spec["hconcat"][0]["data"]["values"]
        assert sum(cell["kind"] == "fetched with it" for cell in cells) == sectors
        assert all(cell["x2"] - cell["x"] == 8 for cell in cells if cell["kind"] == "fetched with it")
        assert f"32 words in {sectors} sectors" in figure.alt


@pytest.mark.parametrize(
    ("pitch", "words"),
    [
        (32, "1 bank serves all lanes, 32 turns"),
        (33, "serve one lane each, 1 turn"),
        (40, "4 banks serve up to 8 lanes each, 8 turns"),
    ],
)
def test_the_words_count_the_turns(pitch, words):
    assert words in asked_words.banks({"a": pitch}, column=0, **SAID).alt


def timeline(num_sms, durations_s):
    placed = block_scheduler.play(num_sms=num_sms, blocks_per_sm=1, durations_s=durations_s)
    bars = [
        block_timeline.Bar(block=one.block, row=f"SM {one.sm}", start_s=one.start_s, end_s=one.end_s) for one in placed
    ]
    return block_timeline.block_timeline(bars, title="A finding", caption="What to see.")


def test_blocks_beside_idle_places_are_told_apart():
    figure = timeline(3, [1.0] * 7)
    assert [row["block"] for row in rows(figure) if row["kind"] == "beside idle places"] == ["6"]
    assert figure.alt.startswith(
        "7 blocks on 3 places. Without a gap until 2 block-times, the last block ends at 3; then 1 place runs and 2"
        " wait."
    )
    assert "77.8 %" in figure.alt  # 7 of 9
    even = timeline(3, [1.0] * 6)
    assert {row["kind"] for row in rows(even)} == {"all places busy"}
    assert "100 %" in even.alt


def test_figures_are_plain_data_and_small():
    for figure in (
        asked_words.banks(TWO, column=1, **SAID),
        timeline(4, [1.0, 2.0, 0.5, 1.0, 1.0]),
    ):
        json.dumps(figure.spec)
        assert len(figure.png()) < 60_000


def test_refusals():
    with pytest.raises(ValueError, match="pitches is empty"):
        asked_words.banks({}, column=0, **SAID)
    with pytest.raises(ValueError, match=r"pitches\['a'\]=0 must be a whole number of at least 1"):
        asked_words.banks({"a": 0}, column=0, **SAID)
    with pytest.raises(ValueError, match="requests is empty"):
        asked_words.sectors({"nothing": []}, **SAID)
    with pytest.raises(ValueError, match="bars is empty"):
        block_timeline.block_timeline([], title="A finding", caption="What to see.")
    with pytest.raises(ValueError, match="length_s=0.0 must be greater than 0"):
        block_timeline.Bar(block=0, row="SM 0", start_s=1.0, end_s=1.0)
