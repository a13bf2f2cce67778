"""Panel: the part of an explorer that lives in the page. What it draws and how it talks is in panel.js."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import anywidget
import traitlets

from threeloops.figures import still
from threeloops.figures.figure import Parted


class Panel(anywidget.AnyWidget):
    """Both texts are JSON written here: ipywidgets would walk through every row of a value in search of buffers."""

    _esm = Path(__file__).with_name("panel.js")
    _css = Path(__file__).with_name("panel.css")
    chart = traitlets.Unicode().tag(sync=True)  # a Vega-Lite specification without its rows; sent when it changes
    shown = traitlets.Unicode().tag(sync=True)  # where the controls stand, the words, the rows
    turned = traitlets.Dict().tag(sync=True)  # from the page: {"serial": 3, "standing": {"batch": 5}}
    answered = 0

    def __init__(self) -> None:
        super().__init__()
        self.on_msg(_lent)

    def put(self, parts: Parted | None, shown: Mapping[str, Any]) -> None:
        """Show something else, in one message."""
        self.answered = shown["answers"]
        drawn: dict[str, Any] = {"rows": {}, "signals": {}}
        if parts:
            drawn = {"rows": {name: json.dumps(rows) for name, rows in parts.rows.items()}, "signals": parts.signals}
        with self.hold_sync():
            self.chart = json.dumps(parts.chart) if parts else ""
            self.shown = json.dumps({**shown, **drawn})


def _lent(panel: Panel, content: object, buffers: object) -> None:
    """A page that has no Vega asks for it once."""
    if content == {"wants": "vega"}:
        panel.send({"vega": still.library()})
