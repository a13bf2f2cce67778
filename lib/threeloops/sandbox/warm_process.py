"""The grader's end of the line to the warm process in the sandbox (forking.py), from which students' sides are forked:
one start for many submissions, where each start of its own would load the same again.
"""

import contextlib
import functools
import json
import os
import selectors
import signal
import socket
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

from threeloops.sandbox import seccomp, walls

START_S, FORK_S, END_S = 60, 20, 20
LONGEST_WORD = 65_536  # bytes of one message
DID_NOT = "the student's side did not start; the warm process that it is forked from"
MOST_FILES = 10_000  # of a student's, in each place that can be written to: each holds memory of the kernel's


class NoStartError(Exception):
    """The process did not come up: the grader's fault, not the student's, none of whose code has run."""


class Forked:
    """A student's side that was forked: the same as walls.Side."""

    def __init__(self, handle: int, requests: int, replies: int) -> None:
        self._handle = handle
        told = Path(f"/proc/self/fdinfo/{handle}").read_text()
        self.pid = next(int(line.split()[1]) for line in told.splitlines() if line.startswith("Pid:"))
        self.requests, self.replies = os.fdopen(requests, "wb"), os.fdopen(replies, "rb")

    def end(self) -> None:
        """End its first process, and wait until it and everything below it is gone: the next one starts alone.

        Raises:   NoStartError when it does not go
        """
        try:
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(self._handle, signal.SIGKILL)
            with selectors.DefaultSelector() as gone:
                gone.register(self._handle, selectors.EVENT_READ)
                if not gone.select(END_S):
                    raise NoStartError(f"a student's process could not be ended in {END_S} s")
        finally:
            os.close(self._handle)


class Template:
    """One warm process. Many threads may ask it; it ends when its line is closed, or whoever holds that is gone."""

    def __init__(self) -> None:
        self.owner, self._one_at_a_time = os.getpid(), threading.Lock()
        self._line, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            self.process = subprocess.Popen(
                walls.command(sandboxed=True, warm=True),
                stdin=theirs.fileno(),
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )
        place = seccomp.column()
        built = {
            "environment": walls.ENVIRONMENT,
            "filter": seccomp.refusals().hex(),
            "keyctl": None if place is None else seccomp.REFUSED["keyctl"][place],
            "become": walls.become(),
            "places": walls.PLACES_TO_WRITE,
            "shown": walls.shown_below_places(),
            "room": f"size={walls.ROOM_BYTES},nr_inodes={MOST_FILES},mode=1777",
        }
        try:
            self._told(built, [], START_S)
        except NoStartError:
            self.close()
            raise

    def _told(self, word: dict[str, Any], pipes: list[int], patience_s: float) -> list[int]:
        """Send a word, and open files with it; the open files that come with the answer.

        Raises:   NoStartError when none comes, or one of trouble
        """
        self._line.settimeout(patience_s)
        try:
            socket.send_fds(self._line, [json.dumps(word).encode()], pipes)
            answer, handles, _, _ = socket.recv_fds(self._line, LONGEST_WORD, 1)
        except OSError as error:
            raise NoStartError(f"{DID_NOT} does not answer ({error})") from None
        if not answer:
            raise NoStartError(f"{DID_NOT} has ended")
        if problem := json.loads(answer).get("problem"):
            raise NoStartError(f"{DID_NOT} says: {problem}")
        return handles

    def fork(self) -> Forked:
        """A student's side of its own.

        Raises:   NoStartError
        """
        theirs_in, ours_in = os.pipe()
        ours_out, theirs_out = os.pipe()
        try:
            with self._one_at_a_time:
                handles = self._told({}, [theirs_in, theirs_out], FORK_S)
        except NoStartError:
            os.close(ours_in)
            os.close(ours_out)
            raise
        finally:
            os.close(theirs_in)
            os.close(theirs_out)
        return Forked(handles[0], ours_in, ours_out)

    def close(self) -> None:
        """End it, and whatever it has forked."""
        self._line.close()
        self.process.kill()
        self.process.wait()


_kept: Template | None = None
_one_keeper = threading.Lock()


def _template() -> Template:
    """This process's own: one that came with a fork belongs to the other."""
    global _kept
    with _one_keeper:
        if _kept is None or _kept.owner != os.getpid():
            _kept = Template()
        return _kept


def drop(template: Template | None = None) -> None:
    """Close this process's warm one, if it is still that one; the next fork starts another."""
    global _kept
    with _one_keeper:
        if _kept is not None and _kept.owner == os.getpid() and template in (None, _kept):
            _kept.close()
            _kept = None


def fork() -> Forked:
    """A student's side, forked from this process's warm one. If that has ended it is started again, once.

    Raises:   NoStartError when that does not help
    """
    template = None
    try:
        template = _template()
        return template.fork()
    except NoStartError as error:
        print(f"Once more: {error}.", file=sys.stderr, flush=True)
        drop(template)
        return _template().fork()


@functools.cache
def problem() -> str:
    """Why each submission must start its sandbox anew on this machine, which is said once; empty where it can be
    forked. Asked before the first: one that fails later is refused.
    """
    if walls.problem():
        return walls.problem()
    try:
        fork().end()
    except NoStartError as error:
        print(f"Each submission starts its own sandbox here, which takes longer: {error}.", file=sys.stderr, flush=True)
        return str(error)
    return ""
