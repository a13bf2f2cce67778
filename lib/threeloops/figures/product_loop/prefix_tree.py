"""Prefix tree: what several requests have in common, drawn as a tree in which a box is a run of text and its children
are the ways to go on.

>>> texts = {"A": ("system prompt", "hello"), "B": ("system prompt", "bye", "now")}
>>> print(prefix_tree(texts, title="One root", caption="Two requests.").alt)
"system prompt", held once for A, B; after it "hello", held for A, and "bye, now", held for B.

Source: Zheng et al., SGLang, 2023, arXiv:2312.07104, section 3 (a radix tree of cached beginnings)
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from threeloops.figures.boxes import LINE, Arrow, Box, boxes
from threeloops.figures.figure import Figure

WIDTH, GAP, SPACE = 150, 70, 14  # pixels: a box, between a box and its children, between boxes of a column


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """Pieces of text that the same requests have, one after another, and what comes after them."""

    pieces: tuple[str, ...]
    requests: tuple[str, ...]
    children: tuple["Run", ...]

    @property
    def height(self) -> float:
        """Of its box: a line per piece, and one for the requests."""
        return LINE * (len(self.pieces) + 1) + 12


def runs(texts: Mapping[str, Sequence[str]], *, start: int = 0) -> tuple[Run, ...]:
    """The tree below piece number `start`: one run for each way in which the texts go on.

    >>> [run.pieces for run in runs({"A": ("x", "y"), "B": ("x", "y", "z")})]
    [('x', 'y')]
    """
    firsts = dict.fromkeys(text[start] for text in texts.values() if len(text) > start)
    found = []
    for first in firsts:
        same = {name: text for name, text in texts.items() if len(text) > start and text[start] == first}
        end = start + 1
        while len({tuple(text[start : end + 1]) for text in same.values()}) == 1 and _all_reach(same, end):
            end += 1
        pieces = tuple(next(iter(same.values()))[start:end])
        found.append(Run(pieces=pieces, requests=tuple(same), children=runs(same, start=end)))
    return tuple(found)


def _all_reach(texts: Mapping[str, Sequence[str]], end: int) -> bool:
    return all(len(text) > end for text in texts.values())


def prefix_tree(texts: Mapping[str, Sequence[str]], *, title: str, caption: str) -> Figure:
    """The tree of all texts, roots at the left. Blue: several requests have it. Orange: one does.

    Raises:   ValueError where there is no text
    """
    roots = runs(texts)
    if not roots:
        raise ValueError("texts is empty; give each request at least one piece of text")
    plan: list[Box] = []
    arrows: list[Arrow] = []
    top = 0.0
    for root in roots:
        top = _draw(root, x=0, top=top, plan=plan, arrows=arrows)[1]
    return boxes(plan, arrows=arrows, title=title, caption=caption, alt=" ".join(f"{_words(root)}." for root in roots))


def _draw(run: Run, *, x: float, top: float, plan: list[Box], arrows: list[Arrow]) -> tuple[float, float]:
    """(middle of the run's box, where the next branch begins); children first, their parent beside their middle."""
    begin, middles = top, []
    for child in run.children:
        middle, top = _draw(child, x=x + WIDTH + GAP, top=top, plan=plan, arrows=arrows)
        middles.append(middle)
    own = (middles[0] + middles[-1]) / 2 if middles else begin + run.height / 2
    own = max(own, begin + run.height / 2)
    kind = "compute" if len(run.requests) > 1 else "memory"
    text = "\n".join((*run.pieces, f"({', '.join(run.requests)})"))
    plan.append(Box(x=x, y=own - run.height / 2, width=WIDTH, height=run.height, kind=kind, text=text))
    arrows += [Arrow(x=x + WIDTH, y=own, to_x=x + WIDTH + GAP - 8, to_y=middle) for middle in middles]
    return own, max(top, own + run.height / 2 + SPACE)


def _words(run: Run) -> str:
    once = "once for" if len(run.requests) > 1 else "for"
    own = f'"{", ".join(run.pieces)}", held {once} {", ".join(run.requests)}'
    below = ", and ".join(_words(child) for child in run.children)
    return f"{own}; after it {below}" if below else own
