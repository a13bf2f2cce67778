"""The first pages of a printed chapter: what it is, whose and which edition, and a page of contents.

A browser that prints knows no page numbers before it has printed: they are written beside the entries afterwards, in
the place that the style sheet leaves free.
"""

import html
from typing import Any

import pikepdf

from threeloops.site.front.edition import Edition

FONT_SIZE, EDGE = 9.5, 51.0  # points: as print.css has it
DIGIT_EM = 0.556  # of Helvetica: Adobe Font Metrics


def title_page(told: Edition, chapter: str, note: str) -> str:
    """The title page; no heading of it stands in the list beside the pages.

    >>> from threeloops.site.front.edition import read
    >>> source = "title: B\\nauthors:\\n  - name: S\\nversion: 1.0\\ndate-released: 2026-01-02\\nlicense: MIT"
    >>> "Version 1.0 of 2026-01-02" in title_page(read(source), "1 One", "")
    True
    """
    title, _, more = told.title.partition(": ")
    where = "".join(f"<p>{html.escape(one)}</p>" for one in (told.address, told.repository) if one)
    return (
        f'<section class="print-title"><p class="print-book">{html.escape(title)}</p>'
        f"<p>{html.escape(more[:1].upper() + more[1:])}</p>"
        f'<p class="print-chapter">{html.escape(chapter)}</p><p>{html.escape(told.authors)}</p>'
        f"<p>Version {told.version} of {told.date}</p>"
        f"<p>Code under the {told.licence} licence, prose and pictures under CC BY 4.0.</p>{where}"
        f'<p>To cite it: {html.escape(told.cited)}</p><p class="print-note">{note}</p></section>'
    )


def contents(articles: list[Any]) -> str:
    """The page of contents: parts and their sections, which lead there."""
    lines = []
    for article in articles:
        for heading in article.find_all(["h1", "h2"]):
            place = heading.find_parent(["section", "article"])
            name = heading.get("id") or (place.get("id") if place else "")
            said = html.escape(" ".join(heading.get_text().split()))
            lines.append(f'<li class="print-{heading.name}"><a href="#{name}">{said}</a></li>')
    return f'<nav class="print-contents"><p class="print-book">Contents</p><ul>{"".join(lines)}</ul></nav>'


def number(pdf: pikepdf.Pdf, until: int) -> int:
    """Write page numbers beside the entries of contents that stand before a page; how many.

    until   index of the first page of the chapter itself
    """
    indices = {page.obj.objgen: index for index, page in enumerate(pdf.pages)}
    targets: Any = pdf.Root.Dests
    # made anew for each file: what was put into one goes with it
    font = pikepdf.Dictionary(Type=pikepdf.Name.Font, Subtype=pikepdf.Name.Type1, BaseFont=pikepdf.Name.Helvetica)
    written = 0
    for page in pdf.pages[1:until]:
        lowest = {}
        for note in page.get("/Annots", []):
            if isinstance(note.get("/Dest"), pikepdf.Name):  # of an entry on two lines, the second
                lowest[str(note.Dest)] = float(note.Rect[1])
        right = float(page.mediabox[2]) - EDGE
        drawn = [f"/Artifact BMC BT /ThreeLoops {FONT_SIZE} Tf"]
        for name, bottom in lowest.items():
            said = str(indices[targets[name][0].objgen] + 1)
            across = right - len(said) * DIGIT_EM * FONT_SIZE
            drawn.append(f"1 0 0 1 {across:.2f} {bottom + 0.25 * FONT_SIZE:.2f} Tm ({said}) Tj")
            written += 1
        page.add_resource(font, pikepdf.Name.Font, pikepdf.Name("/ThreeLoops"))
        page.contents_add(b"q", prepend=True)  # a browser leaves its own scale behind
        page.contents_add("\n".join(["Q", *drawn, "ET EMC"]).encode(), prepend=False)
    return written
