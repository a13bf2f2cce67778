"""Detection by a timer, against clocks of every setting."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from threeloops.driving import fault_times
from threeloops.simulate.driving import heartbeat


@given(st.integers(1, 8), st.integers(1, 12), st.integers(1, 9))
def test_the_slowest_detection(beat: int, timeout: int, poll: int) -> None:
    counted = heartbeat.slowest_detection(heartbeat=beat, timeout=timeout, poll=poll)
    assert fault_times.heartbeat_detection_s(timeout_s=timeout, poll_s=poll) == counted


def test_refusal() -> None:
    with pytest.raises(ValueError, match="detect faster"):
        fault_times.reaction_left_s(ftti_s=0.1, detection_s=0.1)
