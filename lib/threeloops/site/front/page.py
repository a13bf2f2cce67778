"""The first page: what the book is in a sentence, a picture that moves, where to start, and what each chapter asks."""

import html
import itertools
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import quote

from threeloops import units
from threeloops.drills.engine.bank import DRILLS
from threeloops.site import explorers
from threeloops.site.chapters import chapter_title
from threeloops.site.epub import volume
from threeloops.site.front import far
from threeloops.site.front.edition import Edition
from threeloops.site.parts import Part

SENTENCE = "Learn to predict how fast machine learning can run, and be told which mistake you made when you are wrong."
MOVES = "inner_loop.roofline"
HOUR_MIN = units.hour / units.minute
SHORT = re.compile(r"\*\*Short way\*\* (?P<minutes>\d+) min")
OPENING = """---
html_theme.sidebar_secondary.remove: true
---
(page-index)=
# Three Loops

"""
TRY = (
    "Raise the batch until an operation leaves the slope: what has to wait for memory until then, whatever the chip can"
    " compute?"
)
HOW = (
    "Every number in this book is known in at least two of three independent ways: <strong>predicted</strong> by a"
    " formula with its source, <strong>counted</strong> by a simulator that does not know the formula,"
    " <strong>measured</strong> by real code. These pages ask nobody for anything: questions are judged and pictures"
    " move in your browser, and nothing leaves it. What measures runs in JupyterLab, on your own machine; each part"
    " says the command."
)
TODAY_S = 5 * units.minute / 3  # longest target time of a drill of which three fit into five minutes


@dataclass(frozen=True, slots=True, kw_only=True)
class Promise:
    """What one has to bring to a chapter, and what one can do after it."""

    level: str
    afterwards: str


PROMISES = {
    "1": Promise(
        level="begins at Python and a matmul; F1 and F2 bring what is missing",
        afterwards="say how long a kernel must take, which limit it has met, and what would make it faster",
    ),
    "2": Promise(
        level="needs 1.1 and 1.2, and no cluster",
        afterwards="say what a training run needs in memory and time, and which split of it over many GPUs is worth its"
        " messages",
    ),
    "3": Promise(
        level="needs 1.2, and attention from a diagram",
        afterwards="say how many GPUs a service needs, what its users will wait, and what a million tokens cost",
    ),
    "4": Promise(
        level="needs nothing by heart; the other chapters help",
        afterwards="carry a deadline through sensors, networks and schedules, and say what may be promised",
    ),
}


def first_page(pages: Sequence[Part], edition: Edition, *, prints: Sequence[str], contents: str) -> str:
    """The first page, as markdown; `contents` lists every page for the navigation."""
    openings = [part for part in pages if part.place is None]
    start = next(part for part in pages if part.place is not None)
    made = [
        _lead(start),
        f'<div class="front-picture">{explorers.section(MOVES)}<p>{TRY} <a href="1_inner_loop/2_roofline.html">1.2'
        " Roofline</a> says why, and has all controls.</p></div>",
        '<div class="front-chapters">'
        + "".join(_chapter(one, pages, prints) for one in openings)
        + f"{far.chapters(pages)}</div>",
        _ways(),
        f"<p>{HOW}</p>",
        f'<p>To take along: <a href="{volume.FILE}">the whole book as an EPUB</a>'
        f"{', and each chapter as a PDF above' if prints else ''}; or"
        ' <a href="offline.html">these pages, kept in your browser</a>.</p>',
        _imprint(edition),
    ]
    raw = "\n\n".join(f"```{{raw}} html\n{one}\n```" for one in made)
    return f"{OPENING}{raw}\n\n{contents}"


def _lead(start: Part) -> str:
    return (
        f'<p class="front-sentence">{SENTENCE}</p>'
        f'<p class="front-go"><a class="front-start" href="{start.page}.html">Start reading</a>'
        ' <a id="front-last" hidden href="#">Where you were</a></p>'
    )


