"""A chapter as a PDF: every part in it as text that can be searched, links that arrive, nothing cut, and not heavy."""

import posixpath
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from pypdf import PdfReader

from tests.site.conftest import ROOT, Page
from threeloops.site import parts, printing
from threeloops.site.front.edition import edition

pytestmark = [
    pytest.mark.timeout(900),
    pytest.mark.filterwarnings("ignore:.*MystReferenceResolver.app"),  # Sphinx to MyST: nothing of ours
]
MOST_BYTES = 5e6
PAPER_WIDTH = 658  # pixels between the margins of A4
CUT = """() => {
  const width = document.documentElement.clientWidth;
  const wide = one => one.getBoundingClientRect().right > width + 2;
  const clips = one => getComputedStyle(one).overflowX !== 'visible' && one.scrollWidth > one.clientWidth + 2;
  return [...document.querySelectorAll('article *')]
    .filter(one => !one.closest('.katex-mathml, svg *') && one.clientWidth && (wide(one) || clips(one)))
    .filter(one => !one.closest('.katex') || wide(one))
    .map(one => one.outerHTML.slice(0, 200));
}"""


def plain(text: str) -> str:
    """Words without what lines and fonts make of the space between them."""
    return re.sub(r"\W+", "", text)


def of(chapter: str) -> list[parts.Part]:
    return [part for part in parts.parts(ROOT) if posixpath.dirname(part.page) == chapter]


def test_a_chapter_is_printed_with_every_part(folder: Path, printed: list[str], pages: dict[str, Page]) -> None:
    assert printed
    for chapter in printed:
        path = folder / printing.file(chapter)
        assert path.stat().st_size < MOST_BYTES
        assert path.name in pages[f"{chapter}/index.html"].links
        pdf = PdfReader(path)
        text = plain("".join(page.extract_text() for page in pdf.pages))
        headings = [
            title for part in of(chapter) for title in re.findall(r"<h[12]>(.*?)<a", pages[f"{part.page}.html"].source)
        ]
        lost = [title for title in headings if plain(re.sub("<[^>]+>|&[a-z]+;", "", title)) not in text]
        assert headings
        assert not [title for title in lost if "katex" not in title]
        assert_read_aloud(pdf, chapter)
        links_arrive(pdf)
        opens_with_title_and_contents(pdf)


def assert_read_aloud(pdf: PdfReader, chapter: str) -> None:
    """What somebody needs who does not see the pages: a title, a language, headings to go by, words for pictures."""
    root = pdf.trailer["/Root"]
    assert root["/MarkInfo"]["/Marked"]
    assert root["/Lang"] == "en"
    assert root["/ViewerPreferences"]["/DisplayDocTitle"]
    listed = [item["/Title"] for item in pdf.outline if not isinstance(item, list)]
    assert plain(pdf.metadata.title).startswith(plain(listed[0]))
    titles = [part.name for part in of(chapter) if part.place]
    assert listed[1:] == titles
    assert sum(isinstance(item, list) and len(item) for item in pdf.outline) > 50
    counted, unnamed = Counter(), []
    stack = [root["/StructTreeRoot"]]
    while stack:
        one = stack.pop().get_object()
        if not isinstance(one, dict):
            continue
        counted[one.get("/S")] += 1
        unnamed += [one] if one.get("/S") == "/Figure" and not one.get("/Alt") else []
        inside = one.get("/K", [])
        stack += inside if isinstance(inside, list) else [inside]
    assert counted["/H1"] == len(of(chapter))
    assert min(counted[name] for name in ("/H2", "/P", "/Link", "/Table", "/TH", "/L", "/Figure")) > 0
    assert not unnamed


def opens_with_title_and_contents(pdf: PdfReader) -> None:
    """A title page with the edition; contents whose numbers are those of the pages on which the parts begin."""
    told = edition(ROOT)
    assert f"Version {told.version} of {told.date}" in pdf.pages[0].extract_text()
    listed = [item for item in pdf.outline if not isinstance(item, list)]
    begins = {item["/Title"]: pdf.get_destination_page_number(item) + 1 for item in listed}
    first = begins[listed[0]["/Title"]]
    assert first > 2
    lines = "\n".join(page.extract_text() for page in pdf.pages[1 : first - 1])
    assert "Contents" in lines
    numbers = Counter(re.findall(r"^\d+$", lines, re.MULTILINE))
    assert not {title: page for title, page in begins.items() if str(page) not in numbers}
    assert numbers.total() > len(listed)


def links_arrive(pdf: PdfReader) -> None:
    """Inside the document, or to somebody else; never into a folder of whoever printed it."""
    notes = [note.get_object() for page in pdf.pages for note in page.get("/Annots", [])]
    inside = [note["/Dest"] for note in notes if "/Dest" in note]
    outside = [note["/A"]["/URI"] for note in notes if "/A" in note]
    assert len(inside) > 50
    assert {name for name in inside if isinstance(name, str)} <= set(pdf.named_destinations)
    assert not [link for link in outside if not link.startswith(("https://", "http://", "mailto:"))]


def test_nothing_is_wider_than_the_paper(folder: Path, printed: list[str], chromium: Any) -> None:
    page = chromium.new_page(viewport={"width": PAPER_WIDTH, "height": 900})
    page.emulate_media(media="print")
    for chapter in printed:
        source = folder / f"on-screen-{chapter}.html"
        told = printing.document([part.page for part in of(chapter)], folder, edition(ROOT))
        source.write_text(told, encoding="utf-8")
        page.goto(source.as_uri())
        source.unlink()
        assert page.evaluate("document.querySelectorAll('details, script').length") == 0
        assert page.evaluate("[...document.images].filter(image => !image.naturalWidth).length") == 0
        assert page.evaluate(CUT) == []
    page.close()


def test_an_answer_that_was_folded_stands_at_the_end_of_its_part(folder: Path) -> None:
    name = "1_inner_loop/1_three_loops"
    told = printing.document([name], folder, edition(ROOT))
    question, _, answers = told.partition(">Answers</h2>")
    assert 'href="#1_inner_loop_1_three_loops--answer-1"' in question
    assert 'id="1_inner_loop_1_three_loops--answer-1"' in answers
    assert "The working" in question
    assert "Source: " in answers


def test_what_cannot_print_is_named(tmp_path: Path) -> None:
    with pytest.raises(printing.PrintError, match="could not be printed by"):
        printing._print("no-such-browser", tmp_path / "a.html", tmp_path / "a.pdf", str(tmp_path))


def test_without_a_browser_a_sentence_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(printing.shutil, "which", lambda name: None)
    monkeypatch.setattr(printing, "PLACES", ())
    assert printing.browser() == ""
    assert "apt install chromium" in printing.MISSING
