"""Sharded step view: what the explorer shows for a state, as figure, sentences and table. No widget in here.

>>> print(view(State(layers=3, gather_s=1.0, ahead=1, keep=False, step=4)).summary)
Step 4 of 11, time 4: the network does gather 2; the device does backward 3. Whole on this GPU: layers 2 and 3.
"""

import functools
from dataclasses import dataclass, replace

from threeloops import checks
from threeloops.figures.overlap_rows import Busy, overlap_rows
from threeloops.figures.training_loop.shard_stages import busy
from threeloops.simulate.training_loop.sharded_step import PlayedStep, play
from threeloops.units import counted, fmt_percent
from threeloops.widgets.view import View

LAYERS = (2, 3, 4, 5)
GATHERS = {"a quarter of a forward pass": 0.25, "a half": 0.5, "as long": 1.0, "twice as long": 2.0}
AHEAD = {"none: when it is needed": 0, "one layer ahead": 1, "two layers ahead": 2}
AFTER = {"free the weights again": False, "keep them until backward": True}
WIDTH, SLIM = 515, 298  # pixels of the step: with the names of the rows, a column of the page, and of a phone
COLUMNS = ("layer", "now", "its weights are whole for")


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """Where the controls stand; a layer's forward pass takes one unit of time, its backward pass two, a scatter as
    long as a gather.
    """

    layers: int
    gather_s: float
    ahead: int
    keep: bool
    step: int  # how many moments, at which anything begins or ends, have passed

    def __post_init__(self) -> None:
        if self.layers not in LAYERS:
            raise ValueError(f"layers={self.layers!r} must be one of {', '.join(map(str, LAYERS))}")
        checks.positive(gather_s=self.gather_s)
        checks.count(at_least=0, ahead=self.ahead, step=self.step)
        last = len(moments(self.layers, self.gather_s, self.ahead, self.keep)) - 1
        if self.step > last:
            raise ValueError(f"step={self.step} must be at most {last}, where the last scatter has ended")


@functools.lru_cache(maxsize=64)
def played(layers: int, gather_s: float, ahead: int, keep: bool) -> PlayedStep:
    """The whole step."""
    times = {"forward_s": 1.0, "backward_s": 2.0, "gather_s": gather_s, "scatter_s": gather_s}
    return play(layers=layers, ahead=ahead, keep=keep, **times)


def moments(layers: int, gather_s: float, ahead: int, keep: bool) -> tuple[float, ...]:
    """The times at which anything begins or ends."""
    done = played(layers, gather_s, ahead, keep)
    return tuple(sorted({time_s for one in done.work for time_s in (one.start_s, one.end_s)}))


def view(state: State) -> View:
    """What to show for a state: everything that has begun by its step, and what is under way right after."""
    setting = (state.layers, state.gather_s, state.ahead, state.keep)
    done, times = played(*setting), moments(*setting)
    now_s = times[state.step]
    kept = [
        Busy(
            row=f"layer {one.layer}",
            text="whole",
            start_s=one.start_s,
            end_s=min(one.end_s, max(now_s, one.start_s + 1e-9)),
            kind="frame",
        )
        for one in done.whole
        if one.start_s < now_s
    ]
    rows = ("network", "computing", *(f"layer {layer}" for layer in range(1, state.layers + 1)))
    shown = [*busy(done.work, now_s, letters=True), *kept] or busy(done.work[:1], times[1], letters=True)
    waits = fmt_percent(done.waits_s / done.finished_s)
    wide, slim = (
        overlap_rows(
            shown,
            title=f"The device waits for {waits} of the step; at most {counted(done.most_whole, 'layer')} whole",
            caption=(
                f"Up to time {now_s:g}. G and S: gather and scatter, {state.gather_s:g} each; F and B: forward, 1, and"
                " backward, 2. A frame: that layer's weights take their whole place."
            ),
            unit="",
            rows=rows,
            until_s=done.finished_s,
            width=width,
        )
        for width in (WIDTH, SLIM)
    )
    figure = replace(wide, slim=slim.body)
    said = "; ".join(
        f"the {place} does {_doing(done, now_s, network)}" for place, network in (("network", True), ("device", False))
    )
    whole = [layer for layer in range(1, state.layers + 1) if _whole(done, layer, now_s)]
    summary = f"Step {state.step} of {len(times) - 1}, time {now_s:g}: {said}. Whole on this GPU: {_named(whole)}."
    return View(columns=COLUMNS, figure=figure, summary=summary, rows=_rows(state, done, now_s))


def _doing(done: PlayedStep, now_s: float, network: bool) -> str:
    under_way = [one for one in done.work if one.on_network is network and one.start_s <= now_s < one.end_s]
    return f"{under_way[0].what} {under_way[0].layer}" if under_way else "nothing"


def _whole(done: PlayedStep, layer: int, now_s: float) -> bool:
    return any(one.layer == layer and one.start_s <= now_s < one.end_s for one in done.whole)


def _named(layers: list[int]) -> str:
    if not layers:
        return "no layer"
    return f"layer {layers[0]}" if len(layers) == 1 else f"layers {', '.join(map(str, layers[:-1]))} and {layers[-1]}"


def _rows(state: State, done: PlayedStep, now_s: float) -> tuple[tuple[str, str, str], ...]:
    told = []
    for layer in range(1, state.layers + 1):
        now = [one.what for one in done.work if one.layer == layer and one.start_s <= now_s < one.end_s]
        lasts = sum(one.end_s - one.start_s for one in done.whole if one.layer == layer)
        told.append((f"{layer}", ", ".join(now) or "nothing", f"{lasts:g} of {done.finished_s:g}"))
    return tuple(told)
