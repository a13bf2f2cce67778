"""Ranks: run a function on several local processes that form one gloo process group, and get back what each returned.

The processes are forked from a server that has torch imported already, where the system can do that (Linux, macOS); elsewhere each imports torch
itself. They meet through a file in a temporary folder and talk over the loopback interface. Whatever happens, the call ends in bounded time
and leaves no rank behind.
"""

import datetime
import multiprocessing
import multiprocessing.connection
import os
import pickle
import signal
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Callable, Sequence
from multiprocessing.context import BaseContext
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any, NoReturn

import torch
import torch.distributed as dist

from threeloops import checks

START_LIMIT_S = 180.0  # for all ranks to meet: on a busy machine torch alone can take half a minute to import
_SHARED_IMPORTS = ("torch.distributed.fsdp",)  # two seconds, which the server spends once and each rank would spend again
_TICK_S = 0.05
_GRACE_S = 0.5  # for the rank that crashed to be seen dead before the ranks that noticed it are blamed


class RankError(RuntimeError):
    """A rank raised, died or did not finish; the message says which and why."""


def start_method() -> str:
    """How ranks are started here: "forkserver" where the system has it, else "spawn"."""
    return "forkserver" if "forkserver" in multiprocessing.get_all_start_methods() else "spawn"


def warm_up() -> None:
    """Start the process that ranks are forked from. It imports torch in the background; the first run_ranks then waits less."""
    if start_method() == "forkserver":
        from multiprocessing import forkserver

        _context("forkserver")
        forkserver.ensure_running()


def _context(method: str) -> BaseContext:
    context = multiprocessing.get_context(method)
    if method == "forkserver":
        context.set_forkserver_preload([__name__, *_SHARED_IMPORTS])
    return context


def run_ranks(
    function: Callable[..., Any], *arguments: Any, ranks: int, timeout_s: float = 60.0, method: str | None = None, start_limit_s: float = START_LIMIT_S
) -> list[Any]:
    """What function(*arguments) returned on each rank, in rank order.

    The function runs with the default process group initialised (gloo) and one torch thread; it asks torch.distributed for its rank.

    Units:    timeout_s counts from the moment when all ranks have met; start_limit_s bounds the time before
    Assumes:  the function, its arguments and its results can be pickled; results are data (a rank's prints are nobody's)
    Raises:   ValueError for a function that other processes cannot import; RankError, with the first cause, when a rank raises, dies,
              or is not done in time. The other ranks are killed then
    """
    checks.count(ranks=ranks)
    checks.positive(timeout_s=timeout_s, start_limit_s=start_limit_s)
    _importable(function)
    context = _context(method or start_method())
    with tempfile.TemporaryDirectory(prefix="threeloops-ranks-", ignore_cleanup_errors=True) as folder:
        limit_s = start_limit_s + timeout_s
        processes = [
            context.Process(target=_rank, args=(function, arguments, rank, ranks, folder, limit_s), name=f"rank-{rank}")  # type: ignore[attr-defined]
            for rank in range(ranks)
        ]
        try:
            for process in processes:
                process.start()
            return _results(processes, Path(folder), timeout_s=timeout_s, start_limit_s=start_limit_s)
        finally:
            _end(processes)


def _importable(function: Callable[..., Any]) -> None:
    """Refuse what another process could not import by name."""
    module, name = getattr(function, "__module__", None), getattr(function, "__qualname__", repr(function))
    if module in (None, "__main__") or not name.isidentifier():
        raise ValueError(f"function={name} of {module} must be a plain function at the top of a module that can be imported; move it into a .py file")


