"""A street as cells: road, walls and boxes put into a dictionary cell by cell, and what is then stored, counted byte
by byte. Nothing here knows a formula for it.
"""

import itertools
import random
from collections.abc import Iterator

Cell = tuple[int, int, int]
ROAD_CLASS, WALL_CLASS, BOX_CLASS = 1, 2, 3


def street(shape: Cell, *, edge_m: float, boxes: int, seed: int) -> dict[Cell, int]:
    """What a camera or LiDAR can see of a street: the surface of the road, of two rows of houses, and of boxes the
    size of a car; cell -> class. Insides stay empty: nothing is seen there.

    >>> len(street((24, 16, 5), edge_m=0.8, boxes=0, seed=1))
    576
    """
    draw = random.Random(seed)
    x, y, z = shape
    occupied: dict[Cell, int] = dict.fromkeys(((i, j, 0) for i in range(x) for j in range(y)), ROAD_CLASS)
    for i, k in itertools.product(range(x), range(1, z)):
        occupied[i, y // 8, k] = occupied[i, y - 1 - y // 8, k] = WALL_CLASS
    long, wide, high = (max(1, round(size / edge_m)) for size in (4.4, 1.8, 1.6))
    for _ in range(boxes):
        corner = (draw.randrange(x - long), draw.randrange(y // 4, y - y // 4 - wide), 1)
        occupied.update(dict.fromkeys(_shell(corner, (long, wide, min(high, z - 1))), BOX_CLASS))
    return occupied


def _shell(corner: Cell, size: Cell) -> Iterator[Cell]:
    for step in itertools.product(*(range(length) for length in size)):
        if any(at in (0, length - 1) for at, length in zip(step, size, strict=True)):
            yield (corner[0] + step[0], corner[1] + step[1], corner[2] + step[2])


def bytes_dense(shape: Cell, *, channels: int, bytes_per_element: int) -> int:
    """Write every cell of the box, channel by channel.

    >>> bytes_dense((2, 3, 4), channels=2, bytes_per_element=1)
    48
    """
    written = 0
    for _cell in itertools.product(*(range(length) for length in shape)):
        for _channel in range(channels):
            written += bytes_per_element
    return written


def bytes_in_planes(shape: Cell, *, channels: int, bytes_per_element: int) -> int:
    """Look at the box from three sides, and write every cell that is seen there once.

    >>> bytes_in_planes((2, 3, 4), channels=2, bytes_per_element=1)
    52
    """
    seen = set()
    for x, y, z in itertools.product(*(range(length) for length in shape)):
        seen |= {("above", x, y), ("front", y, z), ("side", x, z)}
    return sum(bytes_per_element for _cell in seen for _channel in range(channels))


def bytes_listed(occupied: dict[Cell, int], *, channels: int, bytes_per_element: int, index_bytes: int) -> int:
    """Write every cell that is not empty: where, then what.

    >>> bytes_listed({(0, 0, 0): 1, (1, 2, 3): 1}, channels=2, bytes_per_element=1, index_bytes=4)
    12
    """
    return sum(index_bytes + sum(bytes_per_element for _channel in range(channels)) for _cell in occupied)
