"""Seconds on a clock, and the ceiling of this machine: how fast it really multiplies matrices and moves bytes.

A datasheet's peak is what no kernel reaches; a kernel is judged by what the best kernels reach on the same machine.
Every result says which machine, which software, which day, and how far the samples scattered.

>>> sum_of_squares = timed(lambda: sum(i * i for i in range(1000)), repeats=5)
>>> sum_of_squares.num_samples, sum_of_squares.fastest_s <= sum_of_squares.median_s <= sum_of_squares.slowest_s
(5, True)
"""

import ctypes
import datetime
import platform
import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import torch

from threeloops import checks, wall_clock
from threeloops.units import ms

DTYPES = {"fp64": torch.float64, "fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}


# names of glibc's allocator, malloc.h: hand nothing back, grow by 256 MiB at a time, map nothing apart
KEEPING = {"M_TRIM_THRESHOLD": (-1, 2**31 - 1), "M_TOP_PAD": (-2, 2**28), "M_MMAP_MAX": (-4, 0)}


def keep_memory() -> bool:
    """From here on this process keeps the memory that it frees, as torch does on a GPU: a new tensor seldom waits until
    the system has found and cleared pages for it.

    Returns:  whether this system's allocator can (glibc's on x86-64; torch brings its own elsewhere); where it cannot,
              all stays as it was
    Source:   mallopt(3), Linux man-pages 6
    """
    glibc = sys.platform == "linux" and platform.machine() == "x86_64"
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None) if glibc else None
    return bool(mallopt and all([mallopt(*setting) for setting in KEEPING.values()]))


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """Where and when something was measured."""

    hardware: str
    software: str
    num_threads: int  # of torch on the host
    measured: datetime.date


def this_machine(*, device: str = "cpu") -> Machine:
    """The machine that runs this, as it describes itself."""
    hardware = torch.cuda.get_device_name(device) if _on_gpu(device) else _processor_name()
    software = (
        f"torch {torch.__version__}, Python {platform.python_version()}, {platform.system()} {platform.release()}"
    )
    return Machine(
        hardware=hardware, software=software, num_threads=torch.get_num_threads(), measured=wall_clock.today()
    )


def _processor_name() -> str:
    """The processor's name where the system tells it, else its architecture."""
    lines = Path("/proc/cpuinfo").read_text().splitlines() if Path("/proc/cpuinfo").exists() else []
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()


@dataclass(frozen=True, slots=True, kw_only=True)
class Timing:
    """Seconds per call, over a number of samples."""

    median_s: float
    fastest_s: float
    slowest_s: float
    lower_quartile_s: float
    upper_quartile_s: float
    num_samples: int
    machine: Machine

    @property
    def spread(self) -> float:
        """Half of the samples lie within this share of the median: the distance between the quartiles over the
        median.
        """
        return (self.upper_quartile_s - self.lower_quartile_s) / self.median_s


def timed(function: Callable[[], object], *, repeats: int = 20, warmup: int = 3, device: str = "cpu") -> Timing:
    """Seconds per call of `function`, each call timed by itself, after `warmup` calls that are not.

    On a GPU the device's own events are read: a call returns before the device has done the work, so the host's clock
    would time the queueing.

    Assumes:  nothing else competes for the machine; results of one call do not speed up the next, except by warm
              caches
    Raises:   ValueError for fewer than 2 samples, or for a GPU that is not there
    """
    checks.count(at_least=2, repeats=repeats)
    checks.count(at_least=0, warmup=warmup)
    gpu = _on_gpu(device)
    for _ in range(warmup):
        function()
    samples = _gpu_seconds(function, repeats, device) if gpu else _cpu_seconds(function, repeats)
    lower, median, upper = statistics.quantiles(samples, n=4, method="inclusive")
    return Timing(
        median_s=median,
        fastest_s=min(samples),
        slowest_s=max(samples),
        lower_quartile_s=lower,
        upper_quartile_s=upper,
        num_samples=repeats,
        machine=this_machine(device=device),
    )


def _on_gpu(device: str) -> bool:
    if device.split(":")[0] not in ("cpu", "cuda"):
        raise ValueError(f"device={device!r} is not known; use 'cpu' or 'cuda'")
    if device.startswith("cuda") and not torch.cuda.is_available():
        raise ValueError(f"device={device!r} is not available on this machine; use device='cpu'")
    return device.startswith("cuda")


def _cpu_seconds(function: Callable[[], object], repeats: int) -> list[float]:
    samples = []
    for _ in range(repeats):
        start = time.perf_counter()
        function()
        samples.append(time.perf_counter() - start)
    return samples


