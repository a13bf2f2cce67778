"""A sitting that is held on a page: the room's own, in the reader's browser. The browser keeps what the room would keep
in its file, attempts and the sitting that was left, and hands it in when the page is opened.

Words go in and JSON comes out, as in answering.

>>> came = json.loads(entered("[]", "null", "[]"))
>>> came["screen"]["stage"], came["sitting"]
('start', None)
>>> came = json.loads(
...     acted(json.dumps({"do": "begin", "mode": "warm-up", "topic": "kv-latent", "seed": "w", "turn": 0}))
... )
>>> came["screen"]["heading"], came["sitting"]["mode"]
('Question 1 of 1: One vector for all heads', 'warm-up')
"""

import contextlib
import json
from collections.abc import Mapping
from dataclasses import asdict, replace
from typing import Any

from threeloops import wall_clock
from threeloops.contents import CHAPTERS
from threeloops.drills.engine import answers
from threeloops.room.attempts import Attempt, SessionRecord, plan_of, plan_text
from threeloops.room.history import NOWHERE, History
from threeloops.room.ideas import IDEAS
from threeloops.room.notebook import view
from threeloops.room.notebook.acting import Acting
from threeloops.room.question import Question


class Guest(Acting):
    """A reader in the room, on a page."""

    TASKS, NOWHERE = False, ""  # functions have a page of their own; the browser keeps what is to be kept

    def __init__(self, history: History, taught: list[list[str]], stood: tuple[str, int, float] | None = None) -> None:
        super().__init__(history)
        self.stood = stood  # the question that was put last: its sitting, its place, when
        self.taught = taught  # [title of a part, its chapter, its name on the pages, its page]
        self.known = {(one.session, one.position) for one in history.attempts()}
        self.shown, self.sent = self.first, list[dict[str, object]]()

    def put_up(self, screen: dict[str, object]) -> None:
        self.shown = screen

    def send(self, message: dict[str, object]) -> None:
        self.sent.append(message)

    def _show(self, screen: view.Screen) -> None:
        if screen.stage == "answered" and self.session is not None and self.session.question is not None:
            name, page = self.place(self.session.question)
            screen = replace(screen, taught=name, link=page)
        super()._show(screen)

    def place(self, question: Question) -> tuple[str, str]:
        """The part that teaches a question: its name, and its page."""
        chapter, _ = CHAPTERS[question.loop]
        titled = [one for one in self.taught if one[0] == question.section]
        found = next((one for one in titled if one[1] == chapter), titled[0] if titled else ["", "", "", ""])
        return found[2], found[3]

    @property
    def told(self) -> str:
        """What the page has to show and to keep: the screen, messages beside it, new attempts, and the sitting that can
        be gone on with.
        """
        fresh = [one for one in self.history.attempts() if (one.session, one.position) not in self.known]
        self.known |= {(one.session, one.position) for one in fresh}
        sent, self.sent = self.sent, []
        came = {"screen": self.shown, "messages": sent, "attempts": list(map(asdict, fresh)), "sitting": self._left()}
        return json.dumps(came)

    def _left(self) -> dict[str, object] | None:
        name = self.history.unfinished()
        if name is None:
            return None
        record = self.history.session(name)
        if self.session is not None and self.session.name == name:
            self.stood = (name, self.session.position, self.history.shown(name, self.session.position))
        # of a sitting that is stopped, or not gone on with yet, the clock goes on
        stood = self.stood if self.stood and self.stood[0] == name else (name, None, None)
        return {
            "id": name,
            "mode": record.mode,
            "options": record.options,
            "plan": plan_text(record.plan),
            "started_s": record.started_s,
            "position": stood[1],
            "shown_s": stood[2],
            "words": view.unfinished(self.history),
        }


_guests: list[Guest] = []  # one, once somebody has come


def entered(attempts: str, sitting: str, taught: str) -> str:
    """Open the room with the attempts of this browser, and the sitting that was left in it, if one was."""
    history = History(NOWHERE)
    history.add([Attempt(**one) for one in json.loads(attempts)])
    stood = None
    with contextlib.suppress(ValueError, TypeError, KeyError):  # one of another edition is begun anew
        left = json.loads(sitting)
        if left:
            stood = _take_up(history, left)
    _guests[:] = [Guest(history, json.loads(taught), stood)]
    return _guests[0].told


def _take_up(history: History, left: Mapping[str, Any]) -> tuple[str, int, float] | None:
    record = SessionRecord(
        id=str(left["id"]),
        mode=str(left["mode"]),
        options=dict(left["options"]),
        plan=plan_of(left["plan"]),
        started_s=float(left["started_s"]),
        ended_s=None,
    )
    if any(ask.kind not in IDEAS[ask.idea].ask for ask in record.plan):
        raise ValueError("this edition asks a question of the sitting no more")
    if record.started_s > wall_clock.now_s():
        raise ValueError("a sitting that was begun in the future is damaged")
    history.keep(record)
    if left["position"] is None:
        return None
    place = int(left["position"])
    return record.id, place, history.shown(record.id, place, float(left["shown_s"]))


def acted(wish: str) -> str:
    """Do what the reader asks (room.notebook.acting says how it is said)."""
    answers.get_ready()  # before a clock runs
    _guests[0].act(json.loads(wish))
    return _guests[0].told
