"""The chapters as PDFs: the pages of each one after the other, printed by the Chromium that is installed.

On paper nothing can be unfolded. What a prediction is held against stands where it was found, since the text goes on
from there; every other folded answer stands at the end of its part; folded code, which gets things ready, is left out.
"""

import os
import posixpath
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pikepdf
from bs4 import BeautifulSoup

from threeloops.site.front import printed as front
from threeloops.site.front.edition import Edition
from threeloops.site.parts import Part, slug

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome", "msedge")
# where they lie on machines that have no such commands
PLACES = (
    "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
    "/Applications/Chromium.app/Contents/MacOS/Chromium",
    r"C:\Program Files\Google\Chrome\Application\chrome.exe",
    r"C:\Program Files (x86)\Microsoft\Edge\Application\msedge.exe",
)
MISSING = (
    "The chapters were not printed as PDFs: no Chromium, Chrome or Edge was found here. Install one (on Debian and"
    " Ubuntu: apt install chromium) and build again."
)
LONGEST_S = 300
STYLES = ("pages.css", "print.css")
# what code is coloured with where it has the colour of all text: a tag for each would be half of the file
UNCOLOURED = ", ".join(f".highlight span.{name}" for name in ("n", "nn", "nx", "p", "pm", "w"))
LEFT_OUT = "a.headerlink, script, .tl-slim, details.hide, .explorer .tl-table, .on-the-page"
NOTE = (
    "Printed from the book's pages. Results of predictions stand where the text goes on from them; the answers to"
    " everything else stand at the end of each part. Pictures that move on the pages stand still here, and code that"
    " only gets things ready is left out."
)


class PrintError(ValueError):
    """A chapter could not be printed; one sentence says why."""


def browser() -> str:
    """The program that prints; empty where there is none."""
    found = (shutil.which(name) for name in BROWSERS)
    return next(filter(None, (*found, *(place for place in PLACES if Path(place).is_file()))), "")


def chapters(pages: Iterable[Part]) -> list[str]:
    """What can be printed: "1_inner_loop", and so on."""
    return list(dict.fromkeys(posixpath.dirname(part.page) for part in pages))


def file(chapter: str) -> str:
    """The PDF of a chapter, from the folder of pages.

    >>> file("1_inner_loop")
    '1_inner_loop/1_inner_loop.pdf'
    """
    return f"{chapter}/{chapter}.pdf"


def write(chapter: str, pages: Sequence[Part], folder: Path, program: str, told: Edition) -> Path:
    """Print a chapter whose pages lie in a folder, into that folder: a title page, contents, its parts.

    Raises:   PrintError, where the browser fails
    """
    printed = [part for part in pages if posixpath.dirname(part.page) == chapter]
    source, pdf = folder / f"print-{chapter}.html", folder / file(chapter)
    text = document([part.page for part in printed], folder, told)
    source.write_text(text, encoding="utf-8")
    try:
        with tempfile.TemporaryDirectory() as profile:
            _print(program, source, pdf, profile)
    finally:
        source.unlink()
    _finish(pdf, headings(text))
    return pdf


def _print(program: str, source: Path, printed: Path, profile: str) -> None:
    command = [
        *(program, "--headless", "--disable-gpu", f"--user-data-dir={profile}", "--no-first-run"),
        *(["--no-sandbox"] if hasattr(os, "geteuid") and os.geteuid() == 0 else []),  # root has none
        *("--no-pdf-header-footer", "--generate-pdf-document-outline"),  # with tags, unless told otherwise
        *(f"--print-to-pdf={printed}", source.as_uri()),
    ]
    try:
        done = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=LONGEST_S)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise PrintError(f"{printed.name} could not be printed by {program}: {error}") from error
    if done.returncode or not printed.is_file():
        raise PrintError(f"{printed.name} could not be printed by {program}: {done.stderr.strip()[-300:]}")


def _finish(pdf: Path, titles: Sequence[str]) -> None:
    """Write the list beside the pages as the headings are written (a browser runs the lines of one together), number
    the contents, and pack the tags, which are two thirds of the file otherwise.
    """
    with pikepdf.open(pdf, allow_overwriting_input=True) as made:
        with made.open_outline() as outline:
            entries = list(_each(outline.root))
            if len(entries) != len(titles):
                raise PrintError(f"{pdf.name} lists {len(entries)} headings, and its pages have {len(titles)}")
            for entry, title in zip(entries, titles, strict=True):
                entry.title = title
        begins = entries[0].destination[0].objgen
        front.number(made, next(place for place, page in enumerate(made.pages) if page.obj.objgen == begins))
        made.save(pdf, object_stream_mode=pikepdf.ObjectStreamMode.generate)


