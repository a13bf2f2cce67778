"""Span columns: when something began and ended, what it was called and what it is linked to, as four columns: a large
trace has tens of millions of spans, and an object for each would not fit.
"""

import math
from array import array
from collections.abc import Iterator, Sequence
from operator import itemgetter

from threeloops.inner_loop.trace import Span


class Spans:
    """Columns: when, until when, an index into the names, and a number that links to something."""

    __slots__ = ("end", "link", "name", "start")

    def __init__(self) -> None:
        self.start, self.end, self.name, self.link = array("d"), array("d"), array("I"), array("q")

    def __len__(self) -> int:
        return len(self.start)

    def add(self, start_s: float, end_s: float, name: int, link: int = -1) -> None:
        self.start.append(start_s)
        self.end.append(end_s)
        self.name.append(name)
        self.link.append(link)

    def picked(self, places: Sequence[int]) -> "Spans":
        """Those at these places, as columns of their own.

        >>> spans = Spans()
        >>> for start in range(4):
        ...     spans.add(start, start + 1, name=0)
        >>> list(pairs(spans.picked([1, 3])))
        [(1.0, 2.0), (3.0, 4.0)]
        """
        found = Spans()
        if not places:
            return found
        take = itemgetter(*places, places[0])  # of one place alone, itemgetter gives no tuple
        for column in self.__slots__:
            getattr(found, column).extend(take(getattr(self, column))[:-1])
        return found

    @property
    def seconds(self) -> float:
        """All lengths together, overlapping or not."""
        return math.fsum(self.end) - math.fsum(self.start)


def pairs(spans: Spans) -> Iterator[Span]:
    """Start and end of each."""
    return zip(spans.start, spans.end, strict=True)
