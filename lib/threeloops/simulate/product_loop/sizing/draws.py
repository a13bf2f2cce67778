"""Draws: a small seeded generator without numpy whose draws are numpy's own, so that a page of the site, where numpy is
not, simulates what the command does; and what is read off a sample.

>>> dice = Draws(1)
>>> [dice.below(6) for _ in range(5)]
[2, 3, 4, 5, 0]

Source: numpy 2.4, reference/random/bit_generators/pcg64 (PCG XSL RR 128/64, by O'Neill, seeded by a SeedSequence) and
        random/src/distributions/distributions.c (bounded integers after Lemire, the ziggurat after Marsaglia and Tsang)
"""

import functools
import math
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal, localcontext
from itertools import accumulate, pairwise

from threeloops import checks

_32, _64, _128 = (1 << 32) - 1, (1 << 64) - 1, (1 << 128) - 1
_MULTIPLIER = 0x2360ED051FC65DA44385DF649FCCF645
_WORDS, _HALF = 4, 16  # of a seed's pool, each of 32 bits
_POOLED, _READ = (0x43B0D7E5, 0x931E8875), (0x8B51F9DD, 0x58F38DED)  # where a hash begins, and its factor
_LEFT, _RIGHT = 0xCA01F9DD, 0x4973F715
_PLACES = 1 << 53
_LAYERS, _DIGITS = 256, 45
_TAIL_FROM = "7.697117470131049714044628048015215499114"  # where 256 layers of equal area end just at 1


class Draws:
    """Draws from a seed, one after the other: those of numpy's default_rng(seed).

    Raises:   ValueError for a seed that is negative, or of more than 32 bits
    """

    def __init__(self, seed: int) -> None:
        checks.count(at_least=0, seed=seed)
        if seed > _32:
            raise ValueError(f"seed={seed} has more than 32 bits; take one up to {_32}")
        high, low, *stream = _seeded(seed)
        self._step = ((stream[0] << 64 | stream[1]) << 1 | 1) & _128
        self._state = ((self._step + (high << 64 | low)) * _MULTIPLIER + self._step) & _128
        self._kept: int | None = None  # the upper half of 64 bits whose lower one is used

    def bits(self) -> int:
        """The next 64 bits.

        >>> f"{Draws(0).bits():016x}"
        'a30febcfd9c2825f'
        """
        self._state = (self._state * _MULTIPLIER + self._step) & _128
        folded, turn = (self._state >> 64 ^ self._state) & _64, self._state >> 122
        return (folded >> turn | folded << (64 - turn)) & _64

    def share(self) -> float:
        """From 0 to 1, and never 1, all alike likely.

        >>> Draws(0).share()
        0.6369616873214543
        """
        return (self.bits() >> 11) / _PLACES

    def below(self, limit: int) -> int:
        """A whole number from 0 on and below a limit, all alike likely.

        Formula:  the upper 32 bits of 32 random ones × limit; where the lower ones would favour some, drawn again
        Raises:   ValueError for a limit below 1, or of more than 32 bits
        """
        checks.count(limit=limit)
        if limit > _32:
            raise ValueError(f"limit={limit} has more than 32 bits; take one up to {_32}")
        if limit == 1:
            return 0
        unfair = (_32 + 1 - limit) % limit
        while True:
            product = self._half() * limit
            if product & _32 >= unfair:
                return product >> 32

    def exponential(self) -> float:
        """Exponentially distributed, of mean 1.

        Formula:  a layer of the ziggurat that covers exp(-x), a place in it; what lies above the curve is drawn again
        """
        widths, inside, heights = _ziggurat()
        while True:
            drawn = self.bits() >> 3
            layer, place = drawn % _LAYERS, drawn // _LAYERS
            x = place * widths[layer]
            if place < inside[layer]:
                return x
            if layer == 0:
                return float(_TAIL_FROM) - math.log1p(-self.share())
            if (heights[layer - 1] - heights[layer]) * self.share() + heights[layer] < math.exp(-x):
                return x

    def _half(self) -> int:
        if self._kept is not None:
            kept, self._kept = self._kept, None
            return kept
        both = self.bits()
        self._kept = both >> 32
        return both & _32