def _each(entries: Iterable[pikepdf.OutlineItem]) -> Iterator[pikepdf.OutlineItem]:
    for entry in entries:
        yield entry
        yield from _each(entry.children)


def headings(text: str) -> list[str]:
    """The headings of a document, one after the other.

    >>> headings("<h1>1 Three <em>loops</em></h1><p>So.</p><h2>Draw it</h2>")
    ['1 Three loops', 'Draw it']
    """
    found = BeautifulSoup(text, "html.parser").find_all(re.compile(r"h[1-6]$"))
    return [" ".join(one.get_text().split()) for one in found]


def document(names: Sequence[str], folder: Path, told: Edition) -> str:
    """Pages as one document that lies in their folder."""
    linked = "".join(f'<link rel="stylesheet" href="_static/{style}">' for style in STYLES)
    articles = [_article(name, names, folder) for name in names]
    title = articles[0].find("h1")
    opening = front.title_page(told, title.get_text(), NOTE) + front.contents(articles)
    return (
        f'<!doctype html><html lang="en" data-theme="light" data-mode="light"><head><meta charset="utf-8">'
        f"<title>{title.get_text()} · Three Loops</title>{linked}</head>"
        f"<body>{opening}{''.join(map(str, articles))}</body></html>"
    )


def _article(name: str, names: Sequence[str], folder: Path) -> Any:
    """What stands on a page, ready to be printed beside the others."""
    page: Any = BeautifulSoup((folder / f"{name}.html").read_text(encoding="utf-8"), "html.parser")
    article = page.select_one("article.bd-article")
    for one in article.select(LEFT_OUT):
        one.decompose()
    for one in article.select(UNCOLOURED):
        one.unwrap()
    for figure in article.select("figure"):  # its drawing is the one that has words for it
        figure.name = "div"
    for result in article.select("details.outcome"):
        result.summary.name, result.name = "p", "div"
    _gather(article, page)
    _rename(article, name)
    for image in article.select("img"):
        image["src"] = posixpath.normpath(posixpath.join(posixpath.dirname(name), image["src"]))
        del image["loading"]
    for link in article.select("a[href]"):
        to = target(link["href"], name, names)
        if to:
            link["href"] = to
        else:
            link.unwrap()
    article["id"] = slug(name)
    return article


def _gather(article: Any, page: Any) -> None:
    """Folded answers, at the end under their numbers, with links there and back."""
    folded = [details for details in article.select("details") if not details.find_parent("details")]
    if not folded:
        return
    heading = page.new_tag("h2", id="answers")
    heading.string = "Answers"
    article.append(heading)
    for number, details in enumerate(folded, 1):
        name = details.summary.get_text(" ", strip=True)
        details.summary.extract()
        here = BeautifulSoup(
            f'<p class="print-answer" id="asked-{number}">{name}: <a href="#answer-{number}">answer {number}</a> at the'
            " end of this part</p>",
            "html.parser",
        )
        details.replace_with(here)
        details.name = "div"
        title = BeautifulSoup(
            f'<p class="print-answer" id="answer-{number}"><a href="#asked-{number}">Answer {number}</a></p>',
            "html.parser",
        )
        article.append(title)
        article.append(details)


def _rename(article: Any, name: str) -> None:
    """Names that are this page's own. What a drawing names inside itself is so already."""
    for one in article.select("[id]"):
        if not one.find_parent("svg"):
            one["id"] = f"{slug(name)}--{one['id']}"


def target(link: str, page: str, names: Sequence[str]) -> str:
    """Where a link of a page leads in the document; nowhere, for one to a page that is not in it.

    >>> target("2_roofline.html#c1-ridge", "1_inner_loop/index", ["1_inner_loop/2_roofline"])
    '#1_inner_loop_2_roofline--c1-ridge'
    >>> target("../drills/kv_cache.html", "1_inner_loop/index", ["1_inner_loop/index"])
    ''
    """
    if re.match(r"[a-z]+:", link):
        return link
    path, _, anchor = link.partition("#")
    found = posixpath.normpath(posixpath.join(posixpath.dirname(page), path)).removesuffix(".html") if path else page
    if found not in names:
        return ""
    return f"#{slug(found)}--{anchor}" if anchor else f"#{slug(found)}"
