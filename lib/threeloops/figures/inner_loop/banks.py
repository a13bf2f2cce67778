"""Banks: which bank of shared memory each lane of a warp turns to, for one or more layouts of the same array.

>>> figure = banks(
...     {"32 words a row": 32, "33 words a row": 33},
...     column=5,
...     title="One unused word per row",
...     caption="A warp reads column 5.",
... )
>>> print(figure.alt)
Lanes 0 to 31 read column 5 of a tile of 32 rows. 32 words a row: 1 bank serves all lanes, 32 turns. 33 words a row: 32 banks serve one lane each, 1 turn.
"""  # noqa: E501

from collections import Counter
from collections.abc import Mapping
from typing import Any

from threeloops import checks
from threeloops.figures import look
from threeloops.figures.figure import Figure
from threeloops.units import counted

LANES, BANKS = 32, 32
SIDE = 330  # pixels


def banks(pitches: Mapping[str, int], *, column: int, title: str, caption: str) -> Figure:
    """Lane i reads word i × pitch + column; its bank is that word's number modulo 32. One series per layout."""
    if not pitches:
        raise ValueError("pitches is empty; give at least one layout, like {'32 words a row': 32}")
    checks.count(at_least=0, column=column)
    checks.count(**{f"pitches[{name!r}]": pitch for name, pitch in pitches.items()})
    rows = [
        {
            "lane": lane,
            "bank": (lane * pitch + column) % BANKS,
            "layout": name,
            "words": f"{name}: lane {lane} turns to bank {(lane * pitch + column) % BANKS}",
        }
        for name, pitch in pitches.items()
        for lane in range(LANES)
    ]
    return Figure(
        title=title,
        caption=caption,
        alt=_alt(pitches, column),
        body={"width": look.PLOT_WIDTH, "height": SIDE, **_points(rows, list(pitches))},
    )


def _points(rows: list[dict[str, Any]], names: list[str]) -> dict[str, Any]:
    def axis(field: str, what: str) -> dict[str, Any]:
        ticks = {"values": list(range(0, 32, 4)), "format": "d"}
        return {
            "field": field,
            "type": "quantitative",
            "title": what,
            "scale": {"domain": [-0.5, 31.5], "nice": False, "zero": False},
            "axis": ticks,
        }

    # the layout that conflicts comes first, in the colour of waiting
    colours, shapes = [look.ORANGE, *look.SERIES_COLOURS], ["circle", *look.SERIES_SHAPES]
    return {
        "data": {"values": rows},
        "mark": {"type": "point", "filled": True, "size": 70, "stroke": look.PAPER, "strokeWidth": 0.5},
        "encoding": {
            "x": axis("lane", "lane of the warp (number)"),
            "y": axis("bank", "bank of shared memory (number)"),
            "color": {"field": "layout", "type": "nominal", "scale": {"domain": names, "range": colours[: len(names)]}},
            "shape": {"field": "layout", "type": "nominal", "scale": {"domain": names, "range": shapes[: len(names)]}},
            "tooltip": {"field": "words"},
            "description": {"field": "words"},
        },
    }


def _alt(pitches: Mapping[str, int], column: int) -> str:
    sentences = []
    for name, pitch in pitches.items():
        served = Counter((lane * pitch + column) % BANKS for lane in range(LANES))
        turns = max(served.values())
        who = (
            "1 bank serves all lanes"
            if len(served) == 1
            else f"{len(served)} banks serve {'one lane' if turns == 1 else f'up to {turns} lanes'} each"
        )
        sentences.append(f"{name}: {who}, {counted(turns, 'turn')}.")
    return f"Lanes 0 to {LANES - 1} read column {column} of a tile of 32 rows. " + " ".join(sentences)
