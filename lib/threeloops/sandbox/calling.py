"""A learner's function called in the sandbox: on the draws of a graded cell, or from a file of its own at home."""

import builtins
import json
import math
import time
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from threeloops.drills.engine.code_task import plain
from threeloops.drills.engine.drill import Draw
from threeloops.drills.engine.functions import Asked, Returned
from threeloops.sandbox import walls
from threeloops.sandbox.kernel import DiedError, HungError, Kernel
from threeloops.sandbox.walls import Limits
from threeloops.sandbox.warm_process import NoStartError

AT_HOME = Limits(cell_s=5.0, total_s=30.0, printed=2_000)


class Caller(Protocol):
    """What runs a file and calls what it defines: a kernel, or a page's own Python."""

    limits: Limits
    notebook: bool  # whether what it runs is one

    def run(self, source: str) -> dict[str, Any]: ...

    def call(self, name: str, arguments: Mapping[str, object]) -> dict[str, Any]: ...


def collected(
    kernel: Caller, name: str, asked: Asked, draws: Sequence[Draw], *, every: bool = False
) -> list[Returned] | None:
    """What the function returned on each draw, up to the first that it did not come through, or, where every draw is
    asked for, that it did not come back from; None if there is no such function.
    """
    returned: list[Returned] = []
    for p in draws:
        reply = kernel.call(name, asked.arguments(p))
        if reply.get("kind") == "missing":
            return None
        returned.append(_returned(reply, kernel.limits.call_s))
        if reply.get("kind") == "timeout" or (reply.get("kind") == "raised" and not every):
            break
    return returned


def tried(source: str, name: str, asked: Asked, draws: Sequence[Draw]) -> list[Returned] | str:
    """The same for a file of plain Python, in a process of its own; or why nothing could be tried, in a sentence."""
    limits = AT_HOME
    try:
        with Kernel(
            posed={},
            whose={},
            limits=limits,
            sandboxed=not walls.problem(),
            deadline=time.monotonic() + limits.total_s,
            notebook=False,
        ) as kernel:
            return tried_by(kernel, source, name, asked, draws)
    except DiedError:
        return "Your code ended the process that it ran in, or took more memory than there is for it."
    except HungError:
        return "Your code did not come back in time, and its process was ended."
    except NoStartError as error:
        return f"Your code was not run: {error}."


def tried_by(kernel: Caller, source: str, name: str, asked: Asked, draws: Sequence[Draw]) -> list[Returned] | str:
    """The same, by whatever runs it."""
    if asked.given:
        kernel.run(asked.given)
    ran = kernel.run(source)
    if ran.get("timed_out"):
        return f"Your file did not come to its end in {kernel.limits.cell_s:g} s, before any function was called."
    if ran.get("failed"):
        return f"Your file cannot be run: {_last(ran)}."
    if asked.trial:
        kernel.run(asked.trial)  # of a function that is missing nothing comes
    returned = collected(kernel, name, asked, draws)
    return f"There is no function called {name} in your file." if returned is None else returned


def _last(ran: dict[str, Any]) -> str:
    """The last line of what was printed: the error's own."""
    lines = str(ran.get("printed", "")).strip().splitlines()
    return lines[-1].rstrip(".") if lines else "it ended without a word"


def _returned(reply: dict[str, Any], limit_s: float) -> Returned:
    """A reply as a value or a sentence. The sentence repeats nothing that the student's code could have put there."""
    kind, text = reply.get("kind"), str(reply.get("text", ""))
    match kind:
        case "number":
            try:
                value = float(text)
            except ValueError:
                value = math.nan
            return (
                Returned(value=value)
                if math.isfinite(value)
                else Returned(problem="returned a number that is not finite")
            )
        case "list":
            return _list(text)
        case "unwritten":
            return Returned(unwritten=True)
        case "timeout":
            return Returned(problem=f"took longer than {limit_s:g} s")
        case "raised":
            known = isinstance(getattr(builtins, text, None), type)
            line = str(reply.get("line", ""))
            where = f" in line {int(line)}" if line.isdecimal() and len(line) < 7 else ""
            return Returned(problem=f"raised {text if known else 'an error of its own'}{where}")
        case "text":
            return Returned(value=text)
    return Returned(problem="returned something that is neither a number nor a list of numbers")


def _list(text: str) -> Returned:
    """A list of numbers and words; what a process sends that was told to send something else is none."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, list) or not _is_plain(value):
        return Returned(problem="returned a list with something else in it than numbers and words")
    return Returned(value=plain(value))


def _is_plain(value: object, depth: int = 0) -> bool:
    if isinstance(value, list):
        return depth < 5 and all(_is_plain(one, depth + 1) for one in value)
    return isinstance(value, str | int) or (isinstance(value, float) and math.isfinite(value))
