"""Timing: the statistics on a clock we control, known durations on the real one, and ceilings that kernels cannot
exceed by much.
"""

import contextlib
import platform
import statistics
import subprocess
import sys

import pytest
import torch

from threeloops import wall_clock
from threeloops.measure import timing
from threeloops.measure.inner_loop.machine import one_core

GPU = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")


def test_statistics_on_a_clock_that_we_turn(monkeypatch):
    durations = [0.5, 0.1, 0.2, 9.0, 0.3, 0.4, 0.6]
    clock, left = [0.0], [0.0, 0.0, *durations]

    def work():
        clock[0] += left.pop(0)

    monkeypatch.setattr(timing.time, "perf_counter", lambda: clock[0])
    result = timing.timed(work, repeats=len(durations), warmup=2)
    assert not left  # the warm-up calls were made and not counted
    assert result.median_s == pytest.approx(statistics.median(durations)) == pytest.approx(0.4)
    assert (result.fastest_s, result.slowest_s) == pytest.approx((0.1, 9.0))
    assert result.spread == pytest.approx((0.55 - 0.25) / 0.4)
    assert result.num_samples == 7


def test_a_known_duration_on_the_real_clock():
    result = timing.timed(lambda: wall_clock.pause(0.02), repeats=5, warmup=0)
    # a busy machine wakes us late; a slip of units is a thousand times
    assert 0.02 <= result.fastest_s <= result.median_s < 5


def test_results_are_stamped(noon):
    machine = timing.timed(lambda: None, repeats=2).machine
    assert machine.measured == wall_clock.today()
    assert f"torch {torch.__version__}" in machine.software
    assert machine.num_threads == torch.get_num_threads()
    assert len(machine.hardware) > 2


def test_work_over_time_is_the_rate():
    rate = timing.gemm_rate(dtype="fp32", size=96, repeats=3)
    assert rate.amount == 2 * 96**3
    assert rate.best_per_s * rate.timing.fastest_s == pytest.approx(rate.amount)
    assert rate.median_per_s <= rate.best_per_s
    assert timing.copy_rate(size_bytes=4_000, repeats=2).amount == 2 * 4_000
    assert timing.triad_rate(size_bytes=4_000, repeats=2).amount == 3 * 4_000


def test_the_ceiling_of_this_machine_is_physically_possible_and_is_one():
    found = timing.ceiling(dtype="fp32", gemm_size=512, array_bytes=32_000_000, repeats=5)
    # Wide enough for any processor, tight enough for a slip of 1000 or of bits for bytes: 1 GFLOP/s to 200 TFLOP/s,
    # 0.5 GB/s to 10 TB/s.
    assert 1e9 < found.peak_flops_per_s < 200e12
    assert 0.5e9 < found.memory_bytes_per_s < 10e12
    assert found.memory_bytes_per_s == max(found.copy.best_per_s, found.triad.best_per_s)
    # A product of the same size cannot be much faster than the ceiling, unless a burst of other work slowed the
    # ceiling itself, which we then take again.
    again = timing.gemm_rate(dtype="fp32", size=512, repeats=5)
    assert any(
        again.median_per_s
        < 4 * timing.ceiling(dtype="fp32", gemm_size=512, array_bytes=4_000, repeats=5).peak_flops_per_s
        for _ in range(5)
    )


def test_a_product_with_a_vector_runs_far_below_the_arithmetic_roof():
    a, x = torch.randn(3000, 3000), torch.randn(3000, 1)
    with one_core():  # the caches of many cores together may hold the whole matrix
        matrix = timing.gemm_rate(dtype="fp32", size=512, repeats=20)
        vector = timing.timed(lambda: a @ x, repeats=10)
    assert 2 * 3000 * 3000 / vector.median_s < 0.5 * matrix.best_per_s


def test_refusals():
    with pytest.raises(ValueError, match="repeats=1 must be a whole number of at least 2"):
        timing.timed(lambda: None, repeats=1)
    with pytest.raises(ValueError, match="dtype='fp8' is not known"):
        timing.gemm_rate(dtype="fp8", size=8)
    with pytest.raises(ValueError, match="device='tpu' is not known; use 'cpu' or 'cuda'"):
        timing.timed(lambda: None, device="tpu")
    with pytest.raises(ValueError, match="size_bytes=3 must be a whole number of at least 4"):
        timing.copy_rate(size_bytes=3)
    assert timing.copy_rate(size_bytes=4, repeats=2).amount == 8


def test_gpu_samples_come_from_the_devices_own_clock(monkeypatch):
    """The order of calls on a stand-in for the device, whose events report milliseconds."""
    log = []

    class Event:
        def __init__(self, enable_timing):
            assert enable_timing

        def record(self):
            log.append("event")

        def elapsed_time(self, end):
            return 250.0

    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda device: "stand-in")
    monkeypatch.setattr(torch.cuda, "device", lambda device: contextlib.nullcontext())
    monkeypatch.setattr(torch.cuda, "Event", Event)
    monkeypatch.setattr(torch.cuda, "synchronize", lambda: log.append("wait"))
    result = timing.timed(lambda: log.append("call"), repeats=2, warmup=1, device="cuda")
    # One wait before the first sample and one after the last: none between a kernel's launch and the next.
    assert log == ["call", "wait", "event", "call", "event", "event", "call", "event", "wait"]
    assert result.median_s == 0.25
    assert result.machine.hardware == "stand-in"


@pytest.mark.skipif(torch.cuda.is_available(), reason="needs a machine without a GPU")
def test_a_gpu_that_is_not_there_is_refused():
    with pytest.raises(ValueError, match="device='cuda' is not available on this machine"):
        timing.gemm_rate(dtype="bf16", size=8, device="cuda")


@GPU
def test_gpu_events_time_the_device_and_not_the_queueing():
    a = torch.randn(8192, 8192, device="cuda", dtype=torch.bfloat16)
    on_device = timing.timed(lambda: a @ a, repeats=10, device="cuda")
    assert 2 * 8192**3 / on_device.median_s < 5e15
    found = timing.ceiling(dtype="bf16", gemm_size=8192, array_bytes=2_000_000_000, device="cuda")
    assert found.peak_flops_per_s > 20 * timing.gemm_rate(dtype="fp64", size=2048).best_per_s
    assert found.machine.hardware == torch.cuda.get_device_name()


def test_a_process_that_keeps_memory_touches_no_new_pages_for_the_next_tensor() -> None:
    """In a process of its own: it keeps its memory to the end."""
    code = (
        "import resource, torch\nfrom threeloops.measure import timing\n"
        "def faults():\n    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt\n"
        "    torch.ones(2**24)\n    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before\n"
        "plain = min(faults() for _ in range(4))\nprint(timing.keep_memory(), plain, min(faults() for _ in range(16)))"
    )
    if sys.platform != "linux" or platform.machine() != "x86_64":
        assert not timing.keep_memory()
        return
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    kept, plain, after = ran.stdout.split()
    assert kept == "True"
    assert int(plain) > 10 * int(after)  # 64 MiB: 16,384 pages of 4 KiB, or 32 of 2 MiB
