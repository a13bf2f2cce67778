"""Step maxima: how the time of a synchronous step is distributed, for more and more ranks that it waits for.

>>> figure = step_maxima(
...     {1: [0.9, 1.0, 1.1], 100: [1.2, 1.3, 1.3]}, bin_s=0.1, title="The maximum moves", caption="Steps."
... )
>>> print(figure.alt)
Share of steps by their time. 1 rank: 3 steps, mean 1.00 s. 100 ranks: 3 steps, mean 1.27 s.
"""

from collections import Counter
from collections.abc import Mapping, Sequence

from threeloops import checks
from threeloops.figures import look
from threeloops.figures.channels import layer, nominal, quantitative
from threeloops.figures.figure import Figure
from threeloops.units import counted, fmt_seconds, ms


def step_maxima(steps_s: Mapping[int, Sequence[float]], *, bin_s: float, title: str, caption: str) -> Figure:
    """One outline per number of ranks: the share of its steps in every bin of time.

    Raises:   ValueError for no or too many outlines, or for one without steps
    """
    checks.positive(bin_s=bin_s)
    if not 0 < len(steps_s) <= len(look.SERIES_COLOURS) or not all(steps_s.values()):
        raise ValueError(
            f"{len(steps_s)} groups of steps; draw 1 to {len(look.SERIES_COLOURS)}, each with at least one step"
        )
    names = [counted(ranks, "rank") for ranks in steps_s]
    # Bins are the same for all, and empty ones are drawn as zero: an outline must not jump over them.
    tallies = [Counter(int(seconds // bin_s) for seconds in steps) for steps in steps_s.values()]
    first, last = min(min(tally) for tally in tallies) - 1, max(max(tally) for tally in tallies) + 1
    rows = [
        {"ranks": name, "ms": (place + 0.5) * bin_s / ms, "share": tally[place] / tally.total()}
        for name, tally in zip(names, tallies, strict=True)
        for place in range(first, last + 1)
    ]
    colours = {"domain": names, "range": list(look.SERIES_COLOURS[: len(names)])}
    dashes = {"domain": names, "range": [list(one) for one in look.SERIES_DASHES[: len(names)]]}
    means = " ".join(
        f"{name}: {counted(len(steps), 'step')}, mean {fmt_seconds(sum(steps) / len(steps))}."
        for name, steps in zip(names, steps_s.values(), strict=True)
    )
    return Figure(
        title=title,
        caption=caption,
        alt=f"Share of steps by their time. {means}",
        body={
            "width": look.PLOT_WIDTH,
            "height": 260,
            **layer(
                {"type": "line", "interpolate": "step", "strokeWidth": 2, "aria": False},
                rows,
                x=quantitative(
                    "ms", scale={"zero": False, "nice": False}, axis={"title": "time of a step (ms)", "tickCount": 8}
                ),
                y=quantitative("share", axis={"title": "share of steps", "format": ".0%"}),
                color=nominal("ranks", scale=colours, sort=names),
                strokeDash=nominal("ranks", scale=dashes, sort=names),
            ),
        },
    )
