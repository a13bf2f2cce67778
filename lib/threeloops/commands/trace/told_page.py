"""Told page: lines, tables and suspects, as text for a terminal or as one HTML file that needs nothing beside it.
`threeloops trace` and `threeloops log` write with it.

>>> as_rows(["run.json: 3 steps", Table([("time", "share"), ("computes", "80 %")])])
['run.json: 3 steps', '  time      share', '  computes   80 %']
>>> html_page([Table([("of the time", ""), ("computes <all>", "80 %")])], title="t", suspects=[]).count(
...     "computes &lt;all&gt;"
... )
1
"""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple, Protocol

from threeloops import markup
from threeloops.commands.trace.own_drill import ORDINALS, TELLING, Asks, question_of
from threeloops.commands.working import aligned
from threeloops.markup import Markup, each, element, lines, page, text
from threeloops.units import fmt_percent

STYLE = """
:root { color-scheme: light dark; --ink: #1b1f24; --soft: #57606a; --paper: #fff; --card: #f6f8fa; --line: #d0d7de;
  --s0: #0b6e4f; --s1: #b4540a; --s2: #7a4fbf; --s3: #1f6fb2; --s4: #a3324f; --s5: #6b6b2a; --s6: #5b6570 }
@media (prefers-color-scheme: dark) { :root { --ink: #e6edf3; --soft: #a5b0bb; --paper: #0d1117; --card: #161b22;
  --line: #3d444d; --s0: #3fb68b; --s1: #e08a3c; --s2: #b08cf0; --s3: #5aa9e6; --s4: #e5748f; --s5: #b9b95a; --s6: #8b98a5 } }
* { box-sizing: border-box }
body { font: 1rem/1.5 system-ui, sans-serif; color: var(--ink); background: var(--paper); max-width: 60rem; margin: 0 auto; padding: 1rem; overflow-wrap: break-word }
h1 { font-size: 1.35rem; margin: .5rem 0 } h2 { font-size: 1.1rem; margin: 1.8rem 0 .5rem } p { margin: .35rem 0 }
.soft, footer { color: var(--soft) } footer { font-size: .875rem; border-top: 1px solid var(--line); margin-top: 2rem; padding-top: .5rem }
code { font: .9em ui-monospace, monospace } .deep { padding-left: 1.2em }
.bar { display: flex; height: 1.75rem; border: 1px solid var(--line); border-radius: .25rem; overflow: hidden; margin: .75rem 0 .25rem }
.key { display: flex; flex-wrap: wrap; gap: .15rem 1.1rem; list-style: none; padding: 0; margin: 0 0 .75rem; font-size: .9rem }
.key i { display: inline-block; width: .8em; height: .8em; margin-right: .4em; border-radius: .15em }
.suspect { background: var(--card); border: 1px solid var(--line); border-radius: .4rem; padding: .6rem .9rem; margin: .75rem 0 }
.suspect h2 { margin: 0 0 .25rem } .suspect dl { display: grid; grid-template-columns: max-content 1fr; gap: .15rem 1rem; margin: .4rem 0 0 }
dt { color: var(--soft) } dd { margin: 0; min-width: 0 }
.wide { overflow-x: auto; margin: 1rem 0 } table { border-collapse: collapse; font-size: .92rem }
th, td { text-align: left; vertical-align: top; padding: .2rem 1rem .2rem 0; border-bottom: 1px solid var(--line) }
td:not(:first-child), th:not(:first-child) { font-variant-numeric: tabular-nums } th { font-weight: 600 }
td:first-child { overflow-wrap: anywhere; min-width: 9rem } td:not(:first-child):not(:last-child) { white-space: nowrap }
@media (max-width: 34rem) { td:first-child { min-width: 6rem } td:last-child { white-space: nowrap } .suspect dl { grid-template-columns: 1fr; gap: 0 } dd { margin-bottom: .4rem } th, td { padding-right: .7rem } }
""".strip()  # noqa: E501
COLOURS = 7
DEEP = "deep"


class Table(NamedTuple):
    """A head and rows."""

    rows: Sequence[Sequence[str]]


class ToldSuspect(NamedTuple):
    """A suspect, ready to be read: what it is, why, and named lines below it."""

    head: str  # "First suspect: hidden syncs"
    because: str
    lines: tuple[tuple[str, str], ...]


class _Suspected(Protocol):
    @property
    def illness(self) -> str: ...
    @property
    def because(self) -> str: ...
    @property
    def share(self) -> float | None: ...
    @property
    def at_most(self) -> float | None: ...
    @property
    def first_try(self) -> str: ...
    @property
    def record_next(self) -> str: ...


