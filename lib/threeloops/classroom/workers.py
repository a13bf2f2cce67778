"""Several submissions graded at once, one process each: a slow one holds up no other, and a process that is ended takes
one submission with it, which another grades again.
"""

import collections
import contextlib
import ctypes
import gc
import multiprocessing
import os
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from typing import Any, Generic, TypeVar

from threeloops.classroom import work_folder
from threeloops.sandbox import walls

Job = TypeVar("Job")
Done = TypeVar("Done")
MOST_LOSSES = 5  # a job that so many workers have ended at is given up
ALONE = 4  # jobs that one worker does before a second one has started
END_S = 10
PR_SET_PDEATHSIG = 1
# Forked, a worker has everything imported; elsewhere than on Linux a fork is not safe.
METHOD = "fork" if sys.platform == "linux" else "spawn"


def usual(jobs: int, asked: int | None = None) -> int:
    """How many workers for so many jobs: as many as asked for, or one per core where it pays.

    >>> usual(60, 8), usual(3, 8), usual(3)
    (8, 3, 1)
    """
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, min(asked or min(cores, -(-jobs // ALONE)), jobs))


@dataclass(slots=True)
class _Worker:
    """A process and the line to it."""

    process: Any  # of multiprocessing's, by whichever method it was started
    line: Connection
    job: int | None = None  # what it is at

    def end(self) -> None:
        """Let it close what it has open; it has no choice after that."""
        self.process.terminate()
        self.process.join(END_S)
        self.process.kill()
        self.process.join()
        self.line.close()


class Crew(Generic[Job, Done]):
    """Workers that do one job after the other, and what makes them ready, called once before they start. Use it as a
    context manager: leaving it ends them all.
    """

    def __init__(self, do: Callable[[Job], Done], *, number: int, ready: Callable[[], object]) -> None:
        self._do, self._number, self._ready = do, number, ready
        self._context: Any = multiprocessing.get_context(METHOD)
        self._workers: list[_Worker] = []

    def __enter__(self) -> "Crew[Job, Done]":
        return self

    def __exit__(self, *_: object) -> None:
        for worker in self._workers:
            worker.process.terminate()
        for worker in self._workers:
            worker.end()

    def each(self, jobs: Sequence[Job]) -> Iterator[tuple[Job, Done | None]]:
        """Every job with what came of it, as they are done; None for one that was given up.

        Raises:   what a job raises
        """
        if self._number == 1:  # none to wait for: no other process is needed
            yield from ((job, self._do(job)) for job in jobs)
            return
        self._ready()
        waiting, losses = collections.deque(range(len(jobs))), collections.Counter[int]()
        while waiting or any(worker.job is not None for worker in self._workers):
            self._hand_out(waiting, jobs)
            busy = {worker.line: worker for worker in self._workers if worker.job is not None}
            for line in wait(list(busy)):
                worker = busy[line]  # type: ignore[index]
                number = worker.job
                assert number is not None
                try:
                    done, error = worker.line.recv()
                except (EOFError, OSError):  # it was ended
                    self._workers.remove(worker)
                    worker.end()
                    losses[number] += 1
                    if losses[number] < MOST_LOSSES:
                        waiting.appendleft(number)
                    else:
                        yield jobs[number], None
                    continue
                worker.job = None
                if error is not None:
                    raise error
                yield jobs[number], done

    def _hand_out(self, waiting: "collections.deque[int]", jobs: Sequence[Job]) -> None:
        """A job for every worker that has none; newcomers as long as there are jobs for them."""
        idle = [worker for worker in self._workers if worker.job is None]
        while waiting and (idle or len(self._workers) < self._number):
            worker = idle.pop() if idle else self._start()
            worker.job = waiting.popleft()
            with contextlib.suppress(OSError):  # it is gone: its line will tell
                worker.line.send(jobs[worker.job])

    def _start(self) -> _Worker:
        ours, theirs = self._context.Pipe()
        taken = {worker.process.name for worker in self._workers}
        place = next(place for place in range(self._number) if str(place) not in taken)
        lines = [*(worker.line for worker in self._workers), ours] if METHOD == "fork" else []
        process = self._context.Process(
            target=_serve, name=str(place), args=(theirs, self._do, place, os.getpid(), lines)
        )
        process.start()
        theirs.close()
        self._workers.append(_Worker(process, ours))
        return self._workers[-1]


def _serve(line: Connection, do: Callable[[Any], Any], place: int, boss: int, others: list[Connection]) -> None:
    """In the worker: do what comes until nothing more does."""
    for other in others:  # or this process would hold them open when the one at their end is gone
        other.close()
    signal.signal(signal.SIGINT, lambda *_: None)  # the one who asked ends them all
    _end_with(boss)
    walls.take_place(place)
    gc.freeze()  # what was loaded before the fork stays: to look through it again and again takes a tenth of the time
    with work_folder.ended_in_order():
        while True:
            try:
                job = line.recv()
            except EOFError:
                return
            try:
                told: tuple[Any, Exception | None] = (do(job), None)
            except Exception as error:
                told = (None, error)
            line.send(told)


def _end_with(boss: int) -> None:
    """Have this process ended when the one that started it is, however that comes about."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        if os.getppid() != boss:
            raise SystemExit
