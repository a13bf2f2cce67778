"""Interview room: questions against a clock in a notebook. The sitting, the judging and the history are those of
`python3 book.py drill`; this only shows them.

In a notebook:

    from threeloops import desk
    from threeloops.room.notebook import interview
    interview.room(desk.history_path())
"""

import contextlib
import threading
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import anywidget
import traitlets

from threeloops.drills.engine import answers
from threeloops.room import code_file, moving, preparation
from threeloops.room.history import NOWHERE, History, HistoryError
from threeloops.room.notebook import progress_page, view
from threeloops.room.plan import Wish
from threeloops.room.session import Session


class Panel(anywidget.AnyWidget):
    """The room in the browser. It shows `screen`, and says what the reader does; the clock between two screens is its
    own.
    """

    _esm = Path(__file__).with_name("interview.js")
    _css = Path(__file__).with_name("interview.css")
    form = traitlets.Dict().tag(sync=True)
    screen = traitlets.Dict().tag(sync=True)


class Room:
    """A reader in the room. `act` is what they do, `screen` what they see, `session` the sitting that is held."""

    def __init__(self, history: History, said: str = "Choose, then begin.") -> None:
        self.history = history
        self.session: Session | None = None
        self._file: code_file.CodeFile | None = None
        self._turn = 0
        self.screen = view.start(history, said)
        self.panel = Panel(form=view.form(), screen=self.screen.plain | {"turn": self._turn})
        threading.Thread(target=answers.get_ready).start()  # while the reader chooses
        self.panel.on_msg(lambda panel, message, buffers: self.act(message))

    def act(self, wish: Mapping[str, Any]) -> None:
        """Do what the reader asks: {"do": "answer", "written": "24.5 GB", "turn": of the screen that they saw}.

        What was meant for a screen that is no more (a second press of Enter, while a cell ran) is left undone.
        """
        does: dict[str, Callable[[Mapping[str, Any]], view.Screen]] = {
            "begin": self._begin,
            "continue": self._continue,
            "answer": self._answer,
            "hint": self._hint,
            "give up": self._give_up,
            "skip": self._skip,
            "next": self._next,
            "stop": self._stop,
        }
        do = wish.get("do")
        if do == "keep":
            self._keep(wish)
        elif do == "sync" or (do in does and wish.get("turn", self._turn) == self._turn):
            try:
                self._sync() if do == "sync" else self._show(does[str(do)](wish))
            except ValueError as error:  # in words for the reader
                self._show(replace(self.screen, said=_sentence(error)))

    def _show(self, screen: view.Screen) -> None:
        self.screen, self._turn = screen, self._turn + 1
        # so that nothing changed is an answer too: the browser waits for one
        self.panel.screen = screen.plain | {"turn": self._turn}

    def _sync(self) -> None:
        """A page that has just been drawn, or was out of sight, asks what the clock says and whether another door
        left something to go on with.
        """
        if self.session is not None and self.screen.clock is not None:
            self.panel.send({"clock": view.clock(self.session.clock)})
        elif self.screen.stage in ("start", "over") and self.screen.unfinished != view.unfinished(self.history):
            self.screen = replace(self.screen, unfinished=view.unfinished(self.history))
            # news, on the same turn: whoever comes back to this window by pressing a button has pressed it
            self.panel.screen = self.screen.plain | {"turn": self._turn}

    def _keep(self, wish: Mapping[str, Any]) -> None:
        """What stands in the field of a task in code goes into its file, from which it comes back to any door."""
        if self._file is not None and wish.get("key", self.screen.key) == self.screen.key:
            with contextlib.suppress(ValueError):  # said when it is answered; the field itself still has it
                self._file.write(str(wish.get("written", "")))

    # --- what the reader does --------------------------------------------------------------------

    def _begin(self, wish: Mapping[str, Any]) -> view.Screen:
        length, difficulty = str(wish.get("length") or "").strip(), str(wish.get("difficulty") or "")
        if length and not length.isdecimal():
            raise ValueError(f"{length!r} is no number of questions; write one like 5, or leave it empty")
        chosen = Wish(
            topic=wish.get("topic") or None,
            difficulty=int(difficulty) if difficulty else None,
            length=int(length) if length else None,
            track=preparation.wishes(self.history).track,
        )
        self.session = Session.begin(
            self.history, str(wish.get("mode")), chosen, extra=float(wish.get("extra") or 1), seed=wish.get("seed")
        )
        return self._standing()

    def _continue(self, wish: Mapping[str, Any]) -> view.Screen:
        name = self.history.unfinished()
        if name is None:
            return view.start(self.history, "That sitting was finished in another window. Choose, then begin.")
        self.session = Session(self.history, name)
        return self._standing()

    def _answer(self, wish: Mapping[str, Any]) -> view.Screen:
        written = str(wish.get("written", "")).strip()
        if self._file is not None:
            self._file.write(f"{written}\n")
        reply = self._held.answer(written)
        said = view.told(self._held, reply)
        return view.answered(self._held, said, given=written) if reply.done else self._asking(said)

    def _hint(self, wish: Mapping[str, Any]) -> view.Screen:
        said = self._held.hint()
        return self._asking(said)

    def _give_up(self, wish: Mapping[str, Any]) -> view.Screen:
        self._held.give_up()
        return view.answered(
            self._held,
            f"Given up: this counts as not known, and the working stands below. {self._held.trouble}".strip(),
            given_up=True,
        )

    def _skip(self, wish: Mapping[str, Any]) -> view.Screen:
        self._held.skip()
        return self._next(wish)

    def _next(self, wish: Mapping[str, Any]) -> view.Screen:
        self._held.next()
        return self._standing()

    def _stop(self, wish: Mapping[str, Any]) -> view.Screen:
        said = (
            f"{self._held.score} You can go on with this sitting here, or in a terminal with `python3 book.py"
            " drill --continue`."
        )
        self.session = None
        said += f" {rescued}" if (rescued := moving.rescue(self.history)) else ""
        return view.start(self.history, said if self.history.kept else said.partition(" You")[0])

    # --- what stands -----------------------------------------------------------------------------

    @property
    def _held(self) -> Session:
        if self.session is None:
            raise ValueError("no sitting is held; begin one")
        return self.session

    def _standing(self) -> view.Screen:
        if self._held.over:
            return view.over(self._held)
        question = self._held.question
        self._file = code_file.placed(question, self.history) if question and question.starter else None
        return self._asking(self._file.told if self._file else "")

    def _asking(self, said: str) -> view.Screen:
        """The standing question; of a task in code, with its file as it is now."""
        screen = view.asking(self._held, said)
        return replace(screen, starter=self._file.text()) if self._file else screen

    def _repr_mimebundle_(
        self, include: object = None, exclude: object = None
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """The widget for a page with a kernel; the words for one without."""
        shown = self.panel._repr_mimebundle_()
        assert shown is not None
        return {**shown[0], "text/plain": self.screen.text}, shown[1]


def _sentence(error: ValueError) -> str:
    words = str(error)
    return words[:1].upper() + words[1:] + ("" if words.endswith(".") else ".")


def _opened(path: Path | str) -> tuple[History, str]:
    """The history at a path; where it cannot be kept there, one that ends with the kernel, and why."""
    try:
        return History(path), ""
    except HistoryError as error:
        return History(NOWHERE), _sentence(error)


def room(path: Path | str) -> Room:
    """The room, with the attempts kept at that path; as the last line of a cell, it shows itself."""
    history, trouble = _opened(path)
    return Room(history, f"{trouble} Begin all the same: nothing will be kept." if trouble else "Choose, then begin.")


def progress(path: Path | str) -> progress_page.Page:
    """How it goes, from the attempts at that path; as the last line of a cell, it shows itself."""
    history, trouble = _opened(path)
    return progress_page.page(history, trouble)
