"""The server's half of the book's JupyterLab: it says, whenever the start page is looked at, how things stand,
answers the explorer that lives there, which has no kernel, searches the book, reads what is predicted and grades.
"""

import functools
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from jupyter_server.base.handlers import JupyterHandler
from jupyter_server.utils import url_path_join
from tornado import web
from tornado.ioloop import IOLoop

from threeloops import desk, widgets
from threeloops.desk import carded, copies, start_page
from threeloops.desk.grading import graded
from threeloops.drills.engine.student_draws import COURSE_VARIABLE, STUDENT_VARIABLE
from threeloops.room.after import at_desk
from threeloops.room.history import History
from threeloops.site import exploring
from threeloops.site.finding import index
from threeloops.site.parts import parts

PANEL = Path(widgets.__file__).parent
STATIC = Path(exploring.__file__).parent / "static"


class Answered(JupyterHandler):
    """Answers in JSON; what takes time is done beside the server's loop."""

    async def answer(self, work: Callable[[], str]) -> None:
        self.set_header("Content-Type", "application/json")
        self.finish(await IOLoop.current().run_in_executor(None, work))


class StartPage(Answered):
    """GET threeloops/start: the start page's content."""

    @web.authenticated
    async def get(self) -> None:
        root = Path(self.settings["server_root_dir"]).expanduser()
        await self.answer(lambda: start_page.as_json(root))


class Explored(Answered):
    """GET threeloops/explorer: the start page's explorer from the beginning, with what draws it; POST: what it shows
    once a control has been turned, as panel.js tells it.
    """

    @web.authenticated
    async def get(self) -> None:
        await self.answer(begun)

    @web.authenticated
    async def post(self) -> None:
        told = self.request.body.decode(errors="replace")
        try:
            await self.answer(lambda: exploring.turned(start_page.EXPLORER, told))
        except (ValueError, KeyError, TypeError) as wrong:
            raise web.HTTPError(400, f"a turn is {{serial, turns}} in JSON, not {told[:80]!r}") from wrong


class Read(Answered):
    """POST threeloops/read: whether a prediction is a number in the unit that is asked, as carded.refusal tells it."""

    @web.authenticated
    async def post(self) -> None:
        told = self.request.body.decode(errors="replace")
        try:
            await self.answer(lambda: carded.refusal(told))
        except (ValueError, KeyError, TypeError) as wrong:
            raise web.HTTPError(400, f"a prediction is {{written, unit}} in JSON, not {told[:80]!r}") from wrong


class Found(Answered):
    """GET threeloops/finding: the index of the whole book, the script that searches it, and the reader's notebook of
    every page that it names.
    """

    @web.authenticated
    async def get(self) -> None:
        root = Path(self.settings["server_root_dir"]).expanduser()
        await self.answer(lambda: searched(root))


class Graded(Answered):
    """POST threeloops/grade: a drill set is graded as `book.py grade` does, {set} in JSON; what that said, and the
    feedback page, from the book's root.
    """

    @web.authenticated
    async def post(self) -> None:
        root = Path(self.settings["server_root_dir"]).expanduser()
        told = self.request.body.decode(errors="replace")
        try:
            name = json.loads(told)["set"]
            if name not in {path.stem for path in copies.drill_notebooks(root)}:
                raise ValueError(name)
        except (ValueError, KeyError, TypeError) as wrong:
            raise web.HTTPError(400, f"a drill set of this book is {{set}} in JSON, not {told[:80]!r}") from wrong
        await self.answer(lambda: graded(name, root))


class Sure(Answered):
    """POST threeloops/sure: how sure an answer on a card is, {key, written, sure, student, course} in JSON, before it
    is checked; what is said of it, or why it is no confidence.
    """

    @web.authenticated
    async def post(self) -> None:
        told = self.request.body.decode(errors="replace")
        try:
            await self.answer(lambda: heard(told))
        except (KeyError, TypeError, AttributeError) as wrong:
            raise web.HTTPError(400, f"an answer is {{key, written, sure}} in JSON, not {told[:80]!r}") from wrong


def heard(told: str) -> str:
    """What is said of a confidence, and whether it was one, as JSON. On a class's hub the account says whose numbers
    these are.
    """
    try:
        given = {name: str(value) for name, value in json.loads(told).items()}
        whose = {"student": os.environ.get(STUDENT_VARIABLE), "course": os.environ.get(COURSE_VARIABLE)}
        given |= {name: value for name, value in whose.items() if value}
        history = History(desk.history_path())
        try:
            return json.dumps({"said": at_desk.heard(history, **given), "refused": ""})
        finally:
            history.close()
    except ValueError as error:
        return json.dumps({"said": "", "refused": f"{str(error)[:1].upper()}{str(error)[1:]}."})


@functools.lru_cache(maxsize=1)
def searched(root: Path) -> str:
    """What a search needs, as JSON."""
    pages = parts(root)
    first = {page.notebook: page.place for page in reversed(pages) if page.place}
    stands = {page.page: (page.place or first[page.notebook]).copy for page in pages}
    script = (STATIC / "finding.js").read_text(encoding="utf-8")
    return json.dumps({"script": script, "index": json.loads(index.index(pages, {})), "copies": stands})


def begun() -> str:
    """The explorer, its script and its style."""
    script, style = ((PANEL / name).read_text(encoding="utf-8") for name in ("panel.js", "panel.css"))
    return json.dumps({"script": script, "style": style, "state": json.loads(exploring.begun(start_page.EXPLORER))})


def _jupyter_server_extension_points() -> list[dict[str, str]]:
    return [{"module": __name__}]


def _load_jupyter_server_extension(server: Any) -> None:
    base = server.web_app.settings["base_url"]
    places = {"start": StartPage, "explorer": Explored, "read": Read, "sure": Sure, "finding": Found, "grade": Graded}
    server.web_app.add_handlers(
        ".*$", [(url_path_join(base, "threeloops", name), page) for name, page in places.items()]
    )