def _chapter(opening: Part, pages: Sequence[Part], prints: Sequence[str]) -> str:
    folder = opening.page.partition("/")[0]
    parts = [part for part in pages if part.notebook == opening.notebook and part.place is not None]
    places = [part.place for part in parts if part.place is not None]
    hours = sum(place.minutes for place in places) / HOUR_MIN
    short = sum(int(match["minutes"]) for place in places if (match := SHORT.search(place.card))) / HOUR_MIN
    promise = PROMISES[folder.partition("_")[0]]
    asked = opening.title.partition(": ")[2]
    pdf = f' <a href="{folder}/{folder}.pdf">PDF</a>' if folder in prints else ""
    return (
        f'<section><h2><a href="{opening.page}.html">{html.escape(chapter_title(opening))}</a></h2>'
        f'<p class="front-question">{html.escape(asked[:1].upper() + asked[1:])}</p>'
        f"<p>{len(parts)} parts, {hours:.1f} hours; {short:.1f} for the short ways alone. Level:"
        f" {html.escape(promise.level)}.</p>"
        f"<p>Afterwards you can {html.escape(promise.afterwards)}.{pdf}</p>"
        f"{far.line(folder, chapter_title(opening))}</section>"
    )


def _ways() -> str:
    return (
        '<div class="front-ways"><section><h2>Today’s five minutes</h2>'
        "<p>Three questions, one from each loop; other ones tomorrow.</p>"
        f'{_today()}<p><a href="room.html?mode=today">What is due for you</a>, once you have answered some.</p>'
        "</section>"
        '<section><h2>An interview on Thursday</h2><p><a href="sheets/interview.html">The interview sheet</a>, then the'
        ' <a href="drills/index.html">drill sets</a> that it names; <a href="room.html">the interview room</a> asks'
        ' against a clock. <a href="drills/first_steps.html">The set to begin with</a> takes twelve minutes; <a'
        ' href="practise.html">any drill</a> comes with fresh numbers, and <a'
        ' href="code.html">functions</a> are written and tried in the page.</p></section>'
        '<section><h2>A service to size</h2><p><a href="serve.html">How many GPUs a load needs</a>, or what users see'
        " of yours: any model of the catalogue, or your own config.json, with the working.</p></section>"
        '<section><h2>Teach</h2><p><a href="teaching.html">How to run a class with it</a>, and what a grade'
        " proves.</p></section></div>"
    )


def today() -> dict[str, list[tuple[str, str]]]:
    """The drills that are short enough for five minutes, by loop: their keys and titles."""
    short = [
        drill
        for drill in DRILLS.values()
        if drill.target_s <= TODAY_S and drill.loop in ("inner", "training", "product")
    ]
    ordered = sorted(short, key=lambda drill: (drill.loop, drill.key))
    return {
        loop: [(drill.key, drill.title) for drill in drills]
        for loop, drills in itertools.groupby(ordered, key=lambda drill: drill.loop)
    }


def _today() -> str:
    """Three of them; a script takes those of the day."""
    drills = today()
    listed = "".join(
        f'<li><a href="practise.html?drill={quote(each[0][0])}">{html.escape(each[0][1])}</a></li>'
        for each in drills.values()
    )
    told = json.dumps(list(drills.values()), ensure_ascii=False).replace("</", r"<\/")
    return f'<ul id="front-today">{listed}</ul><script type="application/json" id="front-drills">{told}</script>'


def _imprint(edition: Edition) -> str:
    source = f' <a href="{html.escape(edition.repository)}">Source</a>.' if edition.repository else ""
    return (
        f'<p class="front-imprint">Version {edition.version} of {edition.date}, by {html.escape(edition.authors)}. Code'
        f" under the {edition.licence} licence, prose and pictures under CC BY 4.0.{source}"
        ' <a href="changelog.html">What changed</a>, <a href="errata.html">what was wrong</a>, <a'
        ' href="accessibility.html">what is done for everybody</a>.</p>'
        "<details><summary>How to cite it</summary>"
        f'<p>{html.escape(edition.cited)}</p><pre tabindex="0">{html.escape(edition.bibtex)}</pre></details>'
    )
