"""A pool of ranks: processes that have imported torch once and then take one job after another, each job in a gloo
process group of its own.

A job that succeeds leaves the pool as it was found: its group is closed, torch's random numbers start where they did.
After a failure nothing is known about the others' state, so the pool must be ended; `run` raises and leaves that to
its caller.
"""

import datetime
import gc
import multiprocessing.connection
import os
import pickle
import shutil
import signal
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Callable, Sequence
from multiprocessing.connection import Connection
from multiprocessing.context import BaseContext
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

import torch
import torch.distributed as dist

from threeloops import wall_clock

_TICK_S = 0.05
_GRACE_S = 0.5  # for the rank that crashed to be seen dead before the ranks that noticed it are blamed


class RankError(RuntimeError):
    """A rank raised, died or did not finish; the message says which and why."""


class _Order(NamedTuple):
    """What a rank is told: where to meet, and for how long at most."""

    folder: str
    limit_s: float
    path: tuple[str, ...]  # where modules are found, which may have changed since the pool was started
    job: bytes


# --- in the calling process ---------------------------------------------------------------------


class RankPool:
    """Living ranks, and the folder in which they meet."""

    def __init__(self, ranks: int, *, context: BaseContext) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="threeloops-ranks-", ignore_cleanup_errors=True)
        self._jobs = 0
        self._lines: list[Connection] = []
        self._processes: list[BaseProcess] = []
        try:
            for rank in range(ranks):
                here, there = context.Pipe()
                self._lines.append(here)
                words = (there, rank, ranks, self._folder.name)
                process = context.Process(target=_serve, args=words, name=f"rank-{rank}")  # type: ignore[attr-defined]
                process.start()
                self._processes.append(process)
                there.close()  # so that the line ends when the rank does
        except BaseException:
            self.end()
            raise

    @property
    def alive(self) -> bool:
        """Whether all ranks are there. A pool of ranks that was ended is not."""
        return bool(self._processes) and all(process.is_alive() for process in self._processes)

    def run(
        self, function: Callable[..., Any], arguments: tuple[Any, ...], *, timeout_s: float, start_limit_s: float
    ) -> list[Any]:
        """What function(*arguments) returned on each rank. After an error the pool must be ended."""
        folder = Path(self._folder.name, str(self._jobs))
        folder.mkdir()
        self._jobs += 1
        order = _Order(str(folder), start_limit_s + timeout_s, tuple(sys.path), pickle.dumps((function, arguments)))
        for line in self._lines:
            try:
                line.send(order)
            except OSError:  # this rank is gone: _results says so
                continue
        return self._results(folder, timeout_s=timeout_s, start_limit_s=start_limit_s)

    def end(self) -> None:
        """Kill what still runs, wait until it is gone, and tidy up."""
        for process in self._processes:
            if process.is_alive():
                process.kill()
        for process in self._processes:
            process.join(timeout=10)
            if process.exitcode is not None:
                process.close()
        self._processes = []
        for line in self._lines:
            line.close()
        self._folder.cleanup()

    def _results(self, folder: Path, *, timeout_s: float, start_limit_s: float) -> list[Any]:
        """Wait until every rank has a result; raise at the first that has none, or at the limit."""
        started, met_at = time.monotonic(), None
        running = list(range(len(self._processes)))
        while running:
            multiprocessing.connection.wait(
                [self._processes[rank].sentinel for rank in running] + [self._lines[rank] for rank in running],
                timeout=_TICK_S,
            )
            # before the outcomes are looked for: a rank writes, then leaves
            codes = [process.exitcode for process in self._processes]
            for rank in list(running):
                outcome = _outcome(folder, rank)
                if outcome and outcome[0] == "returned" and self._told(rank):
                    running.remove(rank)
                elif codes[rank] is not None or (outcome and outcome[0] == "raised"):
                    raise RankError(_cause(self._processes, folder))
            now = time.monotonic()
            if met_at is None and all(Path(folder, f"{rank}.met").exists() for rank in range(len(self._processes))):
                met_at = now
            if running and met_at is None and now - started > start_limit_s:
                missing = [rank for rank in running if not Path(folder, f"{rank}.met").exists()]
                raise RankError(
                    f"{_ranks(missing)} of {len(codes)} did not join within start_limit_s={start_limit_s:g}; all ranks"
                    " were stopped"
                )
            if running and met_at is not None and now - met_at > timeout_s:
                late = [rank for rank in running if not Path(folder, f"{rank}.returned").exists()]
                raise RankError(
                    f"{_ranks(late or running)} of {len(codes)} did not finish within timeout_s={timeout_s:g}; all"
                    " ranks were stopped"
                )
        return [_result(folder, rank) for rank in range(len(self._processes))]

    def _told(self, rank: int) -> bool:
        """Whether the rank has said that it is ready for the next job; its word is taken off the line."""
        try:
            return self._lines[rank].poll() and bool(self._lines[rank].recv_bytes())
        except (EOFError, OSError):
            return False


