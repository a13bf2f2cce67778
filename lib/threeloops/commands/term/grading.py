"""What is collected of a set, graded: `classroom grade`. What it does stands in `threeloops.classroom.grade`."""

import argparse
from pathlib import Path
from typing import Any

from threeloops.commands.typed import workers


def add_grading(verbs: Any) -> None:
    """Add the verb to the group of a term's."""
    grade = verbs.add_parser("grade", help="grade what is collected")
    grade.add_argument("--term", default=".", metavar="FOLDER", help="where term.toml lies (default: this folder)")
    grade.add_argument("set", metavar="SET", help="a drill set, like kv_cache")
    grade.add_argument("--again", action="store_true", help="also what was graded before and is unchanged")
    grade.add_argument(
        "--workers",
        type=workers,
        metavar="N|ADDRESS",
        help="how many at once (default: one per core), or the machines of a Dask scheduler, as tcp://HOST:8786",
    )
    grade.add_argument(
        "--functions", metavar="HOW", help="points of a function: all or share, of right draws; kept with the term"
    )
    grade.add_argument("--no-sandbox", action="store_true", help="run students' code without bubblewrap all the same")
    grade.set_defaults(run=_grade)


def _grade(given: argparse.Namespace) -> int:
    from threeloops import checks, contents
    from threeloops.classroom import grade
    from threeloops.classroom.questions import HOW_FUNCTIONS
    from threeloops.classroom.term import collecting, people, settings

    term = settings.read(Path(given.term))
    people.kept(term.roster)
    if not term.collected(given.set).is_dir():
        raise ValueError(f"nothing of {given.set} is collected; `threeloops classroom collect {given.set} ZIP` first")
    if given.functions:
        checks.one_of(HOW_FUNCTIONS, functions=given.functions)
        term.handed_out(given.set)
        term = settings.record(term, f"sets.{given.set}", {"functions": settings.quoted(given.functions)})
    functions = term.sets[given.set].functions if given.set in term.sets else "all"
    if functions == "share":
        print("A function earns the share of its points that its right draws are of all.")
    return grade.grade(
        term.collected(given.set),
        root=contents.book_root(),
        code=term.course,
        roster=term.roster,
        work=term.graded,
        browser=False,
        trust_students=given.no_sandbox,
        drill_set=given.set,
        again=given.again,
        workers=given.workers,
        server=term.gradebook,
        others=collecting.not_taken(term, given.set),
        functions=functions,
        graded_as=collecting.graded_as(term, given.set),
    )
