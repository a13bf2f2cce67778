"""Every heading of the book with the words below it, as a page fetches it when something is looked for.

A place is a heading. What is looked for is found in the name of its page, in itself, among the terms that are
introduced below it and their other names, and in its text, in this order (static/finding.js weighs them).
"""

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from threeloops.sheets import terms as other_names
from threeloops.site import words
from threeloops.site.finding.spelt import joined, tokens
from threeloops.site.parts import Part, headings, label, text

FILE = "search.json"
SNIPPET = 150  # letters
# What a sentence is shown without: formulas, marks of markdown, addresses.
UNSHOWN = (
    (re.compile(r"\$[^$]*\$"), "…"),
    (re.compile(r"!?\[([^\]]*)\]\([^)]*\)"), r"\1"),
    (re.compile(r"[*`#>|]"), ""),
)
COMMON = frozenset(
    tokens(
        "a an and are as at be been but by can do each for from has have how if in into is it its more no not of on one"
        " or so than that the their them then there these they this to up was what when where which who why will with"
        " you your"
    )
)


@dataclass
class Place:
    """A heading, with what stands below it."""

    page: str  # "1_inner_loop/2_roofline"
    anchor: str  # on the page; empty for its top
    part: str  # the name of the page: "1.2 Roofline"
    heading: str
    said: list[str] = field(default_factory=list)
    terms: list[str] = field(default_factory=list)


def places(pages: Iterable[Part]) -> list[Place]:
    """Every heading of the chapters, in reading order."""
    return [place for page in pages for place in _of_page(page)]


def _of_page(part: Part) -> Iterator[Place]:
    chapter = part.page.partition("_")[0]
    here = Place(page=part.page, anchor="", part=part.name, heading=part.name)
    yield here
    for cell in part.cells:
        if cell["cell_type"] != "markdown":
            continue
        source = text(cell).splitlines()
        starts = {line: (depth, title) for line, depth, title in headings(text(cell))}
        for number, line in enumerate(source):
            depth, title = starts.get(number, (0, ""))
            if depth > 2:
                here = Place(page=part.page, anchor=label(chapter, title), part=part.name, heading=title)
                yield here
            elif not depth:
                here.said.append(line)


def index(pages: list[Part], others: dict[str, str]) -> str:
    """The index, as JSON. `others` are pages beside the parts: address -> title."""
    found = places(pages)
    by_label = {place.anchor: place for place in found if place.anchor}
    tops = {place.part: place for place in found if not place.anchor}
    called = _names()
    for term in words.terms(pages):
        place = by_label.get(term.label, tops.get(term.part))
        if place:
            place.terms += [term.term, *called.get(joined(term.term), ())]
    found += [Place(page=page, anchor="", part=title, heading=title) for page, title in others.items()]
    postings: dict[str, dict[int, int]] = {}
    for number, place in enumerate(found):
        counted = Counter(token for token in tokens(" ".join(place.said)) if _tells(token))
        for token, count in counted.items():
            postings.setdefault(token, {})[number] = count
    told = [
        [
            place.page,
            place.anchor,
            place.part,
            plain_heading(place.heading),
            snippet(place.said),
            sorted({joined(term) for term in place.terms}),
        ]
        for place in found
    ]
    flat = {token: [n for pair in sorted(at.items()) for n in pair] for token, at in sorted(postings.items())}
    return json.dumps({"places": told, "words": flat}, ensure_ascii=False, separators=(",", ":"))


def _names() -> dict[str, list[str]]:
    """A term -> what papers and tools call it."""
    found: dict[str, list[str]] = {}
    for rows in other_names.TERMS.values():
        for ours, *theirs in rows:
            names = [name.strip() for cell in (ours, *theirs) for name in re.split(r"[,;()]|[^,;]+: ", cell)]
            for name in re.split(r"[,()]", ours):
                if name.strip():
                    found.setdefault(joined(name), []).extend(one for one in names if one)
    return found


def _tells(token: str) -> bool:
    return len(token) > 1 and token not in COMMON and not token.isdigit()


def plain_heading(heading: str) -> str:
    """A heading without its minutes and its marks.

    >>> plain_heading("2 Roofline · 110 min"), plain_heading("What *does* `x` cost?")
    ('2 Roofline', 'What does x cost?')
    """
    return _shown(re.sub(r" · \d+ min$", "", heading))


def snippet(said: list[str]) -> str:
    """How a text begins.

    >>> snippet(["", "| a | b |", "**A FLOP** is $1$ operation."])
    'A FLOP is … operation.'
    """
    whole = " ".join(line for line in said if line and not line.startswith(("|", ">", "```", "![", "<")))
    shown = _shown(whole)
    return shown if len(shown) <= SNIPPET else shown[:SNIPPET].rpartition(" ")[0] + " …"


def _shown(source: str) -> str:
    for pattern, better in UNSHOWN:
        source = pattern.sub(better, source)
    return " ".join(source.split())
