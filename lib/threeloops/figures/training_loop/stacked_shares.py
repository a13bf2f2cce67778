"""Stacked shares: for each row, how many of its cases came out in which way, as one bar of full length.

>>> figure = stacked_shares(
...     {"2 units": {"learnt": 30, "stuck": 90}}, what="share of the nets", title="Most do not", caption="120 nets."
... )
>>> print(figure.alt)
Bars of share of the nets. 2 units: learnt 25.0 %, stuck 75.0 %.
"""

from collections.abc import Mapping
from typing import Any

from threeloops import checks
from threeloops.figures import look
from threeloops.figures.channels import WORDS, layer, nominal, quantitative
from threeloops.figures.figure import Figure
from threeloops.units import fmt_percent

ROW = 40  # pixels per bar
ROOM = 0.06  # a piece shorter than this share has no room for its number


def stacked_shares(rows: Mapping[str, Mapping[str, int]], *, what: str, title: str, caption: str) -> Figure:
    """One bar per row; its pieces in the order of the first row's names, each with its count where there is room.

    Raises:   ValueError if rows are missing, name different outcomes, or are all 0
    """
    names = list(next(iter(rows.values()), {}))
    if not names:
        raise ValueError(
            "rows is empty; give at least one row with its counts, like {'2 units': {'learnt': 30, 'stuck': 90}}"
        )
    for row, counts in rows.items():
        if list(counts) != names:
            raise ValueError(f"{row!r} counts {list(counts)}, the first row {names}; all rows need the same outcomes")
        checks.count(at_least=0, **{f"{row}[{name}]": number for name, number in counts.items()})
        checks.positive(**{f"sum of {row}": sum(counts.values())})
    keys = [f"{'ABCDE'[place]} {name}" for place, name in enumerate(names)]
    pieces = [piece for row, counts in rows.items() for piece in _pieces(row, counts)]
    x = quantitative("start", title=what, scale={"domain": [0, 1]}, axis={"format": "%", "tickCount": 5})
    colours = {"domain": keys, "range": list(look.SERIES_COLOURS[: len(names)])}
    y = nominal("row", sort=list(rows), title=None)
    return Figure(
        title=title,
        caption=caption,
        alt=f"Bars of {what}. " + " ".join(f"{row}: {_said(counts)}." for row, counts in rows.items()),
        body={
            "width": look.PLOT_WIDTH,
            "height": ROW * len(rows),
            "layer": [
                layer(
                    {"type": "bar", "stroke": look.PAPER, "height": ROW - 12},
                    pieces,
                    x=x,
                    x2="end",
                    y=y,
                    color=nominal("outcome", scale=colours, legend={"columns": 2, "labelLimit": 300}),
                    **WORDS,
                ),
                layer(
                    {"type": "text", "color": look.PAPER, "fontWeight": "bold", "fontSize": look.TEXT, "aria": False},
                    [piece for piece in pieces if piece["end"] - piece["start"] >= ROOM],
                    x=quantitative("middle"),
                    y=y,
                    text="label",
                ),
            ],
        },
    )


def _pieces(row: str, counts: Mapping[str, int]) -> list[dict[str, Any]]:
    whole, start = sum(counts.values()), 0
    made: list[dict[str, Any]] = []
    for place, (name, number) in enumerate(counts.items()):
        if number == 0:
            continue
        end = start + number
        ends = {"start": start / whole, "end": end / whole, "middle": (start + end) / 2 / whole}
        made.append(
            {
                "row": row,
                "outcome": f"{'ABCDE'[place]} {name}",
                **ends,
                "label": f"{'ABCDE'[place]}: {number}",
                "words": f"{row}, {name}: {number} of {whole}",
            }
        )
        start = end
    return made


def _said(counts: Mapping[str, int]) -> str:
    whole = sum(counts.values())
    return ", ".join(f"{name} {fmt_percent(number / whole)}" for name, number in counts.items())
