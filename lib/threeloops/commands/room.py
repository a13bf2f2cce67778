"""The interview room's commands: drill, progress and history. What they do stands in `threeloops.room`."""

import argparse
import gc
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from threeloops.room.history import History

ROOM = ("drill", "progress", "history")  # the commands
EXTRA = ("1", "1.25", "1.5", "2")


def add_room(commands: Any) -> None:
    """Add the three commands."""
    drill = commands.add_parser("drill", help="questions in the terminal")
    drill.add_argument(
        "topic", nargs="?", help="a topic (kv_cache, …), a loop (inner, training, product) or a drill's key"
    )
    drill.add_argument("--mode", help="warm-up, sprint, mock, weak or today")
    drill.add_argument("--seed", help="the same numbers again")
    drill.add_argument("--length", type=int, metavar="N", help="how many questions")
    drill.add_argument("--difficulty", type=int, metavar="1|2|3")
    drill.add_argument("--extra", choices=EXTRA, default="1", help="extra time: 1.25, 1.5 or 2 times the target")
    drill.add_argument(
        "--sure",
        action="store_true",
        help="ask how sure you are, before each verdict; `@80` behind an answer says it, too, and `progress` shows how"
        " often you were right",
    )
    drill.add_argument("--interview", metavar="DATE", help="the day of your interview, like 2026-11-26, or none")
    drill.add_argument("--minutes", type=float, metavar="N", help="minutes a day until the interview (default 30)")
    drill.add_argument(
        "--track",
        help="what the interview is for: training, serving, kernels, driving or everything; every mode then asks of"
        " that alone, until another is named",
    )
    drill.add_argument(
        "--continue", dest="resumed", action="store_true", help="go on with the sitting that was left last"
    )
    _history_flag(drill)
    drill.set_defaults(run=_drill)
    progress = commands.add_parser("progress", help="accuracy and time by topic, slips, what is due, readiness")
    _history_flag(progress)
    progress.set_defaults(run=_progress)
    history = commands.add_parser("history", help="take your attempts elsewhere, or forget them")
    history.add_argument("verb", choices=("export", "import", "forget"))
    history.add_argument(
        "what",
        help="a file to export to (.json or .csv; .apkg: a deck for Anki) or to import from (.json or .csv); an idea's"
        " key, or all, to forget",
    )
    history.add_argument(
        "--cards", action="store_true", help="export to a .csv what is known of each idea, and when it is due"
    )
    history.add_argument("--all", action="store_true", help="a deck of every question, not only of those you have met")
    history.add_argument("--yes", action="store_true", help="forget without being asked again")
    _history_flag(history)
    history.set_defaults(run=_history)


def _history_flag(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--history", metavar="FILE", help="where attempts are kept (default my/history.sqlite3); none keeps nothing"
    )


def _path(given: argparse.Namespace) -> str:
    if given.history == "none":
        from threeloops.room.history import NOWHERE

        return NOWHERE
    if given.history:
        return str(given.history)
    from threeloops import desk

    return str(desk.history_path())


def _drill(given: argparse.Namespace) -> None:
    gc.disable()  # what is loaded now stays: looking through it for what can go would only delay the first question
    from threeloops.room import preparation, terminal
    from threeloops.room.plan import Wish

    gc.enable()
    history = terminal.opened(_path(given))
    planned = (given.interview, given.minutes, given.track) != (None, None, None)
    if planned:
        told = terminal.prepare(history, interview=given.interview, minutes=given.minutes, track=given.track)
        if not given.mode or given.interview or given.minutes:  # a sitting's own first line says the track
            terminal.say(told)
    if given.resumed:
        terminal.resume(history)
        return
    track = preparation.wishes(history).track
    wish = Wish(topic=given.topic, difficulty=given.difficulty, length=given.length, track=track)
    whole_plan = planned and history.interview and given.topic is None  # a topic asked for by name comes first
    mode = given.mode or (preparation.mode_of_today(history) if whole_plan else "warm-up")
    terminal.practise(history, mode, wish, extra=float(given.extra), seed=given.seed, asks_sure=given.sure)


def _progress(given: argparse.Namespace) -> None:
    from threeloops import wall_clock
    from threeloops.room import progress, terminal

    terminal.say(progress.in_words(progress.progress(terminal.opened(_path(given)), now=wall_clock.now())))


def _history(given: argparse.Namespace) -> None:
    from threeloops import units
    from threeloops.room import moving, terminal
    from threeloops.room.ideas import IDEAS

    history = terminal.opened(_path(given))
    if given.verb == "export":
        print(f"{_exported(given, history)} written to {given.what}.")
    elif given.verb == "import":
        print(f"{units.counted(history.add(moving.read(Path(given.what))), 'new attempt')} taken in from {given.what}.")
    else:
        from threeloops import checks

        checks.one_of([*IDEAS, "all"], what=given.what)
        if not given.yes and not _confirmed(
            f"Forget {'every attempt' if given.what == 'all' else 'the attempts at ' + given.what}? This cannot be"
            " undone."
        ):
            print("Nothing was forgotten.")
            return
        gone = history.forget(None if given.what == "all" else given.what)
        print(f"{units.counted(gone, 'attempt')} forgotten.")


def _exported(given: argparse.Namespace, history: "History") -> str:
    """Write what was asked for; how much, in words."""
    from threeloops import units, wall_clock
    from threeloops.room import cards, moving

    path = Path(given.what)
    if path.suffix == ".apkg":
        return units.counted(cards.deck(history, path, everything=given.all), "note")
    if given.all:
        raise ValueError(f"--all belongs to a deck, whose file ends in .apkg, not to {path.name}")
    if given.cards:
        return units.counted(cards.table(history, path, now=wall_clock.now()), "card")
    return units.counted(moving.export(history, path), "attempt")


def _confirmed(question: str) -> bool:
    print(f"{question} Type yes to go on.")
    try:
        return input("> ").strip().lower() == "yes"
    except EOFError:
        return False
