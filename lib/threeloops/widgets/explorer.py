"""Explorer: controls, a figure, a sentence that is spoken and a table, live where a kernel runs, as a picture where
none does, in words in a terminal.

    Explorer(state, view=view, controls=controls)

The page draws the controls and tells where they stand; Python answers with what there is to show, from a kernel
through a widget, or from within the page. `view` and `controls` are functions of the state alone, and are tested
without a browser.
"""

import functools
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from threeloops import checks
from threeloops.figures.figure import Figure
from threeloops.widgets.controls import Control, Drag, Link
from threeloops.widgets.view import Message

if TYPE_CHECKING:
    from threeloops.widgets.panel import Panel


class Viewed(Protocol):
    """What there is to show."""

    @property
    def figure(self) -> Figure: ...
    @property
    def summary(self) -> str: ...
    @property
    def text(self) -> str: ...
    @property
    def table(self) -> str: ...


State = TypeVar("State")


def as_they_stand(state: State, at: dict[str, Any]) -> State:
    """The state with every control where it stands."""
    return replace(state, **at)  # type: ignore[type-var]


class Explorer(Generic[State]):
    """`state` is where the controls stand, `view` what they show; as the last line of a cell, it shows itself."""

    def __init__(
        self,
        state: State,
        *,
        view: Callable[[State], Viewed],
        controls: Callable[[State], Sequence[Control]],
        settled: Callable[[State, dict[str, Any]], State] = as_they_stand,
        still: State | None = None,
        drags: Callable[[State], Sequence[Drag]] = lambda state: (),
        links: Callable[[State], Sequence[Link]] = lambda state: (),
        drawn: bool = True,
    ) -> None:
        """`settled` makes a state of the last one and of where the controls stand now, where not all of them go
        together. `still` is what the picture shows, where it is not the state at which the controls begin;
        `drags` is what can be taken hold of in the drawing, `links` where the book
        says more; an explorer that is not `drawn` shows its figure only in
        that picture.
        """
        self._viewed, self._controls, self._settled, self._drawn = view, controls, settled, drawn
        self._still, self._drags, self._links = still, drags, links
        self._put(state, answers=0)

    @functools.cached_property
    def panel(self) -> "Panel":
        """The widget, once a kernel shows it: a page that runs Python by itself has nothing that it is made of."""
        from threeloops.widgets.panel import Panel

        panel = Panel()
        panel.put(self.message)
        panel.observe(lambda change: self.turned(change["new"]), "turned")
        return panel

    @property
    def still(self) -> State:
        """What the picture shows."""
        return self.state if self._still is None else self._still

    @property
    def controls(self) -> dict[str, Control]:
        """The controls by name, as they are at this state."""
        return {control.name: control for control in self._controls(self.state)}

    def turn(self, **at: Any) -> None:
        """Turn controls to values, one after the other, as the page does by hand."""
        for name in at:
            checks.one_of(self.controls, control=name)
        for name, value in at.items():
            self.turned({"serial": self._answers + 1, "turns": [(name, self.controls[name].place(value))]})

    def turned(self, told: Mapping[str, Any]) -> Message:
        """Answer a page that has turned controls, in that order: {"serial": 3, "turns": [("batch", 5)]}. A setting
        that cannot be shown says so, and leaves the last one.
        """
        try:
            state = self.state
            for name, place in told["turns"]:
                state = self._turned(state, name, place)
            self._put(state, answers=told["serial"])
        except ValueError as error:
            self._put(self.state, answers=told["serial"], instead=f"This cannot be shown: {error}.")
        return self.message

    def _turned(self, state: State, name: str, place: Any) -> State:
        """The state after one control more; one that is no longer there changes nothing."""
        known = {control.name: control for control in self._controls(state)}
        if name not in known:
            return state
        at = {name: control.at(control.place(getattr(state, name))) for name, control in known.items()}
        return self._settled(state, at | {name: known[name].at(place)})

    def _put(self, state: State, *, answers: int, instead: str = "") -> None:
        """Show a state, in one message."""
        self.state, self.view, self._answers = state, self._viewed(state), answers
        figure, controls = self.view.figure, self._controls(state)
        parts = figure.parted() if self._drawn else None
        shown = {
            "answers": answers,
            "controls": [control.told() for control in controls],
            "standing": {control.name: control.place(getattr(state, control.name)) for control in controls},
            "drags": [drag.told() for drag in self._drags(state)],
            "links": [link.told() for link in self._links(state)],
            "title": figure.title if parts else "",
            "caption": figure.caption if parts else "",
            "alt": figure.alt,
            "said": instead or self.view.summary,
            "table": self.view.table,
            "rows": {name: json.dumps(rows) for name, rows in parts.rows.items()} if parts else {},
            "signals": parts.signals if parts else {},
        }
        self.message = Message(chart=json.dumps(parts.chart) if parts else "", shown=json.dumps(shown))
        if "panel" in self.__dict__:
            self.panel.put(self.message)

    def _repr_mimebundle_(
        self, include: object = None, exclude: object = None
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """The widget for a page with a kernel; the picture for one without; the words for a terminal."""
        shown = self.view if self._still is None else self._viewed(self._still)
        picture, about = shown.figure.picture()
        widget, _ = self.panel._repr_mimebundle_() or ({}, {})
        return {**widget, "image/png": picture, "text/plain": shown.text}, {"image/png": about}
