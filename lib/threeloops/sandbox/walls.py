"""How the student's side is started: in bubblewrap on Linux (no network, no files but its own, limits), as a plain
process elsewhere.
"""

import contextlib
import functools
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from threeloops.sandbox.seccomp import refusals
from threeloops.units import MB, GiB

INSIDE, FORKING = (Path(__file__).with_name(name) for name in ("student_side.py", "forking.py"))
BOOK = Path(__file__).resolve().parents[3]
PROCESSES = 64
ALL_PROCESSES = 1024  # where a user's limit counts what the user runs elsewhere too
PLACES_TO_WRITE, ROOM_BYTES = ("/tmp", "/dev/shm"), 100 * MB
PROBE_S = 20
UNREADABLE = 3  # the exit code of a probe that found Python's packages closed to it
COUNTED_APART = (5, 14)  # since then Linux counts a user's processes in each user namespace
NOBODY = 65534
PLACES = 14  # ids below nobody's that belong to nobody either
_place = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What one submission may use."""

    cell_s: float = 10.0
    call_s: float = 2.0
    total_s: float = 90.0
    grace_s: float = 2.0  # for a reply after the clock inside has rung; then the process is ended from outside
    memory_bytes: int = 3 * GiB  # of address space, per process
    total_memory_bytes: int = 4 * GiB  # in use by all processes together
    file_bytes: int = 100 * MB
    files: int = 128  # open at once, per process: each pipe and socket holds memory of the kernel's
    printed: int = 20_000  # characters per cell
    apart: bool = False  # without a sandbox: run as nobody, where the grader is root

    def as_resources(self, *, sandboxed: bool, forked: bool = False) -> dict[str, int]:
        """The limits by the names of the operating system; for a side that was forked, which has its own users."""
        limits = {"AS": self.memory_bytes, "FSIZE": self.file_bytes, "CORE": 0, "NOFILE": self.files}
        nobody = become()
        if (sandboxed or self.apart) and nobody:
            return limits | {"NPROC": PROCESSES, "become": nobody}
        alone = forked and _version() >= COUNTED_APART
        return limits | ({"NPROC": PROCESSES if alone else ALL_PROCESSES} if sandboxed else {})


def _version() -> tuple[int, ...]:
    """Linux's first two numbers."""
    return tuple(map(int, re.findall(r"\d+", os.uname().release)[:2]))


def become() -> int | None:
    """The nobody that root becomes to run a student's code; None for whoever is not root."""
    return NOBODY - _place if hasattr(os, "geteuid") and os.geteuid() == 0 else None


def take_place(number: int) -> None:
    """Have this process's students be another nobody than those of the others beside it: what one may start is counted
    by user, and one who starts too much should not stop the rest.
    """
    global _place
    _place = number % PLACES


def _system_binds() -> list[str]:
    """The operating system's programs and libraries, and this Python, to read."""
    words = ["--ro-bind", "/usr", "/usr"]
    for folder in ("/bin", "/sbin", "/lib", "/lib64", "/lib32"):
        path = Path(folder)
        if path.is_symlink():
            words += ["--symlink", os.readlink(path), folder]
        elif path.exists():
            words += ["--ro-bind", folder, folder]
    for file in ("/etc/ld.so.cache", "/etc/alternatives", "/etc/localtime"):
        words += ["--ro-bind-try", file, file]
    for folder in dict.fromkeys((sys.base_prefix, sys.prefix, str(Path(sys.executable).resolve().parent.parent))):
        if not Path(folder).is_relative_to("/usr"):
            words += [*_open_way(Path(folder)), "--ro-bind", folder, folder]
    return words


def shown_below_places() -> list[str]:
    """The folders bound below places that are emptied for each student."""
    words = _system_binds()
    bound = [words[n + 2] for n, word in enumerate(words) if word == "--ro-bind"]
    return [folder for folder in bound if any(Path(folder).is_relative_to(place) for place in PLACES_TO_WRITE)]


def _open_way(path: Path) -> list[str]:
    """The folders above a bound one, to be walked through by whoever root has become; bubblewrap would make them
    root's alone.
    """
    above = [str(folder) for folder in reversed(path.parents) if folder not in (Path("/"), Path("/tmp"))]
    return [word for folder in above for word in ("--perms", "0755", "--dir", folder)]


def _hidden(words: list[str]) -> list[str]:
    """Empty folders over those of the book that a bound folder would show (a book kept inside its own environment,
    say).
    """
    bound = [Path(words[n + 2]) for n, word in enumerate(words) if word == "--ro-bind"]
    folders = [BOOK / name for name in ("lib", "solutions", "build", "my", "tests")]
    return [
        word
        for folder in folders
        if folder.is_dir() and any(folder.is_relative_to(place) for place in bound)
        for word in ("--tmpfs", str(folder))
    ]


