"""Messages between real processes: each way hands the picture over, fewer copies take less time, and a full queue makes
what is read as old as the formula says.
"""

import statistics

import pytest

from threeloops.driving import messages
from threeloops.measure.driving import message_ways


@pytest.mark.clock
def test_a_message_is_sooner_there_by_shared_memory_than_through_a_socket() -> None:
    seen = message_ways.handed_over(message_bytes=8_000_000, messages=9)
    assert list(seen.seconds) == list(message_ways.COPIES)
    assert min(seen.seconds.values()) > 0
    assert seen.seconds["pickled"] > seen.seconds["bytes"] > seen.seconds["made in place"]
    assert seen.seconds["shared memory"] > seen.seconds["made in place"]
    told = messages.handed_over_s(
        message_bytes=8e6, copies=message_ways.COPIES["pickled"], copy_bytes_per_s=8e6 / seen.copy_s
    )
    assert seen.seconds["pickled"] > 0.5 * told  # far less would mean that copies were left out


@pytest.mark.clock
def test_a_full_queue_is_as_old_as_the_formula_says() -> None:
    for depth in (1, 4):
        seen = message_ways.queue_ages(depth=depth, period_s=0.02, busy_s=0.0274, takes=20)
        told = messages.age_from_full_queue_s(depth=depth, period_s=0.02)
        assert statistics.mean(seen) == pytest.approx(told, abs=0.01)


def test_a_reader_that_keeps_up_and_no_messages_are_refused() -> None:
    with pytest.raises(ValueError, match="no queue builds up"):
        message_ways.queue_ages(depth=2, period_s=0.02, busy_s=0.02, takes=1)
    with pytest.raises(ValueError, match="messages=0"):
        message_ways.handed_over(message_bytes=8, messages=0)
