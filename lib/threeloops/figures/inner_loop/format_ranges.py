"""Format ranges: how far a format reaches, how fine it is there, and how its bits are shared out.

>>> figure = format_ranges([number_formats.FP16], title="Fine, and soon over", caption="FP16.")
>>> print(figure.alt)
Gap to the next number, as a share of the number itself, over the number's size. FP16: from 5.96e-08 to 65,504, gaps of 0.000977 above 6.1e-05, wider below.

Source: the formats' own, see number_formats
"""  # noqa: E501

import math
from collections.abc import Sequence
from typing import Any

from threeloops.figures import look
from threeloops.figures.boxes import Box, boxes
from threeloops.figures.channels import WORDS, layer, nominal, quantitative
from threeloops.figures.figure import Figure
from threeloops.inner_loop import number_formats
from threeloops.inner_loop.number_formats import Format

NAME, BIT, ROW, GAP = 60, 16, 30, 10  # pixels: of a format's name, of a bit, of a row, and between two
POWER = "replace(format(datum.value, '.0e'), '+', '')"  # 1e-40, 1e0, 1e10


def format_ranges(forms: Sequence[Format], *, title: str, caption: str) -> Figure:
    """One line per format, from its smallest number to its largest; low is fine, and long is wide.

    Raises:   ValueError for more formats than there are line styles
    """
    if not 0 < len(forms) <= len(look.SERIES_COLOURS):
        raise ValueError(f"{len(forms)} formats were given; 1 to {len(look.SERIES_COLOURS)} can be told apart")
    names = [form.name for form in forms]
    series = nominal("format", sort=names)
    legend = {"orient": "top", "title": None, "symbolStrokeWidth": 0.5}
    colour = {**series, "scale": {"domain": names, "range": list(look.SERIES_COLOURS[: len(names)])}, "legend": legend}
    dash = {**series, "scale": {"domain": names, "range": list(look.SERIES_DASHES[: len(names)])}, "legend": None}
    shape = {**series, "scale": {"domain": names, "range": list(look.SERIES_SHAPES[: len(names)])}, "legend": legend}
    return Figure(
        title=title,
        caption=caption,
        alt="Gap to the next number, as a share of the number itself, over the number's size. "
        + " ".join(f"{_sentence(form)}." for form in forms),
        body={
            "width": look.PLOT_WIDTH,
            "height": look.PLOT_HEIGHT,
            "encoding": {"x": _axis("x", "size of the number", forms), "y": _relative(forms)},
            "layer": [
                layer(
                    {"type": "line", "strokeWidth": 2, "aria": False},
                    [row for form in forms for row in _line(form)],
                    color=colour,
                    strokeDash=dash,
                ),
                layer(
                    {"type": "point", "filled": True, "size": 80, "opacity": 1},
                    [row for form in forms for row in _corners(form)],
                    color=colour,
                    shape=shape,
                    **WORDS,
                ),
            ],
        },
    )


def bit_fields(forms: Sequence[Format], *, title: str, caption: str) -> Figure:
    """A row a format: its sign, exponent and mantissa bits, drawn to scale.

    Raises:   ValueError if no format is given

    >>> bit_fields([number_formats.BF16], title="Seven digits", caption="BF16.").alt
    'Sign, exponent and mantissa bits. BF16: 1, 8 and 7.'
    """
    if not forms:
        raise ValueError("forms is empty; give at least one format, like [number_formats.BF16]")
    plan = []
    for row, form in enumerate(forms):
        left, top = float(NAME), float(row * (ROW + GAP))
        plan.append(Box(x=0, y=top, width=NAME, height=ROW, kind="bare", text=form.name))
        fields = (
            ("control", 1, ""),
            ("memory", form.exponent_bits, "exponent "),
            ("compute", form.mantissa_bits, "mantissa "),
        )
        for kind, bits, word in fields:
            width = float(bits * BIT)
            text = f"{word}{bits}" if width > 80 else str(bits)
            plan.append(Box(x=left, y=top, width=width, height=ROW, kind=kind, text=text))
            left += width + 2
    told = " ".join(f"{form.name}: 1, {form.exponent_bits} and {form.mantissa_bits}." for form in forms)
    alt = f"Sign, exponent and mantissa bits. {told}"
    drawn = (NAME, max(box.x + box.width for box in plan))
    return boxes(plan, title=title, caption=caption, alt=alt, to_scale=drawn)


def _relative(forms: Sequence[Format]) -> dict[str, Any]:
    finest = min(form.epsilon for form in forms)
    axis = {"values": [10.0**power for power in range(-16, 1) if 10.0**power > finest / 4], "labelExpr": POWER}
    scale = {"type": "log", "domain": [finest / 4, 1.5], "nice": False}  # clear of the axis
    return quantitative("y", title="gap / number", scale=scale, axis=axis)


def _axis(name: str, title: str, forms: Sequence[Format]) -> dict[str, Any]:
    low = math.floor(math.log10(min(form.smallest_subnormal for form in forms))) - 1
    high = math.ceil(math.log10(max(form.largest for form in forms)))
    step = 10 if high - low > 20 else 2
    powers = range(low - low % step + step, high + 1, step)
    axis = {"values": [10.0**power for power in powers], "labelExpr": POWER}
    return quantitative(
        name, title=title, scale={"type": "log", "domain": [10.0**low, 10.0**high], "nice": False}, axis=axis
    )


def _at(value: float, form: Format) -> dict[str, Any]:
    return {"format": form.name, "x": value, "y": number_formats.spacing(value, form) / value}


def _line(form: Format) -> list[dict[str, Any]]:
    """At powers of two, where the gap is widest compared with the number; the last one also stands at the largest
    number.
    """
    return [
        *(_at(value, form) for value in (form.smallest_subnormal, form.smallest_normal)),
        {**_at(2.0**form.largest_exponent, form), "x": form.largest},
    ]


def _corners(form: Format) -> list[dict[str, Any]]:
    smallest, normal, largest = _line(form)
    return [
        {**smallest, "words": f"{form.name}: smallest number {form.smallest_subnormal:.3g}"},
        {**normal, "words": f"{form.name}: below {form.smallest_normal:.3g} precision is lost"},
        {**largest, "words": f"{form.name}: largest number {form.largest:.6g}"},
    ]


def _sentence(form: Format) -> str:
    largest = f"{form.largest:,.0f}" if form.largest < 1e6 else f"{form.largest:.3g}"
    return (
        f"{form.name}: from {form.smallest_subnormal:.3g} to {largest}, gaps of {form.epsilon:.3g} above"
        f" {form.smallest_normal:.3g}, wider below"
    )
