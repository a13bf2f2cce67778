"""Marks through Canvas's API: `classroom canvas`. What it does stands in `threeloops.classroom.term.canvas`."""

import argparse
from pathlib import Path
from typing import Any


def add_canvas(verbs: Any) -> None:
    """Add the verb to the group of a term's."""
    verb = verbs.add_parser("canvas", help="marks through Canvas's API: what would change, and with --send the change")
    verb.add_argument("--term", default=".", metavar="FOLDER", help="where term.toml lies (default: this folder)")
    verb.add_argument("set", metavar="SET", help="a drill set, like kv_cache")
    verb.add_argument("--url", metavar="URL", help="of your Canvas, like https://school.instructure.com; kept")
    verb.add_argument("--course-id", metavar="N", help="the number in the address of the course's page; kept")
    verb.add_argument(
        "--assignment", metavar="N", help="the assignment's number (default: the one in the set's title, as in (4711))"
    )
    verb.add_argument("--send", action="store_true", help="send what would change; without it nothing is sent")
    verb.set_defaults(run=_canvas)


def _canvas(given: argparse.Namespace) -> int:
    from threeloops import contents, units
    from threeloops.classroom.term import canvas, canvas_api, settings
    from threeloops.classroom.term.marks import marks

    term = settings.read(Path(given.term))
    url, course = given.url or term.canvas.get("url", ""), given.course_id or term.canvas.get("course", "")
    if not url or not course:
        raise ValueError("--url and --course-id say which Canvas and which course, once; the term keeps them")
    assignment = canvas.assignment_of(term, given.set, given.assignment)
    reached = canvas_api.Canvas(str(url), canvas_api.token())
    lines = marks(term, [given.set], root=contents.book_root())
    found = canvas.plan(reached, str(course), assignment, given.set, lines)
    settings.record(term, "canvas", {"url": settings.quoted(str(url)), "course": settings.quoted(str(course))})
    changes = units.counted(len(found.changes), "mark")
    print(f"{found.title!r} in Canvas: {changes} to send, {found.same} there already.")
    for one in found.changes:
        print(f"{one.student}: {one.before} → {one.after}")
    for sentence in found.not_sent:
        print(f"Not sent: {sentence}")
    waiting = sum(line.marks[given.set].waiting for line in lines)
    if waiting:
        print(
            f"{units.counted(waiting, 'answer')} still without points from a person: these marks are without them, too,"
            " and will be other ones."
        )
    if found.together:
        print("Canvas gives the members of a group one mark here: the last that is sent counts for all of them.")
    if not given.send or not found.changes:
        print("Nothing was sent" + ("; --send sends it." if found.changes else ": there is nothing to send."))
        return 0
    refused = canvas.send(reached, str(course), assignment, found.changes)
    for sentence in refused:
        print(f"Not taken: {sentence}")
    print(f"{units.counted(len(found.changes) - len(refused), 'mark')} sent, and seen in Canvas.")
    return 1 if refused else 0
