"""Count: a training step through a chain of layers, every kept thing an entry in a dictionary; some stretches keep
their input alone and run again.

Nothing here knows how much a step holds. Layers are run, what they leave is put down, and what the backward pass has
used is taken away.

>>> step = play([Stretch(layers=2, again=True), Stretch(layers=1, again=False)], block_bytes=5, input_bytes=1)
>>> step.peak_bytes, step.layer_runs
(10, 5)
"""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Stretch:
    """Neighbouring layers that are treated as one."""

    layers: int
    again: bool  # keeps only what enters it, and is run again


@dataclass(frozen=True, slots=True)
class Moment:
    """What was just done, and the bytes alive right after."""

    what: str
    alive_bytes: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """The whole step, moment by moment."""

    moments: tuple[Moment, ...]
    layer_runs: int  # forward, the second ones included

    @property
    def peak_bytes(self) -> float:
        return max(moment.alive_bytes for moment in self.moments)


def even_stretches(*, num_layers: int, every: int) -> list[Stretch]:
    """Stretches of `every` layers, all run again; the last takes what is left.

    >>> [stretch.layers for stretch in even_stretches(num_layers=7, every=3)]
    [3, 3, 1]
    """
    starts = range(0, num_layers, every)
    return [Stretch(layers=min(every, num_layers - start), again=True) for start in starts]


def play(stretches: Sequence[Stretch], *, block_bytes: float, input_bytes: float) -> Step:
    """Run all layers forward and backward. A layer leaves its input and, beside it, the rest of its block_bytes."""
    alive: dict[tuple[str, int], float] = {}
    moments: list[Moment] = []
    runs = 0

    def run(layer: int, *, keep: bool) -> None:
        nonlocal runs
        runs += 1
        if keep:
            alive["input", layer], alive["rest", layer] = input_bytes, block_bytes - input_bytes
        moments.append(Moment(f"forward {layer + 1}", sum(alive.values())))

    placed, first = [], 0
    for stretch in stretches:
        placed.append((stretch, range(first, first + stretch.layers)))
        first += stretch.layers
    for stretch, layers in placed:
        if stretch.again:
            alive["input", layers[0]] = input_bytes
        for layer in layers:
            run(layer, keep=not stretch.again)
    for stretch, layers in reversed(placed):
        if stretch.again:
            for layer in layers:
                run(layer, keep=True)
        for layer in reversed(layers):
            del alive["input", layer], alive["rest", layer]
            moments.append(Moment(f"backward {layer + 1}", sum(alive.values())))
    return Step(moments=tuple(moments), layer_runs=runs)
