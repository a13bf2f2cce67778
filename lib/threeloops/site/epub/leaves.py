"""A page of the book as a leaf of an EPUB: XHTML with formulas as MathML and pictures as files of their own.

A script is nothing that an e-reader runs. What a prediction is held against stays folded where the text goes on from
it (a reader that folds nothing shows it); every other folded answer stands at the end of its part, linked there and
back; folded code, which gets things ready, is left out.

Sources:  W3C, EPUB 3.3, https://www.w3.org/TR/epub-33/; W3C, MathML Core, https://www.w3.org/TR/mathml-core/
"""

import posixpath
import re
from collections.abc import Callable, Iterator, Mapping, Set
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote

from lxml import etree, html

from threeloops.site.parts import slug

XHTML, MATHML = "http://www.w3.org/1999/xhtml", "http://www.w3.org/1998/Math/MathML"
DRAWING = re.compile(r"<svg\b.*?</svg>", re.DOTALL)
LEFT_OUT = ("headerlink", "on-the-page", "hide", "tl-table", "katex-html")
KEPT = ("id", "class", "href", "src", "alt", "width", "colspan", "rowspan", "scope", "start", "lang", "tabindex")
TOKENS, SCRIPTS = ("mi", "mn", "mo", "mtext"), ("msub", "msup")
APPLIED = "\u2061"  # the sign that a function is applied, which nobody sees
PICTURES = "pictures"
ABSOLUTE = re.compile(r"[a-z]+:")


@dataclass(frozen=True, slots=True, kw_only=True)
class Leaf:
    """A page, ready to be bound with the others."""

    page: str  # "1_inner_loop/2_roofline"
    title: str
    article: Any  # its tree
    drawings: Mapping[str, str] = field(default_factory=dict)  # file name -> SVG
    pictures: tuple[str, ...] = ()  # file names in the folder of all pictures

    @property
    def file(self) -> str:
        return leaf_file(self.page)

    @property
    def ids(self) -> set[str]:
        """The names in it that a link may lead to."""
        return set(self.article.xpath("//@id"))

    @property
    def has_formulas(self) -> bool:
        return next(self.article.iter("math"), None) is not None


def leaf_file(page: str) -> str:
    """What the leaf of a page is called.

    >>> leaf_file("1_inner_loop/2_roofline")
    '1_inner_loop_2_roofline.xhtml'
    """
    return f"{slug(page)}.xhtml"


def leaf(page: str, source: str) -> Leaf:
    """A built page as a leaf; its links are those of the page still."""
    drawn: list[str] = []

    def aside(match: re.Match[str]) -> str:
        drawn.append(match[0])
        return f'<img class="drawing" src="{len(drawn) - 1}">'

    (article,) = html.document_fromstring(DRAWING.sub(aside, source)).xpath("//article")
    for one in list(article.iter(etree.Element)):
        if _out_of_place(one):
            one.drop_tree()
    for one in _of(article, "span", "katex"):
        _as_mathml(one)
    for one in _of(article, "div", "highlight"):
        (code,) = one.iter("pre")
        text = code.text_content()
        code.clear(keep_tail=True)
        code.text = text
    drawings = _drawn(article, page, drawn)
    pictures = []
    for one in article.xpath(".//img[not(@class='drawing')]"):
        pictures.append(posixpath.basename(one.get("src")))
        width = re.match(r"width: ([\d.]+)px", one.get("style", ""))
        one.set("src", f"{PICTURES}/{pictures[-1]}")
        if width:
            one.set("width", f"{float(width[1]):.0f}")
    for one in _of(article, "a", "image-reference"):
        one.drop_tag()
    title = " ".join(next(article.iter("h1")).text_content().split())
    _answers_last(article)
    return Leaf(page=page, title=title, article=article, drawings=drawings, pictures=tuple(pictures))


def _classes(one: Any) -> Set[str]:
    return set(one.get("class", "").split())


def _of(article: Any, tag: str, name: str) -> list[Any]:
    return [one for one in article.iter(tag) if name in _classes(one)]


def _out_of_place(one: Any) -> bool:
    """What only a page in a browser has a use for, and what a script has to show; of a drawing in two forms, the wide
    one.
    """
    if one.tag in ("script", "style", "button", "noscript") or "hidden" in one.attrib:
        return True
    slim = "tl-wide" in _classes(one) and any("tl-slim" in _classes(other) for other in one.itersiblings())
    return slim or any(name in _classes(one) for name in LEFT_OUT)


