"""Copies side by side: what comes back is a rate of real bytes, whatever the machine does beside it."""

import pytest

from threeloops.measure.driving import neighbour_copies


def test_a_copy_has_a_rate_alone_and_beside_another() -> None:
    seen = neighbour_copies.compared(rounds=1, seconds=0.02)
    # from a slow disk's rate to far beyond any processor's caches
    assert 1e8 < seen.beside_bytes_per_s < 1e13
    assert 1e8 < seen.alone_bytes_per_s < 1e13
    assert seen.share == pytest.approx(seen.beside_bytes_per_s / seen.alone_bytes_per_s)


def test_no_time_and_no_rounds_are_refused() -> None:
    with pytest.raises(ValueError, match="rounds=0"):
        neighbour_copies.compared(rounds=0, seconds=0.1)
    with pytest.raises(ValueError, match="seconds=0"):
        neighbour_copies.copied_bytes_per_s(neighbours=1, seconds=0)
