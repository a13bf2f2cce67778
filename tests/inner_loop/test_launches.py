"""Launches: the formula against a host and a device played on a clock, and against what NVIDIA published."""

import itertools
import random

import pytest

from threeloops.inner_loop import launches
from threeloops.simulate.inner_loop import launch_queue

ANY_TIMES = [
    (
        random.Random(seed).randrange(1, 60),
        random.Random(seed).uniform(1e-6, 2e-5),
        random.Random(-seed).uniform(1e-6, 2e-5),
    )
    for seed in range(30)
]


@pytest.mark.parametrize(("kernels", "issue_s", "kernel_s"), ANY_TIMES)
@pytest.mark.parametrize("queue", [1, 7, 1000])
def test_a_queue_of_any_length_takes_what_the_formula_says(kernels, issue_s, kernel_s, queue):
    played = launch_queue.play([kernel_s] * kernels, issue_s=issue_s, queue=queue)
    assert played.finished_s == pytest.approx(
        launches.queued_s(num_kernels=kernels, issue_s=issue_s, kernel_s=kernel_s), rel=1e-9
    )


@pytest.mark.parametrize(("kernels", "issue_s", "kernel_s"), ANY_TIMES)
def test_waiting_after_every_kernel_adds_the_two_clocks(kernels, issue_s, kernel_s):
    played = launch_queue.play([kernel_s] * kernels, issue_s=issue_s, queue=5, wait_after=range(kernels))
    assert played.finished_s == pytest.approx(
        launches.synchronised_s(num_kernels=kernels, issue_s=issue_s, kernel_s=kernel_s), rel=1e-9
    )
    assert played.device_idle_s == pytest.approx(kernels * issue_s, rel=1e-9)


def test_a_replayed_graph_is_issued_once():
    played = launch_queue.replay([3e-6] * 1600, launch_s=50e-6, gap_s=0.5e-6)
    assert played.finished_s == pytest.approx(
        launches.replayed_s(num_kernels=1600, kernel_s=3e-6, graph_launch_s=50e-6, gap_s=0.5e-6), rel=1e-9
    )
    assert sum(span.where == "host" for span in played.spans) == 1


def test_the_model_of_the_chapter():
    # 32 layers of 50 operations at 5 to 10 µs: 1,600 launches, 8 to 16 ms, all of them lost only if the device has
    # nothing to do.
    low, high = (launches.queued_s(num_kernels=1600, issue_s=cost, kernel_s=1e-9) for cost in (5e-6, 10e-6))
    assert (low, high) == pytest.approx((8e-3, 16e-3), rel=1e-3)
    lost = launches.queued_s(num_kernels=1600, issue_s=8e-6, kernel_s=60e-6) - 1600 * 60e-6
    assert lost == pytest.approx(8e-6)


def test_waiting_costs_what_was_published_at_least():
    # Gray, 2019: 2.9 µs kernels, 3.8 µs each without waits, so issuing takes 3.8; 9.6 with a wait after each, of
    # which the sum explains 6.7.
    assert launches.queued_s(num_kernels=20, issue_s=3.8e-6, kernel_s=2.9e-6) / 20 == pytest.approx(3.8e-6, rel=0.05)
    assert launches.synchronised_s(num_kernels=20, issue_s=3.8e-6, kernel_s=2.9e-6) / 20 < 9.6e-6


def test_the_queue_holds_no_more_than_its_length():
    played = launch_queue.play([1.0] * 20, issue_s=0.1, queue=4)
    host = {span.kernel: span for span in played.spans if span.where == "host"}
    device = {span.kernel: span for span in played.spans if span.where == "device"}
    for number in range(20):
        waiting = [other for other in range(number) if device[other].start_s > host[number].start_s + 1e-12]
        assert len(waiting) < 4 + 1e-9
    assert played.host_waits_s > 0


@pytest.mark.parametrize("queue", [1, 2, 50])
def test_kernels_run_in_order_one_at_a_time_and_never_before_they_are_issued(queue):
    rng = random.Random(3)
    played = launch_queue.play([rng.uniform(0.1, 2.0) for _ in range(40)], issue_s=0.7, queue=queue, wait_after=(5, 20))
    host = [span for span in played.spans if span.where == "host"]
    device = [span for span in played.spans if span.where == "device"]
    assert all(one.end_s <= two.start_s + 1e-12 for one, two in itertools.pairwise(device))
    assert all(issued.end_s <= ran.start_s + 1e-12 for issued, ran in zip(host, device, strict=True))
    assert host[6].start_s >= device[5].end_s


def test_twice_the_bandwidth_doubles_the_break_even():
    once, twice = (launches.break_even_bytes(issue_s=7e-6, memory_bytes_per_s=rate) for rate in (1e12, 2e12))
    assert (once, twice) == (7e6, 14e6)


def test_a_compiler_that_saves_nothing_is_never_paid():
    assert launches.calls_until_paid(compile_s=30, before_s=2, after_s=1.5) == 60
    with pytest.raises(ValueError, match="never paid back"):
        launches.calls_until_paid(compile_s=30, before_s=2, after_s=2)


@pytest.mark.parametrize("wrong", [{"num_kernels": 0}, {"issue_s": 0}, {"kernel_s": -1e-6}])
def test_refusals(wrong):
    fine = {"num_kernels": 1, "issue_s": 1e-6, "kernel_s": 1e-6}
    launches.queued_s(**fine)
    with pytest.raises(ValueError, match=next(iter(wrong))):
        launches.queued_s(**(fine | wrong))
    with pytest.raises(ValueError, match="at least 1"):
        launch_queue.play([], issue_s=1.0, queue=1)
    with pytest.raises(ValueError, match="at least one kernel"):
        launch_queue.replay([], launch_s=1.0, gap_s=0.0)
