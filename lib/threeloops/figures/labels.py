"""Labels: names of points, each in a row of its own below or beside its point, so that none covers another."""

from collections.abc import Sequence

ROW = 15  # pixels from one line of text to the next


def rows(heights: Sequence[float], *, lowest: float, taken: Sequence[tuple[float, float]] = (), row: float = ROW) -> list[float]:
    """Where each label's line goes, in pixels from the top, for points given from top to bottom: next to its point, or as near below as there is room.

    A label keeps out of the bands that are taken (top, bottom). When the last label would leave the plot, the labels above it move up just far enough;
    only then may one enter such a band.

    Raises:   ValueError if the points are not given from top to bottom, or if there is no room for all

    >>> rows([10, 12, 100], lowest=200)
    [10, 25, 100]
    >>> rows([10, 12], lowest=200, taken=[(20, 30)])
    [10, 37.5]
    >>> rows([90, 92, 94], lowest=100)
    [70, 85, 100]
    """
    if list(heights) != sorted(heights):
        raise ValueError("heights must be given from top to bottom")
    if len(heights) * row > lowest:
        raise ValueError(f"{len(heights)} labels need {len(heights) * row} pixels and have {lowest}; label fewer points")
    placed: list[float] = []
    for height in heights:
        line = max(height, placed[-1] + row) if placed else height
        for top, bottom in sorted(taken):
            if top - row / 2 < line < bottom + row / 2:
                line = bottom + row / 2
        placed.append(line)
    limit = lowest
    for index in reversed(range(len(placed))):
        placed[index] = min(placed[index], limit)
        limit = placed[index] - row
    return placed
