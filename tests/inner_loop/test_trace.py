"""Traces and what is read from them: against a device looked at tick by tick, against every illness over many seeds,
against steps worked out on paper.
"""

import random
import re

import pytest

from threeloops.inner_loop import device_reads, trace_diagnosis, trace_gauges
from threeloops.inner_loop.trace import (
    COMMUNICATION,
    COMPUTE,
    COPY,
    HOST,
    LOADER,
    STEP,
    Interval,
    Reading,
    Trace,
    covered,
)
from threeloops.inner_loop.trace_gauges import complement, gauges, length, overlap
from threeloops.simulate.inner_loop import ill_jobs, step
from threeloops.simulate.inner_loop.training_timeline import OPTIMISER_KERNELS, Job, play
from threeloops.units import us

QUIET = {
    "layers": 4,
    "products": 2,
    "product_s": 30 * us,
    "vectors": 1,
    "vector_s": 10 * us,
    "launch_s": 5 * us,
    "batch_s": 0.0,
    "workers": 1,
    "noise": 0.0,
}


def bar(row: str, start: float, end: float, name: str = "work") -> Interval:
    return Interval(row=row, name=name, start_s=start, end_s=end)


# --- gauges against ticks ---


def random_trace(seed: int) -> Trace:
    """Bars with whole ends, so that a look in the middle of every second sees everything."""
    rng = random.Random(seed)
    rows = [
        (COMPUTE, "kernel"),
        (COMMUNICATION, "all-reduce"),
        (COPY, "copy"),
        (HOST, "wait for batch"),
        (HOST, "sync"),
        (HOST, "launch"),
        (HOST, "queue full"),
    ]
    bars = [bar(COMPUTE, 10, 20, "kernel")]
    for _ in range(40):
        row, name = rng.choice(rows)
        start = rng.randrange(300)
        bars.append(bar(row, start, start + rng.randrange(1, 12), name))
    return Trace(intervals=tuple(bars))


@pytest.mark.parametrize("seed", range(30))
def test_gauges_agree_with_looking_at_every_second(seed: int) -> None:
    trace = random_trace(seed)
    counted = dict.fromkeys(["busy", *trace_gauges.CAUSES], 0)
    idle_since, start, end = None, int(trace.start_s), int(trace.end_s)

    def running(row: str, at: float, name: str | None = None) -> bool:
        return any(i.start_s < at < i.end_s for i in trace.of(row, name=name))

    for second in range(start, end):
        at = second + 0.5
        if running(COMPUTE, at):
            counted["busy"] += 1
            idle_since = None
            continue
        idle_since = second if idle_since is None else idle_since
        in_sync = any(i.start_s <= idle_since <= i.end_s for i in trace.of(HOST, name="sync"))
        checks = [
            ("communication", running(COMMUNICATION, at)),
            ("copies", running(COPY, at)),
            ("loader", running(HOST, at, "wait for batch")),
            ("sync", in_sync),
            ("launches", running(HOST, at, "launch")),
        ]
        counted[next((cause for cause, is_so in checks if is_so), "other")] += 1
    read = gauges(trace)
    assert read.busy == pytest.approx(counted.pop("busy") / (end - start))
    assert read.causes == pytest.approx({cause: seconds / (end - start) for cause, seconds in counted.items()})
    assert sum(read.causes.values()) == pytest.approx(read.idle)


def test_spans_are_added_cut_and_turned_over() -> None:
    spans = covered([bar(COMPUTE, 0, 2), bar(COMPUTE, 1, 3), bar(COMPUTE, 5, 6), bar(COMPUTE, 7, 7)])
    assert spans == ((0, 3), (5, 6))
    assert length(spans) == 4
    assert complement(spans, (0, 8)) == ((3, 5), (6, 8))
    assert overlap(spans, complement(spans, (0, 8))) == ()


def test_a_window_cuts_what_crosses_its_edges() -> None:
    trace = Trace(
        intervals=(bar(COMPUTE, 0, 10), bar(HOST, 20, 30)), readings=(Reading(counter="allocated", at_s=9, value=5),)
    )
    inside = trace.between(5, 25)
    assert [(i.start_s, i.end_s) for i in inside.intervals] == [(5, 10), (20, 25)]
    assert [reading.value for reading in inside.read("allocated")] == [5]
    assert not trace.between(0, 9).readings


