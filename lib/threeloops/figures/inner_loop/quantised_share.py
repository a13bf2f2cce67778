"""Quantised share: what rounding up to whole tiles and whole waves leaves of a machine, against the size of the
result.

>>> lines = {"128 by 128": [(1000, 0.4), (1100, 0.5), (1200, 0.3)]}
>>> figure = quantised_share(lines, counted=[(1100, 0.5)], title="A saw", caption="One tile.")
>>> print(figure.alt)
Useful share of the machine against the side of a square result, 1,000 to 1,200. 128 by 128: between 30.0 % and 50.0 %. 1 point counted: 1,100 50.0 %.
"""  # noqa: E501

from collections.abc import Mapping, Sequence

from threeloops import checks
from threeloops.figures import look
from threeloops.figures.channels import WORDS, layer, nominal, quantitative
from threeloops.figures.figure import Figure
from threeloops.units import counted as number_of
from threeloops.units import fmt_percent

Line = Sequence[tuple[int, float]]  # (side of the result, share from 0 to 1)


def quantised_share(lines: Mapping[str, Line], *, counted: Line, title: str, caption: str) -> Figure:
    """One saw per tile shape, told apart by colour and dash; points where a scheduler was played."""
    if not lines or not all(lines.values()):
        raise ValueError("lines is empty; give at least one, like {'128 by 128': [(1024, 0.48)]}")
    for name, points in lines.items():
        checks.fraction(**{f"share of {name} at {side}": share for side, share in points})
    sides = [side for points in lines.values() for side, _ in points]
    values = [{"tile": name, "side": side, "share": share} for name, points in lines.items() for side, share in points]
    names = list(lines)
    ends = {"domain": [min(sides), max(sides)], "nice": False, "zero": False}
    x = quantitative(
        "side", scale=ends, axis={"title": "rows and columns of the result", "format": ",d", "grid": False}
    )
    y = quantitative("share", scale={"domain": [0, 1]}, axis={"title": "useful share of the machine", "format": ".0%"})
    colour = {"domain": names, "range": list(look.SERIES_COLOURS[: len(names)])}
    dash = {"domain": names, "range": list(look.SERIES_DASHES[: len(names)])}
    dots = [
        {"side": side, "share": share, "words": f"{side:,}: {fmt_percent(share)} counted"} for side, share in counted
    ]
    return Figure(
        title=title,
        caption=caption,
        alt=_alt(lines, counted, sides),
        body={
            "width": look.PLOT_WIDTH,
            "height": look.PLOT_HEIGHT - 60,
            "encoding": {"x": x, "y": y},
            "layer": [
                layer(
                    {"type": "line", "strokeWidth": 1.8, "aria": False},
                    values,
                    color=nominal("tile", scale=colour, legend={"symbolType": "stroke"}),
                    strokeDash=nominal("tile", scale=dash),
                ),
                layer(
                    {"type": "point", "filled": True, "size": 60, "color": look.INK, "shape": "circle", "opacity": 1},
                    dots,
                    **WORDS,
                ),
            ],
        },
    )


def _alt(lines: Mapping[str, Line], counted: Line, sides: Sequence[int]) -> str:
    ranges = " ".join(
        f"{name}: between {fmt_percent(min(s for _, s in points))} and {fmt_percent(max(s for _, s in points))}."
        for name, points in lines.items()
    )
    played = ", ".join(f"{side:,} {fmt_percent(share)}" for side, share in counted)
    what = f"Useful share of the machine against the side of a square result, {min(sides):,} to {max(sides):,}."
    return f"{what} {ranges}" + (f" {number_of(len(counted), 'point')} counted: {played}." if counted else "")
