"""How a set's questions did: `classroom items`. What it does stands in `threeloops.classroom.term.items`."""

import argparse
from pathlib import Path
from typing import Any


def add_items(verbs: Any) -> None:
    """Add the verb to the group of a term's."""
    items = verbs.add_parser("items", help="how hard each question is, whom it tells apart, which mistake is made")
    items.add_argument("--term", default=".", metavar="FOLDER", help="where term.toml lies (default: this folder)")
    items.add_argument("set", metavar="SET", help="a drill set, like kv_cache, or with --results what to call it")
    items.add_argument(
        "--with", action="append", default=[], dest="others", metavar="TERM", help="another term's folder, too"
    )
    items.add_argument(
        "--results",
        metavar="CSV",
        help="in place of the grades, as of a paper exam: student, question, points, maximum, and version",
    )
    items.set_defaults(run=_items)


def _items(given: argparse.Namespace) -> None:
    from threeloops.classroom.term import items, settings

    drills: dict[str, str] = {}
    if given.results:
        if given.others:
            raise ValueError("--results is one list, whose column version keeps groups apart; leave --with out")
        people = items.read(Path(given.results), "", drills)
    else:
        people = []
        terms = [settings.read(Path(folder)) for folder in (given.term, *given.others)]
        names = [term.course for term in terms]
        for term in terms:
            group = term.course if names.count(term.course) == 1 else term.folder.name
            people += items.read(term.grades(given.set), group, drills)
    print(items.told(given.set, people, drills))
