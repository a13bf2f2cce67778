"""Figure: a drawing with its title, its caption and its words for those who cannot see it."""

import base64
from collections.abc import Mapping
from dataclasses import dataclass
from textwrap import wrap
from typing import Any

from threeloops.figures import look, still

MIME = "application/vnd.vegalite.v5+json"
# As SVG, so that a screen reader finds the description and every mark's words; no menu; colours of the figure, not of
# the page.
EMBED = {"embed_options": {"renderer": "svg", "actions": False, "theme": None}}
TITLE_LINE, CAPTION_LINE = 66, 92  # letters that fit on one line
# One transparent pixel: see Figure.live.
NO_PICTURE = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """What every function of this package returns; as the last line of a cell, it shows itself."""

    title: str  # the finding
    caption: str  # what to look for, and where the data come from
    alt: str  # the same for someone who cannot see it, with the values
    body: Mapping[str, Any]  # the Vega-Lite view: width, height, layers

    @property
    def spec(self) -> dict[str, Any]:
        """The whole Vega-Lite specification."""
        return {
            "$schema": "https://vega.github.io/schema/vega-lite/v5.json",
            "description": self.alt,
            "title": {"text": wrap(self.title, TITLE_LINE), "subtitle": wrap(self.caption, CAPTION_LINE)},
            "config": look.config(),
            **self.body,
        }

    def png(self) -> bytes:
        """The still picture."""
        return still.png(self.spec)

    def picture(self) -> tuple[str, dict[str, Any]]:
        """The still picture as a notebook keeps it, with its size on the page and its words."""
        made = self.png()
        width, height = still.size(made)
        return base64.b64encode(made).decode(), {"width": width, "height": height, "alt": self.alt}

    def live(self) -> dict[str, Any]:
        """Output of a widget that is redrawn while a slider moves: without the picture, which takes longer than the
        drawing.

        JupyterLab makes a picture of every Vega drawing that comes without one, by drawing it a second time; one
        empty pixel spares it that.
        """
        return {"data": {MIME: self.spec, "image/png": NO_PICTURE, "text/plain": self.alt}, "metadata": {MIME: EMBED}}

    def _repr_mimebundle_(
        self, include: object = None, exclude: object = None
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """JupyterLab draws the specification; a code host and plain HTML take the PNG; a terminal prints the
        words.
        """
        picture, about = self.picture()
        return {MIME: self.spec, "image/png": picture, "text/plain": f"{self.title}. {self.alt}"}, {
            MIME: EMBED,
            "image/png": about,
        }
