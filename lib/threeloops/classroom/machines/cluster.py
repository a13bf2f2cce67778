"""Jobs done on other machines, through a scheduler of Dask's: a worker that is killed takes one job with it, which
another does again. Of Dask nothing is loaded unless an address is given.
"""

import asyncio
import concurrent.futures
import contextlib
import importlib.util
import logging
import queue
import re
import time
import uuid
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

from threeloops.classroom.gradebook import INSTALL

Job = TypeVar("Job")
ADDRESS = re.compile(r"(tcp|tls)://(\[[0-9a-fA-F:]+\]|[\w.-]+):\d+")
ROUNDS = 2  # a job at which the scheduler has seen too many workers end (allowed-failures) is handed out so often
AHEAD = 2  # jobs on their way per core: no worker waits for the next, and a class stays out of memory
CONNECT_S, NO_WORKER_S, LOOK_S, CLOSE_S = 20, 60, 2, 5
AGAIN = "what is graded is kept: give the same command again when there is one"


def is_address(text: str) -> bool:
    """Is this where a scheduler listens?

    >>> is_address("tcp://scheduler:8786"), is_address("tls://[::1]:8786"), is_address("8"), is_address("scheduler")
    (True, True, False, False)
    """
    return bool(ADDRESS.fullmatch(text))


class Cluster:
    """A scheduler and whichever workers it has at the time. Use it as a context manager: leaving it takes back what
    is on its way.

    Raises:   ValueError in one sentence when Dask is not installed, nothing listens there or no worker comes
    """

    def __init__(self, address: str) -> None:
        if importlib.util.find_spec("distributed") is None:
            raise ValueError(
                f"grading on other machines needs Dask, which is not installed here; in the book's folder: {INSTALL}"
            )
        self.address = address
        self._client = _client(address)
        try:
            self._client.wait_for_workers(1, timeout=NO_WORKER_S)
        except TimeoutError:
            self._close()
            raise self._no_worker() from None

    def __enter__(self) -> "Cluster":
        return self

    def __exit__(self, *_: object) -> None:
        self._close()

    def _close(self) -> None:
        with contextlib.suppress(Exception):
            self._client.close(timeout=CLOSE_S)

    def _no_worker(self) -> ValueError:
        return ValueError(f"the scheduler at {self.address} has had no worker for {NO_WORKER_S} s; {AGAIN}")

    def _gone(self) -> ValueError:
        return ValueError(f"the scheduler at {self.address} is gone; {AGAIN}")

    def asked(self, question: Callable[[], Any]) -> dict[str, Any]:
        """What every worker answers now, by its address; an exception where it cannot."""
        try:
            answers: dict[str, Any] = self._client.run(question, on_error="return")
        except Exception as error:  # such as a function that a worker does not have
            return {"one of the workers": error}
        return answers

    def each(
        self, jobs: Sequence[Job], do: Callable[..., Any], words: Callable[[Job], tuple[Any, ...]]
    ) -> Iterator[tuple[Job, Any]]:
        """Every job with what `do(*words(job))` came to on some worker, as they are done; None for one that was given
        up.

        Raises:   ValueError when the scheduler or all workers are gone; what a job raises
        """
        from distributed import KilledWorker
        from distributed.comm.core import CommClosedError

        run, number, lost = uuid.uuid4().hex[:8], iter(range(len(jobs) * ROUNDS)), dict[int, int]()
        waiting, done = list(reversed(range(len(jobs)))), queue.SimpleQueue[tuple[int, Any]]()
        on_the_way, seen = dict[int, Any](), time.monotonic()
        while waiting or on_the_way:
            cores = self._cores()
            seen = time.monotonic() if cores else seen
            if time.monotonic() > seen + NO_WORKER_S:
                raise self._no_worker()
            while waiting and len(on_the_way) < AHEAD * cores:
                job = waiting.pop()
                key = f"three-loops-{run}-{next(number)}"
                future = self._client.submit(do, *words(jobs[job]), key=key, pure=False)
                on_the_way[job] = future
                future.add_done_callback(lambda future, job=job: done.put((job, future)))
            try:
                job, future = done.get(timeout=LOOK_S)
            except queue.Empty:
                continue
            del on_the_way[job]
            try:
                result = future.result()
            except KilledWorker:
                lost[job] = lost.get(job, 0) + 1
                if lost[job] < ROUNDS:
                    waiting.append(job)
                    continue
                result = None
            except (asyncio.CancelledError, concurrent.futures.CancelledError, CommClosedError):
                raise self._gone() from None
            yield jobs[job], result

    def _cores(self) -> int:
        """Of all workers together; asked each time, because they come and go. A lost connection has taken along all
        that was on its way, and to ask then is to wait in vain until Dask gives up.
        """
        if self._client.status != "running":
            raise self._gone()
        try:
            return sum(self._client.nthreads().values())
        except Exception:
            raise self._gone() from None


def _client(address: str) -> Any:
    """Connected; with TLS where the address and Dask's own configuration say so."""
    warnings.filterwarnings("ignore", module="distributed")  # versions are compared by whoever asks the workers
    from distributed import Client

    for name in [name for name in logging.root.manager.loggerDict if name.startswith("distributed")]:
        logging.getLogger(name).setLevel(logging.CRITICAL + 1)  # one sentence tells what has happened

    client = Client.__new__(Client)  # at hand to be closed when it gets no further than half of its start
    try:
        Client.__init__(client, address, timeout=CONNECT_S, set_as_default=False)
        return client
    except (OSError, TimeoutError):
        raise ValueError(
            f"no scheduler answers at {address}; `dask scheduler --host ADDRESS` starts one, and `dask worker"
            f" {address} --nthreads 1` a worker"
        ) from None
    except (TypeError, RuntimeError, ValueError) as error:
        with contextlib.suppress(Exception):
            client.close(timeout=CLOSE_S)
        raise ValueError(f"{address} cannot be spoken to: {' '.join(str(error).split())}") from None
