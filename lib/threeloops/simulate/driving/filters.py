"""A convolution laid over pictures one place at a time: nothing here knows how many multiply-adds that comes to."""

import itertools


def multiply_adds(
    *, pictures: int, rows: int, columns: int, channels: int, filters: int, kernel: int, stride: int
) -> int:
    """Put every filter on every stride-th place of every padded picture, and count what it multiplies.

    >>> multiply_adds(pictures=1, rows=4, columns=6, channels=3, filters=2, kernel=3, stride=2)
    324
    """
    made = 0
    places = itertools.product(range(pictures), range(0, rows, stride), range(0, columns, stride))
    for _picture, _row, _column in places:
        for _filter, _channel in itertools.product(range(filters), range(channels)):
            made += sum(1 for _tap in itertools.product(range(kernel), range(kernel)))
    return made