def _rank(function: Callable[..., Any], arguments: tuple[Any, ...], rank: int, ranks: int, folder: str, limit_s: float) -> NoReturn:
    """The life of one rank: meet, work, write the outcome to a file, leave."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent is interrupted, and ends its ranks
    threading.Thread(target=_leave_with_parent, daemon=True).start()
    outcome: tuple[Any, ...]
    try:
        torch.set_num_threads(1)
        if sys.platform != "win32":
            # gloo would otherwise resolve the host name, which fails on laptops that change networks.
            os.environ["GLOO_SOCKET_IFNAME"] = "lo0" if sys.platform == "darwin" else "lo"
        store = dist.FileStore(str(Path(folder, "meeting-point")), ranks)  # type: ignore[attr-defined]
        # The parent's limits come first: these only keep a rank from waiting for ever if the parent is stopped.
        dist.init_process_group("gloo", store=store, rank=rank, world_size=ranks, timeout=datetime.timedelta(seconds=limit_s + 60))
        Path(folder, f"{rank}.met").touch()
        result = function(*arguments)
        outcome = ("returned", pickle.dumps(result))
        Path(folder, f"{rank}.returned").touch()
        dist.barrier()  # a rank that leaves early would cut off one that still reads
        dist.destroy_process_group()
    except BaseException as error:  # a rank's SystemExit is a failure too
        outcome = ("raised", time.monotonic(), f"{type(error).__name__}: {error}", traceback.format_exc())
    part = Path(folder, f"{rank}.part")
    part.write_bytes(pickle.dumps(outcome))
    part.rename(part.with_suffix(".outcome"))  # so that the parent never reads half a file
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0 if outcome[0] == "returned" else 1)  # torch's own teardown can hang on a connection whose peer is gone


def _leave_with_parent() -> None:
    """End this process when the one that called run_ranks is gone, even if it was killed."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        multiprocessing.connection.wait([parent.sentinel])
        os._exit(1)


def _results(processes: Sequence[BaseProcess], folder: Path, *, timeout_s: float, start_limit_s: float) -> list[Any]:
    """Wait until every rank has left with a result; raise at the first that did not, or at the limit."""
    started, met_at = time.monotonic(), None
    running = list(range(len(processes)))
    while running:
        multiprocessing.connection.wait([processes[rank].sentinel for rank in running], timeout=_TICK_S)
        left = [rank for rank in running if processes[rank].exitcode is not None]
        if any(processes[rank].exitcode or _outcome(folder, rank) is None for rank in left):
            raise RankError(_cause(processes, folder))
        running = [rank for rank in running if processes[rank].exitcode is None]
        now = time.monotonic()
        if met_at is None and all(Path(folder, f"{rank}.met").exists() for rank in range(len(processes))):
            met_at = now
        if running and met_at is None and now - started > start_limit_s:
            missing = [rank for rank in running if not Path(folder, f"{rank}.met").exists()]
            raise RankError(f"{_ranks(missing)} of {len(processes)} did not join within start_limit_s={start_limit_s:g}; all ranks were stopped")
        if running and met_at is not None and now - met_at > timeout_s:
            late = [rank for rank in running if not Path(folder, f"{rank}.returned").exists()]
            raise RankError(f"{_ranks(late or running)} of {len(processes)} did not finish within timeout_s={timeout_s:g}; all ranks were stopped")
    return [_result(folder, rank) for rank in range(len(processes))]


def _ranks(numbers: Sequence[int]) -> str:
    return f"rank{'s' if len(numbers) > 1 else ''} {', '.join(map(str, numbers))}"


def _outcome(folder: Path, rank: int) -> tuple[Any, ...] | None:
    path = folder / f"{rank}.outcome"
    return pickle.loads(path.read_bytes()) if path.exists() else None


def _result(folder: Path, rank: int) -> Any:
    outcome = _outcome(folder, rank)
    assert outcome is not None  # _results has seen it
    return pickle.loads(outcome[1])


def _cause(processes: Sequence[BaseProcess], folder: Path) -> str:
    """The first failure: a rank that died without a word, else the earliest exception (later ones are mostly "connection closed by peer")."""
    time.sleep(_GRACE_S)
    outcomes = [_outcome(folder, rank) for rank in range(len(processes))]
    for rank, (process, outcome) in enumerate(zip(processes, outcomes, strict=True)):
        if process.exitcode is not None and outcome is None:
            return f"rank {rank} of {len(processes)} died with {_exit(process.exitcode)} before it returned; the other ranks were stopped"
    raised = [(outcome[1], rank, outcome) for rank, outcome in enumerate(outcomes) if outcome and outcome[0] == "raised"]
    _, rank, outcome = min(raised)
    return f"rank {rank} of {len(processes)} failed: {outcome[2]}\n\n{outcome[3]}"


def _exit(code: int) -> str:
    return f"signal {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"


def _end(processes: Sequence[BaseProcess]) -> None:
    """Kill what still runs, and wait until it is gone."""
    for process in processes:
        if process.pid is not None and process.is_alive():
            process.kill()
    for process in processes:
        if process.pid is not None:
            process.join(timeout=10)
            if process.exitcode is not None:
                process.close()
