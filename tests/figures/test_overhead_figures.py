"""The pictures of overheads: what is drawn is what was played."""

import json

import pytest

from threeloops.figures import still
from threeloops.figures.inner_loop import launch_timeline, memory_segments
from threeloops.simulate.inner_loop import caching_allocator, launch_queue
from threeloops.units import MiB


def timeline(kernel_s):
    played = launch_queue.play([kernel_s] * 5, issue_s=2.0, queue=3)
    words = {"title": "A finding", "caption": "What to see."}
    return played, launch_timeline.launch_timeline({"run": played}, **words, unit_s=1, unit="s")


@pytest.mark.parametrize("kernel_s", [0.5, 3.0])
def test_every_span_is_drawn_where_it_was_played(kernel_s):
    played, figure = timeline(kernel_s)
    drawn = sorted((row["row"], row["start"], row["end"]) for row in figure.spec["data"]["values"])
    who = {"host": "CPU", "device": "GPU"}
    assert drawn == sorted((f"run: {who[span.where]}", span.start_s, span.end_s) for span in played.spans)
    assert f"5 kernels in {played.finished_s:.4g} s" in figure.alt
    assert still.svg(figure.spec).count("run, GPU") >= 5


def segments():
    device = caching_allocator.CachingAllocator(capacity_bytes=10**9)
    kept, gone = device.allocate(5 * MiB), device.allocate(3 * MiB)
    device.free(gone)
    assert kept.used
    return [
        memory_segments.Piece(segment=str(number), start_bytes=block.start, size_bytes=block.size, used=block.used)
        for number, segment in enumerate(device.segments)
        for block in segment.blocks
    ]


def test_a_segment_is_drawn_with_what_lives_in_it():
    figure = memory_segments.memory_segments(segments(), title="A finding", caption="What to see.")
    assert [(row["start"], row["end"]) for row in figure.spec["data"]["values"]] == [(0, 5), (5, 20)]
    assert figure.alt == "1 segment, 20.0 MiB reserved, 5.00 MiB used; the largest free piece is 15.0 MiB."
    assert json.dumps(figure.spec)
    assert "free, and kept" in still.svg(figure.spec)


def test_refusals():
    with pytest.raises(ValueError, match="runs is empty"):
        launch_timeline.launch_timeline({}, title="a", caption="b", unit_s=1, unit="s")
    with pytest.raises(ValueError, match="pieces is empty"):
        memory_segments.memory_segments([], title="a", caption="b")
