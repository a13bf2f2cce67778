"""What stays in a work folder between two runs: who writes there now, which hand-ins are graded already, and what an
earlier one has left. The gradebook and the judged notebooks are nbgrader's own; a mark beside them says of which
hand-in they are, and it is written last.
"""

import contextlib
import errno
import hashlib
import html
import importlib.metadata
import json
import re
import signal
import stat
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path

from threeloops.classroom.course import Course, grading_key, write_whole
from threeloops.classroom.report import Result, result

FULL = (errno.ENOSPC, getattr(errno, "EDQUOT", errno.ENOSPC))
ROOM_BYTES = 1_000_000  # less than this is no room to grade in
LOCK_S = 1  # for the workers of a run that was killed to be gone
EARLIER = "three-loops-earlier"  # class of the line that a feedback page of an earlier hand-in gets


@contextlib.contextmanager
def alone_in(work: Path) -> Iterator[None]:
    """Keep other runs out of a work folder, tidy up when this one is told to end, and say in a sentence that a disk
    is full.

    Raises:   ValueError when another run grades there now, or when there is no room left
    """
    from filelock import FileLock, Timeout

    try:
        work.mkdir(parents=True, exist_ok=True, mode=0o700)
        with FileLock(work / "grading.lock", timeout=LOCK_S), ended_in_order():
            yield
    except Timeout:
        raise ValueError(f"another run is grading into {work}; wait for it, or choose another --into") from None
    except OSError as error:
        if error.errno not in FULL:
            raise
        raise ValueError(
            f"no room is left in {work}; what is graded is kept: make room and give the same command again"
        ) from None


@contextlib.contextmanager
def ended_in_order() -> Iterator[None]:
    """Let a request to end be an exit that closes what is open, not one that leaves it lying."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def end(number: int, _: object) -> None:
        raise SystemExit(128 + number)

    before = signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def needs_room(error: BaseException, work: Path) -> None:
    """Tell a full disk, which every later hand-in would meet too, from a fault with one. The disk is asked, not the
    error's words: a student might have written those.

    Raises:   OSError when the disk is full
    """
    link: BaseException | None = error
    while link:
        if isinstance(link, OSError) and link.errno in FULL:
            raise OSError(link.errno, "no room") from None
        link = link.__cause__ or link.__context__
    with tempfile.TemporaryFile(dir=work) as file:
        file.write(bytes(ROOM_BYTES))


def fingerprint(course: Course, name: str, content: bytes) -> str:
    """Of all that a grade comes from: the hand-in, the release, the course, the key, the judge's settings, the
    edition.
    """
    parts = (
        content,
        course.release(name).read_bytes(),
        grading_key(course.work),
        repr((course.code, course.judge, course.config.Judge)).encode(),
        importlib.metadata.version("threeloops").encode(),
    )
    return hashlib.sha256(b"".join(hashlib.sha256(part).digest() for part in parts)).hexdigest()


def _mark(course: Course, name: str, student: str) -> Path:
    return course.folder("kept", student, name).with_suffix(".json")


def remember(course: Course, name: str, student: str, seen: str) -> None:
    """This hand-in is graded, and its page is written."""
    path = _mark(course, name, student)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, json.dumps({"fingerprint": seen}) + "\n")


def forget(course: Course, name: str, student: str) -> None:
    """Grading begins anew: until it has ended, nothing is known."""
    _mark(course, name, student).unlink(missing_ok=True)


def is_graded(course: Course, name: str, student: str, seen: str) -> bool:
    """Was exactly this graded to the end?"""
    try:
        return bool(json.loads(_mark(course, name, student).read_text(encoding="utf-8")) == {"fingerprint": seen})
    except (OSError, ValueError):
        return False


def earlier(course: Course, name: str, student: str) -> Result | None:
    """What the gradebook says of a student's last gradable hand-in, with the points that a teacher has given since."""
    if not (course.folder("autograded", student, name) / f"{name}.ipynb").exists():
        return None
    try:
        return result(course, name, student)
    except Exception:  # a run that was killed has left half of it
        return None


def others(course: Course, name: str, students: set[str]) -> list[str]:
    """Who has a judged notebook of this set here, and is not among these."""
    judged = (course.work / "autograded").glob(f"*/{name}/{name}.ipynb")
    return sorted({path.parent.parent.name for path in judged} - students)


def mark_page(course: Course, name: str, student: str, sentence: str) -> None:
    """Say on a feedback page that it is of an earlier hand-in."""
    path = course.folder("feedback", student, name) / f"{name}.html"
    if not path.exists():
        return
    page = path.read_text(encoding="utf-8", errors="replace")
    page = re.sub(rf'<p class="{EARLIER}">.*?</p>', "", page)
    line = f'<p class="{EARLIER}"><strong>{html.escape(sentence)}</strong></p>'
    mode = stat.S_IMODE(path.stat().st_mode)
    write_whole(path, re.sub(r"<body[^>]*>", lambda body: body[0] + line, page, count=1))
    path.chmod(mode)
