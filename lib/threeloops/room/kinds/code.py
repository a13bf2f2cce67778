"""Code under the clock: a small function to write, to finish or to mend, judged on hidden draws in the sandbox that
grades notebooks.

What is answered is the whole file. Code that does not come through (it does not parse, it raises, it runs for ever) is
asked again and not counted; code that comes through and is wrong counts, as an answer does.
"""

import ast
import functools
import hashlib
from collections.abc import Callable, Sequence
from typing import TypeAlias

from threeloops import units
from threeloops.drills.coding.tasks import TASKS
from threeloops.drills.engine.code_task import CodeTask
from threeloops.drills.engine.drill import Draw
from threeloops.drills.engine.functions import (
    ORDINARY_DRAWS,
    TIME_LIMIT_S,
    Asked,
    Returned,
    missed_draws,
)
from threeloops.drills.engine.judge import Verdict
from threeloops.room.idea import idea_of
from threeloops.room.question import Question, Subject
from threeloops.sandbox import calling, walls

TOPIC = KIND = "code"
LONGEST_SHOWN = 300  # characters of an argument or a result
LONGEST_FILE = 100_000
# What a file's function returned on each draw, or why nothing could be tried.
Tried: TypeAlias = Callable[[str, str, Asked, Sequence[Draw]], list[Returned] | str]


def pose(task: CodeTask, seed: str) -> Question:
    """The task as a question; of one with a mistake to find, the seed draws the mistake."""
    return _subject(task).as_question(
        kind=KIND,
        seed=seed,
        text=f"{indented(task.shown(seed))}\n{_rules(task)}",
        hints=(task.hint, f"It is also tried on this: {task.limit_case}.", f"The function:\n{indented(task.brief)}"),
        judge=lambda written: judged(task, seed, written),
        working=f"{indented(task.brief)}\n  Source: {task.source}",
        starter=task.starter(seed),
    )


def _rules(task: CodeTask) -> str:
    return (
        f"Answer with the whole file: your `{task.name}` is tried on {ORDINARY_DRAWS + 1} hidden calls, one of them a"
        f" limit case, {TIME_LIMIT_S:g} s each."
    )


def indented(code: str) -> str:
    """Code among sentences."""
    return "\n".join(f"  {line}".rstrip() for line in code.rstrip().split("\n"))


def without_walls() -> str:
    """What is missing for a sandbox and what is done instead, in two sentences; empty where there is one."""
    if not walls.problem():
        return ""
    return (
        f"Without a sandbox: {walls.problem()}. Your code runs as your own program, in a process of its own with the"
        " same limits of time; what it writes and opens is up to you."
    )


def judged(task: CodeTask, seed: str, written: str, tried: Tried | None = None) -> Verdict:
    """Right, or which mistake, with a call on which it shows. It is tried in the sandbox, where nothing else is
    given.
    """
    if refused := unreadable(task, seed, written):
        return Verdict(status="unreadable", message=refused)
    draws = hidden(task, seed, written)
    returned = (tried or calling.tried)(written, task.name, task, draws)
    if isinstance(returned, str):
        return Verdict(status="unreadable", message=returned)
    verdict = task.verdict(draws, returned)
    if verdict.right:
        return verdict
    if verdict.status == "unanswered":
        return Verdict(status="unreadable", message=verdict.message)
    status = "unreadable" if verdict.status == "failed" else verdict.status
    shown = failing(task, draws, task.results(returned))
    return Verdict(status=status, message=f"{verdict.message}\n{shown}".rstrip(), slips=verdict.slips)


def hidden(asked: Asked, seed: str, written: str) -> list[Draw]:
    """The draws that code is tried on: other ones for other code, for what was made to fit the last ones fits them
    alone.
    """
    return asked.draws(seed, hashlib.sha256(written.encode(errors="replace")).hexdigest())


def unreadable(task: CodeTask, seed: str, written: str) -> str:
    """Why there is nothing to try yet, in a sentence; empty where there is."""
    if written.strip() == task.starter(seed).strip():
        return "The file is as you got it. Change it, save it, and run it again."
    return not_python(written, task.name)


def not_python(written: str, name: str) -> str:
    """Why a file cannot be tried, in a sentence; empty where it can."""
    if not written.strip():
        return f"Nothing is written yet: the answer is a file with the function `{name}` in it."
    if len(written) > LONGEST_FILE:
        return f"That is {units.counted(len(written), 'character')}; a file of at most {LONGEST_FILE:,} is read."
    try:
        ast.parse(written)
    except SyntaxError as error:
        where = f"line {error.lineno}, " if error.lineno else ""
        return f"This is not Python yet: {where}{error.msg}."
    except (ValueError, RecursionError, MemoryError) as error:
        return f"This cannot be read as Python: {str(error) or type(error).__name__}."
    return ""


def failing(task: CodeTask, draws: Sequence[Draw], returned: Sequence[Returned]) -> str:
    """The first call that went wrong: its arguments, what came back, what was expected; empty where what came back is
    right and the way to it is not.
    """
    if not (missed := missed_draws(task, draws, returned)):
        return ""
    place = missed[0]
    one, p = returned[place], draws[place]
    called = ", ".join(f"{name}={_shown(value)}" for name, value in task.arguments(p).items())
    came = [] if one.problem or one.unwritten else [f"  gave:     {_shown(one.value)}"]
    return "\n".join([f"  {task.name}({called})", *came, f"  expected: {_shown(task.target(p))}"])


def _shown(value: object) -> str:
    """A value as Python writes it, lists with their brackets; the middle of a long one left out."""
    written = repr(_listed(value))
    half = LONGEST_SHOWN // 2
    return written if len(written) <= LONGEST_SHOWN else f"{written[:half]} … {written[-half:]}"


def _listed(value: object) -> object:
    if isinstance(value, list | tuple):
        return [_listed(one) for one in value]
    return round(value, 6) if isinstance(value, float) else value


def _subject(task: CodeTask) -> Subject:
    return Subject(
        key=task.key, title=task.title, topic=TOPIC, loop=task.loop, section=task.section, target_s=task.target_s
    )


IDEAS = tuple(idea_of(_subject(task), {KIND: functools.partial(pose, task)}) for task in TASKS.values())
