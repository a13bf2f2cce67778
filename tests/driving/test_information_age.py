"""Ages of answers: every formula against pictures and answers on a clock that knows none."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from threeloops.driving import information_age, latency_budget
from threeloops.simulate.driving import picture_age

MS = Fraction(1, 1000)
latencies, periods = st.integers(1, 200), st.integers(5, 100)


@given(latency=latencies, period=periods)
def test_mean_and_largest_age_of_a_regular_chain(latency: int, period: int) -> None:
    answers = picture_age.regular(latency=latency * MS, period=period * MS, frames=12)
    begin = latency * MS
    counted = picture_age.mean_age(answers, begin=begin, end=begin + 10 * period * MS, step=MS)
    predicted = information_age.mean_age_s(latency_s=latency * 0.001, period_s=period * 0.001)
    assert float(counted) == pytest.approx(predicted)
    largest = information_age.largest_age_s(latency_s=latency * 0.001, period_s=period * 0.001, lost_in_a_row=0)
    assert float(max(picture_age.age_before_each(answers))) == pytest.approx(largest)
    assert largest == pytest.approx(
        latency_budget.oldest_picture_s(latency_s=latency * 0.001, frames_per_s=1000 / period)
    )


@given(latency=latencies, period=periods, lost=st.integers(0, 4), every=st.integers(6, 9))
def test_lost_frames_make_the_age_grow(latency: int, period: int, lost: int, every: int) -> None:
    gone = {n for n in range(3 * every) if n % every in range(1, lost + 1)}
    answers = picture_age.regular(latency=latency * MS, period=period * MS, frames=3 * every, lost=gone)
    largest = information_age.largest_age_s(latency_s=latency * 0.001, period_s=period * 0.001, lost_in_a_row=lost)
    assert float(max(picture_age.age_before_each(answers))) == pytest.approx(largest)
    begin = latency * MS
    counted = picture_age.mean_age(answers, begin=begin, end=begin + 2 * every * period * MS, step=MS)
    gaps = [(lost + 1) * period * 0.001] + [period * 0.001] * (every - lost - 1)
    assert float(counted) == pytest.approx(information_age.mean_age_over_gaps_s(latency_s=latency * 0.001, gaps_s=gaps))


@given(busy=latencies, period=periods)
def test_one_at_a_time_answers_at_whole_periods(busy: int, period: int) -> None:
    answers = picture_age.one_at_a_time(busy=busy * MS, period=period * MS, frames=3 * (busy // period + 2))
    apart = float(answers[1][0] - answers[0][0])
    assert apart == pytest.approx(information_age.answered_every_s(busy_s=busy * 0.001, period_s=period * 0.001))


@given(busy=latencies, period=periods, frame=st.integers(1, 60))
def test_a_queue_makes_every_frame_later_than_the_one_before(busy: int, period: int, frame: int) -> None:
    exposed, ready = picture_age.queued(busy=busy * MS, period=period * MS, frames=frame)[-1]
    predicted = information_age.queued_latency_s(busy_s=busy * 0.001, period_s=period * 0.001, frame=frame)
    assert float(ready - exposed) == pytest.approx(predicted)


@given(busy=latencies, period=periods)
def test_a_buffer_of_one_keeps_the_worker_busy_and_its_newest_picture(busy: int, period: int) -> None:
    exposed, ready = zip(
        *picture_age.buffered(busy=busy * MS, period=period * MS, frames=4 * (busy // period + 2)), strict=True
    )
    for place in range(1, len(ready)):
        start = ready[place] - busy * MS
        assert start == max(exposed[place], ready[place - 1])  # it never waits while a picture does
        assert start - exposed[place] <= period * MS  # and what waits is never older than a period


@given(stages=st.lists(st.integers(2, 40), min_size=2, max_size=5), period=st.integers(10, 60))
def test_a_pipeline_answers_more_often_and_no_sooner(stages: list[int], period: int) -> None:
    """The youngest picture of all is as old as the whole chain takes, however many frames are under way."""
    busy = [stage * MS for stage in stages]
    alone = picture_age.one_at_a_time(busy=sum(busy, Fraction(0)), period=period * MS, frames=60)
    pipelined = picture_age.vehicle.frames_through(busy, period=period * MS, frames=60)
    assert len(pipelined) >= len(alone)
    assert min(ready - exposed for exposed, ready in pipelined) == sum(busy) == alone[0][1]


def test_who_asks_too_early_is_told_so() -> None:
    answers = picture_age.regular(latency=20 * MS, period=30 * MS, frames=3)
    with pytest.raises(ValueError, match="no answer is ready"):
        picture_age.ages(answers, begin=Fraction(0), end=20 * MS, step=MS)


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (lambda: information_age.mean_age_over_gaps_s(latency_s=0.1, gaps_s=()), "is empty"),
        (lambda: information_age.mean_age_s(latency_s=0.1, period_s=0), "gap 1=0"),
        (lambda: information_age.largest_age_s(latency_s=0.1, period_s=0.1, lost_in_a_row=-1), "lost_in_a_row=-1"),
        (lambda: information_age.queued_latency_s(busy_s=0.1, period_s=0.1, frame=0), "frame=0"),
    ],
)
def test_nonsense_is_refused(call: object, told: str) -> None:
    with pytest.raises(ValueError, match=told):
        call()  # type: ignore[operator]
