"""The exact mean wait before several servers whose service times have two stages: a Markov chain, solved.

A state is how many requests are inside and how many of those in service are in the first stage. From a full house on
all levels look alike, so their shares follow one another by one matrix (Neuts, Matrix-Geometric Solutions, 1981).
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Matrix = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Stages:
    """Service times of mean 1: either one of two exponentials, or both, one after the other."""

    first: float  # the share that begins in the first stage
    rates: tuple[float, float]
    in_turn: bool  # a request goes from the first stage to the second
    cv: float


def erlang() -> Stages:
    """Two exponential stages in turn."""
    return Stages(first=1.0, rates=(2.0, 2.0), in_turn=True, cv=0.5**0.5)


def balanced(*, cv: float) -> Stages:
    """One of two exponentials, each with half of the whole service time."""
    first = (1 + ((cv**2 - 1) / (cv**2 + 1)) ** 0.5) / 2
    return Stages(first=first, rates=(2 * first, 2 * (1 - first)), in_turn=False, cv=cv)


def _up(stages: Stages, inside: int, servers: int, rate: float) -> Matrix:
    """A request comes: it takes a server, or waits."""
    busy = min(inside, servers)
    moves = np.zeros((busy + 1, min(inside + 1, servers) + 1))
    for first in range(busy + 1):
        if inside < servers:
            moves[first, first + 1] += rate * stages.first
            moves[first, first] += rate * (1 - stages.first)
        else:
            moves[first, first] += rate
    return moves


def _down(stages: Stages, inside: int, servers: int) -> Matrix:
    """A request ends; if another one waits, its service begins."""
    busy = min(inside, servers)
    moves = np.zeros((busy + 1, min(inside - 1, servers) + 1))
    for first in range(busy + 1):
        for stage, there in enumerate((first, busy - first)):
            if not there or (stages.in_turn and stage == 0):
                continue
            left = first - (stage == 0)
            if inside <= servers:
                moves[first, left] += there * stages.rates[stage]
                continue
            for joins, share in ((1, stages.first), (0, 1 - stages.first)):
                if share:
                    moves[first, left + joins] += there * stages.rates[stage] * share
    return moves


def _within(stages: Stages, inside: int, servers: int, rate: float) -> Matrix:
    """A request goes on to its second stage; on the diagonal, all that leaves a state."""
    busy = min(inside, servers)
    moves = np.zeros((busy + 1, busy + 1))
    if stages.in_turn:
        for first in range(1, busy + 1):
            moves[first, first - 1] += first * stages.rates[0]
    out = moves.sum(axis=1) + _up(stages, inside, servers, rate).sum(axis=1)
    if inside:
        out += _down(stages, inside, servers).sum(axis=1)
    return moves - np.diag(out)


def mean_wait_s(stages: Stages, *, requests_per_s: float, servers: int) -> float:
    """Mean seconds before service begins, service times having a mean of one second."""
    above = servers + 1
    up, down = _up(stages, above, servers, requests_per_s), _down(stages, above, servers)
    stay = np.linalg.inv(-_within(stages, above, servers, requests_per_s))
    ratio, step = np.zeros_like(up), np.inf
    while step > 1e-15:
        after = (up + ratio @ ratio @ down) @ stay
        ratio, step = after, np.abs(after - ratio).max()
    ends = np.cumsum([0] + [inside + 1 for inside in range(servers + 1)])
    moves = np.zeros((ends[-1], ends[-1]))
    for inside in range(servers + 1):
        here = slice(ends[inside], ends[inside + 1])
        moves[here, here] += _within(stages, inside, servers, requests_per_s)
        if inside == servers:
            moves[here, here] += ratio @ down
        else:
            moves[here, ends[inside + 1] : ends[inside + 2]] += _up(stages, inside, servers, requests_per_s)
        if inside:
            moves[here, ends[inside - 1] : ends[inside]] += _down(stages, inside, servers)
    beyond = np.linalg.inv(np.eye(servers + 1) - ratio)
    weights = np.ones(ends[-1])
    weights[ends[-2] :] = beyond.sum(axis=1)
    moves[:, 0] = weights  # all shares add up to one
    total = np.zeros(ends[-1])
    total[0] = 1
    full = np.linalg.solve(moves.T, total)[ends[-2] :]
    return float((full @ ratio @ beyond @ beyond).sum() / requests_per_s)
