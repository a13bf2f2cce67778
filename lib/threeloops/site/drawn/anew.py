"""The pictures of the chapters, drawn anew for the pages: as text, which is sharp on every screen and a fraction of the
bytes, and in a form for a phone. Their cells are run for it, with those above that they need.

A notebook keeps a picture as pixels. Where its cell needs a package that pages are built without, or where its words
come out otherwise than in the notebook, because something was measured, the pixels stay.
"""

import ast
import base64
import contextlib
import hashlib
import io
import multiprocessing
import re
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from math import ceil
from textwrap import wrap
from typing import Any

from threeloops.figures import look, narrow, still
from threeloops.figures.figure import SCHEMA, Figure
from threeloops.site import explorers
from threeloops.site.drawn.letters import held
from threeloops.site.parts import Cell, Part, text
from threeloops.site.running.needs import Needs, needs

PICTURE = "image/png"
HERE = frozenset({"numpy"})  # what simulations need
TITLE_LINE, CAPTION_LINE = 42, 58  # letters that fit on one line of a phone
SIZE = re.compile(r'<svg\b[^>]*\bwidth="(?P<width>[\d.]+)"[^>]*\bheight="(?P<height>[\d.]+)"')
WORKERS = 2
WIDEST, LEAST_PLOT = 423, 160  # pixels: letters of 13 are 11 where so many are shown in 358; a plot keeps the second


@dataclass(frozen=True, slots=True, kw_only=True)
class Drawing:
    """A picture as text."""

    wide: str
    slim: str  # for a phone; empty where it has no such form, or needs none


def size(drawing: str) -> tuple[float, float]:
    """Width and height, in pixels of a page.

    >>> size('<svg class="marks" width="620" height="318.5" viewBox="0 0 620 318.5">')
    (620.0, 318.5)
    """
    found = SIZE.search(drawing)
    assert found, drawing[:200]
    return float(found["width"]), float(found["height"])


def drawings(pages: Sequence[Part]) -> dict[str, Drawing]:
    """The pictures that can be drawn anew, by the name under which Sphinx files their pixels."""
    cells = [part.cells for part in pages]
    # a process of its own: what chapters run is to change nothing here
    with ProcessPoolExecutor(WORKERS, mp_context=multiprocessing.get_context("spawn")) as others:
        return {name: made for found in others.map(of_part, cells) for name, made in found.items()}


def of_part(cells: Sequence[Cell]) -> dict[str, Drawing]:
    """The pictures of one part."""
    needed = needs(cells)
    shown = {place: told for place in needed for told in _pictures(cells, place) if needed[place].packages <= HERE}
    wanted = {*shown, *(above for place in shown for above in needed[place].above)}
    space: dict[str, Any] = {"__name__": "__main__"}
    made: dict[str, Drawing] = {}
    for place in sorted(wanted):
        value = _run(text(cells[place]), space, needed[place])
        if place in shown and isinstance(value, Figure) and value.alt == shown[place][1]:
            made[shown[place][0]] = Drawing(wide=held(still.svg(value.spec)), slim=_slim(value))
    return made


def _pictures(cells: Sequence[Cell], place: int) -> Iterator[tuple[str, str]]:
    """The picture that a cell shows, if it does: its name as a file, and its words. An explorer draws for itself."""
    for output in cells[place]["outputs"]:
        if PICTURE in output.get("data", {}) and not explorers.shown_by(cells[place], cells):
            pixels = base64.b64decode("".join(output["data"][PICTURE]))
            yield hashlib.sha256(pixels).hexdigest(), output["metadata"][PICTURE]["alt"]


def _run(source: str, space: dict[str, Any], need: Needs) -> object:
    """The value of a cell's last line; None where it fails, as it does without its packages."""
    *before, last = ast.parse(source).body
    with contextlib.redirect_stdout(io.StringIO()), contextlib.suppress(Exception):
        for one in before if isinstance(last, ast.Expr) else [*before, last]:
            # of a cell that is needed for what it makes without them
            with contextlib.suppress(*([ImportError, NameError] if need.packages - HERE else [])):
                exec(compile(ast.Module([one], []), "a cell", "exec"), space)
        if isinstance(last, ast.Expr) and need.packages <= HERE:
            return eval(compile(ast.Expression(last.value), "a cell", "eval"), space)
    return None


def _slim(figure: Figure) -> str:
    """The drawing for a phone: what stands beside a plot, such as the names of its rows, takes from the plot."""
    drawing = _drawn(figure)
    over = size(drawing)[0] - WIDEST if drawing else 0
    fits = over <= 0 or not figure.narrow_px
    return drawing if fits else _drawn(replace(figure, narrow_px=max(LEAST_PLOT, figure.narrow_px - ceil(over))))


def _drawn(figure: Figure) -> str:
    body = figure.narrow_body
    if body is None:
        return ""
    title = {"text": wrap(figure.title, TITLE_LINE), "subtitle": wrap(figure.caption, CAPTION_LINE), "frame": "bounds"}
    spec = {"$schema": SCHEMA, "config": look.config(), **narrow.stacked(body), "title": title}
    return held(still.svg(spec))
