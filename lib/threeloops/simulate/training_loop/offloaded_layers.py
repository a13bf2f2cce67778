"""Count: layers that come from a slow memory, hop by hop, to a GPU that computes with them; and one layer that comes
in tiles.

Nothing here multiplies a number of layers by a time. A clock moves from event to event; a tile is fetched, used and
dropped.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Streamed:
    """When each layer was computed with."""

    starts_s: tuple[float, ...]
    compute_s: float

    @property
    def finished_s(self) -> float:
        return self.starts_s[-1] + self.compute_s

    @property
    def idle_s(self) -> float:
        """What the GPU waited in all, the first layer's way included."""
        return self.finished_s - len(self.starts_s) * self.compute_s


def stream(*, layers: int, hops_s: Sequence[float], compute_s: float, room: int) -> Streamed:
    """Play it: each hop carries one layer at a time, in order, and a layer leaves for its first hop only when one of
    `room` places is free.

    A place is taken from the moment when the first hop begins until the layer has been computed with.

    >>> (
    ...     stream(layers=3, hops_s=[2, 1], compute_s=3, room=1).starts_s,
    ...     stream(layers=3, hops_s=[2, 1], compute_s=3, room=9).starts_s,
    ... )
    ((3, 9, 15), (3, 6, 9))
    """
    hop_free = [0.0] * len(hops_s)  # when each hop has done with the layer before
    done: list[float] = []  # when the GPU has done with each layer
    starts: list[float] = []
    for layer in range(layers):
        ready = done[layer - room] if layer >= room else 0
        for hop, takes_s in enumerate(hops_s):
            hop_free[hop] = ready = max(ready, hop_free[hop]) + takes_s
        starts.append(max(ready, done[-1]) if done else ready)
        done.append(starts[-1] + compute_s)
    return Streamed(starts_s=tuple(starts), compute_s=compute_s)


@dataclass(frozen=True, slots=True, kw_only=True)
class Tiled:
    """A product, and the most bytes of weights that stood there at once."""

    output: Array
    input_gradient: Array
    peak_bytes: int
    fetched_bytes: int


def tiled_linear(x: Array, weight: Array, output_gradient: Array, *, tiles: int) -> Tiled:
    """y = x @ weight.T and the gradient of x, with rows of `weight` fetched tile by tile from a store, in both
    passes.

    Shapes:   x [tokens, inputs], weight [outputs, inputs], output_gradient [tokens, outputs]
    """
    store = np.array_split(weight, tiles)  # on the far side
    columns = np.array_split(output_gradient, tiles, axis=1)
    peak = fetched = 0
    outputs: list[Array] = []
    for piece in store:
        here = piece.copy()
        peak, fetched = max(peak, here.nbytes), fetched + here.nbytes
        outputs.append(x @ here.T)
        del here  # released before the next one is fetched
    gradient = np.zeros_like(x)
    for piece, column in zip(store, columns, strict=True):
        here = piece.copy()
        peak, fetched = max(peak, here.nbytes), fetched + here.nbytes
        gradient += column @ here
    return Tiled(
        output=np.concatenate(outputs, axis=1), input_gradient=gradient, peak_bytes=peak, fetched_bytes=fetched
    )


def dealt_rows(rows: int, ranks: int) -> tuple[int, ...]:
    """Rows that each rank ends with when they are dealt in blocks: the smallest block with which `ranks` blocks hold
    all rows.

    >>> dealt_rows(10, 4), dealt_rows(6, 5)
    ((3, 3, 3, 1), (2, 2, 2, 0, 0))
    """
    block = 1
    while block * ranks < rows:
        block += 1
    held = [0] * ranks
    for row in range(rows):
        held[row // block] += 1
    return tuple(held)
