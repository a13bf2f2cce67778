"""What the head of every page tells those who only pass it on: its description, a picture, its address; a sitemap; and
the page that stands in for what is not there.

Sphinx writes the canonical address itself, from html_baseurl. Without an address nothing here names one, and no picture
is named either, since a picture's address has to be a whole one.

Sources:  The Open Graph protocol, https://ogp.me; sitemaps.org, Protocol, https://www.sitemaps.org/protocol.html
"""

import html
import re
from collections.abc import Iterable
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import urlsplit

LONGEST = 200  # letters of a description: about what a search engine shows
SHORTEST = 40  # fewer say too little
PARAGRAPH = re.compile(r"<p(?: class=\"front-[a-z]+\")?>(.*?)</p>", re.DOTALL)
NO_WORDS = re.compile(r"<(script|style|details|pre)\b.*?</\1>", re.DOTALL)
QUESTION = "The question. "
PASSED = ("In JupyterLab,",)  # paragraphs that every page has
CARD = PurePosixPath("_static/card.png")  # the picture of a link that is passed on
LOST = "404"
MISSING = """---
orphan: true
no-search: true
html_theme.sidebar_secondary.remove: true
---
# This page is not here

It may have moved: parts are named by their chapter and number, like 1.2. [The first page](index.md) leads to all of
them, and [the terms](terms.md) say where each is explained. The magnifying glass above searches all pages.
"""


def description(body: str) -> str:
    """What a page is about, in a sentence or two: the question that its part answers, or its first paragraph.

    >>> description(
    ...     "<p><strong>In JupyterLab,</strong> as a copy of your own to write in, type a line.</p><p><strong>"
    ...     "The question.</strong> How fast can it run at best?<br /><strong>You need</strong> time.</p>"
    ... )
    'How fast can it run at best?'
    """
    told = []
    for match in PARAGRAPH.finditer(NO_WORDS.sub("", body)):
        if 'class="katex' in match[1]:
            continue
        words = " ".join(html.unescape(re.sub(r"<[^>]+>", "", match[1].partition("<br")[0])).split())
        if words.startswith(QUESTION):
            return shortened(words.removeprefix(QUESTION))
        if not words.startswith(PASSED):
            told.append(words)
    return shortened(next((words for words in told if len(words) >= SHORTEST), told[0] if told else ""))


def shortened(words: str) -> str:
    """Words, cut between two of them where they are too many.

    >>> shortened("word " * 50)[-11:]
    'word word …'
    """
    return words if len(words) <= LONGEST else words[: LONGEST - 2].rpartition(" ")[0] + " …"


def tags(page: str, title: str, said: str, address: str) -> str:
    """The tags of one page."""
    about = {"og:title": title, "og:description": said, "og:type": "website", "og:site_name": "Three Loops"}
    if address:
        about |= {"og:url": address_of(page, address), "og:image": f"{address}{CARD}"}
    named = {"description": said, **({"robots": "noindex"} if page == LOST else {})}
    named |= {"twitter:card": "summary_large_image"} if address else {}
    lines = [f'<meta name="{name}" content="{html.escape(value)}" />' for name, value in named.items()]
    lines += [f'<meta property="{name}" content="{html.escape(value)}" />' for name, value in about.items()]
    if page == LOST:  # shown at any address: its links begin at the top
        lines.insert(0, f'<base href="{urlsplit(address).path or "/"}" />')
    return "\n    ".join(lines)


def address_of(page: str, address: str) -> str:
    """Where a page stands.

    >>> address_of("1_inner_loop/2_roofline", "https://example.org/")
    'https://example.org/1_inner_loop/2_roofline.html'
    """
    return f"{address}{page}.html"


def sitemap(pages: Iterable[str], address: str) -> str:
    """Every page, for search engines.

    >>> sitemap(["index", "404"], "https://example.org/").count("<loc>")
    1
    """
    listed = [
        f"<url><loc>{html.escape(address_of(page, address))}</loc></url>" for page in sorted(pages) if page != LOST
    ]
    lines = ['<?xml version="1.0" encoding="utf-8"?>', '<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">']
    return "\n".join([*lines, *listed, "</urlset>", ""])


def setup(app: Any) -> dict[str, bool]:
    """Sphinx's door."""
    app.add_config_value("threeloops_title", "", "html")

    def tell(_: Any, page: str, __: str, context: dict[str, Any], ___: Any) -> None:
        title = app.config.threeloops_title
        if page == "index":  # its heading is the book's name, which would stand there twice
            context |= {"title": title or context["title"], "docstitle": ""}
        named = html.unescape(re.sub(r"<[^>]+>", "", str(context.get("title", ""))))
        told = tags(page, named, description(context.get("body", "")) or title, app.config.html_baseurl)
        # docutils adds a viewport to the layout's own
        kept = re.sub(r'<meta [^>]*name="viewport"[^>]*>', "", context.get("metatags", "") or "")
        context["metatags"] = f"{kept}\n    {told}\n"

    def write_sitemap(_: Any, error: Exception | None) -> None:
        if error is None and app.config.html_baseurl:
            pages = sitemap(app.env.found_docs, app.config.html_baseurl)
            (Path(app.outdir) / "sitemap.xml").write_text(pages, encoding="utf-8")

    app.connect("html-page-context", tell)
    app.connect("build-finished", write_sitemap)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