def told_suspects(
    suspects: Sequence[_Suspected], drill_of: Mapping[str, str], asks: Asks = question_of
) -> list[ToldSuspect]:
    """The first three, each with the part that teaches it, a drill on it, and one with the file's own numbers."""
    from threeloops import contents
    from threeloops.drills.engine.bank import DRILLS

    found = []
    for place, (ordinal, one) in enumerate(zip(ORDINALS, suspects, strict=False), start=1):
        drill = DRILLS[drill_of[one.illness]]
        taught = contents.taught_here(drill.section, drill.loop)[0]
        lines = [("at most", _limit(one.at_most))] if one.at_most is not None else []
        lines += [("try first", one.first_try)]
        lines += [("record", one.record_next)] if one.record_next else []
        lines += [("taught in", taught), ("drill", f"threeloops drill {drill.key}")]
        if question := asks(one):
            lines += [("or", f"--drill {place} on this file: it asks you {question.about}")]
        because = f"{one.because[0].upper()}{one.because[1:]}."
        found.append(ToldSuspect(f"{ordinal}: {one.illness}", because, tuple(lines)))
    return found


def _limit(at_most: float) -> str:
    if at_most <= TELLING:
        return f"{at_most:.2f} times as fast, if all that a repair can take away were gone"
    return f"no useful limit (over {TELLING} times): the window holds little else; record steps in which work is done"


def as_rows(blocks: Sequence[str | Table]) -> list[str]:
    """For a terminal."""
    return [row for block in blocks for row in ([block] if isinstance(block, str) else aligned(block.rows))]


def suspect_rows(suspects: Sequence[ToldSuspect]) -> list[str]:
    """For a terminal, an empty line before each."""
    rows = []
    for one in suspects:
        rows += ["", f"{one.head}. {one.because}", *(f"  {name:<9}  {said}" for name, said in one.lines)]
    return rows


def html_page(
    blocks: Sequence[str | Table],
    *,
    title: str,
    suspects: Sequence[ToldSuspect],
    shares: Mapping[str, float] | None = None,
    none: str = "",
    footer: Sequence[str] = (),
) -> str:
    """One file: the suspects, a bar of shares that add up to one, then everything else.

    `none` is said where there is no suspect. What a file says, names of kernels and models, is text on the page and
    nothing else.
    """
    said: list[str] = []
    for block in blocks:
        if not isinstance(block, str):
            break
        said.append(block)
    rest, (first, *more) = blocks[len(said) :], [line for line in said if line] or [title]
    rows: list[Markup] = [element("h1", _marked(first)), *map(_paragraph, more)]
    rows += _bar(shares) if shares else []
    rows += [_card(one) for one in suspects] or [element("p", _marked(none))]
    rows += [_paragraph(block) if isinstance(block, str) else _table(block) for block in rest]
    if footer:
        rows.append(element("footer", each("p", map(_marked, footer))))
    return page(title, lines(Markup("<main>"), filter(None, rows), Markup("</main>")), STYLE)


def _marked(said: str) -> Markup:
    """Text, its `commands` as code."""
    pieces = re.split(r"`([^`]+)`", said.strip())
    return text(element("code", piece) if place % 2 else piece for place, piece in enumerate(pieces))


def _paragraph(line: str) -> Markup:
    deep = len(line) - len(line.lstrip()) > 2
    return element("p", _marked(line), class_=DEEP if deep else None) if line.strip() else Markup()


def _table(table: Table) -> Markup:
    head, *rows = table.rows
    made = markup.table(map(_marked, head), [map(_cell, row) for row in rows])
    return element("div", made, class_="wide", tabindex="0", role="region", aria_label=head[0])


def _cell(said: str) -> Markup:
    return element("td", _marked(said), class_=DEEP if said.startswith(" ") else None)


def _bar(shares: Mapping[str, float]) -> list[Markup]:
    seen = {name: share for name, share in shares.items() if share >= 0.001}
    colours = [f"background:var(--s{min(place, COLOURS - 1)})" for place in range(len(seen))]
    words = [f"{name} {fmt_percent(share)}" for name, share in seen.items()]
    parts = [element("i", style=f"flex:{share:.4f};{one}") for share, one in zip(seen.values(), colours, strict=True)]
    key = [[element("i", style=one), said] for said, one in zip(words, colours, strict=True)]
    said = f"of the time: {', '.join(words)}"
    return [
        element("div", parts, class_="bar", role="img", aria_label=said),
        element("ul", each("li", key), class_="key"),
    ]


def _card(one: ToldSuspect) -> Markup:
    said = [(element("dt", name), element("dd", _line(name, said))) for name, said in one.lines]
    about = element("h2", _marked(one.head)), element("p", _marked(one.because))
    return element("section", about, element("dl", said), class_="suspect")


def _line(name: str, said: str) -> Markup:
    return element("code", said) if name == "drill" else _marked(said)


def written(told: str, into: str, *, read: str) -> str:
    """Write a page, and say where it is.

    Raises:   ValueError for a file that is the one that was read
    """
    path = Path(into)
    if path.exists() and path.resolve() == Path(read).resolve():
        raise ValueError(f"--html {into} is the file that is read; give the page another name, like {path.stem}.html")
    path.write_text(told, encoding="utf-8")
    return f"{into} is the page; a browser opens it, and it needs nothing beside it"
