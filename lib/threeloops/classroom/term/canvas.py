"""Marks into Canvas's gradebook by its API, with a token from the environment: first what would change, then, when that
is asked for, the change, and a look at what Canvas has made of it.

The assignment and what is in it now are read (GET …/assignments/:id and …/submissions, page after page by the header
Link), marks go in bulk (POST …/submissions/update_grades, grade_data[USER][posted_grade] and [excuse]), and the job
that Canvas makes of them is asked after until it ends (GET /progress/:id: queued, running, completed, failed). "Canvas
LMS REST API Documentation", Instructure, https://canvas.instructure.com/doc/api/all_resources.html, and its page on
progress, https://developerdocs.instructure.com/services/canvas/file.all_resources/progress.

The token goes to the one host that was named, over TLS, and nowhere else: no redirect is followed.
"""

import json
import os
import re
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from http.client import HTTPException, HTTPMessage
from typing import IO, Any
from urllib.parse import urlencode, urlsplit

from threeloops import units, wall_clock
from threeloops.classroom.term.marks import EXCUSED, Line
from threeloops.classroom.term.settings import Term

TOKEN = "CANVAS_TOKEN"
HERE = ("127.0.0.1", "localhost", "::1")
AT_ONCE = 100  # marks of one request, and entries of one page
ANSWER_S, JOB_S, ASK_AGAIN_S = 60.0, 600.0, 1.0
MOST_PAGES, MOST_BYTES = 1_000, 50_000_000
NO_NUMBER = ("pass_fail", "not_graded")
WHY = {
    401: f"the token in {TOKEN} is not known there, or has ended; make a new one under Account, Settings",
    403: "the token's owner may not do that in this course, or has asked too often",
    404: "there is no such course or assignment, or the token's owner does not see it",
    429: "too much was asked in a short time; wait a minute",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One mark that Canvas does not have yet."""

    student: str
    user: str  # Canvas's number of the student
    before: str  # as a person reads it: points, `excused`, `blank`
    after: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What there is to send, and what is not sent."""

    title: str  # of the assignment
    changes: tuple[Change, ...]
    same: int  # marks that Canvas has already
    not_sent: tuple[str, ...]  # a sentence each
    together: bool  # Canvas gives a group's members one mark


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """A token is for the host that was named."""

    def redirect_request(
        self, req: urllib.request.Request, fp: IO[bytes], code: int, msg: str, headers: HTTPMessage, newurl: str
    ) -> None:
        return None


class Canvas:
    """One Canvas, asked with one token."""

    def __init__(self, url: str, token: str) -> None:
        parts = urlsplit(url if "://" in url else f"https://{url}")
        if parts.scheme != "https" and parts.hostname not in HERE:
            raise ValueError(f"url={url!r} must begin with https://: a token is not sent in the open")
        if not parts.hostname or parts.username or parts.query or parts.path.strip("/"):
            raise ValueError(f"url={url!r} must be the address of a Canvas alone, like https://school.instructure.com")
        if not re.fullmatch(r"[\x21-\x7e]+", token):
            raise ValueError(f"{TOKEN} must hold an access token, one word; make one under Account, Settings")
        self._base, self._token = f"{parts.scheme}://{parts.netloc}/api/v1/", token
        proxies = [urllib.request.ProxyHandler({})] if parts.hostname in HERE else []
        self._opener = urllib.request.build_opener(_NoRedirect, *proxies)

    def get(self, path: str) -> Any:
        """One object."""
        return self._object(self._base + path)

    def pages(self, path: str) -> list[dict[str, Any]]:
        """A list, as long as there is a next page."""
        found: list[dict[str, Any]] = []
        url = f"{self._base}{path}?per_page={AT_ONCE}"
        for _ in range(MOST_PAGES):
            some, link = self._asked(url)
            if not isinstance(some, list) or not all(isinstance(one, dict) for one in some):
                raise ValueError(f"{urlsplit(url).netloc} answers with no list where one was asked; is it a Canvas?")
            found += some
            following = re.search(r'<([^<>]+)>\s*;\s*rel="?next"?', link)
            if not following:
                return found
            url = following[1]
            if not url.startswith(self._base):
                raise ValueError(f"Canvas names a next page on another host, {urlsplit(url).netloc}; nothing was sent")
        raise ValueError(f"Canvas names more than {MOST_PAGES:,} pages; nothing was sent")

    def post(self, path: str, fields: Mapping[str, str]) -> Any:
        """Send a form."""
        return self._object(self._base + path, urlencode(fields).encode())

    def _object(self, url: str, body: bytes | None = None) -> Any:
        found, _ = self._asked(url, body)
        if not isinstance(found, dict):
            raise ValueError(f"{urlsplit(url).netloc} answers with a list where one thing was asked; is it a Canvas?")
        return found

    def _asked(self, url: str, body: bytes | None = None) -> tuple[Any, str]:
        asked = urllib.request.Request(url, data=body, headers={"Authorization": f"Bearer {self._token}"})
        host = urlsplit(url).netloc
        try:
            with self._opener.open(asked, timeout=ANSWER_S) as answer:
                return json.loads(answer.read(MOST_BYTES)), answer.headers.get("Link", "")
        except urllib.error.HTTPError as error:
            with error:
                why = "it points to another address" if 300 <= error.code < 400 else "it has a fault of its own"
            raise ValueError(f"{host} answers {error.code}: {WHY.get(error.code, why)}") from None
        except (OSError, HTTPException) as error:
            raise ValueError(f"{host} does not answer: {getattr(error, 'reason', error)}") from None
        except ValueError:
            raise ValueError(f"{host} answers with something else than JSON; is it a Canvas?") from None


def token() -> str:
    """The access token of the environment.

    Raises:   ValueError when there is none
    """
    found = os.environ.get(TOKEN, "")
    if not found:
        raise ValueError(
            f"{TOKEN} is not set; make an access token in Canvas (Account, Settings) and give it to this command alone:"
            f" `{TOKEN}=… threeloops classroom canvas SET`"
        )
    return found


def assignment_of(term: Term, name: str, given: str | None) -> str:
    """The number of an assignment: the one that is given, or the one in its title, as Canvas's gradebook has it.

    Raises:   ValueError when neither says
    """
    title = term.handed_out(name).title
    named = re.search(r"\((\d+)\)\s*$", title)
    found = given or (named[1] if named else "")
    if not found.isdecimal():
        raise ValueError(
            f"assignment={given!r} must be a whole number, as in the address of the assignment's page; or give the set"
            f' its title with the number in it: `threeloops classroom release {name} --title "KV cache (4711)" …`'
        )
    return found


def _path(course: str, assignment: str) -> str:
    return f"courses/{course}/assignments/{assignment}"


def plan(canvas: Canvas, course: str, assignment: str, name: str, lines: Sequence[Line]) -> Plan:
    """What Canvas has, beside what the term has.

    Raises:   ValueError when Canvas does not answer, or the assignment has other points than the set
    """
    if not course.isdecimal():
        raise ValueError(f"course={course!r} must be a whole number, as in the address of the course's page")
    about = canvas.get(_path(course, assignment))
    title, possible = str(about.get("name", assignment)), about.get("points_possible")
    maximum = lines[0].marks[name].maximum if lines else possible
    if about.get("grading_type") in NO_NUMBER:
        raise ValueError(f"the assignment {title!r} is not graded by points in Canvas, but as {about['grading_type']}")
    if possible != maximum:
        raise ValueError(
            f"the assignment {title!r} has {possible or 0:g} points in Canvas, and {name} has {maximum:g}; set it to"
            f" {maximum:g} there, so that a mark means the same"
        )
    there = _there(canvas, course, assignment)
    changes, not_sent, same = list[Change](), list[str](), 0
    for line in lines:
        student, user, mark = line.person.student, line.person.canvas_id, line.marks[name]
        after = EXCUSED if mark.status == EXCUSED else "blank" if mark.points is None else f"{mark.points:.10g}"
        if after == "blank":
            has = there.get(user, "blank")
            stays = "" if has == "blank" else f"; Canvas has {has}, which stays"
            not_sent.append(f"{student}: no mark ({mark.status}){stays}")
        elif not user:
            not_sent.append(
                f"{student}: {after}, but the roster has no Canvas ID; make it from Canvas's gradebook export"
            )
        elif user not in there:
            not_sent.append(f"{student}: {after}, but Canvas has nobody with the ID {user} in this assignment")
        elif there[user] == after:
            same += 1
        else:
            changes.append(Change(student=student, user=user, before=there[user], after=after))
    together = bool(about.get("group_category_id")) and not about.get("grade_group_students_individually")
    return Plan(title=title, changes=tuple(changes), same=same, not_sent=tuple(not_sent), together=together)


def _there(canvas: Canvas, course: str, assignment: str) -> dict[str, str]:
    """What Canvas has, by the number of the student."""
    found = {}
    for one in canvas.pages(f"{_path(course, assignment)}/submissions"):
        score = one.get("score")
        has = EXCUSED if one.get("excused") else "blank" if score is None else f"{score:.10g}"
        found[str(one.get("user_id"))] = has
    return found


def send(canvas: Canvas, course: str, assignment: str, changes: Sequence[Change]) -> list[str]:
    """Send marks, wait until Canvas has dealt with them, and look: a sentence for each that it has not taken.

    Raises:   ValueError when Canvas does not answer; what was sent before stays sent, and is the same the next time
    """
    fate = list[str]()
    for start in range(0, len(changes), AT_ONCE):
        try:
            job = canvas.post(
                f"{_path(course, assignment)}/submissions/update_grades", _form(changes[start:][:AT_ONCE])
            )
            fate.append(_ended(canvas, job))
        except ValueError as error:
            left = [one.student for one in changes[start:]]
            raise ValueError(
                f"{error}; not known to have arrived are the marks of {len(left)}, {', '.join(left)}; give the same"
                " command again, which sends what Canvas does not have"
            ) from None
    now = _there(canvas, course, assignment)
    said = f" ({'; '.join(sorted(set(filter(None, fate))))})" if any(fate) else ""
    return [
        f"{one.student}: Canvas has {now.get(one.user, 'nobody of that ID')}, and {one.after} was sent{said}"
        for one in changes
        if now.get(one.user) != one.after
    ]


def _form(changes: Sequence[Change]) -> dict[str, str]:
    """
    >>> _form([Change(student="ada", user="7", before="blank", after="12.5")])
    {'grade_data[7][posted_grade]': '12.5'}
    >>> _form([Change(student="ada", user="7", before="3", after="excused")])
    {'grade_data[7][excuse]': 'true'}
    """
    return dict(_fields(changes))


def _fields(changes: Sequence[Change]) -> Iterator[tuple[str, str]]:
    for one in changes:
        if one.after == EXCUSED:
            yield f"grade_data[{one.user}][excuse]", "true"
            continue
        if one.before == EXCUSED:
            yield f"grade_data[{one.user}][excuse]", "false"
        yield f"grade_data[{one.user}][posted_grade]", one.after


def _ended(canvas: Canvas, job: Mapping[str, Any]) -> str:
    """Wait for a job; nothing when it is completed, otherwise what became of it."""
    ends = time.monotonic() + JOB_S
    while job.get("workflow_state") in ("queued", "running"):
        if time.monotonic() > ends:
            minutes = units.counted(round(JOB_S / units.minute), "minute")
            return f"its job was still {job['workflow_state']} after {minutes}"
        wall_clock.pause(ASK_AGAIN_S)
        number = str(job.get("id"))
        if not number.isdecimal():
            return "its job has no number to ask after"
        job = canvas.get(f"progress/{number}")
    if job.get("workflow_state") == "completed":
        return ""
    return " ".join(f"its job {job.get('workflow_state', 'has no state')} {job.get('message') or ''}".split())
