"""Tile walk: a matrix of results cut into tiles, the strips that meet in each tile, and what becomes of the tile.

>>> panel = Panel(name="tile by tile", left="Q", top="K, V", right="O", tiles=("dn", ".."), note="One tile exists.")
>>> print(tile_walk([panel], title="Only one tile", caption="A sketch.").alt)
tile by tile: One tile exists. Of 2 by 2 tiles, 1 done, 1 on the chip now, 2 to come.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from textwrap import wrap

from threeloops import checks
from threeloops.figures.boxes import Box, boxes
from threeloops.figures.figure import Figure

# What becomes of a tile: the kind of box, the word in it, the words for those who cannot see it.
STATES = {
    "m": ("memory", "", "in memory"),
    "d": ("frame", "done", "done"),
    "n": ("compute", "now", "on the chip now"),
    "v": ("compute", "", "visited"),
    ".": ("off", "", "to come"),
    "s": ("off", "", "skipped"),
}
SIDE, STRIP, GAP = 168, 30, 6  # pixels: the matrix, a strip beside it, the space between the two
SPACE, LINE = 64, 22  # pixels: between two panels, a line of text
NOTE_LINE = 34  # letters of a note that fit on one line
SMALLEST_WITH_WORD = 38  # pixels: a smaller tile is drawn without its word


@dataclass(frozen=True, slots=True, kw_only=True)
class Panel:
    """One way through the tiles: a string per row of tiles, a letter of STATES per tile."""

    name: str
    left: str
    top: str
    tiles: Sequence[str]
    note: str
    right: str = ""  # nothing is drawn on the right of the tiles without a name for it
    depth: int = 1  # tiles of the left and the top strip that one tile of the matrix needs

    def __post_init__(self) -> None:
        checks.count(rows=len(self.tiles), depth=self.depth)
        for letter in "".join(self.tiles):
            checks.one_of(STATES, tile=letter)
        if {len(row) for row in self.tiles} != {len(self.tiles)}:
            raise ValueError(f"tiles={list(self.tiles)} must be as many tiles wide as high")

    @property
    def words(self) -> str:
        tiles, side = "".join(self.tiles), len(self.tiles)
        counts = ", ".join(f"{tiles.count(key)} {STATES[key][2]}" for key in STATES if key in tiles)
        return f"{self.name}: {self.note} Of {side} by {side} tiles, {counts}."

    @property
    def side(self) -> float:
        return SIDE if self.depth == 1 else SIDE * 2 / 3  # so that two panels with deep strips fit on a page

    @property
    def strip(self) -> float:
        return STRIP if self.depth == 1 else self.depth * self.side / len(self.tiles)

    @property
    def width(self) -> float:
        return self.strip + GAP + self.side + (GAP + STRIP if self.right else 0)


def tile_walk(panels: Sequence[Panel], *, title: str, caption: str) -> Figure:
    """Panels side by side. A tile that is worked on now lights up the parts of the strips that meet in it."""
    if not panels:
        raise ValueError("panels is empty; give at least one Panel")
    plan: list[Box] = []
    x = 0.0
    for panel in panels:
        plan += _panel(panel, x)
        x += panel.width + SPACE
    return boxes(plan, title=title, caption=caption, alt=" ".join(panel.words for panel in panels))


def _panel(panel: Panel, x: float) -> list[Box]:
    side, part = panel.side / len(panel.tiles), panel.strip / panel.depth
    left, top = x + panel.strip + GAP, LINE + panel.strip + GAP
    rows = {row for row, tiles in enumerate(panel.tiles) if "n" in tiles}
    columns = {column for tiles in panel.tiles for column, letter in enumerate(tiles) if letter == "n"}
    plan = _words(panel, x)
    for place, tiles in enumerate(panel.tiles):
        here, below = left + place * side, top + place * side
        for step in range(panel.depth):
            plan.append(_part(place in rows, x=x + step * part, y=below, width=part, height=side))
            plan.append(_part(place in columns, x=here, y=LINE + step * part, width=side, height=part))
        if panel.right:
            plan.append(_part(place in rows, x=left + panel.side + GAP, y=below, width=STRIP, height=side))
        for column, letter in enumerate(tiles):
            kind, word, _ = STATES[letter]
            text = word if side >= SMALLEST_WITH_WORD else ""
            plan.append(Box(x=left + column * side, y=below, width=side, height=side, kind=kind, text=text))
    return plan


def _part(lit: bool, *, x: float, y: float, width: float, height: float) -> Box:
    return Box(x=x, y=y, width=width, height=height, kind="compute" if lit else "frame")


def _words(panel: Panel, x: float) -> list[Box]:
    """The name above, the strips' names beside and below them, the note at the foot."""
    below = LINE + panel.strip + GAP + panel.side
    lines = wrap(panel.note, NOTE_LINE)
    plan = [
        _bare(panel.name, x=x, y=0, width=panel.width),
        _bare(panel.top, x=x, y=LINE, width=panel.strip, height=panel.strip),
        _bare(panel.left, x=x, y=below, width=panel.strip),
        _bare("\n".join(lines), x=x, y=below + LINE, width=panel.width, height=LINE * len(lines)),
    ]
    if panel.right:
        plan.append(_bare(panel.right, x=x + panel.width - STRIP, y=below, width=STRIP))
    return plan


def _bare(text: str, *, x: float, y: float, width: float, height: float = LINE) -> Box:
    return Box(x=x, y=y, width=width, height=height, kind="bare", text=text)