@functools.cache
def _bwrap(*, warm: bool = False) -> list[str]:
    """bubblewrap's command line up to the program: a student's side, or the warm process that sets others apart."""
    program = shutil.which("bwrap")
    assert program is not None
    root = os.geteuid() == 0
    words = [
        program,
        "--unshare-net",
        "--unshare-pid",
        "--unshare-ipc",
        "--unshare-uts",
        "--new-session",
        "--clearenv",
    ]
    # The warm one ends when its line is closed; a thread of the grader's may have started it, and may end before.
    words += [] if warm else ["--die-with-parent"]
    # Root gives up every power but that of becoming nobody, because limits on processes do not bind root, and where it
    # is to be kept a while those of making namespaces; others get an own user namespace.
    powers = ["CAP_SETUID", "CAP_SETGID"] + (["CAP_SYS_ADMIN", "CAP_NET_ADMIN"] if warm else [])
    words += (
        ["--cap-drop", "ALL", *(word for power in powers for word in ("--cap-add", power))]
        if root
        else ["--unshare-user", "--cap-drop", "ALL"]
    )
    # Empty places first: this Python may itself lie below /tmp.
    words += ["--proc", "/proc", "--dev", "/dev"]
    for place in PLACES_TO_WRITE:
        words += ["--size", str(ROOM_BYTES), "--perms", "1777", "--tmpfs", place]
    if not warm:  # the kernel lets nobody but root see a whole /proc below one of which something is hidden
        for listing in ("/proc/keys", "/proc/key-users"):  # the names of the grader's keys
            words += ["--ro-bind-try", "/dev/null", listing]
    binds = _system_binds()
    return [
        *words,
        *binds,
        *_hidden(binds),
        *_open_way(Path("/run/student_side.py")),
        *(word for file in (INSIDE, FORKING) for word in ("--ro-bind", str(file), f"/run/{file.name}")),
        # Nothing else is written to: whoever is not root owns these, and they have no size.
        "--remount-ro",
        "/dev",
        "--remount-ro",
        "/",
        "--chdir",
        "/tmp",
    ]


@contextlib.contextmanager
def _filtered(words: list[str]) -> Iterator[tuple[list[str], tuple[int, ...]]]:
    """bubblewrap's command line with the kernel's calls that it is to refuse, and the open files to hand on."""
    program = refusals()
    if not program:
        yield words, ()
        return
    reading, writing = os.pipe()
    try:
        os.write(writing, program)
        os.close(writing)
        yield [words[0], "--seccomp", str(reading), *words[1:]], (reading,)
    finally:
        os.close(reading)


@functools.cache
def problem() -> str:
    """Why there is no sandbox on this machine; empty if there is one."""
    if sys.platform != "linux":
        return "bubblewrap exists on Linux alone"
    if shutil.which("bwrap") is None:
        return "bubblewrap is not installed (on Debian and Ubuntu: apt install bubblewrap)"
    hidden = [str(BOOK / "solutions"), str(BOOK / "lib" / "threeloops")]
    look = (
        f"import os, sys, sysconfig; os.getuid() or os.setuid({NOBODY}); open(os.__file__);"
        f" os.access(sysconfig.get_path('purelib'), os.R_OK | os.X_OK) or sys.exit({UNREADABLE});"
        f" sys.exit(any(map(os.path.exists, {hidden!r})))"
    )
    try:
        with _filtered([*_bwrap(), sys.executable, "-I", "-c", look]) as (words, handed_on):
            probe = subprocess.run(words, capture_output=True, text=True, timeout=PROBE_S, pass_fds=handed_on)
    except subprocess.TimeoutExpired:
        return "bubblewrap does not answer here"
    if probe.returncode == UNREADABLE:
        return (
            f"root becomes nobody to run a student's code, and nobody may not read {sys.prefix} (chmod -R go+rX"
            f" {sys.prefix})"
        )
    if probe.returncode:
        return "bubblewrap cannot build its walls here" + (
            f" ({probe.stderr.strip().splitlines()[-1]})" if probe.stderr.strip() else ""
        )
    return ""


def problem_apart(closed: Sequence[Path]) -> str:
    """Why students' code cannot be run as nobody without a sandbox, these files closed to it; empty if it can."""
    nobody = become()
    if nobody is None:
        return "only root can run a student's code as somebody else"
    look = (
        "import os, sys, sysconfig; open(os.__file__);"
        f" os.access(sysconfig.get_path('purelib'), os.R_OK | os.X_OK) or sys.exit({UNREADABLE});"
        f" sys.exit(any(os.access(path, os.R_OK) for path in {[str(path) for path in closed]!r}))"
    )
    words = [sys.executable, "-I", "-c", look]
    try:
        probe = subprocess.run(
            words, capture_output=True, timeout=PROBE_S, cwd="/", user=nobody, group=nobody, extra_groups=[]
        )
    except PermissionError:
        return f"nobody may not read {sys.executable}"
    except (OSError, subprocess.SubprocessError):
        return "no program can be run as nobody here"
    if probe.returncode == 1 and not probe.stderr:
        return "nobody can read what only the grader may"
    return f"nobody may not read {sys.prefix}" if probe.returncode else ""


def command(*, sandboxed: bool, warm: bool = False) -> list[str]:
    """What to start."""
    options = ["-I", "-B", "-X", "utf8"]
    program = FORKING if warm else INSIDE
    return (
        [*_bwrap(warm=warm), sys.executable, *options, f"/run/{program.name}"]
        if sandboxed
        else [sys.executable, *options, str(program)]
    )


class Side:
    """A running student's side: a line to it, a line back, and its end."""

    def __init__(self, folder: str, *, sandboxed: bool) -> None:
        words = command(sandboxed=sandboxed)
        with _filtered(words) if sandboxed else contextlib.nullcontext((words, ())) as (filtered, handed_on):
            self._process = subprocess.Popen(
                filtered,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                cwd=folder,
                start_new_session=True,
                pass_fds=handed_on,
            )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self.pid, self.requests, self.replies = self._process.pid, self._process.stdin, self._process.stdout

    def end(self) -> None:
        """End the process and everything it started; inside the sandbox nothing outlives it."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, signal.SIGKILL) if hasattr(os, "killpg") else self._process.kill()
        self._process.wait()


# One thread per library: a student's notebook is small, and several are graded at once.
ENVIRONMENT = {
    "HOME": "/tmp",
    "IPYTHONDIR": "/tmp/ipython",
    "PATH": "/usr/bin:/bin",
    "LANG": "C.UTF-8",
} | dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1")
