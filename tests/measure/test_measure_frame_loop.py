"""The frame loop, its percentiles and its neighbour."""

import os
import time

from threeloops import wall_clock
from threeloops.driving import tail_samples
from threeloops.measure.driving import frame_loop


def test_percentiles_of_sorted_frames() -> None:
    seconds = [float(number) for number in range(100, 0, -1)]
    assert [frame_loop.at_share(seconds, share) for share in (0.5, 0.99, 1.0)] == [50.0, 99.0, 100.0]
    assert frame_loop.slower_than(seconds)[0] == (2.0, 50.0)
    assert frame_loop.slower_than(seconds)[-1] == (100.0, 99.0)


def test_a_bound_only_where_there_are_enough_frames() -> None:
    seconds = [float(number) for number in range(1, 301)]
    rank = tail_samples.rank_above(frames=300, share=0.9, confidence=0.95)
    assert frame_loop.at_most(seconds, share=0.9, confidence=0.95) == rank
    assert frame_loop.at_most(seconds, share=0.999, confidence=0.95) is None


def test_a_neighbour_comes_and_goes() -> None:
    choose = getattr(os, "sched_getaffinity", None)
    cores = choose(0) if choose else None
    with frame_loop.neighbour():
        seconds = frame_loop.timed_frames(frame_loop.product_frame(size=8, boxes=3), frames=5)
    assert len(seconds) == 5
    assert min(seconds) > 0
    assert cores is None or choose(0) == cores


def test_processor_time_leaves_out_the_wait() -> None:
    seconds = frame_loop.timed_frames(lambda: wall_clock.pause(0.001), frames=5, clock=time.process_time)
    assert frame_loop.at_share(seconds, 0.5) < 0.001
