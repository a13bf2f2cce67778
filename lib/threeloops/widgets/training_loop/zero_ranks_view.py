"""ZeRO on every rank view: what the explorer shows for a state, as figure, sentences and table. No widget in here.

>>> print(view(State(stage=3, ranks=4, layers=3, step=1)).summary)
Step 1 of 17: every rank gathers the weights of layer 1. It keeps 4 bytes a parameter and has sent 0.25 models.
"""

import functools
from dataclasses import dataclass, replace
from typing import NamedTuple

from threeloops import checks
from threeloops.figures.boxes import Box, boxes
from threeloops.figures.figure import Figure
from threeloops.simulate.training_loop.zero_ranks import NEW, STAGES, Kept, Moment, PlayedRanks, play
from threeloops.units import counted
from threeloops.widgets.view import View

WAYS = {
    "no ZeRO: plain data parallelism": 0,
    "stage 1: optimiser sharded": 1,
    "stage 2: gradients, too": 2,
    "stage 3: weights, too (FSDP)": 3,
}
RANKS, LAYERS = (2, 3, 4), (2, 3, 4)
COLUMNS = ("rank", "weights", "gradients", "optimiser", "bytes a parameter", "models sent")
KINDS = {"weights": "compute", "gradients": "memory", "optimiser": "control"}  # blue, orange, green
LETTERS = {"weights": "W", "gradients": "G", "optimiser": "O"}
SAYS = {
    "start": "nothing has begun",
    "gather": "every rank gathers the weights of layer {}",
    "forward": "forward through layer {}",
    "backward": "backward through layer {}, which leaves each rank a gradient of its own",
    "all-reduce": "the gradients of layer {} are summed, for everybody",
    "scatter": "the gradients of layer {} are summed, each shard for its owner",
    "update": "each rank updates the weights whose optimiser state it keeps",
    "end": "the step is over; gradients are freed",
}
ROW, HEAD = 40, 40  # pixels: of a layer, of the lines above and below


class Across(NamedTuple):
    """Pixels: of a layer's name, of a kind, between kinds, between ranks."""

    name: int
    block: int
    gap: int
    apart: int


WIDE, SLIM = Across(58, 36, 5, 16), Across(50, 25, 3, 7)  # the second for a phone


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """Where the controls stand."""

    stage: int
    ranks: int
    layers: int
    step: int  # how many pieces of work have been done

    def __post_init__(self) -> None:
        for name, known in (("stage", STAGES), ("ranks", RANKS), ("layers", LAYERS)):
            if getattr(self, name) not in known:
                raise ValueError(f"{name}={getattr(self, name)!r} must be one of {', '.join(map(str, known))}")
        checks.count(at_least=0, step=self.step)
        if self.step > last_step(self.stage, self.ranks, self.layers):
            last = last_step(self.stage, self.ranks, self.layers)
            raise ValueError(f"step={self.step} must be at most {last}, where the step is over")


@functools.lru_cache(maxsize=64)
def played(stage: int, ranks: int, layers: int) -> PlayedRanks:
    """The whole step."""
    return play(stage=stage, ranks=ranks, layers=layers)


def last_step(stage: int, ranks: int, layers: int) -> int:
    """The number of the last piece of work."""
    return len(played(stage, ranks, layers).moments) - 1


def view(state: State) -> View:
    """What to show for a state: what every rank keeps after its step, and what it has sent."""
    done = played(state.stage, state.ranks, state.layers)
    now = done.moments[state.step]
    held, sent = done.held_bytes(now, 0), done.sent(now, 0)
    doing = SAYS[now.what].format(now.layer)
    who = "It" if "rank" in doing else "A rank"
    summary = (
        f"Step {state.step} of {len(done.moments) - 1}: {doing}. {who} keeps {held:.3g} bytes a parameter and has sent"
        f" {sent:.3g} models."
    )
    rows = tuple(_row(done, now, rank) for rank in range(state.ranks))
    return View(columns=COLUMNS, figure=_figure(state, done, now), summary=summary, rows=rows)


