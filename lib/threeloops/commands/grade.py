"""The command that grades: a reader's own notebook, or a class's hand-ins."""

import argparse
from pathlib import Path
from typing import Any

from threeloops.commands.typed import workers


def add_grade(commands: Any) -> None:
    """Add the command."""
    grade = commands.add_parser("grade", help="grade your own notebook, or a class's, through nbgrader")
    grade.add_argument("path", help="my/drills/kv_cache, or a folder with one folder per student, or a zip of uploads")
    grade.add_argument("--course", metavar="CODE", help="the course code that the students were given (default home)")
    grade.add_argument(
        "--set", metavar="NAME", help="which drill set, where several were handed in (default: the one most did)"
    )
    grade.add_argument(
        "--roster",
        metavar="FILE",
        help="class list (CSV, ids in the first column): whoever handed in nothing is listed as missing",
    )
    grade.add_argument(
        "--into",
        metavar="FOLDER",
        help="where to keep gradebook, feedback and CSV files (default build/ for a class, my/graded/ for yourself)",
    )
    grade.add_argument("--no-browser", action="store_true", help="do not open the feedback page")
    grade.add_argument("--again", action="store_true", help="of a class, also what was graded before and is unchanged")
    grade.add_argument(
        "--workers",
        type=workers,
        metavar="N|ADDRESS",
        help="of a class, how many at once (default: one per core), or on the machines of a Dask scheduler, as"
        " tcp://HOST:8786",
    )
    grade.add_argument(
        "--gradebook",
        metavar="URL",
        help="of a class, a PostgreSQL database in place of a file: postgresql://HOST/NAME",
    )
    grade.add_argument(
        "--functions", default="all", metavar="HOW", help="points of a function: all (default) or share, of right draws"
    )
    grade.add_argument(
        "--no-sandbox", action="store_true", help="on Linux without bubblewrap: run students' code all the same"
    )
    grade.set_defaults(run=_grade)


def _grade(given: argparse.Namespace) -> int:
    from threeloops import contents
    from threeloops.classroom import grade

    return grade.grade(
        Path(given.path),
        root=contents.book_root(),
        code=given.course,
        roster=Path(given.roster) if given.roster else None,
        work=Path(given.into).resolve() if given.into else None,
        browser=not given.no_browser,
        trust_students=given.no_sandbox,
        drill_set=given.set,
        again=given.again,
        workers=given.workers,
        server=given.gradebook,
        functions=given.functions,
    )
