"""Loaders: the same job on one worker, on threads and on processes.

Two jobs of a data loader: parsing text in plain Python, which holds the interpreter's lock all the time, and sorting
with numpy, which lets go of it while it computes. The functions stand in a module, because a worker process has to
find them by name.

>>> parsed = parse_lines(3, seed=1)
>>> parsed == parse_lines(3, seed=1), 0 < sorted_sum(100, seed=1) < 100
(True, True)
"""

import contextlib
import multiprocessing
import queue
import random
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Executor, ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing.synchronize import Barrier
from typing import TypeVar

import numpy as np

from threeloops import checks

START_LIMIT_S = 120.0  # for all worker processes to be there
Item = TypeVar("Item")


def parse_lines(lines: int, seed: int) -> int:
    """Make lines of numbers and read them again, in plain Python."""
    text = [",".join(str(random.Random(seed + line).randrange(1_000_000)) for _ in range(8)) for line in range(lines)]
    return sum(int(field) for line in text for field in line.split(","))


def sorted_sum(numbers: int, seed: int) -> float:
    """Draw numbers and sort them, in numpy: loops that run without the interpreter's lock."""
    drawn = np.random.default_rng(seed).random(numbers)
    return float(np.sort(drawn)[:: max(1, numbers // 100)].sum())


def seconds(
    job: Callable[[int, int], object], size: int, *, jobs: int, kind: str, workers: int, repeats: int = 3
) -> float:
    """Fastest time in which `jobs` jobs get done by workers of one kind: "thread" or "process".

    Assumes:  workers are there and warm; starting them is not counted
    Raises:   ValueError for another kind, or less than one worker, job or repeat
    """
    checks.one_of(("thread", "process"), kind=kind)
    checks.count(jobs=jobs, workers=workers, repeats=repeats)
    taken = []
    with _workers(kind, workers) as pool:
        _ = [future.result() for future in [pool.submit(job, size, seed) for seed in range(2 * workers)]]
        for _ in range(repeats):
            start = time.perf_counter()
            _ = [future.result() for future in [pool.submit(job, size, seed) for seed in range(jobs)]]
            taken.append(time.perf_counter() - start)
    return min(taken)


def _workers(kind: str, workers: int) -> Executor:
    if kind == "thread":
        return ThreadPoolExecutor(workers)
    context = multiprocessing.get_context("spawn")  # torch's threads do not survive a fork
    return ProcessPoolExecutor(workers, mp_context=context, initializer=_meet, initargs=(context.Barrier(workers),))


def _meet(barrier: Barrier) -> None:
    """Wait until all workers are there; else the first would have done the warm-up alone."""
    barrier.wait(START_LIMIT_S)


def ahead(items: Iterable[Item], *, depth: int) -> Iterator[Item]:
    """The same items, prepared by a thread that may be `depth` of them ahead of whoever uses them. depth=1 is double
    buffering.

    >>> list(ahead(range(5), depth=2))
    [0, 1, 2, 3, 4]
    """
    checks.count(depth=depth)
    waiting: queue.Queue[tuple[Item] | BaseException | None] = queue.Queue(depth)
    left = threading.Event()
    producer = threading.Thread(target=_produce, args=(items, waiting, left), daemon=True)
    producer.start()
    try:
        while (got := waiting.get()) is not None:
            if isinstance(got, BaseException):
                raise got
            yield got[0]
    finally:
        left.set()
        with contextlib.suppress(queue.Empty):
            waiting.get_nowait()


def _produce(
    items: Iterable[Item], waiting: "queue.Queue[tuple[Item] | BaseException | None]", left: threading.Event
) -> None:
    """Fill the queue until the items end, fail, or nobody listens any more."""
    try:
        for item in items:
            waiting.put((item,))
            if left.is_set():
                return
        waiting.put(None)
    except BaseException as error:  # it belongs to whoever asked for the items
        waiting.put(error)
