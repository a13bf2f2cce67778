"""Ages by formula against frames and clocks that are played."""

from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from threeloops.driving import data_age
from threeloops.simulate.driving import hand_overs, late_frames

small_stages = st.lists(st.tuples(st.integers(1, 7), st.integers(1, 9)), min_size=1, max_size=3)


@given(small_stages)
@settings(max_examples=100, deadline=None)
def test_the_bound_is_what_the_worst_clocks_give(stages: list[tuple[int, int]]) -> None:
    assert data_age.worst_reaction_s(stages) == hand_overs.slowest(stages)


@given(small_stages, st.data())
@settings(max_examples=50, deadline=None)
def test_reactions_stay_below_the_bound(stages: list[tuple[int, int]], data: st.DataObject) -> None:
    firsts = [data.draw(st.integers(0, period - 1)) for period, _ in stages]
    found = hand_overs.reactions(stages, firsts=firsts, events=20)
    assert max(found) < data_age.worst_reaction_s(stages)
    assert min(found) >= sum(response for _, response in stages)


@given(st.sampled_from(data_age.POLICIES), st.integers(2, 40), st.data())
@settings(max_examples=200, deadline=None)
def test_one_late_frame(policy: str, period: int, data: st.DataObject) -> None:
    usual = data.draw(st.integers(1, period))
    late = data.draw(st.integers(period + 1, 4 * period))
    results = late_frames.play([usual] * 3 + [late] + [usual] * 8, period=period, policy=policy)
    told = data_age.oldest_after_late_frame_s(policy=policy, period_s=period, usual_s=usual, late_s=late)
    if policy == "queue" and usual == period:
        return  # the processor never catches up
    assert late_frames.oldest(results) == told


def test_ages_at_the_ticks_of_a_control_loop() -> None:
    results = late_frames.play([20] * 4, period=25, policy="queue")
    assert late_frames.ages(results, tick=10) == [20, 30, 40, 25, 35, 20, 30, 40]
    assert late_frames.at_share([5, 1, 4, 2, 3], Fraction(1, 2)) == 3
    assert late_frames.at_share(range(1, 101), Fraction(99, 100)) == 99


def test_refusals() -> None:
    with pytest.raises(ValueError, match="policy"):
        data_age.oldest_after_late_frame_s(policy="wait", period_s=3, usual_s=2, late_s=4)
    with pytest.raises(ValueError, match="does not hold"):
        data_age.oldest_after_late_frame_s(policy="skip", period_s=3, usual_s=2, late_s=2)
