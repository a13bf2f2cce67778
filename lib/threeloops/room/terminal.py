"""The light door: plain lines that also work through ssh, a pipe and a screen reader."""

import contextlib
import datetime as dt
import functools
import os
import sys
import threading
from collections.abc import Callable, Iterator

from threeloops import units, wall_clock
from threeloops.contents import in_commands, reader_folder
from threeloops.drills.engine import answers
from threeloops.drills.engine.student_draws import wrapped
from threeloops.room import code_file, moving, preparation
from threeloops.room.after import calibration, sure
from threeloops.room.history import History, HistoryError
from threeloops.room.plan import MODES, Wish
from threeloops.room.session import Reply, Session

HELP = "Type your answer; `hint` for a hint, `show` for the working, `skip` for the next question, `quit` to stop."
SURE_HELP = "`@80` behind an answer says that you are 80 % sure of it; `progress` compares that with what was right."
QUIT, SKIP, SHOW, HELPED, HINT = (
    ("quit", "q", "exit"),
    ("skip", "s"),
    ("show", "give up"),
    ("help", "h", "?"),
    ("hint",),
)
WIDTH = 80  # of a window that does not say how wide it is
CHECKLIST = (
    "Now say one of your answers aloud, as to an interviewer, and tick off:",
    "  [ ] the assumption I made, before the first number",
    "  [ ] the formula, in words",
    "  [ ] the number, with its unit",
    "  [ ] a sanity check: a limit case, or a second way to the same size",
    "  [ ] the decision that follows from it",
)


def say(text: str) -> None:
    """Print for whoever sits there: at a terminal in lines of its width, into a pipe as it is."""
    text = in_commands(text)
    print(wrapped(text, os.get_terminal_size().columns or WIDTH) if sys.stdout.isatty() else text, flush=True)


def practise(
    history: History, mode: str, wish: Wish, *, extra: float, seed: str | None, asks_sure: bool = False
) -> None:
    """Hold sittings until the reader stops; a warm-up begins again with other numbers, the other modes end."""
    sitting = Session.begin(history, mode, wish, extra=extra, seed=seed, sure=asks_sure)
    _welcome(sitting, wish.words)
    with _kept(history):
        while (before := sitting.question) and _hold(sitting) and sitting.mode == "warm-up":
            say("\nAgain, with other numbers.")
            sitting = Session.begin(history, mode, wish, extra=extra, other_than=before.text, sure=asks_sure)


def resume(history: History) -> None:
    """Go on with the sitting that was left last, in whichever door it was begun."""
    name = history.unfinished()
    if name is None:
        raise ValueError("no sitting was left unfinished; `python3 book.py drill` begins one")
    sitting = Session(history, name)
    _welcome(sitting, "as before", numbers="the same numbers")
    with _kept(history):
        _hold(sitting)


def _welcome(sitting: Session, about: str, *, numbers: str = "fresh numbers") -> None:
    left = len(sitting.plan) - sitting.position
    say(f"{sitting.mode} ({about}): {MODES[sitting.mode]}. {units.counted(left, 'question')}, {numbers}. {HELP}")


@contextlib.contextmanager
def _kept(history: History) -> Iterator[None]:
    """However the sitting ends, what the disk refused is written now or set aside."""
    try:
        yield
    finally:
        if said := moving.rescue(history):
            say(said)


def _hold(sitting: Session) -> bool:
    """Ask to the end of the sitting: False when the reader stopped before."""
    while sitting.question is not None:
        if not _ask(sitting):
            say(sitting.score + _continued(sitting.history))
            return False
        sitting.next()
    say("\n" + ("The thirty minutes are over. " if sitting.time_is_up else "") + sitting.score)
    if sitting.mode == "mock":
        say("\n".join(CHECKLIST))
    return True


def _continued(history: History) -> str:
    """How to go on, with the file that keeps the sitting where it is not the usual one."""
    if not history.kept:
        return ""
    usual = history.path.resolve() == (reader_folder() / "history.sqlite3").resolve()
    return f" `python3 book.py drill --continue{'' if usual else f' --history {history.path}'}` goes on from here."


def _ask(sitting: Session) -> bool:
    """Put the standing question until it is settled; False when the reader stops."""
    question = sitting.question
    assert question is not None
    reading = f"{question.reading_s * (sitting.extra if sitting.timed else 1):.0f} s of them to read"
    clock = f"{sitting.clock.allowed_s:.0f} s" if sitting.timed else f"about {question.allowed_s:.0f} s"
    place = f"[{sitting.position + 1} of {len(sitting.plan)}{', a follow-up' if sitting.follows else ''}]"
    say(f"\n{place} {question.title} ({clock}, {reading})\n{question.text}")
    _read_ahead()
    read = _reader(sitting)
    with _spoken_clock(sitting):
        while True:
            try:
                written = read().strip()
            except (EOFError, KeyboardInterrupt):  # both mean: enough for today
                print()
                return False
            word = written.lower()
            if word in QUIT:
                return False
            if word in HELPED:
                say(f"{HELP} {SURE_HELP}")
            elif word in HINT:
                _hint(sitting)
            elif word in SKIP:
                sitting.skip()
                return _trouble_told(sitting)
            elif word in SHOW:
                say(sitting.give_up())
                return _trouble_told(sitting)
            elif _told(sitting.answer(written, ask_sure=_asked_sure if sitting.asks_sure else lambda: None)):
                return True


