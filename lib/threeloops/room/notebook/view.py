"""Interview room view: what the room shows at each moment, as plain words and numbers. No widget in here: it is
computed and tested without a browser.

>>> from threeloops.room.history import NOWHERE
>>> start(History(NOWHERE)).said
'Choose, then begin.'
"""

import datetime as dt
import re
from dataclasses import asdict, dataclass, replace

from threeloops.contents import STARTER
from threeloops.room import mistakes, preparation
from threeloops.room.clock import EXTRA_TIMES, SPOKEN_S, QuestionClock
from threeloops.room.history import History
from threeloops.room.ideas import IDEAS, LOOPS, TOPICS, chosen
from threeloops.room.kinds import code
from threeloops.room.plan import MODES, SPRINT_QUESTIONS
from threeloops.room.session import Reply, Session, place_taught
from threeloops.room.terminal import CHECKLIST

LOOP_NAMES = {
    "inner": "the inner loop",
    "training": "the training loop",
    "product": "the product loop",
    "driving": "the driving case",
}
MODE_NAMES = {mode: {"weak": "weak spots"}.get(mode, mode) for mode in MODES}
WIDE = 90  # letters: longer lines are sentences and may be broken, shorter ones may stand in columns
UP_FROM_COPY = "../"  # the room lies in my/drills/, the parts below my/chapters/


@dataclass(frozen=True, slots=True, kw_only=True)
class Screen:
    """Everything that the room shows. Nothing of an answer is in it before the question is answered."""

    stage: str  # start, asking, answered, over
    key: str = ""  # which question of which sitting stands
    heading: str = "The interview room"
    about: str = ""
    blocks: tuple[dict[str, object], ...] = ()  # the question
    clock: dict[str, object] | None = None
    hints: tuple[str, ...] = ()
    hint_cost: str = ""
    starter: str = ""  # of a task in code: what the field holds at first
    given: str = ""  # what the reader answered
    said: str = ""  # what has just happened: spoken by a screen reader
    working: tuple[dict[str, object], ...] = ()
    taught: str = ""
    link: str = ""
    score: str = ""
    checklist: tuple[str, ...] = ()
    unfinished: str = ""  # the sitting that can be gone on with, in words

    @property
    def plain(self) -> dict[str, object]:
        """For the browser."""
        return asdict(self)

    @property
    def text(self) -> str:
        """All of it as plain text."""
        modes = [f"  {name}: {MODES[mode]}" for mode, name in MODE_NAMES.items()] if self.stage == "start" else []
        pieces = [self.heading, self.about, *modes, *(str(block["text"]) for block in self.blocks), *self.hints]
        pieces += [f"Your answer: {self.given}" if self.given else "", self.said]
        pieces += [str(block["text"]) for block in self.working]
        pieces += [f"Taught in {self.taught}." if self.taught else "", *self.checklist, self.score, self.unfinished]
        return "\n".join(piece for piece in pieces if piece)


def form() -> dict[str, object]:
    """What can be chosen before a sitting: (value, words) pairs, and a sentence for every mode."""
    loops = [
        (loop, f"{LOOP_NAMES[loop]}, all topics") for loop in LOOPS if any(idea.loop == loop for idea in chosen(None))
    ]
    return {
        "modes": list(MODE_NAMES.items()),
        "notes": MODES,
        "first": "sprint",
        "topics": [("", "every topic"), *loops, *((topic, topic.replace("_", " ")) for topic in (STARTER, *TOPICS))],
        "difficulties": [("", "any"), ("1", "1, easy"), ("2", "2, medium"), ("3", "3, hard")],
        "extras": [(f"{times:g}", "none" if times == 1 else f"{times:g} times the time") for times in EXTRA_TIMES],
    }


def start(history: History, said: str = "Choose, then begin.", *, nowhere: str = "") -> Screen:
    """The form; `nowhere` is said of a history that ends with the process."""
    kept = "" if history.kept else nowhere
    track = preparation.wishes(history).track
    asked = "" if track == preparation.EVERYTHING else f" Your track is {track}: every topic means those of its own."
    return Screen(
        stage="start",
        about=(
            f"Questions with fresh numbers, as an interviewer would ask them. A sprint asks {SPRINT_QUESTIONS}; your"
            f" first is your placement.{asked}{kept}"
        ),
        said=said,
        unfinished=unfinished(history),
    )


def unfinished(history: History) -> str:
    """The sitting that was left last, in whichever door, in words; empty when there is none."""
    name = history.unfinished()
    if name is None:
        return ""
    record = history.session(name)
    begun = dt.datetime.fromtimestamp(record.started_s).strftime("%Y-%m-%d %H:%M")
    return f"{record.mode}, question {len(history.answered(name)) + 1} of {len(record.plan)}, begun {begun}"


