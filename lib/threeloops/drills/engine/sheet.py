"""The drills' surface in a notebook: ask with the reader's own numbers, check at once, print no answer, and never
stop a learner with an exception.

    from threeloops.drills.engine import sheet
    sheet.begin(student="ada", course="home")
    sheet.ask("kv-bytes-per-token")
    sheet.check("kv-bytes-per-token", "24.5 kB")
    sheet.check_function("kv-paged-blocks", reserved_bytes)

What is right is printed; everything else goes to stderr, which nbgrader counts as "not passed". So even a grader that
knows nothing of this book gives no point for a wrong answer.
"""

import os
import secrets
import sys
from collections.abc import Callable

from threeloops import checks
from threeloops.drills.engine.ask_first import ask_first
from threeloops.drills.engine.bank import DRILLS
from threeloops.drills.engine.calls import called, signature_problem
from threeloops.drills.engine.function_bank import FUNCTIONS
from threeloops.drills.engine.functions import Returned, judge_function
from threeloops.drills.engine.judge import Verdict, judge
from threeloops.drills.engine.student_draws import (
    COURSE_VARIABLE,
    HOME_COURSE,
    HOME_STUDENT,
    STUDENT_VARIABLE,
    plain_id,
    posed,
    question,
)

_whose = {"student": HOME_STUDENT, "course": HOME_COURSE}


def begin(*, student: object = HOME_STUDENT, course: object = HOME_COURSE) -> None:
    """Say whose numbers the questions of this notebook are asked with. On a class's hub that is known, whatever the
    notebook says: grading goes by the account, too.
    """
    _whose["student"] = plain_id(os.environ.get(STUDENT_VARIABLE)) or plain_id(student) or HOME_STUDENT
    _whose["course"] = plain_id(os.environ.get(COURSE_VARIABLE)) or plain_id(course) or HOME_COURSE
    print(f"Numbers for {_whose['student']}, course {_whose['course']}.")
    ask_first()


def ask(key: str) -> None:
    """Print this reader's question."""
    if _known(key, DRILLS):
        print(question(DRILLS[key], **_whose))


def worked(key: str) -> str:
    """Print how this reader's question is answered, and return the answer: for solutions, and for whoever has
    tried.
    """
    if not _known(key, DRILLS):
        return ""
    drill, p = DRILLS[key], posed(DRILLS[key], **_whose)
    print(drill.working(p))
    return f"{drill.derive(p).value!r} {drill.unit}".strip()


def check(key: str, answer: object = ...) -> None:
    """Say whether an answer is right, which slip it looks like, or how far off it is."""
    if _known(key, DRILLS):
        if answer is ... or answer is None:
            _say(Verdict(status="unanswered", message="No answer yet."))
            return
        drill = DRILLS[key]
        try:
            verdict = judge(drill, posed(drill, **_whose), answer)
        except Exception:  # an answer may be any object, also one that breaks when looked at
            verdict = Verdict(
                status="unreadable", message=f"This {type(answer).__name__} could not be read as an answer."
            )
        _say(verdict)


def check_function(key: str, function: object = ...) -> None:
    """Call a function on five fresh draws, one of them a limit case, and say what its results show."""
    if not _known(key, FUNCTIONS):
        return
    if not callable(function):
        _say(Verdict(status="unanswered", message="No function yet."))
        return
    asked = FUNCTIONS[key]
    draws = asked.draws(secrets.token_hex(8))
    problem = signature_problem(function, asked.arguments(draws[0]))
    _say(
        Verdict(status="failed", message=problem)
        if problem
        else judge_function(asked, draws, _results(function, [asked.arguments(p) for p in draws]))
    )


def _results(function: Callable[..., object], calls: list[dict[str, object]]) -> list[Returned]:
    """One result per call; after a call that hangs the others are not waited for."""
    results: list[Returned] = []
    for call in calls:
        hung = bool(results) and results[-1].problem.startswith("took")
        results.append(results[-1] if hung else called(function, call))
    return results


def _known(key: object, bank: object) -> bool:
    try:
        checks.one_of(bank, question=key)  # type: ignore[arg-type]
    except Exception as refusal:
        print(str(refusal)[:400], file=sys.stderr)
        return False
    return True


def _say(verdict: Verdict) -> None:
    print(verdict.message, file=sys.stdout if verdict.right else sys.stderr)
