"""The student's side of the wall. This file runs as a script in the sandbox: it executes cells, hands out values, and
knows no answer.

It imports nothing of this book, because nothing of this book is there. `threeloops.drills.engine.sheet` is a stand-in
that shows the questions it was sent. Whatever student code does to this process, it can change only what comes back:
values, which the grader compares where it cannot reach.
"""

import contextlib
import ctypes
import gc
import json
import math
import os
import signal
import sys
import traceback
import types
from collections.abc import Iterator
from numbers import Real
from typing import Any

LONGEST_TEXT = 200  # of an answer
MOST_ITEMS, DEEPEST = 2_000, 4  # of a list
NO_NEW_PRIVILEGES = 38  # PR_SET_NO_NEW_PRIVS of Linux's prctl
FILE = "your file"  # how a traceback calls what is run as a file


class OutOfTime(BaseException):
    """Raised in student code by the clock; not an Exception, so that `except Exception` does not swallow it."""


class Printed:
    """What a cell prints, up to a limit."""

    encoding = "utf-8"

    def __init__(self, limit: int) -> None:
        self.room, self.parts = limit, [""]

    def write(self, text: str) -> int:
        if self.room > 0:
            self.parts.append(str(text)[: self.room])
            self.room -= len(self.parts[-1])
        return len(text)

    def flush(self) -> None:
        """Nothing is held back."""

    def isatty(self) -> bool:
        return False

    @property
    def text(self) -> str:
        return "".join(self.parts) + ("" if self.room > 0 else "\n[the rest was cut]")


@contextlib.contextmanager
def clock(limit_s: float) -> Iterator[None]:
    """Interrupt what runs longer; where there are no signals the grader's own clock ends it."""
    if not hasattr(signal, "setitimer"):
        yield
        return

    def ring(*_: object) -> None:
        raise OutOfTime

    signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, limit_s)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)


def confine(limits: dict[str, int]) -> None:
    """Lower what this process may use, for good, and stop being root. Files are made with the usual rights, whatever
    the grader was begun with.
    """
    os.umask(0o022)
    try:
        import resource
    except ImportError:  # Windows
        return
    for name in ("AS", "NPROC", "FSIZE", "CORE", "NOFILE"):
        if name in limits:
            with contextlib.suppress(ValueError, OSError):
                resource.setrlimit(getattr(resource, f"RLIMIT_{name}"), (limits[name], limits[name]))
    if limits.get("become") and os.getuid() == 0:
        os.setgroups([])
        os.setgid(limits["become"])
        os.setuid(limits["become"])
        give_up_powers()


def give_up_powers() -> None:
    """No program that is started from here makes anybody root again, whatever its bits say."""
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(NO_NEW_PRIVILEGES, 1, 0, 0, 0)


def stand_in(posed: dict[str, str], whose: dict[str, str]) -> None:
    """`from threeloops.drills.engine import sheet`, with questions and without answers."""

    def begin(**_: object) -> None:
        print(f"Numbers for {whose['student']}, course {whose['course']}.")

    def ask(key: object = None) -> None:
        print(posed.get(str(key), f"No question is called {key!r}."))

    def later(*_: object, **__: object) -> None:
        print("Checked when it is graded.")

    packages = [
        types.ModuleType(name)
        for name in ("threeloops", "threeloops.drills", "threeloops.drills.engine", "threeloops.drills.engine.sheet")
    ]
    for package in packages:
        package.__path__ = []  # a package without files: nothing else can be imported from it
        sys.modules[package.__name__] = package
    book, drills, engine, sheet = packages
    vars(sheet).update(begin=begin, ask=ask, check=later, check_function=later)
    vars(engine).update(sheet=sheet)
    vars(drills).update(engine=engine)
    vars(book).update(drills=drills)


def start_shell() -> Any:
    """IPython without a terminal, history or colours: cells may use what they may use in a notebook."""
    gc.disable()  # nothing that is imported is garbage
    from IPython.core.interactiveshell import InteractiveShell
    from traitlets.config import Config

    gc.enable()
    config = Config()
    config.HistoryManager.enabled = False
    config.InteractiveShell.xmode = "Minimal"
    config.InteractiveShell.colors = "nocolor"
    return InteractiveShell.instance(config=config)


class PlainShell:
    """Runs a whole file of plain Python: no magics, and nothing to load."""

    def __init__(self) -> None:
        self.user_ns: dict[str, Any] = {"__name__": "yours"}

    def run_cell(self, source: str, **_: object) -> Any:
        try:
            exec(compile(source, FILE, "exec"), self.user_ns)
        except OutOfTime:
            raise
        except BaseException as error:
            print("".join(traceback.format_exception_only(error)).strip()[-LONGEST_TEXT:])
            return types.SimpleNamespace(success=False, error_in_exec=error)
        return types.SimpleNamespace(success=True, error_in_exec=None)


