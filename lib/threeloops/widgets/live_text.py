"""Live text: a sentence that is read aloud when it changes. No widget of ipywidgets can carry the attribute that this
needs.
"""

from pathlib import Path

import anywidget
import traitlets


class LiveText(anywidget.AnyWidget):
    """Plain text in a live region. It also lends the controls in its box what ipywidgets leaves out: names for
    sliders, and their own keys.
    """

    _esm = Path(__file__).with_name("live_text.js")
    text = traitlets.Unicode().tag(sync=True)
