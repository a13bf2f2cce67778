"""Memory timeline: bytes alive at every moment of a step, part upon part, with the line of what the device has.

>>> figure = memory_timeline(
...     {"weights": [4, 4, 4], "kept": [1, 2, 0]},
...     moments=["forward 1", "loss", "update"],
...     base=2,
...     title="Up and down",
...     caption="A step.",
... )
>>> print(figure.alt)
Most: 6.00 B at loss (weights 4.00 B, kept 2.00 B). 5.00 B at forward 1, 4.00 B at update.
"""

import json
from collections.abc import Mapping, Sequence
from itertools import groupby, pairwise
from typing import Any

from threeloops import checks
from threeloops.figures import look
from threeloops.figures.channels import WORDS, layer, nominal, quantitative
from threeloops.figures.figure import Figure
from threeloops.units import GB, MB, TB, GiB, KiB, MiB, TiB, fmt_bytes, kB

HEIGHT = 270
LETTERED = 0.045  # of the axis: a part that is nowhere as thick as that has no room for its letter
THICK = 0.75  # of a part's thickest column: where its letter may stand
# Light enough for dark strokes between them and for letters on them; each part also has its letter, if there is room
# for one, and its place in the pile.
SHADES = ("#8fb8d6", "#f0b48c", "#9fd0bd", "#d9a8c4", "#c9c9c9", "#f3dd8a", "#7d8fb3")
SCALES = {
    2: ((TiB, "TiB"), (GiB, "GiB"), (MiB, "MiB"), (KiB, "KiB")),
    10: ((TB, "TB"), (GB, "GB"), (MB, "MB"), (kB, "kB")),
}


def memory_timeline(
    parts: Mapping[str, Sequence[float]],
    *,
    moments: Sequence[str],
    base: int,
    title: str,
    caption: str,
    limit: tuple[str, float] | None = None,
    top_bytes: float | None = None,
) -> Figure:
    """One column per moment, its parts in their order from below; each part has the same colour in every picture of
    the same parts, and its letter where it is thick. A moment is named "phase, what happens"; below the columns
    stand the phases.

    `limit` is a named line; `top_bytes` fixes the axis, for pictures to compare.

    Raises:   ValueError if there is nothing to draw, too many parts, or a part that lacks moments
    """
    checks.one_of(("2", "10"), base=str(base))
    if not 0 < len(parts) <= len(SHADES) or not moments:
        raise ValueError(
            f"{len(parts)} parts at {len(moments)} moments; give 1 to {len(SHADES)} parts and at least one moment"
        )
    for part, values in parts.items():
        if len(values) != len(moments):
            raise ValueError(f"{part!r} has {len(values)} values for {len(moments)} moments")
        checks.non_negative(**{f"{part}, {moment}": value for moment, value in zip(moments, values, strict=True)})
    totals = [sum(values[place] for values in parts.values()) for place in range(len(moments))]
    highest = top_bytes if top_bytes is not None else max(*totals, limit[1] if limit else 0)
    scale, unit = next(((factor, name) for factor, name in SCALES[base] if highest >= factor), (1, "B"))
    top = max(highest * 1.04, limit[1] * 1.1 if limit else 0)
    letters = _letters(parts, top)
    layers = [_columns(parts, moments, letters, scale, top / scale, unit, base), _written(parts, letters, scale)]
    if limit is not None:
        layers += _limit(limit[0], limit[1] / scale, len(moments))
    body = {"width": look.PLOT_WIDTH, "height": HEIGHT, "layer": layers}
    return Figure(title=title, caption=caption, alt=words(parts, moments=moments, base=base, limit=limit), body=body)


def words(
    parts: Mapping[str, Sequence[float]], *, moments: Sequence[str], base: int, limit: tuple[str, float] | None = None
) -> str:
    """The picture for those who cannot see it."""
    totals = [sum(values[place] for values in parts.values()) for place in range(len(moments))]
    at = totals.index(max(totals))
    made_of = ", ".join(
        f"{part} {fmt_bytes(values[at], base=base)}" for part, values in parts.items() if values[at] > 0
    )
    line = f" {limit[0]}: {fmt_bytes(limit[1], base=base)}." if limit else ""
    first, last = (fmt_bytes(totals[place], base=base) for place in (0, -1))
    return (
        f"Most: {fmt_bytes(totals[at], base=base)} at {moments[at]} ({made_of}). {first} at {moments[0]}, {last} at"
        f" {moments[-1]}.{line}"
    )