def test_growth_is_that_of_the_lowest_point_of_each_step() -> None:
    steps = [bar(STEP, n, n + 1, f"step {n}") for n in range(4)]
    saw = [
        Reading(counter="allocated", at_s=n + part, value=100 + 7 * n + 50 * part)
        for n in range(4)
        for part in (0.1, 0.5, 0.9)
    ]
    read = gauges(Trace(intervals=(*steps, bar(COMPUTE, 0, 4)), readings=tuple(saw)))
    assert read.growth_bytes_per_step == pytest.approx(7)
    assert gauges(Trace(intervals=(bar(COMPUTE, 0, 4),))).growth_bytes_per_step is None


def test_impossible_traces_are_refused() -> None:
    assert bar(COMPUTE, 1, 1).length_s == 0
    for make, message in (
        (lambda: bar(COMPUTE, 2, 1), "end_s=1 of 'work' must not lie before start_s=2"),
        (lambda: Trace(intervals=()), "at least one interval"),
        (lambda: gauges(Trace(intervals=(bar(HOST, 0, 1),))), "no interval in its row 'GPU'"),
        (lambda: Trace(intervals=(bar(HOST, 0, 1),)).between(1, 1), "must lie behind"),
        (lambda: Reading(counter="x", at_s=0, value=-1), "value=-1 must be at least 0"),
    ):
        with pytest.raises(ValueError, match=re.escape(message)):
            make()


# --- the rule names every illness ---


@pytest.mark.parametrize("kind", ill_jobs.KINDS)
def test_the_rule_names_the_illness_whatever_the_seed(kind: str) -> None:
    for seed in range(100, 112):
        found = trace_diagnosis.findings(gauges(ill_jobs.trace(kind, seed=seed)))
        assert [finding.illness for finding in found] == ([] if kind == "healthy" else [kind]), f"seed {seed}"
        assert all(finding.first_try for finding in found)


def test_cases_of_one_kind_differ_and_one_seed_repeats() -> None:
    assert ill_jobs.trace("healthy", seed=1) == ill_jobs.trace("healthy", seed=1)
    assert ill_jobs.trace("healthy", seed=1) != ill_jobs.trace("healthy", seed=2)
    with pytest.raises(ValueError, match="kind='tired' is not known"):
        ill_jobs.job("tired", seed=1)


def test_a_puzzle_holds_every_illness_once_and_another_seed_deals_the_letters_anew() -> None:
    orders = set()
    for seed in range(4):
        found = [trace_diagnosis.findings(gauges(trace)) for trace in ill_jobs.unnamed(seed=seed).values()]
        orders.add(order := tuple(finding.illness for findings in found for finding in findings))
        assert sorted(order) == sorted(ill_jobs.ILLNESSES)
    assert len(orders) > 1


# --- the simulator, worked out on paper ---


def test_a_gpu_that_keeps_up_with_nobody_sets_the_pace() -> None:
    # forward 4 layers x (2 x 30 + 10) us, backward 4 x (4 x 30 + 10), optimiser 4 x 10
    played = play(Job(**QUIET), steps=8, seed=0)
    assert played.step_s(skip=3) == pytest.approx((280 + 520 + 40) * us)
    assert gauges(played.window(3, 6)).busy == pytest.approx(1)


def test_a_cpu_that_cannot_keep_up_sets_the_pace() -> None:
    kernels = 4 * 3 + 4 * 5 + OPTIMISER_KERNELS
    assert play(Job(**{**QUIET, "launch_s": 50 * us}), steps=8, seed=0).step_s(skip=3) == pytest.approx(
        kernels * 50 * us
    )


