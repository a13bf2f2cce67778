"""Ridge history: the ridge point of one part after another, in the order of their years.

>>> entries = [Entry(part="A100", year=2020, ridge_point=153.0), Entry(part="H100", year=2022, ridge_point=295.3)]
>>> print(ridge_history(entries, title="It rose", caption="16-bit matrix peaks over bandwidth.").alt)
Highest ridge point: H100 (2022), lowest: A100 (2020). A100 (2020): 153 FLOP/B. H100 (2022): 295 FLOP/B.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from threeloops import checks
from threeloops.figures import look
from threeloops.figures.channels import WORDS, layer, nominal, quantitative
from threeloops.figures.figure import Figure


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One part."""

    part: str
    year: int
    ridge_point: float  # FLOP/B

    def __post_init__(self) -> None:
        checks.count(year=self.year)
        checks.positive(ridge_point=self.ridge_point)

    @property
    def name(self) -> str:
        return f"{self.part} ({self.year})"

    @property
    def sentence(self) -> str:
        return f"{self.name}: {self.ridge_point:.0f} FLOP/B"


def ridge_history(entries: Sequence[Entry], *, title: str, caption: str) -> Figure:
    """A bar per part from left to right as given, with its value on top.

    Raises:   ValueError if the entries are not in the order of their years, or if there are none
    """
    years = [entry.year for entry in entries]
    if not entries or years != sorted(years):
        raise ValueError(f"entries must be given in the order of their years, and at least one; got {years}")
    rows = [
        {"name": e.name, "ridge": e.ridge_point, "label": f"{e.ridge_point:.0f}", "words": e.sentence} for e in entries
    ]
    names = [entry.name for entry in entries]
    by_ridge = sorted(entries, key=lambda entry: entry.ridge_point)
    two_lines = "[split(datum.value, ' (')[0], '(' + split(datum.value, ' (')[1]]"
    x = nominal("name", sort=names, axis={"title": "part (year)", "labelAngle": 0, "labelExpr": two_lines})
    highest = 1.12 * max(entry.ridge_point for entry in entries)  # room for the value on top
    y = quantitative("ridge", title="ridge point (FLOP/B)", scale={"domain": [0, highest], "nice": False})
    return Figure(
        title=title,
        caption=caption,
        alt=f"Highest ridge point: {by_ridge[-1].name}, lowest: {by_ridge[0].name}. "
        + " ".join(f"{entry.sentence}." for entry in entries),
        body={
            "width": look.PLOT_WIDTH,
            "height": 260,
            "data": {"values": rows},
            "encoding": {"x": x, "y": y},
            "layer": [
                layer({"type": "bar", "color": look.BLUE, "width": {"band": 0.6}}, **WORDS),
                layer({"type": "text", "baseline": "bottom", "dy": -3, "aria": False}, text="label"),
            ],
        },
    )