def _ranks(numbers: Sequence[int]) -> str:
    return f"rank{'s' if len(numbers) > 1 else ''} {', '.join(map(str, numbers))}"


def _outcome(folder: Path, rank: int) -> tuple[Any, ...] | None:
    path = folder / f"{rank}.outcome"
    return pickle.loads(path.read_bytes()) if path.exists() else None


def _result(folder: Path, rank: int) -> Any:
    outcome = _outcome(folder, rank)
    assert outcome is not None  # _results has seen it
    (folder / f"{rank}.outcome").unlink()
    return pickle.loads(outcome[1])


def _cause(processes: Sequence[BaseProcess], folder: Path) -> str:
    """The first failure: a rank that died without a word, else the earliest exception (later ones are mostly
    "connection closed by peer").
    """
    wall_clock.pause(_GRACE_S)
    codes = [process.exitcode for process in processes]
    outcomes = [_outcome(folder, rank) for rank in range(len(processes))]
    for rank, (code, outcome) in enumerate(zip(codes, outcomes, strict=True)):
        if code is not None and outcome is None:
            return (
                f"rank {rank} of {len(processes)} died with {_exit(code)} before it returned; the other ranks were"
                " stopped"
            )
    raised = [
        (outcome[1], rank, outcome) for rank, outcome in enumerate(outcomes) if outcome and outcome[0] == "raised"
    ]
    if not raised:
        return f"a rank of {len(processes)} died after it had returned; all ranks were stopped"
    _, rank, outcome = min(raised)
    return f"rank {rank} of {len(processes)} failed: {outcome[2]}\n\n{outcome[3]}"


def _exit(code: int) -> str:
    return f"signal {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"


# --- in a rank ----------------------------------------------------------------------------------


def _serve(line: Connection, rank: int, ranks: int, folder: str) -> NoReturn:
    """The life of one rank: one order after another, until one fails or the caller is gone. A caller that was killed
    leaves its folder to the ranks, who tidy it up.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent is interrupted, and ends its ranks
    threading.Thread(target=_leave_with_parent, args=(folder,), daemon=True).start()
    gc.freeze()  # torch's own objects stay: looking through them after every job would take longer than most jobs
    random_numbers = torch.get_rng_state()
    code = 0
    try:
        while not code:
            order: _Order = line.recv()
            torch.set_num_threads(1)
            torch.set_rng_state(random_numbers)
            outcome = _done(order, rank, ranks)
            code = 0 if outcome[0] == "returned" else 1
            part = Path(order.folder, f"{rank}.part")
            part.write_bytes(pickle.dumps(outcome))
            part.rename(part.with_suffix(".outcome"))  # so that the parent never reads half a file
            line.send_bytes(b"ready")
            del outcome
            gc.collect()  # while nobody waits: what still holds the closed group
    except (EOFError, OSError):  # the caller has ended this pool, or itself
        shutil.rmtree(folder, ignore_errors=True)
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)  # torch's own teardown can hang on a connection whose peer is gone


def _done(order: _Order, rank: int, ranks: int) -> tuple[Any, ...]:
    """What a rank does for an order: it joins the group, works, and leaves it."""
    folder = Path(order.folder)
    try:
        if sys.platform != "win32":
            # gloo would otherwise resolve the host name, which fails on laptops that change networks.
            os.environ["GLOO_SOCKET_IFNAME"] = "lo0" if sys.platform == "darwin" else "lo"
        sys.path[:] = order.path
        function, arguments = pickle.loads(order.job)
        store = dist.FileStore(str(folder / "meeting-point"), ranks)  # type: ignore[attr-defined]
        # The parent's limits come first: these only keep a rank from waiting for ever if the parent is stopped.
        dist.init_process_group(
            "gloo", store=store, rank=rank, world_size=ranks, timeout=datetime.timedelta(seconds=order.limit_s + 60)
        )
        (folder / f"{rank}.met").touch()
        result = pickle.dumps(function(*arguments))
        (folder / f"{rank}.returned").touch()
        dist.barrier()  # a rank that leaves early would cut off one that still reads
        dist.destroy_process_group()
        return "returned", result
    except BaseException as error:  # a rank's SystemExit is a failure too
        return "raised", time.monotonic(), f"{type(error).__name__}: {error}", traceback.format_exc()


def _leave_with_parent(folder: str) -> None:
    """End this process when the one that started the pool is gone, even if it was killed."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        multiprocessing.connection.wait([parent.sentinel])
        shutil.rmtree(folder, ignore_errors=True)
        os._exit(1)
