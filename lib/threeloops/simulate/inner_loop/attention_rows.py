"""Rows of attention while blocks of keys pass by: what each row knows after every meeting of two blocks, and the bytes
that have moved by then. One head in plain lists, few enough numbers to be looked at.

>>> q = k = v = [[1.0, 0.0], [0.0, 1.0]]
>>> walk = walked(q, k, v, causal=True, query_block=1, key_block=1, bytes_per_number=4)
>>> [(visit.queries.start, visit.keys.start, visit.moved_bytes) for visit in walk.visits]
[(0, 0, 24), (1, 0, 56), (1, 1, 72)]
>>> walk.output[0], walk.moved_bytes
([1.0, 0.0], 80)
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

Rows: TypeAlias = Sequence[Sequence[float]]  # [token][number]


class Visit(NamedTuple):
    """One meeting of a block of queries with a block of keys, and what is known after it."""

    queries: range
    keys: range
    largest: tuple[float, ...]  # per query of the block: its largest score so far
    shrunk: tuple[float, ...]  # what its sum so far was multiplied with, to be relative to that
    seen: tuple[float, ...]  # its sum of exponentials so far
    moved_bytes: int  # loaded and stored so far


@dataclass(frozen=True, slots=True, kw_only=True)
class Walked:
    """All meetings, the output [token][number], and the bytes of it all."""

    visits: tuple[Visit, ...]
    output: list[list[float]]
    moved_bytes: int


@dataclass(slots=True)
class _Row:
    """What one query carries from block to block."""

    output: list[float]
    largest: float = -math.inf
    seen: float = 0.0

    def meet(self, scores: Sequence[float], values: Rows) -> float:
        """Take in a block; the factor by which everything before it was shrunk."""
        largest = max(self.largest, *scores)
        shrunk = math.exp(self.largest - largest)
        weights = [math.exp(score - largest) for score in scores]
        self.output = [
            shrunk * so_far + sum(weight * value[place] for weight, value in zip(weights, values, strict=True))
            for place, so_far in enumerate(self.output)
        ]
        self.seen, self.largest = self.seen * shrunk + sum(weights), largest
        return shrunk


def walked(
    q: Rows, k: Rows, v: Rows, *, causal: bool, query_block: int, key_block: int, bytes_per_number: int
) -> Walked:
    """Each block of queries meets every block of keys and values it can see; blocks in which every score is masked are
    not loaded.

    Source:   Milakov and Gimelshein, 2018, arXiv:1805.02867 (running softmax); Dao et al., FlashAttention, 2022,
              arXiv:2205.14135
    """
    visits: list[Visit] = []
    output: list[list[float]] = []
    moved_bytes = 0
    for first in range(0, len(q), query_block):
        queries = q[first : first + query_block]
        moved_bytes += bytes_per_number * _count(queries)
        rows = [_Row([0.0] * len(v[0])) for _ in queries]
        for start in range(0, first + len(queries) if causal else len(k), key_block):
            keys, values = k[start : start + key_block], v[start : start + key_block]
            moved_bytes += bytes_per_number * (_count(keys) + _count(values))
            shrunk = [
                row.meet(_scores(query, keys, visible=first + place - start + 1 if causal else len(keys)), values)
                for place, (row, query) in enumerate(zip(rows, queries, strict=True))
            ]
            visits.append(
                Visit(
                    queries=range(first, first + len(queries)),
                    keys=range(start, start + len(keys)),
                    largest=tuple(row.largest for row in rows),
                    shrunk=tuple(shrunk),
                    seen=tuple(row.seen for row in rows),
                    moved_bytes=moved_bytes,
                )
            )
        done = [[number / row.seen for number in row.output] for row in rows]
        moved_bytes += bytes_per_number * _count(done)
        output += done
    return Walked(visits=tuple(visits), output=output, moved_bytes=moved_bytes)


def _scores(query: Sequence[float], keys: Rows, *, visible: int) -> list[float]:
    """One query's scores with a block of keys, of which it may see so many."""
    return [
        sum(a * b for a, b in zip(query, key, strict=True)) / math.sqrt(len(query)) if place < visible else -math.inf
        for place, key in enumerate(keys)
    ]


def _count(rows: Rows) -> int:
    return sum(map(len, rows))
