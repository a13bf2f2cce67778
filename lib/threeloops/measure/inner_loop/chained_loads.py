"""Loads that depend on each other and loads that do not, on this machine's processor: what waiting costs, and what
company saves.

A table holds in each place the number of the next place to read, so that one chain of reads cannot run ahead of
itself: every address is the result of the read before. Several chains walk the same table at once, and *they* do not
depend on each other. The same walk through a table that fits into the nearest cache costs everything but the memory,
and is taken off.

>>> table = chain(num_places=16)
>>> place, seen = 0, set()
>>> while place not in seen:
...     seen.add(place)
...     place = int(table[place])
>>> len(seen)
16

Source: McVoy, Staelin, lmbench, USENIX 1996 (memory read latency by chasing pointers); Hull, Dobell, SIAM Review
        4(3), 1962, doi:10.1137/1004061 (the chain)
"""

import time
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from threeloops import checks

CACHED_PLACES = 512  # 4 KiB: in the nearest cache of every processor
# a full cycle modulo any power of two: the multiplier is 1 modulo 4, the increment odd
MULTIPLIER, INCREMENT = 0x5851F42D, 12345

Table = npt.NDArray[np.int64]


def chain(*, num_places: int) -> Table:
    """A table whose place i holds the place to read after i, one cycle through all places, in an order that no
    prefetcher guesses.

    Formula:  next = (multiplier * i + increment) mod num_places
    Raises:   ValueError if num_places is no power of two
    """
    checks.count(at_least=4, num_places=num_places)
    if num_places & (num_places - 1):
        raise ValueError(f"num_places={num_places} must be a power of two, like {1 << (num_places.bit_length() - 1)}")
    table = np.arange(num_places, dtype=np.int64)
    table *= MULTIPLIER  # in place: the table is large
    table += INCREMENT
    table &= num_places - 1
    return table


@dataclass(frozen=True, slots=True, kw_only=True)
class Walk:
    """So many chains, one read each per round."""

    chains: int
    cached_round_s: float  # a round in a table that fits into the nearest cache
    round_s: float  # a round in the large table

    @property
    def memory_s(self) -> float:
        """What the memory adds to a round."""
        return self.round_s - self.cached_round_s

    @property
    def memory_s_per_load(self) -> float:
        return self.memory_s / self.chains


def walk(table: Table, *, chains: int, loads: int = 500, repeats: int = 301) -> Walk:
    """Rounds of `chains` independent reads in a table made by `chain`, each round waiting for the one before.

    The walk through the small table and the one through the large table take turns, in short samples, and the pair
    whose difference is the median of all is reported: a processor that changes its clock meanwhile changes it for
    both of a pair.

    Assumes:  the table is several times larger than the last-level cache, else that cache is measured; pages of the
              system's ordinary size, so that a read far away also waits for its address to be translated
    """
    checks.count(chains=chains, loads=loads, repeats=repeats)
    rounds = max(10, loads // chains)
    cached, far = _Walker(chain(num_places=CACHED_PLACES), chains, rounds), _Walker(table, chains, rounds)
    pairs = sorted(((cached.round_s(), far.round_s()) for _ in range(repeats)), key=lambda pair: pair[1] - pair[0])
    cached_s, far_s = pairs[repeats // 2]
    return Walk(chains=chains, cached_round_s=cached_s, round_s=far_s)


class _Walker:
    """Each sample reads on from where the last one stopped, so that nothing it wants is in a cache already."""

    def __init__(self, table: Table, chains: int, rounds: int) -> None:
        self.table, self.rounds = table, rounds
        self.places = np.random.default_rng(seed=3).integers(0, len(table), chains)
        self.following = np.empty_like(self.places)

    def round_s(self) -> float:
        """Mean time of a round, over a few."""
        start = time.perf_counter()
        for _ in range(self.rounds):
            self.table.take(self.places, out=self.following, mode="wrap")
            self.places, self.following = self.following, self.places
        return (time.perf_counter() - start) / self.rounds
