"""Vectors that are summed up on a torus: every chip talks to its neighbours alone, over all of its links at once.

>>> import numpy as np
>>> run = all_reduce([np.arange(16.0)] * 4, side=2, axes=2)
>>> run.outputs[3].tolist()[:4], len(run.longest_bytes), run.seconds(link_bytes_per_s_one_way=8.0)
([0.0, 4.0, 8.0, 12.0], 4, 6.0)
"""

import itertools
import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from threeloops import checks
from threeloops.simulate.training_loop.network import Array, cuts, vectors

Place = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class TorusRun:
    """What every chip holds in the end, and the longest message of any link in each step."""

    outputs: tuple[Array, ...]
    longest_bytes: tuple[int, ...]

    def seconds(self, *, link_bytes_per_s_one_way: float) -> float:
        """Time on equal links: each step lasts as long as its longest message."""
        return math.fsum(longest / link_bytes_per_s_one_way for longest in self.longest_bytes)


def all_reduce(inputs: Sequence[Array], *, side: int, axes: int) -> TorusRun:
    """Sum one vector per chip; chips are numbered in the order of their coordinates.

    The vector is cut into a part for each axis and direction. A part is reduce-scattered along its own axis, then along
    the next, and gathered in the opposite order.
    """
    checks.count(side=side, axes=axes)
    places = list(itertools.product(range(side), repeat=axes))
    if len(inputs) != len(places):
        raise ValueError(f"inputs has {len(inputs)} vectors; a torus of {side} ** {axes} chips takes {len(places)}")
    held = dict(zip(places, vectors(inputs), strict=True))
    parts = cuts(len(inputs[0]), 2 * axes)
    steps: dict[int, Counter[tuple[Place, int, int]]] = {}
    for number, part in enumerate(parts):
        own, way = number // 2, (1, -1)[number % 2]
        order = [(own + turn) % axes for turn in range(axes)]
        ranges = dict.fromkeys(places, part)
        entered: list[dict[Place, slice]] = []
        step = 0
        for axis in order:
            entered.append(ranges)
            step = _ring(held, ranges, axis, way, side, steps, step, gather=False)
            ranges = {place: _piece(where, side, way * place[axis] % side) for place, where in ranges.items()}
        for axis in reversed(order):
            step = _ring(held, entered.pop(), axis, way, side, steps, step, gather=True)
    return TorusRun(
        outputs=tuple(held[place] for place in places),
        longest_bytes=tuple(max(steps[step].values()) for step in sorted(steps)),
    )


def _piece(where: slice, side: int, index: int) -> slice:
    inside = cuts(where.stop - where.start, side)[index]
    return slice(where.start + inside.start, where.start + inside.stop)


def _ring(
    held: dict[Place, Array],
    ranges: dict[Place, slice],
    axis: int,
    way: int,
    side: int,
    steps: dict[int, Counter[tuple[Place, int, int]]],
    step: int,
    *,
    gather: bool,
) -> int:
    """One trip around every ring of an axis, one way, of the pieces of these ranges; the next step's number."""
    for turn in range(side - 1):
        messages = []
        for place, where in ranges.items():
            passed = _piece(where, side, (way * place[axis] - turn - (not gather)) % side)
            neighbour = (*place[:axis], (place[axis] + way) % side, *place[axis + 1 :])
            messages.append((neighbour, passed, held[place][passed].copy()))
            steps.setdefault(step, Counter())[place, axis, way] += held[place][passed].nbytes
        for neighbour, passed, sent in messages:
            held[neighbour][passed] = sent if gather else held[neighbour][passed] + sent
        step += 1
    return step