def _figure(state: State, done: PlayedRanks, now: Moment) -> Figure:
    so_far = max(done.held_bytes(moment, 0) for moment in done.moments[: state.step + 1])
    way = "Plain data parallelism" if state.stage == 0 else f"ZeRO stage {state.stage}"
    rows = (zip(COLUMNS, _row(done, now, rank), strict=True) for rank in range(state.ranks))
    told = ". ".join(", ".join(f"{name} {cell}" for name, cell in row) for row in rows)
    wide, slim = (
        boxes(
            _plan(state, done, now, across),
            title=f"{way}, step {state.step} of {len(done.moments) - 1}: up to {so_far:.3g} bytes a parameter so far",
            caption=(
                f"{counted(state.ranks, 'rank')}, {counted(state.layers, 'layer')}, {state.ranks} shards of each."
                " W: weights, G: gradients, O: optimiser, six times a W; P: all weights. Low: not summed, or old."
            ),
            alt=f"{way}, after {SAYS[now.what].format(now.layer)}. {told}.",
        )
        for across in (WIDE, SLIM)
    )
    return replace(wide, slim=slim.body)


def _plan(state: State, done: PlayedRanks, now: Moment, across: Across) -> list[Box]:
    """The layers' names, and for every rank what it keeps of each, with two lines of numbers."""
    plan = []
    for layer in range(1, state.layers + 1):
        kind = "frame" if layer == now.layer else "off"
        y = HEAD + (layer - 1) * ROW + 2
        plan.append(Box(x=0, y=y, width=across.name, height=ROW - 8, kind=kind, text=f"layer {layer}"))
    wide = 3 * across.block + 2 * across.gap
    for rank, kept in enumerate(now.kept):
        left = across.name + across.apart + rank * (wide + across.apart)
        plan.append(Box(x=left, y=0, width=wide, height=16, kind="bare", text=f"rank {rank}"))
        for place, name in enumerate(KINDS):
            x = left + place * (across.block + across.gap)
            plan.append(Box(x=x, y=18, width=across.block, height=16, kind="bare", text=LETTERS[name]))
            for row, one in enumerate(kept):
                plan += _shards(one, name, x, HEAD + row * ROW, state.ranks, across.block)
        y = HEAD + state.layers * ROW + 2
        for line, text in enumerate(
            (f"keeps {done.held_bytes(now, rank):.3g} B", f"sent {done.sent(now, rank):.3g} P")
        ):
            plan.append(Box(x=left, y=y + 17 * line, width=wide, height=16, kind="bare", text=text))
    return plan


def _shards(kept: Kept, name: str, x: float, y: float, ranks: int, block: int) -> list[Box]:
    """A frame for a layer's weights, gradients or optimiser state, with the shards that are kept."""
    width, height = (block - 4) / ranks, ROW - 12
    drawn = [Box(x=x, y=y + 2, width=block, height=ROW - 8, kind="frame")]
    for shard in sorted(getattr(kept, name)):
        tall = height if _final(kept, name, shard, ranks) else height / 2
        drawn.append(Box(x=x + 2 + shard * width, y=y + 4 + height - tall, width=width, height=tall, kind=KINDS[name]))
    return drawn


def _final(kept: Kept, name: str, shard: int, ranks: int) -> bool:
    """Whether a shard is what it should be: a whole sum, or weights no older than the layer's newest."""
    if name == "gradients":
        return len(kept.gradients[shard]) == ranks
    return name == "optimiser" or kept.weights[shard] == NEW or NEW not in kept.weights.values()


def _row(done: PlayedRanks, now: Moment, rank: int) -> tuple[str, ...]:
    shards = done.ranks * done.layers
    kept = now.kept[rank]
    held = (f"{sum(len(getattr(one, name)) for one in kept)} of {shards} shards" for name in KINDS)
    return (f"{rank}", *held, f"{done.held_bytes(now, rank):.3g}", f"{done.sent(now, rank):.3g}")
