"""Brochure bars: each total as one bar of its pieces, dense and sparse, engine by engine.

>>> from threeloops.driving.datasheet_tops import Piece
>>> figure = brochure_bars(
...     {"Orin": [Piece(engine="gpu", dense_ops_per_s=85e12, sparse_extra_ops_per_s=85e12)]},
...     title="Half of it",
...     caption="INT8.",
... )
>>> print(figure.alt)
Tera-operations per second. Orin: gpu dense 85, gpu only with sparse weights 85; 170 in all.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from threeloops.driving.datasheet_tops import Piece
from threeloops.figures import look
from threeloops.figures.channels import WORDS, layer, nominal, quantitative
from threeloops.figures.figure import Figure

ROW = 38  # pixels per bar
ROOM = 0.055  # a piece shorter than this share of the axis has no room for its number
KINDS = ("GPU or main engine, dense", "DLA, dense", "only with sparse weights")
COLOURS = (look.BLUE, look.GREEN, look.ORANGE)
TERA = 1e12


def brochure_bars(rows: Mapping[str, Sequence[Piece]], *, title: str, caption: str) -> Figure:
    """One bar per part: first what is dense, last what counts zeros.

    Raises:   ValueError without rows
    """
    if not rows or not all(rows.values()):
        raise ValueError("rows is empty or has a part without pieces; give at least one part with its pieces")
    marks = [mark for row, pieces in rows.items() for mark in _marks(row, pieces)]
    longest = max(float(mark["end"]) for mark in marks)
    x = quantitative(
        "start",
        title="tera-operations per second",
        scale={"domain": [0, longest], "nice": False},
        axis={"tickCount": 6},
    )
    y = nominal("row", sort=list(rows), title=None, axis={"labelLimit": 190})
    colour = nominal(
        "kind", scale={"domain": list(KINDS), "range": list(COLOURS)}, legend={"columns": 3, "labelLimit": 220}
    )
    bars = layer(
        {"type": "bar", "stroke": look.PAPER, "height": ROW - 10}, marks, x=x, x2="end", y=y, color=colour, **WORDS
    )
    numbers = layer(
        {"type": "text", "color": look.PAPER, "fontWeight": "bold", "fontSize": look.TEXT, "aria": False},
        [mark for mark in marks if mark["end"] - mark["start"] >= ROOM * longest],
        x=quantitative("middle"),
        y=y,
        text="label",
    )
    return Figure(
        title=title,
        caption=caption,
        alt="Tera-operations per second. " + " ".join(_told(row, pieces) for row, pieces in rows.items()),
        body={"width": look.PLOT_WIDTH - 100, "height": ROW * len(rows), "layer": [bars, numbers]},
    )


def _parts(pieces: Sequence[Piece]) -> list[tuple[str, str, float]]:
    """(kind, in words, tera-operations per second), the dense ones first."""
    dense = [(KINDS[piece.engine == "dla"], f"{piece.engine} dense", piece.dense_ops_per_s / TERA) for piece in pieces]
    sparse = [
        (KINDS[2], f"{piece.engine} only with sparse weights", piece.sparse_extra_ops_per_s / TERA)
        for piece in pieces
        if piece.sparse_extra_ops_per_s
    ]
    return dense + sparse


def _marks(row: str, pieces: Sequence[Piece]) -> list[dict[str, Any]]:
    made, start = [], 0.0
    for kind, words, size in _parts(pieces):
        made.append(
            {
                "row": row,
                "kind": kind,
                "start": start,
                "end": start + size,
                "middle": start + size / 2,
                "label": f"{size:.4g}",
                "words": f"{row}, {words}: {size:.4g}",
            }
        )
        start += size
    return made


def _told(row: str, pieces: Sequence[Piece]) -> str:
    parts = _parts(pieces)
    total = sum(size for *_, size in parts)
    return f"{row}: {', '.join(f'{words} {size:.4g}' for _, words, size in parts)}; {total:.4g} in all."
