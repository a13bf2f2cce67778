"""Ranks: run a function on several local processes that form one gloo process group, and get back what each returned.

The processes are forked from a server that has torch imported already, where the system can do that (Linux, macOS);
elsewhere each imports torch itself. They meet through a file in a temporary folder and talk over the loopback
interface. A pool that has done its job stays and does the next one of the same size; one that failed is ended and
replaced. Whatever happens, a call ends in bounded time, and no rank outlives the calling process.
"""

import multiprocessing
import os
from collections.abc import Callable
from multiprocessing import util
from multiprocessing.context import BaseContext
from typing import Any

from threeloops import checks
from threeloops.measure.processes.rank_pool import RankError, RankPool

__all__ = ["START_LIMIT_S", "RankError", "dismiss", "run_ranks", "start_method", "warm_up"]

START_LIMIT_S = 180.0  # for all ranks to meet: on a busy machine torch alone can take half a minute to import
# what FSDP and DDP import: seconds that the server spends once, not each rank
_SHARED_IMPORTS = ("torch.distributed.fsdp", "torch._dynamo")

# (process that started it, ranks): a forked child must not use its parent's pool
_idle: dict[tuple[int, int], RankPool] = {}


def start_method() -> str:
    """How ranks are started here: "forkserver" where the system has it, else "spawn"."""
    return "forkserver" if "forkserver" in multiprocessing.get_all_start_methods() else "spawn"


def warm_up() -> None:
    """Start the process that ranks are forked from. It imports torch in the background; the first run_ranks then
    waits less.
    """
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
    function: Callable[..., Any],
    *arguments: Any,
    ranks: int,
    timeout_s: float = 60.0,
    method: str | None = None,
    start_limit_s: float = START_LIMIT_S,
    fresh: bool = False,
) -> list[Any]:
    """What function(*arguments) returned on each rank, in rank order.

    The function runs with the default process group initialised (gloo), one torch thread, and torch's random numbers
    at their start; it asks torch.distributed for its rank. The processes are those of the last call with as many
    ranks, if that went well; `fresh` or a `method` starts new ones, for a module that has been edited since, or for a
    function that leaves something behind. They are ended after that call.

    Units:    timeout_s counts from the moment when all ranks have met; start_limit_s bounds the time before
    Assumes:  the function, its arguments and its results can be pickled; results are data (a rank's prints are
              nobody's)
    Raises:   ValueError for a function that other processes cannot import; RankError, with the first cause, when a
              rank raises, dies, or is not done in time. The other ranks are killed then
    """
    checks.count(ranks=ranks)
    checks.positive(timeout_s=timeout_s, start_limit_s=start_limit_s)
    _importable(function)
    kept = not fresh and method is None
    pool = _idle.pop((os.getpid(), ranks), None) if kept else None
    if pool is not None and not pool.alive:  # somebody killed a rank while it waited
        pool.end()
        pool = None
    if pool is None:
        pool = RankPool(ranks, context=_context(method or start_method()))
    try:
        results = pool.run(function, arguments, timeout_s=timeout_s, start_limit_s=start_limit_s)
    except BaseException:
        pool.end()
        raise
    if not kept or _idle.setdefault((os.getpid(), ranks), pool) is not pool:  # another thread's pool is there already
        pool.end()
    return results


def dismiss() -> None:
    """End the crews that wait for a next call. They would also end with this process."""
    for process, ranks in list(_idle):
        if process == os.getpid() and (pool := _idle.pop((process, ranks), None)):
            pool.end()


def _importable(function: Callable[..., Any]) -> None:
    """Refuse what another process could not import by name."""
    module, name = getattr(function, "__module__", None), getattr(function, "__qualname__", repr(function))
    if module in (None, "__main__") or not name.isidentifier():
        raise ValueError(
            f"function={name} of {module} must be a plain function at the top of a module that can be imported; move it"
            " into a .py file"
        )


# At exit, multiprocessing waits for its processes: before that, those that wait for this one have to go.
util.Finalize(None, dismiss, exitpriority=10)
