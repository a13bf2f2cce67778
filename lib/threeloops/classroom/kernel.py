"""The grader's end of the line to the student's side: one request, one reply, and a clock of its own."""

import contextlib
import json
import os
import queue
import signal
import tempfile
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from threeloops.classroom import sandbox
from threeloops.classroom.questions import whole_characters
from threeloops.classroom.sandbox import Limits
from threeloops.units import KiB

LONGEST_REPLY = 200_000  # bytes; a longer one is no honest reply
START_S, CLOSE_S = 60, 5
PREFIX = "three-loops-"
NAMELESS = ("/dev/zero", "/memfd:", "/SYSV")  # how shared memory without a file is listed
LOOK_S = 0.2  # between two looks at the memory in use


class DiedError(Exception):
    """The student's process ended, stopped making sense, or had to be ended for the memory it took."""


class HungError(Exception):
    """The student's process had to be ended because it did not reply in time."""


class NoStartError(Exception):
    """The process did not come up: the grader's fault, not the student's, none of whose code has run."""


class Kernel:
    """A running student's side. Use it as a context manager: leaving it ends the process and all it has started."""

    def __init__(
        self,
        *,
        posed: Mapping[str, str],
        whose: Mapping[str, str],
        limits: Limits,
        sandboxed: bool,
        deadline: float,
        notebook: bool = True,  # cells, and questions that can be shown; else one file of plain Python
    ) -> None:
        self.limits, self.deadline = limits, deadline
        # In the sandbox it has a place of its own, which goes with it however the grader ends.
        self._folder = None if sandboxed else tempfile.TemporaryDirectory(prefix=PREFIX, ignore_cleanup_errors=True)
        self._process = sandbox.start(self._folder.name if self._folder else "/", sandboxed=sandboxed)
        # A full queue leaves the pipe full, and a process that floods it waits there.
        self._lines: queue.Queue[bytes] = queue.Queue(maxsize=2)
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        home = dict.fromkeys(("HOME", "IPYTHONDIR"), self._folder.name) if self._folder else {}
        setup = {
            "notebook": notebook,
            "posed": posed,
            "whose": whose,
            "limits": limits.as_resources(sandboxed=sandboxed),
            "environment": sandbox.ENVIRONMENT | home,
        }
        try:
            self._ask(setup, until=time.monotonic() + START_S)  # starting is not the student's time
        except (DiedError, HungError) as end:
            self.close()
            raise NoStartError(f"the student's side did not start: {' '.join(map(str, self._process.args))}") from end  # type: ignore[arg-type]

    def __enter__(self) -> "Kernel":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _read(self) -> None:
        assert self._process.stdout is not None
        with contextlib.suppress(ValueError, OSError):
            while line := self._process.stdout.readline(LONGEST_REPLY):
                self._lines.put(line)
        self._lines.put(b"")

    def _write(self, line: bytes) -> None:
        assert self._process.stdin is not None
        with contextlib.suppress(ValueError, OSError):  # nobody there any more: the missing reply will tell
            while line:
                line = line[os.write(self._process.stdin.fileno(), line) :]

    def _within(self, limit_s: float) -> float:
        """When to stop waiting for a reply to something that may take so long."""
        return min(time.monotonic() + limit_s + self.limits.grace_s, self.deadline)

    def _ask(self, request: Mapping[str, Any], *, until: float) -> dict[str, Any]:
        # Written beside the clock: a process that no longer reads must not keep the grader waiting.
        threading.Thread(target=self._write, args=(json.dumps(request).encode() + b"\n",), daemon=True).start()
        try:
            reply = json.loads(self._line(until=until))
        except (ValueError, RecursionError):
            raise DiedError from None
        if not isinstance(reply, dict):
            raise DiedError
        return {name: whole_characters(value) if isinstance(value, str) else value for name, value in reply.items()}

    def _line(self, *, until: float) -> bytes:
        """The next line, with an eye on the memory that is taken meanwhile."""
        while True:
            try:
                return self._lines.get(timeout=max(0.0, min(LOOK_S, until - time.monotonic())))
            except queue.Empty:
                if used_bytes(self._process.pid) > self.limits.total_memory_bytes:
                    raise DiedError from None
                if time.monotonic() >= until:
                    raise HungError from None

    def run(self, source: str) -> dict[str, Any]:
        """Execute a cell: {"printed", "failed", "timed_out"}."""
        request = {"do": "run", "source": source, "limit_s": self.limits.cell_s, "room": self.limits.printed}
        return self._ask(request, until=self._within(self.limits.cell_s))

    def value(self, name: str) -> dict[str, Any]:
        """A variable's value as text: {"kind", "text"}."""
        return self._ask({"do": "value", "name": name}, until=self._within(self.limits.call_s))

    def call(self, name: str, arguments: Mapping[str, object]) -> dict[str, Any]:
        """What a student's function returns, as text: {"kind", "text"}."""
        request = {"do": "call", "name": name, "arguments": arguments, "limit_s": self.limits.call_s}
        return self._ask(request, until=self._within(self.limits.call_s))

    def close(self) -> None:
        """End the process and everything it started; inside the sandbox nothing outlives it."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL) if hasattr(os, "killpg") else self._process.kill()
        self._process.wait()
        # without a sandbox, a child that slipped away may hold the line open: then its reader is left waiting
        until = time.monotonic() + CLOSE_S
        while self._reader.is_alive() and time.monotonic() < until:
            with contextlib.suppress(queue.Empty):
                self._lines.get(timeout=LOOK_S)
        if not self._reader.is_alive():
            for pipe in (self._process.stdin, self._process.stdout):
                with contextlib.suppress(OSError):
                    pipe.close()  # type: ignore[union-attr]
        if self._folder:
            self._folder.cleanup()


def used_bytes(pid: int) -> int:
    """Memory that a process and all its descendants hold: what is each one's own, and what they share, once. 0 where
    there is no /proc to read it from.

    Shared memory counts by the size of what is mapped, because it stays when a process that has written it looks away.
    """
    own, shared, family = 0, dict[tuple[str, str], int](), [pid]
    while family:
        member = Path("/proc") / str(family.pop())
        with contextlib.suppress(OSError, ValueError, IndexError):
            for line in (member / "status").read_text().splitlines():
                if line.startswith(("RssAnon:", "VmSwap:")):
                    own += int(line.split()[1]) * KiB
            for thread in (member / "task").iterdir():
                family += [int(child) for child in (thread / "children").read_text().split()]
            for line in (member / "maps").read_text(errors="replace").splitlines():
                span, rights, offset, device, inode, *path = line.split(maxsplit=5)
                if rights.endswith("s") and path and path[0].startswith(NAMELESS):
                    first, last = (int(address, 16) for address in span.split("-"))
                    file = (device, inode)
                    shared[file] = max(shared.get(file, 0), int(offset, 16) + last - first)
    return own + sum(shared.values())
