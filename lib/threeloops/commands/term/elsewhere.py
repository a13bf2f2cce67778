"""Grading where students hand in: `classroom gradescope` and `classroom github`. What they do stands in
`threeloops.classroom.elsewhere`.
"""

import argparse
from pathlib import Path
from typing import Any


def add_elsewhere(verbs: Any) -> None:
    """Add the verbs to the group of a term's."""
    gradescope = verbs.add_parser("gradescope", help="an autograder zip for Gradescope, with this term's judge and key")
    _of_a_set(gradescope, "where to write the zip (default: elsewhere/SET-gradescope.zip of the term)", "FILE")
    gradescope.add_argument(
        "--no-sandbox",
        action="store_true",
        help="where bubblewrap cannot be had there, run students' code as nobody all the same",
    )
    gradescope.set_defaults(run=_gradescope)
    github = verbs.add_parser("github", help="a template repository whose workflow grades every push of a student")
    _of_a_set(github, "a new folder for it (default: elsewhere/SET-github of the term)", "FOLDER")
    github.set_defaults(run=_github)


def _of_a_set(verb: Any, into: str, kind: str) -> None:
    verb.add_argument("set", metavar="SET", help="a drill set that was released, like kv_cache")
    verb.add_argument("--term", default=".", metavar="FOLDER", help="where term.toml lies (default: this folder)")
    verb.add_argument("--into", metavar=kind, help=into)


def _gradescope(given: argparse.Namespace) -> None:
    from threeloops import contents, units
    from threeloops.classroom.elsewhere import gradescope
    from threeloops.classroom.term import people, settings

    term = settings.read(Path(given.term))
    into = Path(given.into) if given.into else term.folder / "elsewhere" / f"{given.set}-gradescope.zip"
    path = gradescope.pack(term, given.set, into, root=contents.book_root(), without_sandbox=given.no_sandbox)
    students = units.counted(len(people.kept(term.roster)), "student")
    size = units.fmt_bytes(path.stat().st_size, base=10)
    print(
        f"{path}: an autograder of {given.set} for {students}, {size}. It holds the grading key and the class list:"
        " upload it, and show it to nobody."
    )
    if given.no_sandbox:
        print("Where there is no sandbox, students' code runs there as nobody, and with whatever network there is.")


def _github(given: argparse.Namespace) -> None:
    from threeloops import contents
    from threeloops.classroom.elsewhere import actions
    from threeloops.classroom.term import settings

    term = settings.read(Path(given.term))
    into = Path(given.into) if given.into else term.folder / "elsewhere" / f"{given.set}-github"
    written = actions.pack(term, given.set, into, root=contents.book_root())
    print(f"{into}: {', '.join(path.relative_to(into).as_posix() for path in written)}.")
    print(
        "Push it as a template repository. It holds no key, and students may change it: the mark is what `classroom"
        f" collect {given.set} FOLDER` and `classroom grade {given.set}` say of their repositories."
    )
