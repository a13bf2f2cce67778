"""Figure: a drawing with its title, its caption and its words for those who cannot see it."""

import base64
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from textwrap import wrap
from typing import Any

from threeloops.figures import look, narrow, plans, still

SCHEMA = "https://vega.github.io/schema/vega-lite/v5.json"
MIME = "application/vnd.vegalite.v5+json"
# As SVG, so that a screen reader finds the description and every mark's words; no menu; colours of the figure, not of
# the page.
EMBED = {"embed_options": {"renderer": "svg", "actions": False, "theme": None}}
TITLE_LINE, CAPTION_LINE = 66, 92  # letters that fit on one line


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """What every function of this package returns; as the last line of a cell, it shows itself."""

    title: str  # the finding
    caption: str  # what to look for, and where the data come from
    alt: str  # the same for someone who cannot see it, with the values
    body: Mapping[str, Any]  # the Vega-Lite view: width, height, layers
    narrow_px: int = narrow.PLOT  # how wide a plot is on a phone; 0 where words in boxes leave no choice
    slim: Mapping[str, Any] | None = None  # the view for a phone, where it is drawn anew for it
    # of a plan: between which places across it is to scale; the whole of it is wherever its words allow that
    to_scale: tuple[float, float] | None = None

    @property
    def spec(self) -> dict[str, Any]:
        """The whole Vega-Lite specification."""
        return {
            "$schema": SCHEMA,
            "description": self.alt,
            "title": {"text": wrap(self.title, TITLE_LINE), "subtitle": wrap(self.caption, CAPTION_LINE)},
            "config": look.config(),
            **self.body,
        }

    @property
    def narrow_body(self) -> dict[str, Any] | None:
        """The view for a phone; None for a drawing that has none, or needs none."""
        if self.slim is not None:
            return dict(self.slim)
        if self.narrow_px and plans.is_boxes(self.body):
            wide = self.body["width"] > plans.WIDEST
            return plans.slim(self.body, size=look.TEXT, to_scale=self.to_scale) if wide else None
        return self._narrow(self.body)

    @property
    def live_narrow_body(self) -> dict[str, Any] | None:
        """The same for a chart that stays while it takes new rows, as an explorer's does: a plan's rows are its
        places, which another width moves, so that only one that is drawn anew has this form.
        """
        return self._narrow(self.body) if self.slim is None else dict(self.slim)

    def _narrow(self, body: Mapping[str, Any]) -> dict[str, Any] | None:
        if not self.narrow_px or narrow.is_plan(self.body):
            return None
        made = narrow.narrowed(body, self.narrow_px)
        return made if made != body else None

    def png(self) -> bytes:
        """The still picture."""
        return still.png(self.spec)

    def picture(self) -> tuple[str, dict[str, Any]]:
        """The still picture as a notebook keeps it, with its size on the page and its words."""
        made = self.png()
        width, height = still.size(made)
        return base64.b64encode(made).decode(), {"width": width, "height": height, "alt": self.alt}

    def parted(self) -> "Parted":
        """The same without title and caption, which are left to the page, and with names where values stood."""
        parts = Parted(chart={}, rows={}, signals={})
        fitted = {"type": "pad", "resize": True}  # new rows may bring longer labels
        about = {"$schema": SCHEMA, "autosize": fitted, "config": {**look.config(), "background": "transparent"}}
        body = _named(self.body, parts)
        slim = self._narrow(body) if self.slim is None else _named(self.slim, parts)
        parts.chart.update(about, **({"usermeta": {"narrow": slim}} if slim else {}), **body)
        return parts

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Parted:
    """A drawing in parts: as long as `chart` stays, it takes new rows and signals without being built anew."""

    chart: dict[str, Any]  # names in place of rows, of the ends of axes and of what the titles of its views say
    rows: dict[str, list[Any]]
    signals: dict[str, Any]


def _named(node: Any, parts: Parted) -> Any:
    if isinstance(node, Mapping):
        return {key: _PARTS.get(key, _named)(value, parts) for key, value in node.items()}
    if isinstance(node, list | tuple):
        return [_named(one, parts) for one in node]
    return node


def _data(data: Mapping[str, Any], parts: Parted) -> dict[str, str]:
    name = f"rows{len(parts.rows)}"
    parts.rows[name] = list(data["values"])
    return {"name": name}


def _scale(scale: Any, parts: Parted) -> Any:
    """Ends of an axis as signals. Layers share a scale only where both name the same."""
    ends = scale.get("domain") if isinstance(scale, Mapping) and "range" not in scale else None
    if not isinstance(ends, list | tuple) or len(ends) != 2 or not all(isinstance(end, int | float) for end in ends):
        return scale
    rest = {key: value for key, value in scale.items() if key != "domain"}
    low, high = (_signal("end", end, parts) for end in ends)
    return {**rest, "domainMin": low, "domainMax": high}


def _title(title: Any, parts: Parted) -> Any:
    said = title.get("text") if isinstance(title, Mapping) else None
    return {**title, "text": _signal("title", said, parts)} if isinstance(said, str) else title


def _signal(kind: str, value: Any, parts: Parted) -> dict[str, str]:
    """The signal of this kind that has the value; a new one where none has."""
    known = (name for name, other in parts.signals.items() if name.startswith(kind) and other == value)
    name = next(known, f"{kind}{len(parts.signals)}")
    parts.signals[name] = value
    return {"expr": name}


_PARTS: Mapping[str, Callable[[Any, Parted], Any]] = {"data": _data, "scale": _scale, "title": _title}
