"""What a reader does in the room, and what they see then: the same behind a widget in JupyterLab and on a page. What
shows it says so by two methods of its own.
"""

import contextlib
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, ClassVar

from threeloops.room import code_file, moving, preparation
from threeloops.room.after import sure as confidence
from threeloops.room.history import History
from threeloops.room.notebook import view
from threeloops.room.plan import Wish
from threeloops.room.session import Session

OPENING = "Choose, then begin."


class Acting:
    """A reader in the room. `act` is what they do, `screen` what they see, `session` the sitting that is held.

    Whoever shows it has `put_up`, for a new screen in plain words, and `send`, for a message beside it.
    """

    TASKS: ClassVar[bool] = True  # whether tasks in code are asked, which are files
    NOWHERE: ClassVar[str] = " Nothing is kept when this notebook closes."  # said of a history that is kept nowhere

    def __init__(self, history: History, said: str = OPENING) -> None:
        self.history = history
        self.session: Session | None = None
        self._file: code_file.CodeFile | None = None
        self._turn = 0
        self.screen = view.start(history, nowhere=self.NOWHERE, said=said)

    @property
    def first(self) -> dict[str, object]:
        """What stands before anything is done."""
        return self.screen.plain | {"turn": self._turn}

    def put_up(self, screen: dict[str, object]) -> None:
        """Show a screen."""
        raise NotImplementedError

    def send(self, message: dict[str, object]) -> None:
        """Say something to the page that shows the screen."""
        raise NotImplementedError

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
                self._show(replace(self.screen, said=sentence(error)))

    def _show(self, screen: view.Screen) -> None:
        self.screen, self._turn = screen, self._turn + 1
        # so that nothing changed is an answer too: the browser waits for one
        self.put_up(screen.plain | {"turn": self._turn})

    def _sync(self) -> None:
        """A page that has just been drawn, or was out of sight, asks what the clock says and whether another door
        left something to go on with.
        """
        if self.session is not None and self.screen.clock is not None:
            self.send({"clock": view.clock(self.session.clock)})
        elif self.screen.stage in ("start", "over") and self.screen.unfinished != view.unfinished(self.history):
            self.screen = replace(self.screen, unfinished=view.unfinished(self.history))
            # news, on the same turn: whoever comes back to this window by pressing a button has pressed it
            self.put_up(self.screen.plain | {"turn": self._turn})

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
            tasks=self.TASKS,
        )
        self.session = Session.begin(
            self.history, str(wish.get("mode")), chosen, extra=float(wish.get("extra") or 1), seed=wish.get("seed")
        )
        return self._standing()

    def _continue(self, wish: Mapping[str, Any]) -> view.Screen:
        name = self.history.unfinished()
        if name is None:
            return view.start(
                self.history,
                nowhere=self.NOWHERE,
                said="That sitting was finished in another window. Choose, then begin.",
            )
        self.session = Session(self.history, name)
        return self._standing()

    def _answer(self, wish: Mapping[str, Any]) -> view.Screen:
        written = str(wish.get("written", "")).strip()
        if self._file is not None:
            self._file.write(f"{written}\n")
        sure = confidence.read(str(wish.get("sure") or ""))
        reply = self._held.answer(written, ask_sure=lambda: sure)
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
        return view.start(
            self.history, nowhere=self.NOWHERE, said=said if self.history.kept else said.partition(" You")[0]
        )

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


def sentence(error: ValueError) -> str:
    """An error in words for the reader."""
    words = str(error)
    return words[:1].upper() + words[1:] + ("" if words.endswith(".") else ".")
