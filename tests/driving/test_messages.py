"""Messages between processes: their copies and their ages by formula and counted piece by piece."""

import statistics

import pytest

from threeloops.driving import messages
from threeloops.simulate.driving import message_queue


@pytest.mark.parametrize("size", [1, message_queue.KERNEL_BYTES, 1_000_003])
def test_a_socket_copies_twice_and_serialising_twice_more(size: int) -> None:
    for copies, serialised in ((2, False), (4, True)):
        told = messages.handed_over_s(message_bytes=size, copies=copies, copy_bytes_per_s=1)
        assert told == message_queue.copied_bytes(message_bytes=size, serialised=serialised)


@pytest.mark.parametrize("depth", [1, 2, 5, 10])
def test_a_full_queue_hands_out_what_is_a_depth_less_half_a_period_old(depth: int) -> None:
    """The reader's period shares no factor with the sender's: every moment within a period is met equally often."""
    counted = message_queue.ages(depth=depth, period=100, busy=137, takes=1_000)[-500:]
    told = messages.age_from_full_queue_s(depth=depth, period_s=100)
    assert statistics.mean(map(float, counted)) == pytest.approx(told, abs=0.6)  # ticks are whole: half a tick early
    assert max(counted) < depth * 100
    assert min(counted) >= (depth - 1) * 100


def test_a_reader_that_keeps_up_finds_messages_as_they_come() -> None:
    assert set(message_queue.ages(depth=10, period=100, busy=70, takes=50)[1:]) == {0}


def test_no_depth_and_no_rate_are_refused() -> None:
    with pytest.raises(ValueError, match="depth=0"):
        messages.age_from_full_queue_s(depth=0, period_s=0.03)
    with pytest.raises(ValueError, match="copy_bytes_per_s=0"):
        messages.handed_over_s(message_bytes=1, copies=1, copy_bytes_per_s=0)
