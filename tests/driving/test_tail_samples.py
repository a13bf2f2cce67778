"""How many frames a tail needs, against frames that are drawn and counted."""

import random
from fractions import Fraction

import pytest

from threeloops.driving import tail_samples
from threeloops.simulate.driving import tail_draws


@pytest.mark.parametrize("share", ["0.5", "0.9", "0.95", "0.99"])
@pytest.mark.parametrize("confidence", ["0.5", "0.9", "0.95", "0.99"])
def test_frames_added_one_by_one(share: str, confidence: str) -> None:
    told = tail_samples.frames_to_see(share=float(share), confidence=float(confidence))
    assert told == tail_draws.frames_until(share=Fraction(share), confidence=Fraction(confidence))


def test_tests_of_that_length_see_the_tail_so_often() -> None:
    frames = tail_samples.frames_to_see(share=0.99, confidence=0.95)
    seen = tail_draws.share_of_tests(frames=frames, one_in=100, tests=2000, seed=1)
    assert seen == pytest.approx(0.95, abs=4 * (0.95 * 0.05 / 2000) ** 0.5)


@pytest.mark.parametrize("frames", [10, 59, 300])
def test_what_a_clean_test_leaves_possible(frames: int) -> None:
    share = tail_samples.late_share_at_most(frames=frames, confidence=0.95)
    just_below = Fraction(1 - share).limit_denominator(10**6)
    assert tail_draws.frames_until(share=just_below, confidence=Fraction(95, 100)) in (frames, frames + 1)


@pytest.mark.parametrize(("frames", "share"), [(300, 0.99), (100, 0.9), (40, 0.5), (59, 0.95)])
def test_the_rank_lies_above_the_percentile_so_often_and_the_one_below_does_not(frames: int, share: float) -> None:
    rng, tests = random.Random(2), 4000
    rank = tail_samples.rank_above(frames=frames, share=share, confidence=0.95)
    assert rank is not None
    faster = [sum(rng.random() < share for _ in range(frames)) for _ in range(tests)]
    error = 4 * (0.95 * 0.05 / tests) ** 0.5
    assert sum(count < rank for count in faster) / tests >= 0.95 - error
    assert sum(count < rank - 1 for count in faster) / tests < 0.95 + error


def test_no_frame_of_a_short_test_lies_above_p999() -> None:
    for frames in (300, 2994):
        assert tail_samples.rank_above(frames=frames, share=0.999, confidence=0.95) is None
    assert tail_samples.rank_above(frames=2995, share=0.999, confidence=0.95) == 2995


def test_an_hour_frame_by_frame() -> None:
    pattern = [True] + [False] * 249
    counted = tail_draws.late_in_an_hour(pattern=pattern, frames_per_s=20)
    assert tail_samples.misses_per_hour(late_share=1 / 250, frames_per_s=20) == counted


def test_refusals() -> None:
    with pytest.raises(ValueError, match="strictly between"):
        tail_samples.frames_to_see(share=1.0, confidence=0.95)
    with pytest.raises(ValueError, match="shorten"):
        tail_samples.allowed_tail_ratio(deadline_s=0.03, median_s=0.02, fixed_s=0.03)
