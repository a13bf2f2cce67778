"""A scheduler of Dask's and its workers as processes of their own on this machine, open to this machine alone."""

import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

from threeloops import wall_clock

LOOPBACK = ("--host", "127.0.0.1", "--no-dashboard")
START_S = 60


class Machines:
    """What is running; everything is ended with the `with` that began it, or by `end`."""

    def __init__(self, folder: Path, protocol: str, more: Mapping[str, str]) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.folder, self._environment = folder, os.environ | more
        self._environment["DASK_TEMPORARY_DIRECTORY"] = str(folder / "scratch")
        self._running: list[subprocess.Popen[bytes]] = []
        self._protocol, self.address = protocol, ""
        self.schedule()

    def schedule(self) -> None:
        """Start a scheduler; the second one listens where the first has listened."""
        told = self.folder / "scheduler.json"
        told.unlink(missing_ok=True)
        port = self.address.rpartition(":")[2] or "0"
        words = ("--port", port, "--protocol", self._protocol, "--scheduler-file", str(told))
        self.scheduler = self._start("scheduler", *words)
        self.address = ""

        def answered() -> bool:
            with contextlib.suppress(OSError, ValueError):
                self.address = json.loads(told.read_text())["address"]
            return bool(self.address)

        assert wall_clock.until(answered, limit_s=START_S, step_s=0.1), self.log()

    def _start(self, kind: str, *words: str, more: Mapping[str, str] = {}) -> "subprocess.Popen[bytes]":
        command = [sys.executable, "-m", "distributed.cli.dask_" + kind, *LOOPBACK, *words]
        with (self.folder / f"{kind}-{len(self._running)}.log").open("ab") as log:
            process = subprocess.Popen(
                command, stdout=log, stderr=log, env=self._environment | more, start_new_session=True
            )
        self._running.append(process)
        return process

    def workers(self, number: int, *, threads: int = 1, more: Mapping[str, str] = {}) -> "subprocess.Popen[bytes]":
        """Start so many; Dask's nanny starts one anew that is killed."""
        words = [self.address, "--nworkers", str(number), "--nthreads", str(threads)]
        return self._start("worker", *words, more=more)

    def log(self) -> str:
        return "\n".join(path.read_text(errors="replace")[-3000:] for path in self.folder.glob("*.log"))

    def end(self) -> None:
        for process in reversed(self._running):
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        self._running.clear()


@contextlib.contextmanager
def machines(folder: Path, protocol: str = "tcp", more: Mapping[str, str] = {}) -> Iterator[Machines]:
    started = Machines(folder, protocol, more)
    try:
        yield started
    finally:
        started.end()


def grading(nanny: int) -> list[int]:
    """The processes that a nanny has started to grade, by one of its threads."""
    found = []
    for thread in Path(f"/proc/{nanny}/task").glob("*/children"):
        with contextlib.suppress(OSError):
            for child in thread.read_text().split():
                if b"spawn_main" in Path(f"/proc/{child}/cmdline").read_bytes():
                    found.append(int(child))
    return found