def asking(session: Session, said: str = "") -> Screen:
    """The standing question."""
    question = session.question
    assert question is not None
    target = (
        f"{session.clock.allowed_s:.0f} s on the clock"
        if session.timed
        else f"no clock; a fluent person needs about {question.allowed_s:.0f} s"
    )
    target += f", {question.reading_s * (session.extra if session.timed else 1):.0f} s of them to read"
    extra = f", extra time {session.extra:g}×" if session.timed and session.extra != 1 else ""
    walls = f" {code.without_walls()}".rstrip() if question.starter else ""
    return Screen(
        stage="asking",
        key=f"{session.name}-{session.position}",
        heading=f"Question {session.position + 1} of {len(session.plan)}: {question.title}",
        about=f"{session.mode}, {question.topic.replace('_', ' ')}; {target}{extra}.{walls}",
        starter=question.starter,
        blocks=blocks(question.text),
        clock=clock(session.clock) if session.timed else None,
        hints=question.hints[: session.hints],
        hint_cost=session.hint_cost(),
        said=said,
        score=session.score,
    )


def answered(session: Session, said: str, *, given: str = "", given_up: bool = False) -> Screen:
    """The question after its answer, with the working and where it is taught."""
    question = session.question
    assert question is not None
    words, link = place_taught(question)
    shown = asking(session, said)
    of_code = ({"text": "Your file:", "columns": False}, {"text": given, "columns": True, "wide": True})
    return replace(
        shown,
        stage="answered",
        clock=None,
        hint_cost="",
        starter="",
        given="" if question.starter else given,
        blocks=(*shown.blocks, *(of_code if question.starter and given else ())),
        working=blocks(f"{question.unmarked}\n{question.working}".strip("\n") if given_up else question.working),
        taught=words.partition(";")[0],
        link=UP_FROM_COPY + link,
    )


def over(session: Session) -> Screen:
    """The end of a sitting: the score, and after a mock what to say aloud."""
    ended = "The thirty minutes are over." if session.time_is_up else f"This {session.mode} is over."
    lines = CHECKLIST if session.mode == "mock" else ()
    return Screen(
        stage="over",
        heading=ended,
        blocks=tuple({"text": line, "columns": False} for line in missed(session)),
        said=session.score,
        checklist=tuple(re.sub(r"^\s*\[ \] ", "", line) for line in lines),
        unfinished=unfinished(session.history),
    )


def missed(session: Session) -> list[str]:
    """What was not right in a sitting: each question with the mistakes that were named."""
    lines = []
    for attempt in session.history.attempts():
        if attempt.session == session.name and attempt.status in ("wrong", "given-up"):
            slips = [mistakes.told(attempt.idea, slip) for slip in attempt.slips.split(",") if slip]
            said = " Perhaps also: ".join(slips) if slips else attempt.status.replace("-", " ")
            lines.append(f"{IDEAS[attempt.idea].title}: {said}{'' if said.endswith('.') else '.'}")
    return ["What to look at again:", *lines] if lines else []


def told(session: Session, reply: Reply) -> str:
    """What an answer brought, in the sentences that are spoken: the verdict and the time, without the working."""
    assert session.question is not None
    further = [line for line in reply.lines if line not in (session.question.working, session.taught)]
    return ("\n" if "\n" in reply.verdict.message else " ").join([reply.verdict.message, *further])


def clock(clock: QuestionClock) -> dict[str, object]:
    """Where the clock stands, for a browser to go on counting by itself: no running cell can hold it up."""
    return {"left_s": clock.left_s, "allowed_s": clock.allowed_s, "marks": marks(clock.allowed_s)}


def marks(allowed_s: float) -> list[tuple[float, str]]:
    """At how many seconds left the clock speaks, and what it says: as QuestionClock.spoken does.

    >>> marks(45)
    [(30, '30 seconds left'), (10, '10 seconds left'), (0, 'time is up')]
    """
    return [*((mark, f"{mark} seconds left") for mark in SPOKEN_S if mark < allowed_s), (0, "time is up")]


def blocks(text: str) -> tuple[dict[str, object], ...]:
    """The text in pieces: sentences, and lines in columns, which need letters of one width and must not be broken.

    >>> [(block["columns"], block["text"]) for block in blocks("How long?\\n  A  3 s\\n  B  4 s")]
    [(False, 'How long?'), (True, '  A  3 s\\n  B  4 s')]
    """
    pieces: list[tuple[bool, list[str]]] = []
    for line in text.split("\n"):
        columns = "  " in line.rstrip() or (bool(pieces) and pieces[-1][0] and not line.strip())
        if not pieces or pieces[-1][0] != columns:
            pieces.append((columns, []))
        pieces[-1][1].append(line)
    return tuple(
        {"text": "\n".join(lines), "columns": columns, "wide": max(map(len, lines)) > WIDE} for columns, lines in pieces
    )