def _reader(sitting: Session) -> Callable[[], str]:
    """What reads an answer: a line, or of a task in code the reader's file."""
    question = sitting.question
    assert question is not None
    if not question.starter:
        return lambda: _line()("> ")
    from threeloops.room.kinds.code import without_walls

    file = code_file.placed(question, sitting.history)
    say("\n".join(filter(None, [file.told, code_file.how(), without_walls()])))
    return code_file.reader(file, lambda: _line()("> "), opens=_somebody())


def _asked_sure() -> float | None:
    """How sure the answer just given is, in percent; None for an empty line, or the end of all lines."""
    say(sure.ASKED)
    while True:
        try:
            return sure.read(_line()("> "))
        except ValueError as error:
            say(f"{str(error)[:1].upper()}{str(error)[1:]}.")
        except (EOFError, KeyboardInterrupt):
            return None


def _trouble_told(sitting: Session) -> bool:
    """Say what kept an answer from being written; the question is over all the same."""
    if sitting.trouble:
        say(sitting.trouble)
    return True


def _told(reply: Reply) -> bool:
    """Print what an answer brought; whether the question is over."""
    say(reply.verdict.message)
    for line in reply.lines:
        say(line)
    return reply.done


def _hint(sitting: Session) -> None:
    """A hint, after its cost has been said and taken."""
    cost = sitting.hint_cost()
    if cost:
        say(f"{cost} Take it? (yes, or anything else for no)")
        try:
            if _line()("> ").strip().lower() not in ("yes", "y"):
                return
        except (EOFError, KeyboardInterrupt):
            return
    say(sitting.hint())


def _somebody() -> bool:
    """Whether a person sits at a terminal, and no pipe."""
    return sys.stdin.isatty() and sys.stdout.isatty()


@functools.cache
def _line() -> Callable[[str], str]:
    """What reads a line: one that can be edited where somebody sits at a terminal, the plain one elsewhere."""
    if not _somebody():
        return input
    # imported after the first question stands on the screen: it takes a while to load
    from prompt_toolkit import PromptSession

    os.environ.setdefault("PROMPT_TOOLKIT_NO_CPR", "1")  # it would ask the terminal where the cursor is, and complain
    return PromptSession[str]().prompt


@functools.cache
def _read_ahead() -> None:
    """While the reader thinks about the first question, load what will read the answer; only where somebody sits at a
    terminal.
    """
    if sys.stdin.isatty():
        # no daemon: a process must not end in the middle of loading compiled code
        threading.Thread(target=answers.get_ready).start()


@contextlib.contextmanager
def _spoken_clock(sitting: Session) -> Iterator[None]:
    """Let the clock speak at 60, 30 and 10 seconds and at the end, above the line that is being typed; only where
    somebody sits at a terminal, never into a pipe.
    """
    assert sitting.question is not None
    if not sitting.timed or not _somebody() or sitting.question.starter:  # an editor may fill the screen
        yield
        return
    from prompt_toolkit.patch_stdout import patch_stdout

    over = threading.Event()

    def speak() -> None:
        before = sitting.clock.left_s
        while not over.wait(0.5) and before > 0:
            said = sitting.clock.spoken(before)
            before = sitting.clock.left_s
            if said:
                print(f"({said})", flush=True)

    with patch_stdout():  # what another thread prints goes above the prompt and leaves the typed line alone
        threading.Thread(target=speak, daemon=True).start()
        try:
            yield
        finally:
            over.set()


def prepare(history: History, *, interview: str | None, minutes: float | None, track: str | None) -> str:
    """Keep what was said of the interview (a day, or "none"; minutes a day; a track); the plan that follows from it."""
    if interview is not None and interview != "none":
        _future(interview)
    kept = preparation.wishes(history)
    preparation.Wishes(
        date=kept.date,
        minutes=kept.minutes if minutes is None else minutes,
        track=kept.track if track is None else track,
    )
    for name, value in (("interview", interview), ("minutes", minutes), ("track", track)):
        if value is not None:
            history.set(name, None if value == "none" else str(value))
    wished = preparation.wishes(history)
    if wished.date is None:
        track = "" if wished.track == preparation.EVERYTHING else f" Track {wished.track}, until another is named."
        return f"No interview date: repeats are spread by memory alone.{track}"
    surer = calibration.surer_lines(calibration.calibration(history.attempts(desk=True)).surer)
    return preparation.in_words(preparation.days(history, today=wall_clock.today()), wished, surer=surer)


def _future(written: str) -> None:
    """Refuse what is no day to come."""
    try:
        date = dt.date.fromisoformat(written)
    except ValueError:
        raise ValueError(f"{written!r} is not a date; write it like 2026-11-26, or none") from None
    if date < wall_clock.today():
        raise ValueError(f"{date.isoformat()} has passed; give the day of an interview to come, or none")


def opened(path: str) -> History:
    """The history at that path; where it cannot be kept, one sentence that says so and what would help."""
    try:
        return History(path)
    except HistoryError as error:
        raise ValueError(f"{error}; `--history none` asks without keeping anything") from None