def _letters(parts: Mapping[str, Sequence[float]], top: float) -> dict[str, str]:
    """Part -> its letter: A, B and so on for the parts that are thick enough somewhere."""
    thick = [part for part, values in parts.items() if max(values) >= LETTERED * top and max(values) > 0]
    return dict(zip(thick, "ABCDEFG", strict=False))


def _written(parts: Mapping[str, Sequence[float]], letters: Mapping[str, str], scale: float) -> dict[str, Any]:
    """Each letter in the middle of the longest run of columns in which its part is thick."""
    rows, names = [], list(parts)
    for part, letter in letters.items():
        place = _middle([value >= THICK * max(parts[part]) for value in parts[part]])
        low = sum(parts[below][place] for below in names[: names.index(part)])
        rows.append({"at": place + 0.5, "height": (low + parts[part][place] / 2) / scale, "letter": letter})
    return layer(
        {"type": "text", "color": look.INK, "fontWeight": "bold", "aria": False},
        rows,
        x=quantitative("at"),
        y=quantitative("height"),
        text="letter",
    )


def _middle(thick: Sequence[bool]) -> int:
    """The place in the middle of the longest run of True; of several as long, the first."""
    runs = [list(run) for yes, run in groupby(range(len(thick)), key=thick.__getitem__) if yes]
    longest = max(runs, key=len)
    return longest[len(longest) // 2]


def _phases(moments: Sequence[str]) -> dict[str, Any]:
    """The axis below: the name of each phase in the middle of its columns."""
    starts = [place for place, name in enumerate(moments) if not place or _phase(name) != _phase(moments[place - 1])]
    middles = [(start + end) / 2 for start, end in pairwise([*starts, len(moments)])]
    names = {f"{middle:g}": _phase(moments[start]) for middle, start in zip(middles, starts, strict=True)}
    return {
        "values": middles,
        "labelExpr": f"({json.dumps(names)})[datum.value]",
        "ticks": False,
        "grid": False,
        "domain": False,
        "title": "time",
    }


def _phase(moment: str) -> str:
    return moment.split(",")[0]


def _columns(
    parts: Mapping[str, Sequence[float]],
    moments: Sequence[str],
    letters: Mapping[str, str],
    scale: float,
    top: float,
    unit: str,
    base: int,
) -> dict[str, Any]:
    names = [f"{letters.get(part, '')} {part}".strip() for part in parts]
    rows = []
    for place, moment in enumerate(moments):
        low = 0.0
        for name, (part, values) in zip(names, parts.items(), strict=True):
            high = low + values[place] / scale
            said = f"{moment}: {part} {fmt_bytes(values[place], base=base)}"
            if values[place] > 0:
                rows.append({"from": place, "to": place + 1, "low": low, "high": high, "part": name, "words": said})
            low = high
    seen = [name for name, values in zip(names, parts.values(), strict=True) if max(values) > 0]
    colours = {"domain": names, "range": list(SHADES[: len(names)])}
    return layer(
        {"type": "rect", "stroke": look.PAPER, "strokeWidth": 0.4 if len(moments) <= 100 else 0},
        rows,
        x=quantitative("from", scale={"domain": [0, len(moments)], "nice": False}, axis=_phases(moments)),
        x2="to",
        y=quantitative("low", scale={"domain": [0, top], "nice": False}, axis={"title": f"bytes alive ({unit})"}),
        y2="high",
        color=nominal(
            "part",
            scale=colours,
            legend={
                "values": seen,
                "columns": 3,
                "labelLimit": 200,
                "symbolType": "square",
                "symbolStrokeColor": look.GREY,
            },
        ),
        **WORDS,
    )


def _limit(name: str, height: float, width: int) -> list[dict[str, Any]]:
    y = quantitative("height")
    text = {"type": "text", "align": "left", "baseline": "bottom", "dy": -3, "dx": 4, "color": look.INK, "aria": False}
    data = {"values": [{"height": height, "name": name, "at": 0}]}
    where = {"x": quantitative("at"), "y": y, "text": {"field": "name"}}
    return [
        {
            "data": data,
            **layer({"type": "rule", "color": look.INK, "strokeDash": [6, 4], "strokeWidth": 1.5, "aria": False}, y=y),
        },
        {"data": data, "mark": {**text, "stroke": look.PAPER, "strokeWidth": 4}, "encoding": where},
        {"data": data, "mark": text, "encoding": where},
    ]
