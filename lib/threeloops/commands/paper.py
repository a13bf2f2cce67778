"""The commands that print: quiz and sheet. What they do stands in `threeloops.paper` and `threeloops.sheets`."""

import argparse
from pathlib import Path
from typing import Any

from threeloops.commands.typed import whole


def add_paper(commands: Any) -> None:
    """Add the two commands."""
    quiz = commands.add_parser(
        "quiz", help="versions of a quiz to print, with a key, or a QTI package for a learning platform"
    )
    quiz.add_argument(
        "topics",
        nargs="*",
        help="topics (kv_cache, …), loops (inner, training, product, driving) or single ideas; none means everything",
    )
    quiz.add_argument(
        "--versions",
        type=whole,
        default=30,
        metavar="N",
        help="how many versions, or variants of each question (default 30)",
    )
    quiz.add_argument("--questions", type=whole, default=8, metavar="K", help="how many questions (default 8)")
    quiz.add_argument("--seed", metavar="WORD", help="the same quiz again; default a new one, which is printed")
    quiz.add_argument("--into", required=True, metavar="FOLDER")
    quiz.add_argument("--format", default="text", help="text, html, docx, latex or qti (default text)")
    quiz.add_argument("--space", metavar="LENGTH", help="to write in, below each question: 5 cm (html, docx, latex)")
    quiz.add_argument("--kind", default="number", help="number, choice or diagnosis (default number)")
    quiz.add_argument("--title", default="Three Loops quiz")
    quiz.set_defaults(run=_quiz)
    sheet = commands.add_parser(
        "sheet", help="what to know by heart, on a page: numbers and formulas of a loop, and the interview sheet"
    )
    sheet.add_argument(
        "name", nargs="?", help="inner, training, product, driving, interview, coding or references; none lists them"
    )
    sheet.add_argument("--html", metavar="FILE", help="write it to print, one page each")
    sheet.add_argument("--answers", action="store_true", help="coding: the solutions and what they are marked by")
    sheet.set_defaults(run=_sheet)


def _quiz(given: argparse.Namespace) -> None:
    import secrets

    from threeloops import units
    from threeloops.paper import delivery
    from threeloops.paper.quiz import Quiz

    quiz = Quiz(
        title=given.title,
        topics=tuple(given.topics),
        questions=given.questions,
        versions=given.versions,
        seed=given.seed or secrets.token_hex(4),
        kind=given.kind,
    )
    written = delivery.deliver(quiz, given.format, Path(given.into), space=given.space)
    sets = units.counted(quiz.versions, "version")
    print(
        f"{units.counted(quiz.questions, 'question')}, {sets}, seed {quiz.seed} (keep it: it makes the same quiz and"
        " its key again)."
    )
    print(
        f"{units.counted(len(written), 'file')} in {given.into}: {written[0].name}"
        + (f" … {written[-1].name}" if len(written) > 1 else "")
    )


def _sheet(given: argparse.Namespace) -> None:
    from threeloops.sheets import sheet

    if given.name is None:
        print(sheet.names())
        return
    if given.html:
        Path(given.html).write_text(sheet.as_html(given.name, answers=given.answers), encoding="utf-8")
        print(f"{given.html} is ready to print.")
        return
    print(sheet.as_text(given.name, answers=given.answers))
