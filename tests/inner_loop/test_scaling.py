"""Amdahl and overlapping steps, against played timelines and published scaling."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as some

from threeloops.inner_loop.scaling import (
    JobStep,
    amdahl_limit,
    amdahl_speedup,
    changed_calls_s,
    efficiency,
    needed_factor,
    needed_share,
    parts_speedup,
    scaled_speedup,
    serial_share,
)
from threeloops.simulate.inner_loop import ticks
from threeloops.simulate.inner_loop.step import play


def timeline(parts: list[tuple[bool, int]], factor: int) -> tuple[int, int]:
    """(ticks before, ticks after) of a job written out tick by tick, where a faster part does `factor` ticks of work
    in one.
    """
    before = [fast for fast, ticks in parts for _ in range(ticks)]
    after = sum(not fast for fast in before) + math.ceil(sum(before) / factor)
    return len(before), after


@pytest.mark.parametrize("factor", [1, 2, 5, 10])
def test_amdahl_equals_a_job_written_out_tick_by_tick(factor: int) -> None:
    parts = [(True, 400), (False, 100), (True, 400), (False, 100)]
    before, after = timeline(parts, factor)
    assert amdahl_speedup(accelerated_share=0.8, factor=factor) == pytest.approx(before / after)


def test_published_anchor() -> None:
    # Goyal et al., 2017, arXiv:1706.02677: 256 GPUs reach about 90 % of the efficiency of 8: 8 → 256 is 32 times,
    # 28.8 of them real.
    assert efficiency(speedup=28.8, num_processors=32) == pytest.approx(0.9)
    # Amdahl's own moral: a share of 99 % is capped at 100 times.
    assert amdahl_limit(accelerated_share=0.99) == pytest.approx(100)


@given(some.integers(0, 40), some.integers(1, 200), some.integers(1, 30))
def test_efficiency_is_the_share_of_the_workers_ticks_that_were_worked(alone: int, shared: int, workers: int) -> None:
    lasted = ticks.dealt_out(alone=alone, shared=shared, workers=workers)
    before = ticks.dealt_out(alone=alone, shared=shared, workers=1)
    paid = sum(1 for _tick in range(lasted) for _worker in range(workers))
    assert efficiency(speedup=before / lasted, num_processors=workers) == pytest.approx((alone + shared) / paid)


@given(some.floats(0, 1), some.floats(0.01, 1e6))
def test_limits_and_identities(share: float, factor: float) -> None:
    speedup = amdahl_speedup(accelerated_share=share, factor=factor)
    assert amdahl_speedup(accelerated_share=share, factor=1) == pytest.approx(1)
    assert amdahl_speedup(accelerated_share=1, factor=factor) == pytest.approx(factor)
    assert amdahl_speedup(accelerated_share=0, factor=factor) == 1
    assert speedup <= amdahl_limit(accelerated_share=share) * (1 + 1e-9)


@pytest.mark.parametrize(
    ("workers", "batch_s", "stages"),
    [
        (1, 0.85, (0.2, 0.3)),
        (1, 0.1, (0.2, 0.3)),
        (4, 1.7, (0.2, 0.3)),
        (4, 3.0, (0.2, 0.3)),
        (3, 0.9, (0.1, 0.05, 0.02)),
    ],
)
def test_a_step_is_paced_by_loader_or_device_as_played(workers: int, batch_s: float, stages: tuple[float, ...]) -> None:
    played = play(num_steps=400, workers=workers, batch_s=batch_s, queue=2, stages=stages)
    step = JobStep(loader_s=batch_s / workers, device_s={f"stage {i}": seconds for i, seconds in enumerate(stages)})
    assert played.pace_s(skip=100) == pytest.approx(step.total_s, rel=0.01)


def test_a_faster_device_behind_a_slow_loader_changes_nothing() -> None:
    step = JobStep(loader_s=0.85, device_s={"forward": 0.2, "backward": 0.4})
    assert step.with_faster("backward", 10).total_s == 0.85
    assert step.with_faster("loader", 10).total_s == pytest.approx(0.6)
    slow, fast = (
        play(num_steps=200, workers=1, batch_s=0.85, queue=2, stages=(0.2, backward)) for backward in (0.4, 0.04)
    )
    assert fast.pace_s(skip=50) == pytest.approx(slow.pace_s(skip=50))
    assert fast.device_idle_s > slow.device_idle_s


def test_the_players_queue_bounds_how_far_workers_run_ahead() -> None:
    # Two workers, one place: when the device takes its first batch at 1 s, at most 3 batches exist; the fourth starts
    # then, not before.
    played = play(num_steps=4, workers=2, batch_s=1.0, queue=1, stages=(10.0,))
    assert played.finished_s == [11.0, 21.0, 31.0, 41.0]
    assert played.device_idle_s == 1.0


def test_refusals() -> None:
    with pytest.raises(ValueError, match="accelerated_share=80 must lie between 0 and 1"):
        amdahl_speedup(accelerated_share=80, factor=2)
    with pytest.raises(ValueError, match="factor=0 must be greater than 0"):
        amdahl_speedup(accelerated_share=0.8, factor=0)
    with pytest.raises(ValueError, match="stage='bakcward' is not known; did you mean 'backward'"):
        JobStep(loader_s=1, device_s={"backward": 1}).with_faster("bakcward", 2)
    with pytest.raises(ValueError, match="device_s is empty"):
        JobStep(loader_s=1, device_s={})
    with pytest.raises(ValueError, match="workers=0"):
        play(num_steps=1, workers=0, batch_s=1, queue=1, stages=(1,))
    assert math.isinf(amdahl_limit(accelerated_share=1))


# --- several parts, and the law solved for its other letters ---


def test_several_parts_equal_a_job_written_out_unit_by_unit() -> None:
    took = ticks.one_after_another([(44, "4.1"), (26, "1.6"), (30, 1)])
    assert parts_speedup(shares=[0.44, 0.26], factors=[4.1, 1.6]) == pytest.approx(float(100 / took))
    assert parts_speedup(shares=[0.8], factors=[2]) == pytest.approx(amdahl_speedup(accelerated_share=0.8, factor=2))
    assert parts_speedup(shares=[], factors=[]) == 1


@given(some.floats(0.01, 0.99), some.floats(1.01, 100))
def test_share_and_factor_lead_back_to_the_law(share: float, factor: float) -> None:
    speedup = amdahl_speedup(accelerated_share=share, factor=factor)
    assert needed_share(speedup=speedup, factor=factor) == pytest.approx(share, rel=1e-6)
    assert needed_factor(speedup=speedup, accelerated_share=share) == pytest.approx(factor, rel=1e-6)


@pytest.mark.parametrize(("alone", "workers"), [(10, 5), (20, 6), (1, 7), (100, 3)])
def test_serial_share_is_found_again_in_work_that_was_dealt_out(alone: int, workers: int) -> None:
    shared = (100 - alone) * workers  # a multiple of the workers, so that none stands idle at the end
    speedup = 100 * workers / ticks.dealt_out(alone=alone * workers, shared=shared, workers=workers)
    assert serial_share(speedup=speedup, num_processors=workers) == pytest.approx(alone / 100)


@pytest.mark.parametrize("workers", [1, 4, 50])
def test_work_that_grows_with_the_machine_equals_what_one_worker_needs_for_it(workers: int) -> None:
    one, all_of_them = (ticks.dealt_out(alone=20, shared=80 * workers, workers=n) for n in (1, workers))
    assert scaled_speedup(serial_share=0.2, num_processors=workers) == pytest.approx(one / all_of_them)


def test_published_anchors_of_the_other_laws() -> None:
    # Gustafson, 1988, doi:10.1145/42411.42415: a straight line in the serial share, of slope 1 - N. For N = 1024 a
    # percent more costs 10.23.
    gentle, steep = (scaled_speedup(serial_share=serial, num_processors=1024) for serial in (0.01, 0.02))
    assert gentle - steep == pytest.approx(10.23)
    # A kernel 1.15 to 1.20 times faster that makes a step 1.12 times faster must be 82 to 64 % of it.
    assert needed_share(speedup=1.12, factor=1.15) == pytest.approx(0.82, abs=0.005)


def test_impossible_questions_are_refused() -> None:
    assert needed_share(speedup=2, factor=2) == 1
    with pytest.raises(ValueError, match=r"speedup=2.1 must lie between 1 and factor=2"):
        needed_share(speedup=2.1, factor=2)
    with pytest.raises(ValueError, match=r"speedup=5.1 must be below 5, the limit for accelerated_share=0.8"):
        needed_factor(speedup=5.1, accelerated_share=0.8)
    with pytest.raises(ValueError, match=r"speedup=9 must lie between 1 and num_processors=8"):
        serial_share(speedup=9, num_processors=8)
    with pytest.raises(ValueError, match=r"num_processors=1 must be a whole number of at least 2"):
        serial_share(speedup=1, num_processors=1)
    with pytest.raises(ValueError, match=r"2 shares and 1 factors"):
        parts_speedup(shares=[0.1, 0.2], factors=[2])
    with pytest.raises(ValueError, match=r"add up to 1.1"):
        parts_speedup(shares=[0.5, 0.6], factors=[2, 2])
    with pytest.raises(ValueError, match=r"workers=0"):
        ticks.dealt_out(alone=1, shared=1, workers=0)


@pytest.mark.parametrize(
    ("rest", "calls", "before", "after"), [(31, 4, 7, 2), (5, 3, 2, 9), (0, 6, 5, 1), (12, 1, 8, 0)]
)
def test_changed_calls_in_a_step_written_out_tick_by_tick(rest: int, calls: int, before: int, after: int) -> None:
    def played(call: int) -> float:
        return float(ticks.one_after_another([(rest, 1), *((call, 1) for _ in range(calls))]))

    assert changed_calls_s(whole_s=played(before), num_calls=calls, before_s=before, after_s=after) == pytest.approx(
        played(after)
    )


def test_calls_that_do_not_fit_into_the_whole_are_refused() -> None:
    assert changed_calls_s(whole_s=0.3, num_calls=3, before_s=0.1, after_s=0.1) == pytest.approx(0.3)
    with pytest.raises(ValueError, match=r"num_calls=4 of before_s=0.1 take 0.4 s, more than whole_s=0.3"):
        changed_calls_s(whole_s=0.3, num_calls=4, before_s=0.1, after_s=0)
    with pytest.raises(ValueError, match="after_s=-1 must be at least 0"):
        changed_calls_s(whole_s=1, num_calls=1, before_s=0.1, after_s=-1)
