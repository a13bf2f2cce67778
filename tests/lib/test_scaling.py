"""Amdahl and overlapping steps, against played timelines and published scaling."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as some

from threeloops.scaling import Step, amdahl_limit, amdahl_speedup, efficiency
from threeloops.simulate.step import play


def timeline(parts: list[tuple[bool, int]], factor: int) -> tuple[int, int]:
    """(ticks before, ticks after) of a job written out tick by tick, where a faster part does `factor` ticks of work in one."""
    before = [fast for fast, ticks in parts for _ in range(ticks)]
    after = sum(not fast for fast in before) + math.ceil(sum(before) / factor)
    return len(before), after


@pytest.mark.parametrize("factor", [1, 2, 5, 10])
def test_amdahl_equals_a_job_written_out_tick_by_tick(factor: int) -> None:
    parts = [(True, 400), (False, 100), (True, 400), (False, 100)]
    before, after = timeline(parts, factor)
    assert amdahl_speedup(accelerated_share=0.8, factor=factor) == pytest.approx(before / after)


def test_published_anchor() -> None:
    # Goyal et al., 2017, arXiv:1706.02677: 256 GPUs reach about 90 % of the efficiency of 8: 8 → 256 is 32 times, 28.8 of them real.
    assert efficiency(speedup=28.8, num_processors=32) == pytest.approx(0.9)
    # Amdahl's own moral: a share of 99 % is capped at 100 times.
    assert amdahl_limit(accelerated_share=0.99) == pytest.approx(100)


@given(some.floats(0, 1), some.floats(0.01, 1e6))
def test_limits_and_identities(share: float, factor: float) -> None:
    speedup = amdahl_speedup(accelerated_share=share, factor=factor)
    assert amdahl_speedup(accelerated_share=share, factor=1) == pytest.approx(1)
    assert amdahl_speedup(accelerated_share=1, factor=factor) == pytest.approx(factor)
    assert amdahl_speedup(accelerated_share=0, factor=factor) == 1
    assert speedup <= amdahl_limit(accelerated_share=share) * (1 + 1e-9)


@pytest.mark.parametrize(
    ("workers", "batch_s", "stages"), [(1, 0.85, (0.2, 0.3)), (1, 0.1, (0.2, 0.3)), (4, 1.7, (0.2, 0.3)), (4, 3.0, (0.2, 0.3)), (3, 0.9, (0.1, 0.05, 0.02))]
)
def test_a_step_is_paced_by_loader_or_device_as_played(workers: int, batch_s: float, stages: tuple[float, ...]) -> None:
    played = play(num_steps=400, workers=workers, batch_s=batch_s, queue=2, stages=stages)
    step = Step(loader_s=batch_s / workers, device_s={f"stage {i}": seconds for i, seconds in enumerate(stages)})
    assert played.pace_s(skip=100) == pytest.approx(step.total_s, rel=0.01)


def test_a_faster_device_behind_a_slow_loader_changes_nothing() -> None:
    step = Step(loader_s=0.85, device_s={"forward": 0.2, "backward": 0.4})
    assert step.with_faster("backward", 10).total_s == 0.85
    assert step.with_faster("loader", 10).total_s == pytest.approx(0.6)
    slow, fast = (play(num_steps=200, workers=1, batch_s=0.85, queue=2, stages=(0.2, backward)) for backward in (0.4, 0.04))
    assert fast.pace_s(skip=50) == pytest.approx(slow.pace_s(skip=50))
    assert fast.device_idle_s > slow.device_idle_s


def test_the_players_queue_bounds_how_far_workers_run_ahead() -> None:
    # Two workers, one place: when the device takes its first batch at 1 s, at most 3 batches exist; the fourth starts then, not before.
    played = play(num_steps=4, workers=2, batch_s=1.0, queue=1, stages=(10.0,))
    assert played.finished_s == [11.0, 21.0, 31.0, 41.0]
    assert played.device_idle_s == 1.0


def test_refusals() -> None:
    with pytest.raises(ValueError, match="accelerated_share=80 must lie between 0 and 1"):
        amdahl_speedup(accelerated_share=80, factor=2)
    with pytest.raises(ValueError, match="factor=0 must be greater than 0"):
        amdahl_speedup(accelerated_share=0.8, factor=0)
    with pytest.raises(ValueError, match="stage='bakcward' is not known; did you mean 'backward'"):
        Step(loader_s=1, device_s={"backward": 1}).with_faster("bakcward", 2)
    with pytest.raises(ValueError, match="device_s is empty"):
        Step(loader_s=1, device_s={})
    with pytest.raises(ValueError, match="workers=0"):
        play(num_steps=1, workers=0, batch_s=1, queue=1, stages=(1,))
    assert math.isinf(amdahl_limit(accelerated_share=1))
