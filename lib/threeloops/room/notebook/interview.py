"""Interview room: questions against a clock in a notebook. The sitting, the judging and the history are those of
`python3 book.py drill`; this only shows them.

In a notebook:

    from threeloops import desk
    from threeloops.room.notebook import interview
    interview.room(desk.history_path())
"""

import threading
from pathlib import Path
from typing import Any

import anywidget
import traitlets

from threeloops.drills.engine import answers
from threeloops.room.history import NOWHERE, History, HistoryError
from threeloops.room.notebook import progress_page, view
from threeloops.room.notebook.acting import OPENING, Acting, sentence


class Panel(anywidget.AnyWidget):
    """The room in the browser. It shows `screen`, and says what the reader does; the clock between two screens is its
    own.
    """

    _esm = Path(__file__).with_name("interview.js")
    _css = Path(__file__).with_name("interview.css")
    form = traitlets.Dict().tag(sync=True)
    screen = traitlets.Dict().tag(sync=True)


class Room(Acting):
    """The room as a widget."""

    def __init__(self, history: History, said: str = OPENING) -> None:
        super().__init__(history, said)
        self.panel = Panel(form=view.form(), screen=self.first)
        threading.Thread(target=answers.get_ready).start()  # while the reader chooses
        self.panel.on_msg(lambda panel, message, buffers: self.act(message))

    def put_up(self, screen: dict[str, object]) -> None:
        self.panel.screen = screen

    def send(self, message: dict[str, object]) -> None:
        self.panel.send(message)

    def _repr_mimebundle_(
        self, include: object = None, exclude: object = None
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """The widget for a page with a kernel; the words for one without."""
        shown = self.panel._repr_mimebundle_()
        assert shown is not None
        return {**shown[0], "text/plain": self.screen.text}, shown[1]


def _opened(path: Path | str) -> tuple[History, str]:
    """The history at a path; where it cannot be kept there, one that ends with the kernel, and why."""
    try:
        return History(path), ""
    except HistoryError as error:
        return History(NOWHERE), sentence(error)


def room(path: Path | str) -> Room:
    """The room, with the attempts kept at that path; as the last line of a cell, it shows itself."""
    history, trouble = _opened(path)
    return Room(history, f"{trouble} Begin all the same: nothing will be kept." if trouble else OPENING)


def progress(path: Path | str) -> progress_page.Page:
    """How it goes, from the attempts at that path; as the last line of a cell, it shows itself."""
    history, trouble = _opened(path)
    return progress_page.page(history, trouble)
