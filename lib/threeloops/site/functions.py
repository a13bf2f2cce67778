"""Functions that are written on a page: run in the reader's browser on hidden draws, and judged as at the desk.

Python in a browser cannot interrupt itself. Before everything that may not end, the page is told what it is and how
long it may take; what does not come back is ended from there (static/python.js).

Words go in and JSON comes out, as in answering.

>>> json.loads(tried("code-sectors", "sectors", "home", "", lambda sentence, seconds: None))["message"]
'Nothing is written yet: the answer is a file with the function `sectors` in it.'
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from threeloops import checks
from threeloops.drills.coding.tasks import TASKS
from threeloops.drills.engine.calls import signature_problem
from threeloops.drills.engine.code_task import CodeTask
from threeloops.drills.engine.function_bank import FUNCTIONS
from threeloops.drills.engine.functions import TIME_LIMIT_S, judge_function
from threeloops.drills.engine.judge import Verdict
from threeloops.room.ideas import pose
from threeloops.room.kinds import code
from threeloops.sandbox import calling, student_side
from threeloops.site.answering import SEED, next_cost

SLOWER = 3  # times as long as at the desk: what Python takes in a browser
LIMITS = replace(calling.AT_HOME, cell_s=SLOWER * TIME_LIMIT_S, call_s=SLOWER * TIME_LIMIT_S)
# Told what begins now, as the sentence that is due if it does not end, and the seconds that it has.
Tell = Callable[[str, float], object]


class Here:
    """What a kernel is at the desk, in this very Python."""

    limits, notebook = LIMITS, False

    def __init__(self, tell: Tell) -> None:
        self._shell, self._tell = student_side.PlainShell(), tell

    def run(self, source: str) -> dict[str, Any]:
        limit_s = self.limits.cell_s
        self._tell(f"Your code did not come to its end in {limit_s:g} s, before any function was called.", limit_s)
        return student_side.run(self._shell, source, limit_s, self.limits.printed)

    def call(self, name: str, arguments: Mapping[str, object]) -> dict[str, Any]:
        function, limit_s = self.named(name), self.limits.call_s
        if not callable(function):
            return {"kind": "missing"}
        self._tell(f"On one draw it took longer than {limit_s:g} s.", limit_s)
        return student_side.call(function, dict(arguments), limit_s)

    def named(self, name: str) -> Any:
        """What the file calls so."""
        return self._shell.user_ns.get(name)


def tried(key: str, name: str, seed: str, written: str, tell: Tell) -> str:
    """What a function is worth, which mistake it has, or why it could not be tried; of a task that is right, with the
    working. `name` is that of the function.
    """
    verdict = _of_task(TASKS[key], seed, written, tell) if key in TASKS else _of_drill(key, name, seed, written, tell)
    tell("", 0)  # everything has come back
    working = pose(key, code.KIND, seed).working if key in TASKS and verdict.right else ""
    return json.dumps(
        {"status": verdict.status, "message": verdict.message, "slips": verdict.slips, "working": working}
    )


def _of_task(task: CodeTask, seed: str, written: str, tell: Tell) -> Verdict:
    return code.judged(task, seed, written, lambda *asked: calling.tried_by(Here(tell), *asked))


def _of_drill(key: str, name: str, seed: str, written: str, tell: Tell) -> Verdict:
    """As a notebook's own check says it, by the name that the set gives the function."""
    checks.one_of(FUNCTIONS, function=key)
    asked, here = FUNCTIONS[key], Here(tell)
    if refused := code.not_python(written, name):
        return Verdict(status="unreadable", message=refused)
    draws = code.hidden(asked, seed, written)
    returned = calling.tried_by(here, written, name, asked, draws)
    if isinstance(returned, str):
        return Verdict(status="unreadable", message=returned)
    if problem := signature_problem(here.named(name), asked.arguments(draws[0])):
        return Verdict(status="failed", message=problem)
    return judge_function(asked, draws, returned)


def hint(key: str, number: int) -> str:
    """A hint to a task, the first being number 0, and what the next one will cost; empty after the last."""
    return json.dumps({"text": pose(key, code.KIND, SEED).hints[number], "next_cost": next_cost(number)})


def working(key: str) -> str:
    """A task as a fluent person would write it."""
    return json.dumps({"text": pose(key, code.KIND, SEED).working})


def ready() -> str:
    """Load what judges, while the reader still writes."""
    return json.dumps({})