def test_a_captured_graph_needs_one_request_and_a_fused_one_fewer_kernels() -> None:
    slow = {**QUIET, "launch_s": 50 * us, "vectors": 3}
    # forward 4 x (60 + 30), backward 4 x (120 + 30), optimiser 40; with one vector kernel per layer 4 x 70 + 4 x 130
    # + 10
    assert play(Job(**slow, graph=True), steps=8, seed=0).step_s(skip=3) == pytest.approx((360 + 600 + 40) * us)
    assert play(Job(**slow, graph=True, fused=True), steps=8, seed=0).step_s(skip=3) == pytest.approx(
        (280 + 520 + 10) * us
    )


def test_late_gradients_are_exposed_whole_and_early_ones_but_for_the_rest() -> None:
    # Backward of a layer takes 130 us and a quarter of the network's time is 100 us: only the last quarter comes
    # after it.
    late = play(Job(**QUIET, network_s=400 * us, overlap=False), steps=8, seed=0)
    early = play(Job(**QUIET, network_s=400 * us), steps=8, seed=0)
    assert late.step_s(skip=3) == pytest.approx((840 + 400) * us)
    assert early.step_s(skip=3) == pytest.approx((840 + 100) * us)
    assert gauges(early.window(3, 6)).exposed_communication == pytest.approx(100 / 940)


@pytest.mark.parametrize("workers", [1, 2, 4])
def test_the_loader_agrees_with_the_other_simulator(workers: int) -> None:
    busy, batch = 840 * us, 1300 * us
    played = play(Job(**{**QUIET, "batch_s": batch, "workers": workers, "ahead": 1, "copy_s": 0.0}), steps=40, seed=0)
    other = step.play(num_steps=40, workers=workers, batch_s=batch, queue=workers, stages=(busy,))
    assert played.step_s(skip=20) == pytest.approx(other.pace_s(skip=20), rel=0.02)
    assert len(played.trace.of(LOADER)) >= 40


@pytest.mark.parametrize("reads", [1, 3, 6, 12, 36])
def test_reads_cost_what_the_formula_says(reads: int) -> None:
    job = Job(
        **{**QUIET, "products": 2, "vectors": 1, "vector_s": 30 * us, "copy_s": 0.0}, syncs=reads, sync_return_s=25 * us
    )
    predicted = device_reads.read_s(num_kernels=36, num_reads=reads, issue_s=5 * us, kernel_s=30 * us, return_s=25 * us)
    assert play(job, steps=6, seed=0).step_s(skip=2) == pytest.approx(predicted)


def test_the_driver_lets_the_cpu_run_ahead_only_so_far() -> None:
    played = play(Job(**QUIET, ahead=10), steps=6, seed=0)
    assert played.trace.of(HOST, name="queue full")
    requests, kernels = played.trace.of(HOST, name="launch"), played.trace.of(COMPUTE)
    for place, request in enumerate(requests[10:], start=10):
        assert request.start_s >= kernels[place - 10].start_s - 1e-12


def test_counters_are_what_kernels_used_and_memory_returns_to_its_floor() -> None:
    played = play(Job(**QUIET, product_bus=0.5, product_units=0.8, vector_bus=1.0), steps=6, seed=0)
    whole = gauges(played.trace)
    kernels = played.trace.of(COMPUTE)
    used = sum(i.length_s * (0.5 if i.name == "matmul" else 1.0) for i in kernels)
    assert whole.memory_bus == pytest.approx(used / played.finished_s[-1], rel=1e-6)
    allocated = [reading.value for reading in played.trace.read("allocated")]
    assert (min(allocated), max(allocated)) == (6e9, 6e9 + 4 * 0.6e9)
    reserved = [reading.value for reading in played.trace.read("reserved")]
    assert reserved == sorted(reserved)


def test_impossible_jobs_and_reads_are_refused() -> None:
    for change in ({"layers": 0}, {"buckets": 5}, {"ahead": 0}):
        with pytest.raises(ValueError, match="buckets no more than layers"):
            play(Job(**{**QUIET, **change}), steps=4, seed=0)
    with pytest.raises(
        ValueError, match=r"num_reads=5 must divide num_kernels=12; try num_reads in \{1, 2, 3, 4, 6, 12\}"
    ):
        device_reads.read_s(num_kernels=12, num_reads=5, issue_s=1, kernel_s=1, return_s=0)
