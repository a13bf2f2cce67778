"""Points for written explanations: `classroom explanations`. What it does stands in
`threeloops.classroom.term.explanations`.
"""

import argparse
from pathlib import Path
from typing import Any


def add_explanations(verbs: Any) -> None:
    """Add the verb to the group of a term's."""
    verb = verbs.add_parser("explanations", help="what students wrote, beside the rubric, and a list for its points")
    verb.add_argument("--term", default=".", metavar="FOLDER", help="where term.toml lies (default: this folder)")
    verb.add_argument("set", metavar="SET", help="a drill set, like kv_cache")
    verb.add_argument("--points", type=float, metavar="P", help="what each explanation is worth; kept with the term")
    verb.set_defaults(run=_explanations)


def _explanations(given: argparse.Namespace) -> None:
    from threeloops import checks, contents, units
    from threeloops.classroom.term import explanations, settings

    term = settings.read(Path(given.term))
    if given.points is not None:
        checks.positive(points=given.points)
    done = explanations.look(term, given.set, root=contents.book_root(), worth=given.points)
    if given.points is not None:
        settings.record(term, f"sets.{given.set}", {"explanation": f"{given.points!r}"})
    print(
        f"{given.set}: {units.counted(done.written, 'explanation')}, {done.with_points} with points,"
        f" {done.written - done.with_points} without; {done.taken} of them new in the list."
    )
    if done.changed:
        print(
            f"Another text than the one that has points: {', '.join(done.changed)}; take away the question mark in the"
            " list, or write other points."
        )
    print(f"To read: {done.page}. To fill in: {done.list}; then give the same command again.")
