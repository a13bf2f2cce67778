"""Scaling curve: what a job makes of more GPUs, against what it would make if nothing but computing took time.

>>> real, perfect = [(1, 100.0), (8, 600.0)], [(1, 100.0), (8, 800.0)]
>>> figure = scaling_curve(real, perfect, here=(8, 600.0), title="Eight work like six", caption="A job.")
>>> print(figure.alt)
Tokens per second against GPUs, both axes logarithmic. Perfect: from 100 with 1 GPU to 800 with 8. Real: from 100 to 600. Marked: 8 GPUs, 600 tokens/s.
"""  # noqa: E501

from collections.abc import Sequence

from threeloops import checks
from threeloops.figures import look
from threeloops.figures.channels import WORDS, layer, nominal, quantitative
from threeloops.figures.figure import Figure
from threeloops.units import fmt_si

NAMES = 70  # pixels kept free for the names at the right
HEIGHT = 270

Curve = Sequence[tuple[int, float]]  # GPUs, tokens/s


def scaling_curve(real: Curve, perfect: Curve, *, here: tuple[int, float], title: str, caption: str) -> Figure:
    """Two lines over the same numbers of GPUs, and a mark on the real one.

    Raises:   ValueError where the curves have fewer than two points or are not over the same GPUs
    """
    if len(real) < 2 or [gpus for gpus, _ in real] != [gpus for gpus, _ in perfect]:
        raise ValueError(
            f"real has {len(real)} points, perfect {len(perfect)}; give at least two, over the same numbers of GPUs"
        )
    for gpus, rate in (*real, *perfect, here):
        checks.count(gpus=gpus)
        checks.positive(tokens_per_s=rate)
    names = {"perfect": perfect, "real": real}
    rows = [{"line": name, "gpus": gpus, "rate": rate} for name, curve in names.items() for gpus, rate in curve]
    ends = [
        {"line": name, "gpus": curve[-1][0], "rate": curve[-1][1], "up": name == "perfect"}
        for name, curve in names.items()
    ]
    most = real[-1][0]
    ticks = [gpus for gpus, _ in real if gpus.bit_length() % 2 == most.bit_length() % 2]
    x = quantitative(
        "gpus", title="GPUs", scale={"type": "log", "base": 2, "nice": False}, axis={"values": ticks, "format": ",d"}
    )
    y = quantitative(
        "rate", title="tokens/s", scale={"type": "log", "nice": False}, axis={"format": "~s", "tickCount": 5}
    )
    colours = {"domain": list(names), "range": [look.GREY, look.BLUE]}
    dashes = {"domain": list(names), "range": [[8, 4], [1, 0]]}
    colour = nominal("line", scale=colours, legend=None)
    dash = nominal("line", scale=dashes, legend=None)
    name = {"type": "text", "align": "left", "dx": 8, "fontSize": look.TEXT, "aria": False}
    return Figure(
        title=title,
        caption=caption,
        alt=_alt(real, perfect, here),
        narrow_px=306,  # beside the names of the curves
        body={
            "width": look.PLOT_WIDTH - NAMES,
            "height": HEIGHT,
            "layer": [
                layer({"type": "line", "strokeWidth": 2, "aria": False}, rows, x=x, y=y, color=colour, strokeDash=dash),
                *(
                    layer({**name, "dy": -7 if end["up"] else 7}, [end], x=x, y=y, text="line", color=colour)
                    for end in ends
                ),
                layer(
                    {"type": "point", "filled": True, "shape": "diamond", "size": 160, "color": look.ORANGE},
                    [{"gpus": here[0], "rate": here[1], "words": f"{here[0]:,} GPUs: {fmt_si(here[1], 'token/s')}"}],
                    x=x,
                    y=y,
                    **WORDS,
                ),
            ],
        },
    )


def _alt(real: Curve, perfect: Curve, here: tuple[int, float]) -> str:
    (few, first), (many, last) = perfect[0], perfect[-1]
    return (
        "Tokens per second against GPUs, both axes logarithmic. "
        f"Perfect: from {_rate(first)} with {few:,} GPU{'s' * (few > 1)} to {_rate(last)} with {many:,}. "
        f"Real: from {_rate(real[0][1])} to {_rate(real[-1][1])}. Marked: {here[0]:,} GPUs, {_rate(here[1])} tokens/s."
    )


def _rate(rate: float) -> str:
    return f"{float(f'{rate:.3g}'):,.0f}"
