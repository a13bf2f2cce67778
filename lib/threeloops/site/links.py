"""Where the links of the notebooks lead on the pages: a heading's anchor becomes the name of that heading, a drill
set its page.
"""

import posixpath
import re
from collections.abc import Mapping
from pathlib import PurePosixPath
from urllib.parse import unquote

from threeloops.site.parts import FENCE, Part, headings, label, plain, slug, text

LINK = re.compile(r"\]\((?P<to>[^)\s]*)\)")
HTML_LINK = re.compile(r'href="(?P<to>[^"]*)"')


class Places:
    """Every heading of the book: its name, and the page that it is on."""

    def __init__(self, pages: list[Part]) -> None:
        self._pages: dict[tuple[str, str], str] = {}  # (notebook, heading as it is compared) -> page
        for part in pages:
            for cell in part.cells:
                if cell["cell_type"] == "markdown":
                    for _, _, heading in headings(text(cell)):
                        self._pages[part.notebook, plain(heading)] = part.page
            self._pages.setdefault((part.notebook, ""), part.page)

    def to(self, link: str, notebook: str) -> tuple[str, str] | None:
        """(page, name on it) that a link in a notebook means; None for one that leaves the book.

        Raises:   ValueError for a link inside the book that leads nowhere
        """
        if re.match(r"[a-z]+:", link):
            return None
        path, _, anchor = unquote(link).partition("#")
        target = posixpath.normpath(posixpath.join(posixpath.dirname(notebook), path)) if path else notebook
        if target.startswith("drills/"):
            return f"drills/{PurePosixPath(target).stem}", ""
        page = self._pages.get((target, plain(anchor)))
        if page is None:
            raise ValueError(f"{notebook}: the link to {link!r} leads to no heading of the book")
        return page, label(PurePosixPath(target).name.partition("_")[0], anchor) if anchor else ""


def page_label(page: str) -> str:
    """The name of a page that links lead to.

    >>> page_label("drills/kv_cache")
    'page-drills-kv-cache'
    """
    return "page-" + slug(page).replace("_", "-")


def address(page: str, name: str, *, seen_from: str) -> str:
    """The relative address of a place.

    >>> address("drills/kv_cache", "", seen_from="3_product_loop/3_the_kv_cache")
    '../drills/kv_cache.html'
    >>> address("1_inner_loop/2_roofline", "c1-ridge", seen_from="1_inner_loop/index")
    '2_roofline.html#c1-ridge'
    """
    way = posixpath.relpath(page + ".html", posixpath.dirname(seen_from) or ".")
    return f"{way}#{name}" if name else way


def rewritten(source: str, part: Part, known: Places) -> str:
    """A markdown source as the page needs it: links that arrive, a name before every heading, one level higher."""

    def markdown(match: re.Match[str]) -> str:
        found = known.to(match["to"], part.notebook)
        if found is None:
            return match[0]
        page, name = found
        return f"](#{name or page_label(page)})"

    def html(match: re.Match[str]) -> str:
        found = known.to(match["to"], part.notebook)
        return match[0] if found is None else f'href="{address(*found, seen_from=part.page)}"'

    chapter = PurePosixPath(part.notebook).name.partition("_")[0]
    marked: Mapping[int, str] = {number: title for number, _, title in headings(source)}
    lines, fenced = [], False
    for number, line in enumerate(source.splitlines()):
        fenced ^= bool(FENCE.match(line))
        if number in marked:
            raised = line if part.place is None and line.startswith("# ") else line.replace("#", "", 1)
            lines += [f"({label(chapter, marked[number])})=", raised]
        else:
            lines.append(line if fenced else HTML_LINK.sub(html, LINK.sub(markdown, line)))
    return "\n".join(lines)