def _as_mathml(one: Any) -> None:
    """KaTeX's formula as its MathML alone; its TeX is read where a reader cannot set it."""
    formula = next(one.iter("math"))
    semantics = formula[0]
    formula.set("alttext", " ".join(semantics[-1].text.split()))
    formula[:] = [semantics[0]]
    for sign in list(formula.iter(*TOKENS)):
        if len(sign):  # KaTeX sets \bmod as a row of letters within an operator: a sign holds text alone
            text = sign.text_content()
            sign[:] = []
            sign.text = text
        if sign.text == APPLIED and sign.getparent().tag in SCRIPTS:  # of w_{\max}, as if it were a third script
            sign.drop_tree()
    formula.tail = one.tail
    one.getparent().replace(one, formula)


def _drawn(article: Any, page: str, drawn: list[str]) -> dict[str, str]:
    """The drawings that stand on a leaf, as files; on the leaf each has the words that its frame had."""
    found = {}
    for one in _of(article, "img", "drawing"):
        name = f"{slug(page)}_{one.get('src')}.svg"
        svg = drawn[int(one.get("src"))]
        (frame,) = one.xpath("ancestor::*[@role='img']")
        one.set("alt", frame.get("aria-label"))
        one.set("src", f"{PICTURES}/{name}")
        found[name] = svg if "xmlns=" in svg else svg.replace("<svg ", '<svg xmlns="http://www.w3.org/2000/svg" ', 1)
    return found


def _answers_last(article: Any) -> None:
    """Folded answers, at the end under their numbers, with links there and back."""
    folded = [one for one in article.iter("details") if "outcome" not in _classes(one)]
    folded = [one for one in folded if not any(other in folded for other in one.iterancestors("details"))]
    if not folded:
        return
    end = html.fragment_fromstring('<section><h2 id="answers">Answers</h2></section>')
    for number, details in enumerate(folded, 1):
        summary = details[0]
        name = " ".join(summary.text_content().split())
        there = f'<a href="#answer-{number}">answer {number}</a> at the end of this part'
        here = html.fragment_fromstring(f'<p class="asked" id="asked-{number}"><span></span>: {there}</p>')
        here[0].text = name
        here.tail = details.tail
        details.getparent().replace(details, here)
        details.tail = None
        summary.drop_tree()
        details.tag = "div"
        back = html.fragment_fromstring(f'<p id="answer-{number}"><a href="#asked-{number}">Answer {number}</a></p>')
        end.extend([back, details])
    article.append(end)


def bound(one: Leaf, lead: Callable[[str, str], str]) -> bytes:
    """A leaf as a file. `lead(link, page)` says where a link of a page leads in the book; nothing, for one that leads
    nowhere here.
    """
    root = etree.Element(_named("html"), nsmap={None: XHTML})
    root.set("lang", "en")
    root.set("{http://www.w3.org/XML/1998/namespace}lang", "en")
    head = etree.SubElement(root, _named("head"))
    etree.SubElement(head, _named("title")).text = one.title
    etree.SubElement(head, _named("link"), rel="stylesheet", type="text/css", href="book.css")
    body = etree.SubElement(root, _named("body"))
    for link in list(one.article.iter("a")):
        to = lead(link.get("href", ""), one.page) if link.get("href") else ""
        if to:
            link.set("href", to)
        elif link.get("id"):
            link.tag = "span"
        else:
            link.drop_tag()
    body.append(_copied(one.article))
    made: bytes = etree.tostring(root, encoding="utf-8", xml_declaration=True, doctype="<!DOCTYPE html>")
    return made


def _named(tag: str, space: str = XHTML) -> str:
    return f"{{{space}}}{tag}"


def _copied(one: Any, space: str = XHTML) -> Any:
    """A tree in XML's own words, with what an EPUB may say."""
    space = MATHML if one.tag == "math" else space
    made = etree.Element(_named(one.tag, space), nsmap={None: space})
    for name, value in one.attrib.items():
        if name in KEPT or (space == MATHML and name != "xmlns"):
            made.set(name, value)
    made.text, made.tail = one.text, one.tail
    made.extend([_copied(child, space) for child in _elements(one)])
    return made


def _elements(one: Any) -> Iterator[Any]:
    """What stands in an element, without comments; the words behind a comment are kept."""
    for comment in one.xpath("./comment()"):
        comment.drop_tree()
    yield from one


def leader(leaves: Mapping[str, Leaf], address: str) -> Callable[[str, str], str]:
    """Where links lead in a book of these leaves: to another leaf, to the pages at their address where one is set, or
    elsewhere as they did.
    """
    names = {page: one.ids for page, one in leaves.items()}

    def lead(link: str, page: str) -> str:
        if ABSOLUTE.match(link):
            return link
        path, _, anchor = unquote(link).partition("#")
        found = posixpath.normpath(posixpath.join(posixpath.dirname(page), path)) if path else f"{page}.html"
        to = found.removesuffix(".html")
        if to not in names:
            return f"{address}{found}" + (f"#{anchor}" if anchor else "") if address else ""
        return leaves[to].file + (f"#{anchor}" if anchor in names[to] else "")

    return lead
