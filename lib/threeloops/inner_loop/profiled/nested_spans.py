"""Nested spans: what a thread did while one call ran within another.

>>> spans = Spans()
>>> spans.add(0.0, 9.0, 1)
>>> spans.add(2.0, 5.0, 2)
>>> list(alone(spans))
[(0.0, 1, 6.0), (2.0, 2, 3.0)]
"""

import itertools
from collections.abc import Iterator

from threeloops.inner_loop.profiled.span_columns import Spans, pairs


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


def innermost(*of_thread: Spans) -> Iterator[tuple[float, float, int]]:
    """(start, end, name) of what ran innermost on one thread, from first to last.

    >>> spans = Spans()
    >>> spans.add(0.0, 9.0, 1)
    >>> spans.add(2.0, 5.0, 2)
    >>> list(innermost(spans))
    [(0.0, 2.0, 1), (2.0, 5.0, 2), (5.0, 9.0, 1)]
    """
    columns = (zip(spans.start, spans.end, spans.name, strict=True) for spans in of_thread)
    open_: list[tuple[float, int]] = []
    at = 0.0
    for start, end, name in sorted(itertools.chain(*columns), key=lambda row: (row[0], -row[1])):
        while open_ and open_[-1][0] <= start:
            until, own = open_.pop()
            if until > at:
                yield at, until, own
                at = until
        if open_ and start > at:
            yield at, start, open_[-1][1]
        at = start
        open_.append((end, name))
    while open_:
        until, own = open_.pop()
        if until > at:
            yield at, until, own
            at = until