def _gpu_seconds(function: Callable[[], object], repeats: int, device: str) -> list[float]:
    with torch.cuda.device(device):
        events = [(torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)) for _ in range(repeats)]
        torch.cuda.synchronize()
        for start, end in events:
            start.record()
            function()
            end.record()
        torch.cuda.synchronize()
    # Events report milliseconds.
    return [start.elapsed_time(end) * ms for start, end in events]


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredRate:
    """A rate that a kernel reached: an amount of work over its fastest time and over its median time."""

    what: str
    amount: float  # FLOP or bytes per call
    timing: Timing

    @property
    def best_per_s(self) -> float:
        """Over the fastest sample: the ceiling, which interference can only lower."""
        return self.amount / self.timing.fastest_s

    @property
    def median_per_s(self) -> float:
        return self.amount / self.timing.median_s


def gemm_rate(*, dtype: str, size: int, repeats: int = 10, device: str = "cpu") -> MeasuredRate:
    """FLOP/s of a square matrix product of `size`, into memory that is already there.

    Formula:  2 * size^3 per call
    Assumes:  `size` is large enough to fill the machine: try doubling it until the rate no longer grows
    """
    checks.one_of(DTYPES, dtype=dtype)
    checks.count(size=size)
    _on_gpu(device)
    a, b = (torch.randn(size, size, device=device).to(DTYPES[dtype]) for _ in range(2))
    out = torch.empty_like(a)
    timing = timed(lambda: torch.mm(a, b, out=out), repeats=repeats, device=device)
    return MeasuredRate(what=f"GEMM {size}^3 {dtype}", amount=2 * size**3, timing=timing)


def copy_rate(*, size_bytes: int, repeats: int = 10, device: str = "cpu") -> MeasuredRate:
    """Bytes/s of copying an array of `size_bytes`: each byte read once and written once.

    Assumes:  the array is several times larger than the last-level cache, else the cache is measured; a processor
              that first fetches a line before it overwrites it moves half more than is counted
    Source:   McCalpin, STREAM, 1995 (copy)
    """
    checks.count(at_least=torch.float32.itemsize, size_bytes=size_bytes)
    _on_gpu(device)
    source = torch.ones(size_bytes // torch.float32.itemsize, dtype=torch.float32, device=device)
    target = torch.empty_like(source)
    timing = timed(lambda: target.copy_(source), repeats=repeats, device=device)
    return MeasuredRate(what=f"copy {source.nbytes} bytes", amount=2 * source.nbytes, timing=timing)


def triad_rate(*, size_bytes: int, repeats: int = 10, device: str = "cpu") -> MeasuredRate:
    """Bytes/s of a = b + scalar * c on arrays of `size_bytes` each: two reads and one write per element.

    Assumes:  as copy_rate; torch runs it as one kernel
    Source:   McCalpin, STREAM, 1995 (triad)
    """
    checks.count(at_least=torch.float32.itemsize, size_bytes=size_bytes)
    _on_gpu(device)
    b, c = (torch.ones(size_bytes // torch.float32.itemsize, dtype=torch.float32, device=device) for _ in range(2))
    a = torch.empty_like(b)
    timing = timed(lambda: torch.add(b, c, alpha=3.0, out=a), repeats=repeats, device=device)
    return MeasuredRate(what=f"triad {b.nbytes} bytes", amount=3 * b.nbytes, timing=timing)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ceiling:
    """The two roofs of a machine as measured, for one number format."""

    dtype: str
    gemm: MeasuredRate
    copy: MeasuredRate
    triad: MeasuredRate

    @property
    def peak_flops_per_s(self) -> float:
        return self.gemm.best_per_s

    @property
    def memory_bytes_per_s(self) -> float:
        """The better of copy and triad."""
        return max(self.copy.best_per_s, self.triad.best_per_s)

    @property
    def machine(self) -> Machine:
        return self.gemm.timing.machine


def ceiling(*, dtype: str, gemm_size: int, array_bytes: int, repeats: int = 10, device: str = "cpu") -> Ceiling:
    """This machine's roofs: a large square GEMM for arithmetic, copy and triad of large arrays for memory."""
    return Ceiling(
        dtype=dtype,
        gemm=gemm_rate(dtype=dtype, size=gemm_size, repeats=repeats, device=device),
        copy=copy_rate(size_bytes=array_bytes, repeats=repeats, device=device),
        triad=triad_rate(size_bytes=array_bytes, repeats=repeats, device=device),
    )
