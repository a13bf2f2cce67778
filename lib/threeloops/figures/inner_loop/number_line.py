"""Number line: where the numbers of a format stand, one tick each.

>>> figure = number_line([number_formats.E2M1], low=0, high=6, title="Eight numbers", caption="E2M1.")
>>> print(figure.alt)
Number line from 0 to 6. E2M1: 8 numbers, the closest 0.5 apart, the farthest 2.

Source: the formats' own, see number_formats
"""

from collections.abc import Sequence
from typing import Any

from threeloops import checks
from threeloops.figures import look
from threeloops.figures.channels import layer, nominal, quantitative
from threeloops.figures.figure import Figure
from threeloops.inner_loop import number_formats
from threeloops.inner_loop.number_formats import Format
from threeloops.units import counted

ROW = 46  # pixels per format
APART = 0.5  # pixels; closer ticks cannot be told apart, and a row of them is a solid bar


def number_line(
    forms: Sequence[Format], *, low: float, high: float, title: str, caption: str, marked: float | None = None
) -> Figure:
    """The numbers of each format from low to high, on an even scale; subnormal ones shorter and in another colour.
    `marked` is a value to draw a line at.

    Raises:   ValueError unless 0 <= low < high, with `marked` between them
    """
    checks.non_negative(low=low)
    if marked is not None and not low <= marked <= high:
        raise ValueError(f"marked={marked!r} must lie between low={low!r} and high={high!r}")
    if not forms or not low < high:
        raise ValueError(f"low={low!r} must be below high={high!r}, and at least one format given")
    height = ROW * len(forms)
    line = [] if marked is None else [f"A line at {marked:g}."]
    normal, small = (
        [row for form in forms for row in _ticks(form, low, high) if row["subnormal"] is kind] for kind in (False, True)
    )
    names = {"values": [{"format": form.name, "words": _count(form, low, high)} for form in forms]}
    return Figure(
        title=title,
        caption=caption,
        alt=" ".join(
            [f"Number line from {low:g} to {high:g}.", *(f"{_sentence(form, low, high)}." for form in forms), *line]
        ),
        body={
            "width": look.PLOT_WIDTH,
            "height": height,
            "encoding": {"y": nominal("format", sort=[form.name for form in forms], title=None, axis=_names())},
            "layer": [
                _layer(normal, colour=look.BLUE, size=20, low=low, high=high),
                _layer(small, colour=look.ORANGE, size=10, low=low, high=high),
                *([] if marked is None else [_line(marked)]),
                {
                    "data": names,
                    **layer(
                        {
                            "type": "text",
                            "align": "right",
                            "baseline": "bottom",
                            "dy": -11,
                            "color": look.GREY,
                            "aria": False,
                        },
                        x={"value": look.PLOT_WIDTH},
                        text="words",
                    ),
                },
            ],
        },
    )


def _names() -> dict[str, Any]:
    return {"ticks": False, "domain": False, "labelPadding": 8}


def _places(form: Format, low: float, high: float) -> range:
    """Places of the format's numbers between low and high."""
    first = number_formats.numbers_up_to(min(low, form.largest), form)
    start = first if number_formats.number_at(first, form) >= low else first + 1
    return range(start, number_formats.numbers_up_to(min(high, form.largest), form) + 1)


def _ticks(form: Format, low: float, high: float) -> list[dict[str, Any]]:
    step = APART * (high - low) / look.PLOT_WIDTH
    places = _places(form, low, high)
    found: list[dict[str, Any]] = []
    place = places.start
    while place < places.stop:
        value = number_formats.number_at(place, form)
        found.append({"format": form.name, "x": value, "subnormal": 0 < value < form.smallest_normal})
        place = number_formats.numbers_up_to(min(value + step, form.largest), form) + 1
    return found


def _layer(rows: list[dict[str, Any]], *, colour: str, size: int, low: float, high: float) -> dict[str, Any]:
    x = quantitative("x", title="value", scale={"domain": [low, high], "nice": False}, axis={"grid": False})
    return layer(
        {"type": "tick", "color": colour, "size": size, "thickness": 1, "opacity": 1, "aria": False}, rows, x=x
    )


def _line(value: float) -> dict[str, Any]:
    mark = {"type": "rule", "color": look.INK, "strokeDash": [4, 3], "aria": False}
    return layer(mark, [{"x": value}], x=quantitative("x"), y=None)


def _count(form: Format, low: float, high: float) -> str:
    ends = f", ends at {form.largest:g}" if low <= form.largest < high else ""
    return counted(len(_places(form, low, high)), "number") + ends


def _sentence(form: Format, low: float, high: float) -> str:
    top = min(high, form.largest)
    places = _places(form, low, high)
    if len(places) < 2:
        return f"{form.name}: {_count(form, low, high)}"
    closest = number_formats.spacing(low, form)
    farthest = number_formats.spacing(number_formats.number_at(places[-2], form), form)
    ends = f", and ends at {top:g}" if top < high else ""
    return (
        f"{form.name}: {counted(len(places), 'number')}, the closest {closest:g} apart, the farthest {farthest:g}{ends}"
    )
