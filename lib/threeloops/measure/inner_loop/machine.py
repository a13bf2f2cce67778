"""This machine, level by level: how fast one core reads arrays of different sizes, how long it waits for one number,
and what wider vectors are worth.

>>> (few, many) = read_rates((64 * 1024, 32 * 1024**2), repeats=3)
>>> few.size_bytes, few.bytes_per_s > 0, many.bytes_per_s > 0
(65536, True, True)

Source: McVoy, Staelin, lmbench, USENIX 1996 (bandwidth and latency over working-set sizes)
"""

import array
import contextlib
import itertools
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

from threeloops import checks
from threeloops.measure import timing
from threeloops.units import KiB, MiB

LINE_BYTES = 64
TOUCHED_BYTES = 8 * MiB  # small arrays are read again and again inside one call, until this much has been read
WARMUP_LOADS = 300_000

# What one and the same matrix product may use: the flag that says whether the processor has it, and the name of a
# processor that has no more.
VECTORS = {
    "SSE3, 128 bits": ("pni", "Prescott"),
    "AVX, 256 bits": ("avx", "Sandybridge"),
    "AVX2 and FMA, 256 bits": ("fma", "Haswell"),
    "AVX-512 and FMA, 512 bits": ("avx512f", "SkylakeX"),
}
VECTOR_GEMM = """
import json, time, numpy
rates = {}
for name in ("float32", "float64"):
    a = numpy.ones((512, 512), dtype=name); out = a @ a; seconds = []
    for _ in range(12):
        start = time.perf_counter(); numpy.matmul(a, a, out=out); seconds.append(time.perf_counter() - start)
    rates[name] = 2 * 512**3 / min(seconds)
print(json.dumps(rates))
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheLevel:
    """One data cache as the system describes it."""

    name: str
    size_bytes: int


def cache_levels() -> tuple[CacheLevel, ...]:
    """The data caches of the first core, from the smallest; empty where the system does not tell (only Linux does, in
    /sys).
    """
    found = {}
    for index in sorted(Path("/sys/devices/system/cpu/cpu0/cache").glob("index*")):
        with contextlib.suppress(OSError, ValueError):
            kind, level, size = ((index / name).read_text().strip() for name in ("type", "level", "size"))
            if kind != "Instruction":
                found[f"L{level}"] = int(size.rstrip("KM")) * (MiB if size.endswith("M") else KiB)
    return tuple(CacheLevel(name=name, size_bytes=size) for name, size in sorted(found.items()))


@contextlib.contextmanager
def one_core() -> Iterator[None]:
    """torch computes on one core inside, and on as many as before afterwards."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadRate:
    """How fast one core read an array of this size, over and over."""

    size_bytes: int
    bytes_per_s: float


def read_rates(sizes: Sequence[int], *, repeats: int = 7) -> tuple[ReadRate, ...]:
    """Bytes/s at which one core looks for the largest of the numbers of an array that it has just read; the fastest
    of the samples.

    Assumes:  a search for the largest is no more work than reading; each call into numpy reads at least 8 MiB, so
              that its own cost does not show, but every pass through a small array has a start and an end, which
              lowers the rate of the smallest ones
    """
    return tuple(_read_rate(size, repeats) for size in sizes)


def _read_rate(size_bytes: int, repeats: int) -> ReadRate:
    checks.count(at_least=LINE_BYTES, size_bytes=size_bytes)
    numbers = np.ones(size_bytes // 4, dtype=np.float32)
    passes = max(1, TOUCHED_BYTES // numbers.nbytes)
    again, largest = np.broadcast_to(numbers, (passes, numbers.size)), np.empty(passes, dtype=np.float32)
    fastest_s = timing.timed(lambda: again.max(axis=1, out=largest), repeats=repeats, warmup=1).fastest_s
    return ReadRate(size_bytes=size_bytes, bytes_per_s=passes * numbers.nbytes / fastest_s)


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadTime:
    """How long one step of a chain of reads took in a table of this size, the work of the interpreter included."""

    size_bytes: int
    step_s: float


def load_times(sizes: Sequence[int], *, loads: int = 30_000, repeats: int = 5) -> tuple[LoadTime, ...]:
    """Seconds per step of a walk on which every number read says where to read next, one number per line, in an order
    that nobody can guess.

    Assumes:  a step costs the interpreter the same in every table, so that the difference between two sizes is the
              memory's; ordinary pages, so that a walk through much memory also waits for addresses to be translated
    """
    return tuple(LoadTime(size_bytes=size, step_s=_step_s(size, loads, repeats)) for size in sizes)


def _step_s(size_bytes: int, loads: int, repeats: int) -> float:
    lines, per_line = size_bytes // LINE_BYTES, LINE_BYTES // 8
    checks.count(at_least=2, lines=lines)
    order = np.random.default_rng(seed=5).permutation(lines)
    following = np.zeros(lines * per_line, dtype=np.uint64)
    following[order * per_line] = np.roll(order, -1) * per_line
    table = array.array("Q", following.tobytes())
    place = _walked(table, 0, min(lines, WARMUP_LOADS))
    seconds = []
    for _ in range(repeats):
        start = time.perf_counter()
        place = _walked(table, place, loads)
        seconds.append(time.perf_counter() - start)
    return min(seconds) / loads


def _walked(table: "array.array[int]", place: int, loads: int) -> int:
    for _ in itertools.repeat(None, loads):
        place = table[place]
    return place


def vector_gemm_rates() -> dict[str, dict[str, float] | None]:
    """FLOP/s of one product of 512 by 512 on one core, by number format, with ever wider vector instructions; None
    for those that this processor lacks.

    numpy's OpenBLAS holds a kernel for every kind of processor and takes the one named in OPENBLAS_CORETYPE, so that
    nothing else differs.

    Assumes:  numpy with OpenBLAS on an x86 processor under Linux; elsewhere every entry is None
    """
    flags = _processor_flags()
    return {name: _gemm_rates(core) if flag in flags else None for name, (flag, core) in VECTORS.items()}


def _processor_flags() -> set[str]:
    lines = Path("/proc/cpuinfo").read_text().splitlines() if Path("/proc/cpuinfo").exists() else []
    return next((set(line.split(":", 1)[1].split()) for line in lines if line.startswith("flags")), set())


def _gemm_rates(core: str) -> dict[str, float]:
    settings = {**os.environ, "OPENBLAS_CORETYPE": core, "OPENBLAS_NUM_THREADS": "1"}
    ran = subprocess.run(
        [sys.executable, "-c", VECTOR_GEMM], env=settings, capture_output=True, text=True, check=True, timeout=60
    )
    rates: dict[str, float] = json.loads(ran.stdout)
    return rates
