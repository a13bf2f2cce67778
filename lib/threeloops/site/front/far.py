"""How far a reader is: of each part, how many of its questions have been answered in this browser. A script
(static/far.js) counts them; without one nothing of it is seen.
"""

import html
import json
from collections.abc import Sequence

from threeloops.site import cells, predictions
from threeloops.site.parts import Part, text


def asked(part: Part) -> list[str]:
    """The questions of a part, by the names under which the browser keeps that they are answered: a prediction by its
    page and result, a quick check by its drill.
    """
    outcomes = [f"{part.page}.html#{question.result}" for question in predictions.questions(part.cells)]
    drills = [f"right {match['key']}" for cell in part.cells for match in cells.ASKED.finditer(text(cell))]
    return outcomes + drills


def strip(parts: Sequence[Part]) -> str:
    """The parts of a chapter with how far each is, as HTML."""
    rows = "".join(
        f'<li data-far="{part.page}"><a href="{part.page.rpartition("/")[2]}.html">{html.escape(part.name)}</a>'
        f"{_bar(part.name)}</li>"
        for part in parts
        if asked(part)
    )
    known = {part.page: asked(part) for part in parts}
    return f'<section class="far" hidden><p><strong>How far you are</strong></p><ul>{rows}</ul>{_told(known)}</section>'


def line(chapter: str, name: str) -> str:
    """A line on the first page: how far a chapter is."""
    return f'<p class="far" data-far="{chapter}" hidden>{_bar(name)}</p>'


def chapters(pages: Sequence[Part]) -> str:
    """What such lines count."""
    known: dict[str, list[str]] = {}
    for part in pages:
        known.setdefault(part.page.partition("/")[0], []).extend(asked(part))
    return _told(known)


def _bar(name: str) -> str:
    return (
        f' <progress value="0" max="1" aria-label="{html.escape(name)}: questions answered"></progress> <span></span>'
    )


def _told(known: dict[str, list[str]]) -> str:
    return f'<script type="application/json" id="far-told">{json.dumps(known, separators=(",", ":"))}</script>'
