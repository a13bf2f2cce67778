"""One submission judged. The student's side returns values; references, slips and hidden draws stay on this side."""

import hashlib
import hmac
import time
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from threeloops.classroom.questions import Notebook, Question, question, source
from threeloops.drills.engine.bank import DRILLS
from threeloops.drills.engine.function_bank import FUNCTIONS
from threeloops.drills.engine.functions import judge_function, missed_draws
from threeloops.drills.engine.judge import Verdict, judge
from threeloops.drills.engine.student_draws import HOME_COURSE, HOME_STUDENT, plain_id, posed
from threeloops.drills.engine.student_draws import question as posed_question
from threeloops.sandbox.calling import collected
from threeloops.sandbox.kernel import DiedError, HungError, Kernel
from threeloops.sandbox.walls import Limits

MOST_STARTS = 4  # a process that died is started again without the cell that ended it
UNANSWERED = Verdict(status="unanswered", message="No answer yet.")
STOPPED = Verdict(status="unanswered", message="No answer: a cell of yours above stopped with an error.")
DIED = Verdict(status="died", message="Your code ended the whole Python process here, so nothing was left to look at.")
HUNG = Verdict(status="timed out", message="Your code did not come back in time here, so there was nothing to look at.")
STATUSES = ("graded", "timed out", "died")  # of a submission, from good to bad


@dataclass(frozen=True, slots=True, kw_only=True)
class Examiner:
    """What the grader knows: whose submission this is, in which course, and the key that seeds hidden draws."""

    student: str  # decided by the submission's folder
    course: str
    key: bytes
    limits: Limits = field(default_factory=Limits)
    sandboxed: bool = True
    functions: str = "all"  # a function has its points if it is right on all draws; `share`: for the share that is

    def secret(self, *words: str) -> str:
        """Words that only the holder of the key can foretell."""
        return hmac.new(self.key, "\x1f".join((self.course, self.student, *words)).encode(), hashlib.sha256).hexdigest()


@dataclass(slots=True, kw_only=True)
class Outcome:
    """What came of one submission."""

    status: str = "graded"
    notes: list[str] = field(default_factory=list)
    verdicts: dict[str, Verdict] = field(default_factory=dict)  # by grade_id
    printed: dict[int, str] = field(default_factory=dict)  # by index of the cell
    self_marked: float | None = None
    stopped: bool = False  # has a cell since the last question?

    def note(self, sentence: str, status: str = "graded") -> None:
        self.notes.append(sentence)
        self.status = max(self.status, status, key=STATUSES.index)


def judged(notebook: Notebook, examiner: Examiner) -> Outcome:
    """Run a transplanted notebook's cells on the student's side and judge what its questions got for answers."""
    outcome, skipped = Outcome(), set[int]()
    values: dict[str, dict[str, Any]] = {}
    deadline = time.monotonic() + examiner.limits.total_s
    for _ in range(MOST_STARTS):
        culprit = _one_run(notebook, examiner, outcome, values, skipped, deadline)
        if culprit is None:
            break
        skipped.add(culprit)
        if time.monotonic() >= deadline:
            outcome.note(f"it took longer than {examiner.limits.total_s:g} s in all", "timed out")
            break
    else:
        outcome.note("it was given up after ending the process again and again", "died")
    for asked in _questions(notebook):
        outcome.verdicts.setdefault(asked.grade_id, UNANSWERED)
    _identity(notebook, examiner, outcome, values)
    return outcome


def _questions(notebook: Notebook) -> Iterator[Question]:
    return (found for cell in notebook["cells"] if (found := question(cell)))


def _name(notebook: Notebook, index: int) -> str:
    """How a note refers to a cell."""
    return f"cell {notebook['cells'][index]['id']}"


def _one_run(
    notebook: Notebook,
    examiner: Examiner,
    outcome: Outcome,
    values: dict[str, dict[str, Any]],
    skipped: set[int],
    deadline: float,
) -> int | None:
    """Go through the cells once. None when the end was reached, otherwise the cell that ended the process."""
    whose = {"student": examiner.student, "course": examiner.course}
    shown = {
        asked.drill: posed_question(DRILLS[asked.drill], **whose)
        for asked in _questions(notebook)
        if asked.kind == "number"
    }
    index = 0
    try:
        with Kernel(
            posed=shown, whose=whose, limits=examiner.limits, sandboxed=examiner.sandboxed, deadline=deadline
        ) as kernel:
            for index, cell in enumerate(notebook["cells"]):
                if cell["cell_type"] == "code" and index not in skipped:
                    _one_cell(kernel, notebook, index, examiner, outcome, values)
            for name in ("student", "course", "self_marked"):
                values.setdefault(name, kernel.value(name))
    except (DiedError, HungError) as end:
        verdict = HUNG if isinstance(end, HungError) else DIED
        asked = question(notebook["cells"][index])
        if asked:
            outcome.verdicts[asked.grade_id] = verdict
        outcome.note(
            f"{_name(notebook, index)} {'did not come back' if verdict is HUNG else 'ended the process'}",
            verdict.status,
        )
        return index
    return None


