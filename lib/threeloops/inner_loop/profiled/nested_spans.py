"""Nested spans: what a thread did while one call ran within another.

>>> spans = Spans()
>>> spans.add(0.0, 9.0, 1)
>>> spans.add(2.0, 5.0, 2)
>>> list(alone(spans))
[(0.0, 1, 6.0), (2.0, 2, 3.0)]
"""

import heapq
import itertools
from collections.abc import Container, Iterable, Iterator
from operator import itemgetter

from threeloops.inner_loop.profiled.span_columns import Spans, pairs

Row = tuple[float, float, int]  # start, end, name
AT_ONCE = 200_000  # rows that are sorted at a time


def alone(spans: Spans) -> Iterator[tuple[float, int, float]]:
    """(start, name, seconds without what was called inside) of one thread's operators."""
    order = sorted(range(len(spans)), key=lambda place: (spans.start[place], -spans.end[place]))
    left = [end - start for start, end in pairs(spans)]
    open_: list[int] = []
    for place in order:
        while open_ and spans.end[open_[-1]] <= spans.start[place]:
            open_.pop()
        if open_:
            left[open_[-1]] -= spans.end[place] - spans.start[place]
        open_.append(place)
    return ((spans.start[place], spans.name[place], max(0.0, left[place])) for place in order)


def rows_in_order(spans: Spans) -> Iterator[Row]:
    """Start, end and name of each by its start, of those that begin together the longest first. Profilers write nearly
    in this order, so that a large column needs no list of all that it holds.
    """
    rows = zip(spans.start, spans.end, spans.name, strict=True)
    if any(after < before for before, after in itertools.pairwise(spans.start)):
        chunks = (itertools.islice(rows, AT_ONCE) for _ in range(0, len(spans), AT_ONCE))
        stretches = [_columns(sorted(chunk, key=_by_start)) for chunk in chunks]
        yield from heapq.merge(*map(_rows, stretches), key=_by_start)
    else:
        for _, together in itertools.groupby(rows, key=itemgetter(0)):
            yield from sorted(together, key=_by_start)


def _by_start(row: Row) -> tuple[float, float]:
    return row[0], -row[1]


def _columns(rows: Iterable[Row]) -> Spans:
    spans = Spans()
    for row in rows:
        spans.add(*row)
    return spans


def _rows(spans: Spans) -> Iterator[Row]:
    return zip(spans.start, spans.end, spans.name, strict=True)


def innermost(*of_thread: Iterable[Row], own: Container[int] = ()) -> Iterator[tuple[float, float, int, int]]:
    """(start, end, name, own) of what ran innermost on one thread, from first to last, and of the innermost whose name
    is in `own` and that it ran in, or is; -1 for none. Each of the columns in order.

    >>> spans = Spans()
    >>> spans.add(0.0, 9.0, 1)
    >>> spans.add(2.0, 5.0, 2)
    >>> list(innermost(rows_in_order(spans), own={1}))
    [(0.0, 2.0, 1, 1), (2.0, 5.0, 2, 1), (5.0, 9.0, 1, 1)]
    """
    open_: list[tuple[float, int, int]] = []
    at = 0.0
    for start, end, name in heapq.merge(*of_thread, key=_by_start):
        while open_ and open_[-1][0] <= start:
            until, called, inside = open_.pop()
            if until > at:
                yield at, until, called, inside
                at = until
        if open_ and start > at:
            yield at, start, *open_[-1][1:]
        at = start
        open_.append((end, name, name if name in own else open_[-1][2] if open_ else -1))
    while open_:
        until, called, inside = open_.pop()
        if until > at:
            yield at, until, called, inside
            at = until
