"""Panel: the part of an explorer that lives in the page. What it draws and how it talks is in panel.js."""

from pathlib import Path

import anywidget
import traitlets

from threeloops.figures import still
from threeloops.widgets.view import Message


class Panel(anywidget.AnyWidget):
    """Both texts are JSON written here: ipywidgets would walk through every row of a value in search of buffers."""

    _esm = Path(__file__).with_name("panel.js")
    _css = Path(__file__).with_name("panel.css")
    chart = traitlets.Unicode().tag(sync=True)  # a Vega-Lite specification without its rows; sent when it changes
    shown = traitlets.Unicode().tag(sync=True)  # where the controls stand, the words, the rows
    turned = traitlets.Dict().tag(sync=True)  # from the page: {"serial": 3, "turns": [["batch", 5]]}

    def __init__(self) -> None:
        super().__init__()
        self.on_msg(_lent)

    def put(self, message: Message) -> None:
        """Show something else, in one message."""
        with self.hold_sync():
            self.chart, self.shown = message.chart, message.shown


def _lent(panel: Panel, content: object, buffers: object) -> None:
    """A page that has no Vega asks for it once."""
    if content == {"wants": "vega"}:
        panel.send({"vega": still.library()})
