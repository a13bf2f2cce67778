"""Ranks that each draw a time, and a step that ends with the last of them; nothing here knows what the mean of a
maximum is.

>>> steps_s(ranks=3, steps=4, seed=1, rank_s=lambda rng, shape: rng.uniform(1.0, 1.0, shape)).tolist()
[1.0, 1.0, 1.0, 1.0]
"""

from collections.abc import Callable
from typing import Any

import numpy

Draws = Callable[[Any, tuple[int, int]], Any]  # a generator and (steps, ranks) -> seconds of every rank in every step


def steps_s(*, ranks: int, steps: int, seed: int, rank_s: Draws) -> Any:
    """The time of each step: the largest of the times that its ranks drew."""
    if ranks < 1 or steps < 1:
        raise ValueError(f"ranks={ranks} and steps={steps} must each be at least 1")
    rng = numpy.random.default_rng(seed)
    rows = max(1, 2_000_000 // ranks)  # steps drawn at once
    return numpy.concatenate(
        [rank_s(rng, (min(rows, steps - begun), ranks)).max(axis=1) for begun in range(0, steps, rows)]
    )
