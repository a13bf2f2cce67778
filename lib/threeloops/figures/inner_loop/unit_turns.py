"""Who works when: groups of warps on the matrix unit and the exponential unit, as bars on a clock.

>>> turns = [Turn(group=0, unit="matrix", start=0, end=2), Turn(group=0, unit="exponential", start=2, end=3)]
>>> played = bars({"alone": turns}, names={"matrix": "tensor cores", "exponential": "exponentials"})
>>> figure = unit_turns(played, title="One group leaves units idle", caption="Cycles of one multiprocessor.")
>>> for row in figure.alt.split(". ")[1:]:
...     print(row)
alone: tensor cores: busy 2 of the first 2: A 0 to 2
alone: exponentials: busy 1 of the first 3: A 2 to 3.

>>> loads = [Turn(group=0, unit="load", start=0, end=2), Turn(group=0, unit="matrix", start=2, end=3)]
>>> [(bar.row, bar.group, bar.word) for bar in stage_bars(loads, stages=1)]
[('stage 0', 'loads', '0'), ('stage 0', 'multiplies', '0'), ('consumers', 'multiplies', '0')]
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from string import ascii_uppercase

from threeloops import checks
from threeloops.figures import look
from threeloops.figures.channels import WORDS, layer, nominal, quantitative
from threeloops.figures.figure import Figure
from threeloops.simulate.inner_loop.unit_turns import Turn
from threeloops.units import counted

ROW_HEIGHT = 34  # pixels
PIPELINE = ("multiplies", "waits for an empty stage", "loads")  # groups of a pipeline, in the order of their colours


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """One group on one unit for a while."""

    row: str
    group: str
    start: float
    end: float
    word: str = ""  # stands in the bar; without it the group does, and there is no legend

    def __post_init__(self) -> None:
        checks.non_negative(start=self.start)
        if not self.end > self.start:
            raise ValueError(f"end={self.end!r} of {self.row!r} must lie behind start={self.start!r}")


def bars(runs: Mapping[str, Sequence[Turn]], *, names: Mapping[str, str]) -> list[Bar]:
    """A bar per turn, ordered by run and, within it, by unit in the order of `names`; groups become letters."""
    return [
        Bar(row=f"{run}: {name}", group=ascii_uppercase[turn.group], start=turn.start, end=turn.end)
        for run, turns in runs.items()
        for unit, name in names.items()
        for turn in turns
        if turn.unit == unit
    ]


def stage_bars(turns: Sequence[Turn], *, stages: int) -> list[Bar]:
    """What a pipeline's producer warp waits for, what happens in each stage of shared memory, and what its consumer
    warps multiply, as bars with the number of the step.
    """
    loads, products = ([turn for turn in turns if turn.unit == unit] for unit in ("load", "matrix"))
    producer = [
        Bar(row="producer", group="waits for an empty stage", start=before.start, end=turn.start, word=str(turn.group))
        for before, turn in pairwise(loads)
        if turn.start > before.start
    ]
    places = [
        Bar(row=f"stage {turn.group % stages}", group=group, start=turn.start, end=turn.end, word=str(turn.group))
        for group, done in (("loads", loads), ("multiplies", products))
        for turn in done
    ]
    return [
        *producer,
        *sorted(places, key=lambda bar: (bar.row, bar.start)),
        *(Bar(row="consumers", group="multiplies", start=t.start, end=t.end, word=str(t.group)) for t in products),
    ]


def unit_turns(bars: Sequence[Bar], *, title: str, caption: str) -> Figure:
    """One row per unit and schedule, from top to bottom in the order of the bars; groups by colour and by letter."""
    if not bars:
        raise ValueError("bars is empty; a chart needs at least one Bar")
    rows, seen = list(dict.fromkeys(bar.row for bar in bars)), list(dict.fromkeys(bar.group for bar in bars))
    groups = [group for group in PIPELINE if group in seen] or seen
    values = [
        {
            "row": b.row,
            "group": b.group,
            "word": b.word or b.group,
            "start": b.start,
            "end": b.end,
            "middle": (b.start + b.end) / 2,
            "words": _words(b),
        }
        for b in bars
    ]
    last = max(bar.end for bar in bars)
    y = nominal("row", sort=rows, axis={"title": None, "labelLimit": 200, "ticks": False, "domain": False})
    x = quantitative(
        "start", scale={"domain": [0, last], "nice": False}, axis={"title": "clock (cycles)", "format": ",~r"}
    )
    colour = nominal(
        "group",
        legend={} if any(bar.word for bar in bars) else None,
        scale={"domain": groups, "range": list(look.SERIES_COLOURS[: len(groups)])},
    )
    return Figure(
        title=title,
        caption=caption,
        alt=_alt(bars, rows),
        body={
            "width": look.PLOT_WIDTH - 110,
            "height": ROW_HEIGHT * len(rows),
            "data": {"values": values},
            "encoding": {"y": y},
            "layer": [
                layer(
                    {"type": "bar", "stroke": look.PAPER, "strokeWidth": 1.5, "height": {"band": 0.8}},
                    x=x,
                    x2="end",
                    color=colour,
                    **WORDS,
                ),
                layer(
                    {"type": "text", "color": look.PAPER, "fontWeight": "bold", "aria": False},
                    x=quantitative("middle"),
                    text="word",
                ),
            ],
        },
    )


def _alt(bars: Sequence[Bar], rows: Sequence[str]) -> str:
    """Row by row; of a pipeline the last row, which everything else serves, comes first, and steps are counted."""
    if not bars[0].word:
        return "Bars on a clock, in cycles. " + " ".join(_row([b for b in bars if b.row == row]) for row in rows)
    return " ".join(_summary([bar for bar in bars if bar.row == row]) for row in reversed(rows))


def _summary(bars: Sequence[Bar]) -> str:
    """What a pipeline's row does, how often, and for how many cycles up to its last one."""
    did = []
    for group in dict.fromkeys(bar.group for bar in bars):
        own = [bar for bar in bars if bar.group == group]
        did.append(
            f"{group} {counted(len(own), 'time')}, {sum(b.end - b.start for b in own):,g} cycles from {own[0].start:,g}"
        )
    return f"{bars[0].row}: {'; '.join(did)}; ends at {max(bar.end for bar in bars):,g}."


def _row(bars: Sequence[Bar]) -> str:
    """How long a row is busy, then bar by bar."""
    busy, last = sum(bar.end - bar.start for bar in bars), max(bar.end for bar in bars)
    return f"{bars[0].row}: busy {busy:,g} of the first {last:,g}: {', '.join(_words(bar) for bar in bars)}."


def _words(bar: Bar) -> str:
    step = f" {bar.word}" if bar.word else ""
    return f"{bar.group}{step} {bar.start:,g} to {bar.end:,g}"