def _one_cell(
    kernel: Kernel,
    notebook: Notebook,
    index: int,
    examiner: Examiner,
    outcome: Outcome,
    values: dict[str, dict[str, Any]],
) -> None:
    cell = notebook["cells"][index]
    asked = question(cell)
    if asked is None:
        result = kernel.run(source(cell))
        outcome.printed[index] = str(result.get("printed", ""))[: 2 * examiner.limits.printed]
        outcome.stopped = outcome.stopped or bool(result.get("failed"))
        if result.get("timed_out"):
            outcome.note(f"{_name(notebook, index)} took longer than {examiner.limits.cell_s:g} s", "timed out")
        return
    if asked.grade_id not in outcome.verdicts:  # after a fresh start the judged stay judged
        if asked.kind == "number":
            values[asked.grade_id] = kernel.value(asked.name)
            outcome.verdicts[asked.grade_id] = number_verdict(
                asked.drill, values[asked.grade_id], course=examiner.course, student=examiner.student
            )
        else:
            verdict = _function_verdict(kernel, asked, examiner, notebook)
            outcome.verdicts[asked.grade_id] = verdict
            if "took longer" in verdict.message:
                outcome.note(f"{asked.name} took longer than {examiner.limits.call_s:g} s", "timed out")
        if outcome.stopped and outcome.verdicts[asked.grade_id] == UNANSWERED:
            outcome.verdicts[asked.grade_id] = STOPPED
    outcome.stopped = False


def number_verdict(key: str, value: dict[str, Any], *, course: str, student: str) -> Verdict:
    """Judge what a variable held against the question of that student."""
    kind, text = value.get("kind"), str(value.get("text", ""))
    if kind in ("other", "list"):
        what = "list" if kind == "list" else text if text.isidentifier() else "thing like this"
        return Verdict(status="unreadable", message=f"An answer is a number with its unit, as text, not a {what}.")
    if kind not in ("text", "number"):
        return UNANSWERED
    if kind == "number":
        try:
            return judge(DRILLS[key], posed(DRILLS[key], course=course, student=student), float(text))
        except ValueError:
            return Verdict(status="unreadable", message="This is not a number.")
    return judge(DRILLS[key], posed(DRILLS[key], course=course, student=student), text)


def _function_verdict(kernel: Kernel, asked: Question, examiner: Examiner, notebook: Notebook) -> Verdict:
    """Call the student's function on draws that no student knows, and that change when the submission does."""
    drill = FUNCTIONS[asked.drill]
    submitted = hashlib.sha256(
        "\x1f".join(source(cell) for cell in notebook["cells"]).encode(errors="replace")
    ).hexdigest()
    draws = drill.draws(examiner.secret(asked.grade_id, submitted))
    shared = examiner.functions == "share"
    returned = collected(kernel, asked.name, drill, draws, every=shared)
    if returned is None:
        return Verdict(status="unanswered", message=f"There is no function called {asked.name}.")
    verdict = judge_function(drill, draws, returned)
    return _with_share(verdict, len(returned) - len(missed_draws(drill, draws, returned)), len(draws), shared)


def _with_share(verdict: Verdict, right: int, draws: int, shared: bool) -> Verdict:
    """A verdict on a function that is not right, with the share of draws on which it is, where that earns points. A
    draw that the function did not come to, because it did not come back from an earlier one, is not right.

    >>> _with_share(Verdict(status="limit", message="Wrong in the limit case."), 4, 5, True).message
    'Wrong in the limit case. Right on 4 of 5 draws, which earns 80 % of the points.'
    """
    if not shared or verdict.right or not right:
        return verdict
    told = f"Right on {right} of {draws} draws, which earns {100 * right / draws:.0f} % of the points."
    return replace(verdict, share=right / draws, message=f"{verdict.message} {told}")


def self_mark(value: dict[str, Any]) -> float | None:
    """What a student gave their own explanation, if that is a number of points, in quotes or not; anything else is
    none.

    >>> self_mark({"kind": "number", "text": "2.0"}), self_mark({"kind": "text", "text": "2"})
    (2.0, 2.0)
    >>> self_mark({"kind": "number", "text": ["two"]}), self_mark({"kind": "text", "text": "two"})
    (None, None)
    """
    text = value.get("text")
    if value.get("kind") not in ("number", "text") or not isinstance(text, str) or "_" in text:
        return None
    try:
        points = float(text)
    except ValueError:
        return None
    return points if 0 <= points <= 100 else None


def _identity(notebook: Notebook, examiner: Examiner, outcome: Outcome, values: dict[str, dict[str, Any]]) -> None:
    """Compare who the notebook says it is of with who handed it in. What is right for the one it names is held,
    neither wrong nor paid. A notebook that says nobody yet has right answers was asked with its student's numbers: a
    class's hub knows them.
    """
    outcome.self_marked = self_mark(values.get("self_marked", {}))
    student, course = (plain_id(values.get(name, {}).get("text")) for name in ("student", "course"))
    differs = [
        f"{name} {said!r}"
        for name, said, true in (("student", student, examiner.student), ("course", course, examiner.course))
        if said and said != true
    ]
    said_nobody = {student, course} <= {"", HOME_STUDENT, HOME_COURSE}
    numbers = (outcome.verdicts[asked.grade_id] for asked in _questions(notebook) if asked.kind == "number")
    if not differs or (said_nobody and any(verdict.right for verdict in numbers)):
        return
    outcome.note(f"the notebook says {' and '.join(differs)}")
    held = 0
    for asked in _questions(notebook):
        verdict = outcome.verdicts[asked.grade_id]
        if asked.kind == "number" and not verdict.right and asked.grade_id in values:
            there = number_verdict(
                asked.drill,
                values[asked.grade_id],
                course=course or examiner.course,
                student=student or examiner.student,
            )
            if there.right:
                held += 1
                message = (
                    f"Right with the numbers of {' and '.join(differs)}, not with yours. Held until your teacher"
                    " decides."
                )
                outcome.verdicts[asked.grade_id] = replace(verdict, status="held", message=message, slips=())
    if held:
        outcome.notes.append(f"{held} answers right with those numbers are held")
