"""A student's side for a test, and what can be seen of it from outside."""

import contextlib
import time
from collections.abc import Callable
from pathlib import Path

from threeloops import wall_clock
from threeloops.sandbox.kernel import Kernel
from threeloops.sandbox.walls import Limits


def side(limits: Limits, *, sandboxed: bool = True, notebook: bool = True) -> Kernel:
    return Kernel(
        posed={"q": "How many?"},
        whose={"student": "ada", "course": "home"},
        limits=limits,
        sandboxed=sandboxed,
        deadline=time.monotonic() + 120,
        notebook=notebook,
    )


def comes_to_be(condition: Callable[[], bool], patience_s: float = 60) -> bool:
    """Does it become true? A process shows its command a moment after it has started, and disappears a moment after
    it was ended.
    """
    return wall_clock.until(condition, limit_s=patience_s, step_s=0.02)


def running_commands() -> str:
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            found.append(path.read_text(errors="replace"))
    return " ".join(found)
