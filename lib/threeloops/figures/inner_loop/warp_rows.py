"""Warp rows: what each resident warp of a scheduler does, cycle by cycle: it issues, it waits for memory, or it is
ready and another one issues.

>>> from threeloops.simulate.inner_loop import warp_scheduler
>>> kind = {"turns": 3, "loads": 1, "instructions": 3, "latency_cycles": 18, "policy": "greedy"}
>>> plays = {f"{warps} warps": warp_scheduler.play(warps=warps, **kind) for warps in (1, 3)}
>>> print(warp_rows(plays, start=21, cycles=21, title="More warps, more issues", caption="One scheduler.").alt)
1 warps: the scheduler issues in 19.0 % of 21 cycles. 3 warps: the scheduler issues in 57.1 % of 21 cycles.
"""

from collections.abc import Mapping
from itertools import pairwise
from typing import Any

from threeloops import checks
from threeloops.figures import look
from threeloops.figures.channels import WORDS, layer, nominal, quantitative
from threeloops.figures.figure import Figure
from threeloops.simulate.inner_loop.warp_scheduler import Played
from threeloops.units import fmt_percent

ROW_HEIGHT = 22  # pixels
# What a warp does: its colour and the share of its row that it fills.
STATES = {"issues": (look.BLUE, 0.8), "waits for memory": (look.ORANGE, 0.18)}


def warp_rows(plays: Mapping[str, Played], *, start: int, cycles: int, title: str, caption: str) -> Figure:
    """One view per play, one below the other, on one clock, from cycle `start` on for so many cycles; above each its
    name and the share of these cycles in which the scheduler issues.

    Raises:   ValueError without plays, or if one ends before the clock does
    """
    checks.count(cycles=cycles)
    checks.count(at_least=0, start=start)
    if not plays or min(played.cycles for played in plays.values()) < start + cycles:
        raise ValueError(f"each play must last for {start + cycles} cycles, and there must be at least one")
    clock = range(start, start + cycles)
    told = {name: _told(name, played, clock) for name, played in plays.items()}
    last = list(plays)[-1]
    return Figure(
        title=title,
        caption=caption,
        alt=" ".join(f"{words} of {cycles} cycles." for words in told.values()),
        body={
            "vconcat": [_view(told[name], played, clock, labelled=name == last) for name, played in plays.items()],
            "spacing": 12,
        },
    )


def _told(name: str, played: Played, clock: range) -> str:
    share = sum(cycle in clock for cycle in played.issue_cycles) / len(clock)
    return f"{name}: the scheduler issues in {fmt_percent(share)}"


def _view(name: str, played: Played, clock: range, *, labelled: bool) -> dict[str, Any]:
    bars = [bar for warp in range(max(played.issuers) + 1) for bar in _bars(played, warp, clock)]
    kinds = {"domain": list(STATES), "range": [colour for colour, _ in STATES.values()]}
    x = quantitative(
        "start",
        scale={"domain": [clock.start, clock.stop], "nice": False},
        axis={"title": "clock (cycles)", "grid": False} if labelled else None,
    )
    y = quantitative("top", axis=None, scale={"domain": [0, max(played.issuers) + 1], "reverse": True, "nice": False})
    return {
        "title": {"text": name, "fontSize": look.TEXT, "fontWeight": "normal", "offset": 4},
        "width": look.PLOT_WIDTH,
        "height": ROW_HEIGHT * (max(played.issuers) + 1),
        **layer({"type": "rect"}, bars, x=x, x2="end", y=y, y2="bottom", color=nominal("state", scale=kinds), **WORDS),
    }


def _bars(played: Played, warp: int, clock: range) -> list[dict[str, Any]]:
    """Runs of issues of one warp, and the wait from its last load to its next issue as far as it is one for memory."""
    own = [cycle for cycle, who in zip(played.issue_cycles, played.issuers, strict=True) if who == warp]
    issued = set(own)
    back = dict(request for request in played.requests if request[0] in issued)
    ends = [0, *(index for index, (a, b) in enumerate(pairwise(own), start=1) if b > a + 1), len(own)]
    runs = [own[begin:end] for begin, end in pairwise(ends)]
    spans = [("issues", run[0], run[-1] + 1) for run in runs]
    spans += [("waits for memory", run[-1] + 1, back[run[-1]]) for run in runs if run[-1] in back]
    return [
        _bar(warp, state, max(start, clock.start), min(end, clock.stop))
        for state, start, end in spans
        if start < clock.stop and end > clock.start
    ]


def _bar(warp: int, state: str, start: int, end: int) -> dict[str, Any]:
    half = STATES[state][1] / 2
    return {
        "start": start,
        "end": end,
        "state": state,
        "top": warp + 0.5 - half,
        "bottom": warp + 0.5 + half,
        "words": f"warp {warp} {state}, cycles {start} to {end}",
    }
