"""The grader's end of the line to the student's side: one request, one reply, and a clock of its own."""

import contextlib
import json
import os
import queue
import tempfile
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from threeloops.sandbox import walls, warm_process
from threeloops.sandbox.walls import Limits
from threeloops.sandbox.warm_process import NoStartError
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


def whole_characters(text: str) -> str:
    """The text with a question mark for each half character, which no file could hold.

    >>> whole_characters("cut " + chr(0xD83D))
    'cut ?'
    """
    return text.encode("utf-8", "replace").decode()


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
        self.limits, self.deadline, self.notebook = limits, deadline, notebook
        # In the sandbox it has a place of its own, which goes with it however the grader ends.
        self._folder = None if sandboxed else tempfile.TemporaryDirectory(prefix=PREFIX, ignore_cleanup_errors=True)
        if self._folder and limits.apart and (nobody := walls.become()):
            os.chown(self._folder.name, nobody, nobody)
        self.side = (
            warm_process.fork()
            if sandboxed and notebook and not warm_process.problem()
            else walls.Side(self._folder.name if self._folder else "/", sandboxed=sandboxed)
        )
        # A full queue leaves the pipe full, and a process that floods it waits there.
        self._lines: queue.Queue[bytes] = queue.Queue(maxsize=2)
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        home = dict.fromkeys(("HOME", "IPYTHONDIR"), self._folder.name) if self._folder else {}
        setup = {
            "notebook": notebook,
            "posed": posed,
            "whose": whose,
            "limits": limits.as_resources(sandboxed=sandboxed, forked=isinstance(self.side, warm_process.Forked)),
            "environment": walls.ENVIRONMENT | home,
        }
        try:
            told = self._ask(setup, until=time.monotonic() + START_S)  # starting is not the student's time
        except (DiedError, HungError):
            told = {}
        if told != {"ready": True}:
            self.close()
            raise NoStartError(f"the student's side did not start: {told.get('problem', 'it ended without a word')}")

    def __enter__(self) -> "Kernel":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _read(self) -> None:
        with contextlib.suppress(ValueError, OSError):
            while line := self.side.replies.readline(LONGEST_REPLY):
                self._lines.put(line)
        self._lines.put(b"")

    def _write(self, line: bytes) -> None:
        with contextlib.suppress(ValueError, OSError):  # nobody there any more: the missing reply will tell
            while line:
                line = line[os.write(self.side.requests.fileno(), line) :]

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
                if used_bytes(self.side.pid) > self.limits.total_memory_bytes:
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
        reply = self._ask(request, until=self._within(self.limits.call_s))
        if self.notebook:
            reply.pop("line", None)  # a notebook has cells; a line that is told may be a number that was drawn
        return reply

    def close(self) -> None:
        """End the process and everything it started; inside the sandbox nothing outlives it."""
        try:
            self.side.end()
        finally:
            # without a sandbox, a child that slipped away may hold the line open: then its reader is left waiting
            until = time.monotonic() + CLOSE_S
            while self._reader.is_alive() and time.monotonic() < until:
                with contextlib.suppress(queue.Empty):
                    self._lines.get(timeout=LOOK_S)
            if not self._reader.is_alive():
                for pipe in (self.side.requests, self.side.replies):
                    with contextlib.suppress(OSError):
                        pipe.close()
            if self._folder:
                self._folder.cleanup()


def used_bytes(pid: int) -> int:
    """Memory that a process and all its descendants hold: what is each one's own, and what they share, once. 0 where
    there is no /proc to read it from.

    Shared memory counts by the size of what is mapped, because it stays when a process that has written it looks away.
    A process is asked through all its threads: of one that has ended nothing is told, even if it was the first.
    """
    own, shared, family = 0, dict[tuple[str, str], int](), [pid]
    while family:
        member = Path("/proc") / str(family.pop())
        most = 0
        with contextlib.suppress(OSError, ValueError):
            for thread in (member / "task").iterdir():
                family += [int(child) for child in (thread / "children").read_text().split()]
                lines = (thread / "status").read_text().splitlines()
                held = [int(line.split()[1]) * KiB for line in lines if line.startswith(("RssAnon:", "VmSwap:"))]
                if sum(held) > most:
                    most = sum(held)
                    shared |= _shared(thread)
        own += most
    return own + sum(shared.values())


def _shared(thread: Path) -> dict[tuple[str, str], int]:
    """The bytes of shared memory without a file that a thread's process has mapped, by file."""
    found = dict[tuple[str, str], int]()
    with contextlib.suppress(OSError, ValueError):
        for line in (thread / "maps").read_text(errors="replace").splitlines():
            span, rights, offset, device, inode, *path = line.split(maxsplit=5)
            if rights.endswith("s") and path and path[0].startswith(NAMELESS):
                first, last = (int(address, 16) for address in span.split("-"))
                file = (device, inode)
                found[file] = max(found.get(file, 0), int(offset, 16) + last - first)
    return found
