"""How an explorer puts its view on the page: live where a kernel runs, as a picture where none does, in words in a
terminal.
"""

from typing import Any, Protocol

import ipywidgets

from threeloops.figures.figure import Figure
from threeloops.widgets.live_text import LiveText


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


class Shown:
    """The places of an explorer that are filled anew whenever a control has moved."""

    view: Any  # a Viewed, with whatever else the explorer wants to know of it
    box: ipywidgets.Box
    figure: ipywidgets.Output
    summary: LiveText
    table: ipywidgets.HTML

    def put(self, view: Viewed) -> None:
        """Show a view."""
        self.view = view
        self.figure.outputs = ({"output_type": "display_data", **view.figure.live()},)
        self.summary.text = view.summary
        self.table.value = view.table

    def _repr_mimebundle_(
        self, include: object = None, exclude: object = None
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """The widget for a page with a kernel; the picture for one without; the words for a terminal."""
        picture, about = self.view.figure.picture()
        return {**self.box._repr_mimebundle_(), "image/png": picture, "text/plain": self.view.text}, {
            "image/png": about
        }
