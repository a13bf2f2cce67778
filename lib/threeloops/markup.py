"""Markup: HTML out of elements. What is not markup is text, and is escaped; so nothing that a reader, a model or a file
says becomes a tag.

>>> print(element("p", "1 < 2, ", element("code", "a & b"), class_="said"))
<p class="said">1 &lt; 2, <code>a &amp; b</code></p>
>>> print(element("div", [element("i", style="flex:1"), None], aria_hidden="true", hidden=True))
<div aria-hidden="true" hidden><i style="flex:1"></i></div>
"""

from collections.abc import Iterable
from html import escape
from typing import TypeAlias


class Markup(str):
    """HTML that has been made, or is written in our own source."""

    __slots__ = ()


Content: TypeAlias = "str | Iterable[Content] | None"


def text(*inside: Content) -> Markup:
    """Markup one after the other, with all else as text.

    >>> print(text("a < b", Markup("<br>"), ["c", None]))
    a &lt; b<br>c
    """
    return Markup("".join(map(_one, inside)))


def _one(inside: Content) -> str:
    if isinstance(inside, Markup) or inside is None:
        return inside or ""
    return escape(inside) if isinstance(inside, str) else "".join(map(_one, inside))


def lines(*rows: Content) -> Markup:
    """The same, a line each.

    >>> print(lines("a", ["b", Markup("<hr>")]))
    a
    b
    <hr>
    """
    flat = (row for each in rows for row in ([each] if isinstance(each, str) else each or ()))
    return Markup("\n".join(map(_one, flat)))


def element(tag: str, *inside: Content, **attributes: object) -> Markup:
    """An element. Attributes are written with hyphens, `class_` as `class`; True has no value, None is left out."""
    named = {name.rstrip("_").replace("_", "-"): value for name, value in attributes.items()}
    said = "".join(
        f" {name}" if value is True else f' {name}="{escape(str(value))}"'
        for name, value in named.items()
        if value is not None
    )
    return Markup(f"<{tag}{said}>{text(*inside)}</{tag}>")


def each(tag: str, contents: Iterable[Content], **attributes: object) -> list[Markup]:
    """An element around each.

    >>> print(*each("li", ["a", "b"]))
    <li>a</li> <li>b</li>
    """
    return [element(tag, inside, **attributes) for inside in contents]


def table(
    head: Iterable[Content], rows: Iterable[Iterable[Content]], *, caption: Content = None, **attributes: object
) -> Markup:
    """A table of cells; a plain one is text of its row, a `td`, and a column's name over it a `th`.

    >>> print(table(["a"], [["<1>"]]))
    <table><thead><tr><th scope="col">a</th></tr></thead><tbody><tr><td>&lt;1&gt;</td></tr></tbody></table>
    """
    names = [_cell(cell, "th", scope="col") for cell in head]
    body = [element("tr", [_cell(cell, "td") for cell in row]) for row in rows]
    return element(
        "table",
        caption,
        element("thead", element("tr", names)) if names else None,
        element("tbody", body),
        **attributes,
    )


def _cell(cell: Content, tag: str, **attributes: object) -> Markup:
    """What is a cell already stays one."""
    is_cell = isinstance(cell, Markup) and cell.startswith(("<td", "<th"))
    return text(cell) if is_cell else element(tag, cell, **attributes)


def page(title: str, body: Markup, style: str) -> Markup:
    """A file that needs nothing beside it."""
    return lines(
        Markup('<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">'),
        Markup('<meta name="viewport" content="width=device-width, initial-scale=1">'),
        element("title", title),
        Markup(f"<style>\n{style}\n</style>\n</head>\n<body>\n{body}\n</body>\n</html>\n"),
    )