def run(shell: Any, source: str, limit_s: float, room: int) -> dict[str, Any]:
    """Execute one cell."""
    printed = Printed(room)
    timed_out, failed = False, False
    with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
        try:
            with clock(limit_s):
                result = shell.run_cell(source, store_history=False)
            failed = not result.success
            timed_out = isinstance(result.error_in_exec, OutOfTime)
        except OutOfTime:
            timed_out = True
        except BaseException:
            failed = True
    return {"printed": printed.text, "failed": failed or timed_out, "timed_out": timed_out}


def plain(value: Any) -> dict[str, str]:
    """A value as text: a string as it is, a number by its digits, anything else by the name of its type."""
    try:
        if value is None or value is ...:
            return {"kind": "unwritten"}
        if isinstance(value, str):
            return {"kind": "text", "text": str(value)[:LONGEST_TEXT]}
        item = getattr(value, "item", None)
        number = item() if callable(item) and not isinstance(value, Real) else value
        if isinstance(number, Real) and not isinstance(number, bool):
            return {"kind": "number", "text": repr(float(number)) if math.isfinite(number) else "nan"}
        if isinstance(value, list | tuple):
            return {"kind": "list", "text": json.dumps(items(value, [MOST_ITEMS]))}
    except BaseException:
        return {"kind": "other"}  # an object that lies about itself, a number too large to be one
    return {"kind": "other", "text": type(value).__name__[:40]}


def items(value: Any, room: list[int], depth: int = 1) -> Any:
    """A list of numbers and words, and of such lists, as JSON has it. Raises where it holds anything else, or too
    much.
    """
    room[0] -= 1
    if room[0] < 0 or depth > DEEPEST:
        raise ValueError
    if isinstance(value, list | tuple):
        return [items(one, room, depth + 1) for one in value]
    if isinstance(value, str):
        return str(value)[:LONGEST_TEXT]
    if isinstance(value, bool) or not isinstance(value, Real) or not math.isfinite(value):
        raise ValueError
    return int(value) if isinstance(value, int) else float(value)


def call(function: Any, arguments: dict[str, Any], limit_s: float) -> dict[str, str]:
    """One call of a student's function; what it prints is dropped, so that the numbers it was called with stay
    here.
    """
    silent = Printed(0)
    with contextlib.redirect_stdout(silent), contextlib.redirect_stderr(silent):
        try:
            with clock(limit_s):
                return plain(function(**arguments))
        except OutOfTime:
            return {"kind": "timeout"}
        except NotImplementedError:
            return {"kind": "unwritten"}
        except BaseException as error:
            return {"kind": "raised", "text": type(error).__name__[:40], "line": last_line(error)}


def last_line(error: BaseException) -> str:
    """The line of the learner's file at which an error came up; empty in a notebook, which has cells."""
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == FILE]
    return str(lines[-1]) if lines else ""


def serve(requests: int, replies: int, shell: Any = None) -> None:
    """Answer requests, one JSON object per line, until the line closes; in the shell given, or one of its own."""
    asked, told = os.fdopen(requests, "r", encoding="utf-8"), os.fdopen(replies, "w", encoding="utf-8")
    nowhere = os.open(os.devnull, os.O_RDWR)
    for standard in (0, 1, 2):
        os.dup2(nowhere, standard)
    setup = json.loads(asked.readline())
    os.environ.update(setup["environment"])
    confine(setup["limits"])
    if setup["notebook"]:
        stand_in(setup["posed"], setup["whose"])
    shell = shell or (start_shell() if setup["notebook"] else PlainShell())
    reply: dict[str, Any] = {"ready": True}
    own = os.getpid()
    while True:
        if os.getpid() != own:  # a child that came back from the learner's code has nothing to say
            os._exit(0)
        told.write(json.dumps(reply) + "\n")
        told.flush()
        line = asked.readline()
        if not line:
            os._exit(0)
        request = json.loads(line)
        names = shell.user_ns
        match request["do"]:
            case "run":
                reply = run(shell, request["source"], request["limit_s"], request["room"])
            case "value":
                reply = plain(names[request["name"]]) if request["name"] in names else {"kind": "missing"}
            case "call":
                function = names.get(request["name"])
                reply = (
                    call(function, request["arguments"], request["limit_s"])
                    if callable(function)
                    else {"kind": "missing"}
                )


if __name__ == "__main__":
    serve(os.dup(0), os.dup(1))