def _seeded(seed: int) -> list[int]:
    """Four words of 64 bits, all of whose bits depend on all of the seed's."""
    factor, times = _POOLED

    def hashed(word: int) -> int:
        nonlocal factor
        word ^= factor
        factor = factor * times & _32
        word = word * factor & _32
        return word ^ word >> _HALF

    pool = [hashed(word) for word in (seed, *[0] * (_WORDS - 1))]
    for given in range(_WORDS):
        for taking in range(_WORDS):
            if given != taking:
                mixed = (_LEFT * pool[taking] - _RIGHT * hashed(pool[given])) & _32
                pool[taking] = mixed ^ mixed >> _HALF
    factor, times = _READ
    halves = [hashed(word) for word in (*pool, *pool)]
    return [low | high << 32 for low, high in zip(halves[::2], halves[1::2], strict=True)]


@functools.cache
def _ziggurat() -> tuple[list[float], list[int], list[float]]:
    """Of each layer how wide one of its places is, how many lie below the curve for certain, and its upper edge.

    Formula:  layers of equal area (r + 1) exp(-r), cut from the tail at r upward: exp(-x) = area / x before + exp(-x
              before)
    """
    with localcontext() as exact:
        exact.prec = _DIGITS
        edge = Decimal(_TAIL_FROM)
        area = (edge + 1) * (-edge).exp()
        lowest = area / (-edge).exp()  # how wide the layer with the tail would be as a rectangle
        edges = [lowest, *[edge] * (_LAYERS - 1)]
        for layer in range(_LAYERS - 2, 0, -1):
            below = edges[layer + 1]
            edges[layer] = -(area / below + (-below).exp()).ln()
        inside = [int(edge / lowest * _PLACES), 0]
        inside += [int(above / below * _PLACES) for above, below in pairwise(edges[1:])]
        heights = [1.0, *(float((-one).exp()) for one in edges[1:])]
        return [float(one / _PLACES) for one in edges], inside, heights


def arrivals_s(*, requests_per_s: float, requests: int, seed: int) -> list[float]:
    """Arrival times that know nothing of one another (Poisson).

    Counted:  simulate.product_loop.traffic.poisson

    >>> [f"{moment:.2f}" for moment in arrivals_s(requests_per_s=1.0, requests=3, seed=1)]
    ['1.07', '1.38', '6.76']
    """
    checks.positive(requests_per_s=requests_per_s)
    checks.count(requests=requests)
    drawn, mean_s = Draws(seed), 1 / requests_per_s
    return list(accumulate(mean_s * drawn.exponential() for _ in range(requests)))


def quantiles(values: Iterable[float] | Mapping[float, int], shares: Sequence[float]) -> list[float]:
    """The values below which such shares of a sample lie; between two neighbours on a straight line. Of many that are
    alike: each value and how often it came.

    Formula:  at place (values - 1) × share of the sorted values, counted from 0
    Source:   numpy 2.4, numpy.quantile (method linear)
    Raises:   ValueError for no values

    >>> quantiles([3.0, 1.0, 2.0, 5.0], [0.5, 0.9])
    [2.5, 4.4]
    >>> quantiles({1.0: 3, 2.0: 1}, [0.5, 1.0])
    [1.0, 2.0]
    """
    often = Counter(values)
    if not often:
        raise ValueError("values=[] has no quantiles; give one at least")
    ordered = sorted(often)
    last = list(accumulate(often[value] for value in ordered))  # places before which each value stands
    found = []
    for share in shares:
        place = (last[-1] - 1) * share
        before = min(int(place), last[-1] - 1)
        low, high = (ordered[bisect_right(last, at)] for at in (before, min(before + 1, last[-1] - 1)))
        way = place - before  # from the nearer of both, as numpy rounds
        found.append(high - (high - low) * (1 - way) if way >= 1 / 2 else low + (high - low) * way)
    return found
