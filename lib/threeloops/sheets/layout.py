"""A page of tables: the same content as plain lines for a terminal and as HTML to print.

>>> print(
...     as_text(
...         Page(
...             title="Bytes", intro="Two.", tables=(Table(title="", head=("format", "bytes"), rows=(("bf16", "2"),)),)
...         )
...     )
... )
Bytes
=====
Two.
<BLANKLINE>
format  bytes
bf16    2
"""

import dataclasses
import re
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass

from threeloops import markup
from threeloops.markup import Content, Markup, each, element, lines, text

WIDTH = 118  # characters of a wide terminal, and of a landscape page
# What a reader can open: a paper by its number, a page by an address without its scheme.
ADDRESS = re.compile(
    r"arXiv:(?P<arxiv>\d{4}\.\d{4,5})|doi:(?P<doi>10\.\d{4,}/[^\s,;()]*[^\s,;().])"
    r"|(?P<page>(?:[a-z0-9-]+\.)+[a-z]{2,}/[^\s,;()]*[^\s,;().])"
)
BREAK = "\N{ZERO WIDTH SPACE}"  # a long address may go on in the next line
NARROWEST = 16  # characters that a wrapped column keeps
STYLE = """
@page { size: A4 landscape; margin: 8mm }
body { font: 7.9pt/1.18 "Helvetica Neue", Arial, sans-serif; color: #000; background: #fff; margin: 0 auto; max-width: 278mm }
section { break-after: page } section:last-child { break-after: auto }
h1 { font-size: 13pt; margin: 0 0 2pt } h2 { font-size: 9.5pt; margin: 5pt 0 1pt } p { margin: 1pt 0 }
table { border-collapse: collapse; width: 100% } th, td { text-align: left; vertical-align: top; padding: .6pt 6pt .6pt 0; border-top: .4pt solid #888 }
thead th { border-top: 0 } section > .sources { font-size: 6.4pt; margin-top: 4pt } pre { font: 8pt/1.25 monospace; margin: 2pt 0; white-space: pre-wrap }
@media screen { body { padding: 1em } }
""".strip()  # noqa: E501


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """Rows under a head, the last column wrapped where a line is too narrow."""

    title: str
    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    note: str = ""

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, str]:
        """In a notebook: a table that takes the page's own colours, and the same as plain lines."""
        return {"text/markdown": as_markdown(self), "text/plain": "\n".join(_text_table(self))}


@dataclass(frozen=True, slots=True, kw_only=True)
class Folded:
    """Long tables in a notebook: each opens under its title."""

    tables: tuple[Table, ...]

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, str]:
        """As markdown, and the titles as plain lines."""
        folds = [
            f"<details><summary>{text(table.title)}</summary>\n\n"
            f"{as_markdown(dataclasses.replace(table, title=''))}\n\n</details>"
            for table in self.tables
        ]
        return {"text/markdown": "\n\n".join(folds), "text/plain": "\n".join(table.title for table in self.tables)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """One printed page."""

    title: str
    intro: str
    tables: tuple[Table, ...] = ()
    listing: str = ""  # code, as it stands
    sources: tuple[str, ...] = ()


def as_text(page: Page) -> str:
    """For a terminal."""
    parts = ["\n".join([page.title, "=" * len(page.title), *_filled(page.intro)])]
    parts += ["\n".join(_text_table(table)) for table in page.tables]
    parts += [page.listing.rstrip()] if page.listing else []
    parts += (
        ["\n".join(["Sources", *(line for source in page.sources for line in _filled(source, hang="  "))])]
        if page.sources
        else []
    )
    return "\n\n".join(parts)


def as_markdown(table: Table) -> str:
    """For a notebook or a code host.

    >>> print(as_markdown(Table(title="", head=("format", "bytes"), rows=(("bf16", "2"), ("a|b", "*")))))
    | format | bytes |
    | --- | --- |
    | bf16 | 2 |
    | a\\|b | \\* |
    """
    rows = [table.head, ("---",) * len(table.head), *(tuple(map(escaped, row)) for row in table.rows)]
    lines = [f"**{table.title}**", ""] if table.title else []
    lines += [f"| {' | '.join(row)} |" for row in rows]
    return "\n".join([*lines, "", table.note] if table.note else lines)


def escaped(cell: str) -> str:
    """Plain words as markdown that shows them as they are; papers and pages can be clicked.

    >>> print(escaped("a|b * c"))
    a\\|b \\* c
    >>> print(escaped("Dao, 2023, arXiv:2307.08691"))
    Dao, 2023, [arXiv:2307.08691](https://arxiv.org/abs/2307.08691)
    """
    shown, end = [], 0
    for match in ADDRESS.finditer(cell):
        named = _plain(match[0]).replace("/", "/" + BREAK if match["page"] else "/")
        shown += [_plain(cell[end : match.start()]), f"[{named}]({_address(match)})"]
        end = match.end()
    return "".join([*shown, _plain(cell[end:])])


def _plain(words: str) -> str:
    return re.sub(r"([|*_`<\[\]$])", r"\\\1", words).replace("\n", "<br>")


def _address(match: re.Match[str]) -> str:
    if match["arxiv"]:
        return f"https://arxiv.org/abs/{match['arxiv']}"
    return f"https://doi.org/{match['doi']}" if match["doi"] else f"https://{match['page']}"


def as_html(title: str, pages: Sequence[Page]) -> str:
    """One self-contained file, a printed page for each."""
    return markup.page(title, lines(map(_html_page, pages)), STYLE)


def _filled(text: str, *, hang: str = "") -> list[str]:
    return [
        line
        for paragraph in text.splitlines()
        for line in textwrap.wrap(paragraph, WIDTH, subsequent_indent=hang) or [""]
    ]


def _text_table(table: Table) -> list[str]:
    """Columns as wide as they need, the widest ones narrowed and wrapped until a line fits."""
    rows = [table.head, *table.rows]
    widths = [max(len(row[column]) for row in rows) for column in range(len(table.head))]
    while sum(widths) + 2 * (len(widths) - 1) > WIDTH and max(widths) > NARROWEST:
        widths[widths.index(max(widths))] -= 1
    lines = [table.title] if table.title else []
    for row in rows:
        cells = [textwrap.wrap(cell, width) or [""] for cell, width in zip(row, widths, strict=True)]
        for deep in range(max(map(len, cells))):
            placed = [
                (cell[deep] if deep < len(cell) else "").ljust(width) for cell, width in zip(cells, widths, strict=True)
            ]
            lines.append("  ".join(placed).rstrip())
    return lines + (_filled(table.note) if table.note else [])


def _html_page(page: Page) -> Markup:
    rows: list[Content] = [element("h1", page.title), *each("p", filter(None, page.intro.splitlines()))]
    for table in page.tables:
        rows += each("h2", [table.title]) if table.title else []
        rows.append(markup.table(map(_broken, table.head), [map(_broken, row) for row in table.rows]))
        rows += each("p", [table.note]) if table.note else []
    rows += each("pre", [page.listing]) if page.listing else []
    rows += each("p", [f"Sources: {' · '.join(page.sources)}"], class_="sources") if page.sources else []
    return lines(Markup("<section>"), rows, Markup("</section>"))


def _broken(cell: str) -> list[Content]:
    """The name of a function may go on in the next line."""
    first, *rest = re.split(r"(?<=[a-z][_.])(?=[a-z])", cell)
    return [first, *([Markup("<wbr>"), piece] for piece in rest)]
