"""Judged points: servers that others measured, each beside the token that was expected of it.

>>> points = judged_points()
>>> len(points) > 2000, len({one.point.model for one in points})
(True, 8)

Source: facts/served_points.py (what was measured) and expected_token.py (what was expected)
"""

import functools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

from threeloops.facts.served_points import ServedPoint, apart_points, served_points
from threeloops.facts.served_pools import PoolsPoint, served_pools
from threeloops.models import catalogue
from threeloops.product_loop.expected.expected_token import ExpectedToken, expected_token, first_token_s
from threeloops.product_loop.expected.pool_times import PoolTimes, pool_times
from threeloops.product_loop.expected.rank_memory import seats


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedPoint:
    """A served point beside what was expected of it."""

    point: ServedPoint
    expected: ExpectedToken
    seated: bool  # whether the caches hold all requests

    @property
    def error(self) -> float:
        """Expected over measured time between two tokens, less 1: above 0 where the server was quicker."""
        return self.expected.total_s / self.point.tpot_s - 1

    @property
    def first_error(self) -> float | None:
        """The same of the time to the first token, expected as a mean; None where a run does not say how many requests
        it had, or where some waited for a seat.
        """
        if self.point.rounds is None or not self.seated:
            return None
        expected_s = first_token_s(self.expected, requests=self.point.requests, rounds=self.point.rounds)
        return expected_s / self.point.ttft_s - 1

    @property
    def over_floor(self) -> float:
        """Measured time over the floor's."""
        return self.point.tpot_s / self.expected.floor_s


@functools.cache
def judged_points() -> tuple[JudgedPoint, ...]:
    """Every served point of the catalogue on one tensor group."""
    return tuple(map(_judge, served_points()))


@functools.cache
def judged_apart_points() -> tuple[JudgedPoint, ...]:
    """Every one in which several groups of GPUs have requests of their own."""
    return tuple(map(_judge, apart_points()))


def _judge(point: ServedPoint) -> JudgedPoint:
    formats: dict[str, Any] = {"part": point.part, "format": point.format, "cache": point.cache, "tp": point.tp}
    formats |= {"dp": point.dp}
    model, tokens = catalogue.model(point.model), point.mean_prompt + point.mean_answer
    held = seats(model, **formats, tokens=tokens)
    expected = expected_token(
        model,
        **formats,
        ep=point.ep,
        requests=min(point.requests, held),
        prompt=point.mean_prompt,
        answer=point.mean_answer,
        engine=point.engine,
    )
    return JudgedPoint(point=point, expected=expected, seated=held >= point.requests)


def worth(judged: Sequence[JudgedPoint]) -> Iterator[tuple[str, float, float]]:
    """Rung by rung: its name, what it adds, and how far up that is; medians of shares of the measured time."""
    reached = [0.0] * len(judged)
    for name in judged[0].expected.parts:
        shares = [one.expected.parts[name] / one.point.tpot_s for one in judged]
        reached = [up + share for up, share in zip(reached, shares, strict=True)]
        yield name, median(shares), median(reached)


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedPools:
    """Two pools that somebody measured, beside what was expected of them."""

    point: PoolsPoint
    expected: PoolTimes

    @property
    def error(self) -> float:
        """Expected over measured time between two tokens, less 1: above 0 where the servers were quicker."""
        return self.expected.tpot_s / self.point.tpot_s - 1

    @property
    def flow_error(self) -> float:
        """The same of requests per second: above 0 where the servers were slower."""
        return self.expected.requests_per_s / self.point.requests_per_s - 1


@functools.cache
def judged_pools() -> tuple[JudgedPools, ...]:
    """All served pools whose layouts' kernels and exchanges were timed."""
    return tuple(one for one in map(_judge_pools, served_pools()) if one is not None)


def _judge_pools(point: PoolsPoint) -> JudgedPools | None:
    names = ("part", "format", "cache", "engine", "prefill", "decode", "requests", "prompt", "answer")
    try:
        expected = pool_times(catalogue.model(point.model), **{name: getattr(point, name) for name in names})
    except ValueError:  # over more GPUs than exchanges were timed on
        return None
    return JudgedPools(point=point, expected=expected)
