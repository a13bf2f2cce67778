"""A machine inside this one, for tests that need accounts: a private view of the files (accounts, homes, /srv), in
which students can reach this Python, and a private view of the processes, which end together. Nothing of it stays.
"""

import functools
import os
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from threeloops import wall_clock
from threeloops.classroom.hub.reach import barrier

ROOT = Path(__file__).parents[2]
NEEDED = ("unshare", "nsenter", "mount", "useradd", "chpasswd", "runuser", "bwrap", "openssl", "pgrep")
# Everything that a server needs, wherever it lies: it stays visible when the closed folders above it are covered.
OPEN = dict.fromkeys(map(Path, (sys.base_prefix, sys.prefix, os.path.realpath(sys.prefix), ROOT)))


@functools.cache
def why_not() -> str:
    """Why there can be no such machine here; empty where there can."""
    if sys.platform != "linux" or os.geteuid() != 0:
        return "accounts are made by root on Linux alone"
    missing = [program for program in NEEDED if shutil.which(program) is None]
    if missing:
        return f"not installed here: {', '.join(missing)}"
    closed = [str(path) for path in OPEN if path.stat().st_mode & 0o005 != 0o005]
    if closed:  # what lies above it can be opened in the private view, the folder itself cannot
        return f"others may not read {closed[0]}"
    tried = subprocess.run(["unshare", "--mount", "--pid", "--fork", "true"], capture_output=True, text=True)
    return "" if tried.returncode == 0 else f"no private view of files here: {tried.stderr.strip()}"


def _set_up(work: Path) -> str:
    """Shell commands that lay the private view, run inside it."""
    lines = ["set -e", "mount -t tmpfs -o mode=755 tmpfs /srv"]
    closed = {step for path in OPEN if (step := barrier(path)) and step.is_dir()}
    kept = [path for path in OPEN if any(path.is_relative_to(step) for step in closed)]
    for number, path in enumerate(kept):
        lines += [f"mkdir -p {work}/{number}", f"mount --rbind {shlex.quote(str(path))} {work}/{number}"]
    lines += [f"mount -t tmpfs -o mode=755 tmpfs {shlex.quote(str(step))}" for step in sorted(closed)]
    for number, path in enumerate(kept):
        lines += [f"mkdir -p {shlex.quote(str(path))}", f"mount --rbind {work}/{number} {shlex.quote(str(path))}"]
    if not any(path.is_relative_to("/home") for path in OPEN):
        lines += ["mount -t tmpfs -o mode=755 tmpfs /home"]
    lines += [f"mkdir {work}/etc", f"mount -t tmpfs -o mode=755 tmpfs {work}/etc", f"cp -a /etc/. {work}/etc/"]
    return "\n".join([*lines, f"mount --rbind {work}/etc /etc", f"touch {work}/ready", "exec sleep 100000"])


@dataclass(frozen=True, kw_only=True)
class Machine:
    """The machine, by the process that holds it open."""

    pid: int

    def path(self, path: str) -> Path:
        """A file of that machine, seen from this one."""
        return Path(f"/proc/{self.pid}/root{path}")

    def start(self, *words: str, log: Path) -> "subprocess.Popen[bytes]":
        """Start a command there as root; what it says goes to a file."""
        with log.open("wb") as stream:
            return subprocess.Popen([*self._enter(), *words], stdout=stream, stderr=subprocess.STDOUT)

    def run(self, *words: str, user: str = "root", cwd: str = "/") -> "subprocess.CompletedProcess[str]":
        """Run a command there as somebody."""
        inside = f"cd {shlex.quote(cwd)} && exec {shlex.join(words)}"
        whose = ["runuser", "-u", user, "--", "sh", "-c", inside]
        home = self.run_home(user)
        return subprocess.run(
            [*self._enter(), *whose],
            capture_output=True,
            text=True,
            timeout=300,
            stdin=subprocess.DEVNULL,
            env=os.environ
            | {"HOME": home, "USER": user, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"},
        )

    def run_home(self, user: str) -> str:
        lines = self.path("/etc/passwd").read_text().splitlines()
        return next((line.split(":")[5] for line in lines if line.startswith(f"{user}:")), "/")

    def _enter(self) -> list[str]:
        return ["nsenter", f"--target={self.pid}", "--mount", "--pid", "--"]


@contextmanager
def machine(work: Path) -> Iterator[Machine]:
    """Such a machine, until the block ends."""
    words = ["unshare", "--mount", "--pid", "--fork", "--kill-child=SIGKILL", "--mount-proc", "sh", "-c", _set_up(work)]
    holder = subprocess.Popen(words, start_new_session=True)
    try:
        children = Path(f"/proc/{holder.pid}/task/{holder.pid}/children")
        wall_clock.until(lambda: (work / "ready").exists() or holder.poll() is not None, limit_s=60)
        assert (work / "ready").exists(), "the private view could not be laid, or not in a minute"
        yield Machine(pid=int(children.read_text().split()[0]))
    finally:
        os.killpg(holder.pid, signal.SIGKILL)
        holder.wait()
