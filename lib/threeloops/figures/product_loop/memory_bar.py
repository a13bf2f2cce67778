"""Memory bar: what a GPU holds, part after part, against what it has and what the engine may use of it.

>>> figure = memory_bar(
...     {"weights": 16e9, "KV cache": 32e9},
...     memory_bytes=80e9,
...     budget_bytes=72e9,
...     title="It fits",
...     caption="A GPU.",
... )
>>> print(figure.alt)
One bar of memory: weights 16.0 GB, KV cache 32.0 GB; 48.0 GB together. The engine may use 72.0 GB of 80.0 GB.
"""

from collections.abc import Mapping
from typing import Any

from threeloops import checks
from threeloops.figures import look
from threeloops.figures.channels import WORDS, layer, nominal, quantitative
from threeloops.figures.figure import Figure
from threeloops.units import GB, fmt_bytes

HEIGHT, BAR = 90, 40


def memory_bar(
    parts: Mapping[str, float], *, memory_bytes: float, budget_bytes: float, title: str, caption: str
) -> Figure:
    """The parts side by side; dashed: what the engine may use; solid: all that there is."""
    checks.positive(memory_bytes=memory_bytes, budget_bytes=budget_bytes)
    checks.non_negative(**{name.replace(" ", "_"): size for name, size in parts.items()})
    whole = sum(parts.values())
    end = max(1.08 * memory_bytes, 1.04 * whole) / GB
    x = quantitative(
        "start",
        title="GB on one GPU",
        scale={"domain": [0, end], "nice": False},
        axis={"format": ",.0f", "tickCount": 6},
    )
    y = {"value": HEIGHT / 2 - BAR / 2}
    lines = [
        {"at": budget_bytes / GB, "name": "engine", "dash": True},
        {"at": memory_bytes / GB, "name": "card", "dash": False},
    ]
    names = list(parts)
    at = quantitative("at")
    return Figure(
        title=title,
        caption=caption + " Dashed line: what the engine may use; solid: the card.",
        alt=_alt(parts, memory_bytes=memory_bytes, budget_bytes=budget_bytes),
        body={
            "width": look.PLOT_WIDTH,
            "height": HEIGHT,
            "layer": [
                layer(
                    {"type": "bar", "stroke": look.PAPER},
                    _pieces(parts),
                    x=x,
                    x2="end",
                    y=y,
                    y2={"value": HEIGHT / 2 + BAR / 2},
                    color=nominal(
                        "part",
                        scale={"domain": names, "range": list(look.SERIES_COLOURS[: len(names)])},
                        legend={"symbolType": "square"},
                    ),
                    **WORDS,
                ),
                layer(
                    {"type": "rule", "color": look.INK, "strokeWidth": 1.5, "aria": False},
                    lines,
                    x=at,
                    strokeDash=nominal("dash", legend=None, scale={"domain": [True, False], "range": [[5, 4], [1, 0]]}),
                ),
            ],
        },
    )


def _pieces(parts: Mapping[str, float]) -> list[dict[str, Any]]:
    made, start = [], 0.0
    for name, size in parts.items():
        end = start + size / GB
        made.append({"part": name, "start": start, "end": end, "words": f"{name}: {fmt_bytes(size, base=10)}"})
        start = end
    return made


def _alt(parts: Mapping[str, float], *, memory_bytes: float, budget_bytes: float) -> str:
    told = ", ".join(f"{name} {fmt_bytes(size, base=10)}" for name, size in parts.items())
    return (
        f"One bar of memory: {told}; {fmt_bytes(sum(parts.values()), base=10)} together. The engine may use"
        f" {fmt_bytes(budget_bytes, base=10)} of {fmt_bytes(memory_bytes, base=10)}."
    )
