"""A Canvas of one course and one assignment, as its API's documentation describes it: a token in a header, lists in
pages with the header Link, marks in bulk as a job that ends after it has been asked for twice.
"""

import json
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl, urlsplit

TOKEN, COURSE, ASSIGNMENT, PER_PAGE = "7~secret", "12", "4711", 2
PATH = f"/api/v1/courses/{COURSE}/assignments/{ASSIGNMENT}"


@dataclass
class School:
    """What is in it, and how it misbehaves."""

    submissions: dict[str, dict[str, Any]]
    about: dict[str, Any]
    deaf_to: set[str] = field(default_factory=set)  # users whose marks it drops
    fate: str = "completed"
    nameless: bool = False  # its jobs have no number
    broken: dict[str, tuple[int, str]] = field(default_factory=dict)  # path -> status and where it points instead
    throttled: int = 0  # how many requests more it has no time for
    off: float = 0.0  # points that its own late policy takes
    asked: list[tuple[str, str]] = field(default_factory=list)
    jobs: dict[int, int] = field(default_factory=dict)
    url: str = ""

    def took(self, form: dict[str, str]) -> dict[str, Any]:
        for name, value in form.items():
            user, what = re.fullmatch(r"grade_data\[(\d+)\]\[(posted_grade|excuse)\]", name).groups()  # type: ignore[union-attr]
            one = self.submissions.get(user)
            if one is None or user in self.deaf_to or self.fate == "failed":
                continue
            if what == "excuse":
                one |= {"excused": value == "true"} | ({"score": None} if value == "true" else {})
            else:
                one |= {
                    "score": float(value) - self.off,
                    "points_deducted": self.off or None,
                    "workflow_state": "graded",
                }
        self.jobs[len(self.jobs) + 1] = 0
        return self.job(len(self.jobs))

    def job(self, number: int) -> dict[str, Any]:
        state = ("queued", "running", self.fate)[min(self.jobs[number], 2)]
        self.jobs[number] += 1
        return {
            "id": None if self.nameless else number,
            "workflow_state": state,
            "message": "it is Saturday" if state == "failed" else None,
        }


@contextmanager
def open_school(school: School) -> Iterator[School]:
    """Serve it while this holds."""

    class Answers(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.answer()

        def do_POST(self) -> None:
            self.answer()

        def answer(self) -> None:
            form = self.rfile.read(int(self.headers.get("Content-Length") or 0)).decode()
            where = urlsplit(self.path)
            school.asked.append((self.command, where.path))
            if self.headers["Authorization"] != f"Bearer {TOKEN}":
                return self.tell(401, {"errors": [{"message": "Invalid access token."}]})
            if school.throttled:
                school.throttled -= 1
                return self.tell(403, "403 Forbidden (Rate Limit Exceeded)")
            if where.path in school.broken:
                status, location = school.broken[where.path]
                return self.tell(status, "no JSON" if not location and status == 200 else {}, Location=location)
            query = dict(parse_qsl(where.query))
            if where.path == PATH and self.command == "GET":
                return self.tell(200, school.about)
            if where.path == f"{PATH}/submissions" and self.command == "GET":
                page, every = int(query.get("page", 1)), list(school.submissions.values())
                more = page * PER_PAGE < len(every)
                link = f'<{school.url}{where.path}?page={page}>; rel="current"'
                link += f', <{school.url}{where.path}?page={page + 1}>; rel="next"' * more
                return self.tell(200, every[(page - 1) * PER_PAGE : page * PER_PAGE], Link=link)
            if where.path == f"{PATH}/submissions/update_grades" and self.command == "POST":
                return self.tell(200, school.took(dict(parse_qsl(form))))
            job = re.fullmatch(r"/api/v1/progress/(\d+)", where.path)
            if job and int(job[1]) in school.jobs:
                return self.tell(200, school.job(int(job[1])))
            return self.tell(404, {"errors": [{"message": "The specified resource does not exist."}]})

        def tell(self, status: int, content: object, **headers: str) -> None:
            body = content.encode() if isinstance(content, str) else json.dumps(content).encode()
            self.send_response(status)
            for name, value in {**headers, "Content-Length": str(len(body))}.items():
                if value:
                    self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Answers) as server:
        school.url = f"http://127.0.0.1:{server.server_port}"
        thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        yield school
        server.shutdown()
        thread.join()
