"""Roofline: published ridge points, identities at the ridge, units by scaling, the three bounds, refusals."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from threeloops.operations import roofline
from threeloops.operations.roofline import Time, Work

positive = st.floats(min_value=1e-3, max_value=1e15)


def test_ridge_of_tpu_v1_as_published():
    # Jouppi et al., ISCA 2017, arXiv:1704.04760, section 4: 92 TOPS, 34 GB/s, ridge at about 1350 multiply-adds per
    # byte: 2700 operations.
    assert roofline.ridge_point(peak_flops_per_s=92e12, memory_bytes_per_s=34e9) == pytest.approx(2 * 1350, rel=0.01)


@given(peak=positive, bandwidth=positive)
def test_the_two_roofs_meet_at_the_ridge(peak, bandwidth):
    ridge = roofline.ridge_point(peak_flops_per_s=peak, memory_bytes_per_s=bandwidth)
    roofs = {"peak_flops_per_s": peak, "memory_bytes_per_s": bandwidth}
    assert roofline.attainable_flops_per_s(arithmetic_intensity=ridge, **roofs) == pytest.approx(peak)
    assert roofline.attainable_flops_per_s(arithmetic_intensity=ridge * 100, **roofs) == peak
    assert roofline.attainable_flops_per_s(arithmetic_intensity=ridge / 100, **roofs) == pytest.approx(peak / 100)


@given(flops=positive, moved=positive, peak=positive, bandwidth=positive)
def test_attainable_rate_is_flops_over_the_lower_bound(flops, moved, peak, bandwidth):
    work = Work(flops=flops, moved_bytes=moved)
    seconds = roofline.time(work, peak_flops_per_s=peak, memory_bytes_per_s=bandwidth)
    rate = roofline.attainable_flops_per_s(
        arithmetic_intensity=work.arithmetic_intensity, peak_flops_per_s=peak, memory_bytes_per_s=bandwidth
    )
    assert flops / seconds.lower_bound_s == pytest.approx(rate)
    assert seconds.lower_bound_s <= seconds.upper_bound_s <= 2 * seconds.lower_bound_s * (1 + 1e-12)


@given(flops=positive, moved=positive, peak=positive, bandwidth=positive)
def test_doubling_work_and_rates_together_changes_no_time(flops, moved, peak, bandwidth):
    once = roofline.time(Work(flops=flops, moved_bytes=moved), peak_flops_per_s=peak, memory_bytes_per_s=bandwidth)
    twice = roofline.time(
        Work(flops=2 * flops, moved_bytes=2 * moved), peak_flops_per_s=2 * peak, memory_bytes_per_s=2 * bandwidth
    )
    assert once == twice
    faster_memory = roofline.time(
        Work(flops=flops, moved_bytes=moved), peak_flops_per_s=peak, memory_bytes_per_s=2 * bandwidth
    )
    assert faster_memory.memory_s == pytest.approx(once.memory_s / 2)
    assert faster_memory.compute_s == once.compute_s


@pytest.mark.parametrize(
    ("seconds", "bound"),
    [
        ((3, 2, 1), "compute"),
        ((2, 3, 1), "memory"),
        ((1, 2, 3), "overhead"),
        ((2, 2, 1), "compute"),
        ((1, 2, 2), "memory"),
        ((2, 1, 2), "compute"),
    ],
)
def test_bound_is_the_longest_time_and_ties_go_in_order(seconds, bound):
    time = Time(compute_s=seconds[0], memory_s=seconds[1], overhead_s=seconds[2])
    assert time.bound == bound
    assert time.lower_bound_s == max(seconds)
    assert time.upper_bound_s == sum(seconds)


def test_time_at_the_ridge_doubles_without_overlap():
    time = roofline.time(Work(flops=300, moved_bytes=1), peak_flops_per_s=300, memory_bytes_per_s=1)
    assert time.upper_bound_s == 2 * time.lower_bound_s


def test_launches_bind_only_when_the_processor_falls_behind():
    # 32 layers of 50 kernels, 5 us each to launch: 8 ms of launching. It costs nothing while the kernels take longer.
    machine = {"peak_flops_per_s": 1e15, "memory_bytes_per_s": 1e12, "launches": 32 * 50, "launch_overhead_s": 5e-6}
    short, long = Work(flops=1, moved_bytes=4e9), Work(flops=1, moved_bytes=16e9)
    assert roofline.time(short, **machine).bound == "overhead"
    assert roofline.time(short, **machine).lower_bound_s == pytest.approx(8e-3)
    assert roofline.time(long, **machine).bound == "memory"
    assert roofline.time(long, **machine).lower_bound_s == pytest.approx(16e-3)
    assert roofline.time(long, **machine).upper_bound_s == pytest.approx(24e-3)


def queue_walk(kernels, launch_s):
    """The processor issues one launch after another; the device starts each kernel once it is launched and the device
    is free.
    """
    issued, free = 0.0, 0.0
    for kernel in kernels:
        issued += launch_s
        free = max(issued, free) + kernel
    return free


@given(
    st.lists(st.floats(min_value=0.01, max_value=10), min_size=1, max_size=40), st.floats(min_value=0.0, max_value=5)
)
def test_serial_bounds_enclose_a_walk_through_the_launch_queue(kernels, launch_s):
    serial = roofline.serial_time(
        Time(compute_s=seconds, memory_s=seconds / 3, overhead_s=launch_s) for seconds in kernels
    )
    walked = queue_walk(kernels, launch_s)
    assert serial.lower_bound_s <= walked * (1 + 1e-9)
    assert walked <= serial.upper_bound_s * (1 + 1e-9)


def test_a_series_is_slower_than_the_sum_of_its_work_when_its_parts_differ():
    # One compute-bound and one memory-bound kernel cannot hide behind each other: averaging their intensities would
    # say 4 s.
    parts = [Time(compute_s=4, memory_s=1, overhead_s=0), Time(compute_s=0, memory_s=3, overhead_s=0)]
    series = roofline.serial_time(parts)
    assert series.lower_bound_s == 7
    assert (series.compute_bound_s, series.memory_bound_s, series.bound) == (4, 3, "compute")
    assert roofline.serial_time(parts[:1]).lower_bound_s == parts[0].lower_bound_s
    launching = roofline.serial_time([Time(compute_s=1, memory_s=2, overhead_s=9), parts[1]])
    assert (launching.bound, launching.lower_bound_s) == ("overhead", 9)
    as_long = roofline.serial_time([Time(compute_s=4, memory_s=1, overhead_s=4)])  # launching takes no longer
    assert (as_long.bound, as_long.lower_bound_s) == ("compute", 4)
    at_the_ridge = roofline.serial_time([Time(compute_s=5, memory_s=5, overhead_s=0)])
    assert (at_the_ridge.lower_bound_s, at_the_ridge.bound) == (5, "compute")


def test_work_adds_up_and_keeps_its_conventions_once():
    half, fused = (
        Work(flops=1, moved_bytes=2, conventions=("causal=half",)),
        Work(flops=3, moved_bytes=4, conventions=("causal=half", "fused=True")),
    )
    assert half + fused == Work(flops=4, moved_bytes=6, conventions=("causal=half", "fused=True"))
    assert half.times(5) == half + half + half + half + half
    assert Work(flops=0, moved_bytes=2).arithmetic_intensity == 0


def test_refusals():
    with pytest.raises(ValueError, match="moved_bytes=0 must be greater than 0"):
        Work(flops=1, moved_bytes=0)
    assert Work(flops=0, moved_bytes=0.5).flops == 0
    with pytest.raises(ValueError, match="flops=-1 must be at least 0"):
        Work(flops=-1, moved_bytes=1)
    with pytest.raises(ValueError, match="memory_bytes_per_s=0 must be greater than 0"):
        roofline.ridge_point(peak_flops_per_s=1, memory_bytes_per_s=0)
    with pytest.raises(ValueError, match=r"launches=2.5 must be a whole number of at least 0"):
        roofline.time(Work(flops=1, moved_bytes=1), peak_flops_per_s=1, memory_bytes_per_s=1, launches=2.5)
    assert (
        roofline.time(Work(flops=1, moved_bytes=1), peak_flops_per_s=1, memory_bytes_per_s=1, launches=0).overhead_s
        == 0
    )
    with pytest.raises(ValueError, match="parts is empty"):
        roofline.serial_time([])
