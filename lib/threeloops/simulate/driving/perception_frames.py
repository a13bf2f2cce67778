"""Frames of a perception chain, worked through one picture, one head, one unit of time after the other. Nothing here
knows a formula for a sum.
"""

import itertools
from collections import deque
from collections.abc import Sequence
from fractions import Fraction


def flops_of_a_frame(*, cameras: int, tasks: int, shared: bool, image_flops: int, head_flops: Sequence[int]) -> int:
    """Let every task ask for the features of every camera, compute those that nobody computed yet, and run each
    task's head.

    >>> [
    ...     flops_of_a_frame(cameras=6, tasks=2, shared=shared, image_flops=10, head_flops=(3, 4))
    ...     for shared in (False, True)
    ... ]
    [127, 67]
    """
    computed: set[tuple[int, int]] = set()
    total = 0
    for task in range(tasks):
        for camera in range(cameras):
            features = (camera, 0 if shared else task)
            if features not in computed:
                computed.add(features)
                total += image_flops
        total += head_flops[task]
    return total


def flops_of_a_convolution(*, height: int, width: int, kernel: int, channels: int) -> int:
    """Slide one kernel over every position of a picture that is padded to keep its size, and add up products and
    sums.

    >>> flops_of_a_convolution(height=4, width=5, kernel=3, channels=2)
    720
    """
    total = 0
    for _row in range(height):
        for _column in range(width):
            total += sum(2 * channels for _tap in range(kernel * kernel))
    return total


def seconds_of_frames(*, always: Fraction, sometimes: Fraction, needed: Sequence[bool]) -> list[Fraction]:
    """The time of each frame, from which frames need the extra work.

    >>> [int(seconds) for seconds in seconds_of_frames(always=Fraction(5), sometimes=Fraction(3), needed=[True, False])]
    [8, 5]
    """
    return [always + sometimes if wanted else always for wanted in needed]


def turns(*, cameras: int, fresh: int, frames: int) -> list[list[int]]:
    """For each frame, how many frames ago each camera was last looked at, when so many of them are looked at in turn.

    >>> turns(cameras=3, fresh=1, frames=3)
    [[0, 0, 0], [0, 1, 1], [1, 0, 2]]
    """
    round_robin, seen = deque(range(cameras)), [0] * cameras
    ages = [[0] * cameras]
    for frame in range(1, frames):
        for _ in range(fresh):
            seen[round_robin[0]] = frame
            round_robin.rotate(-1)
        ages.append([frame - last for last in seen])
    return ages


def seconds_with_turns(
    *, cameras: int, fresh: int, camera: Fraction, align: Fraction, others: Fraction, frames: int
) -> list[Fraction]:
    """The time of each frame after the first, picture after picture: a camera just looked at costs its time, and where
    any was not, what is old is aligned once.
    """
    times = []
    for ages in turns(cameras=cameras, fresh=fresh, frames=frames)[1:]:
        clock = others
        for age in ages:
            clock += camera if age == 0 else 0
        times.append(clock + (align if any(ages) else 0))
    return times


def places_read(*, queries: int, layers: int, heads: int, levels: int, points: int) -> int:
    """Go through every query of every layer and let each of its heads read its points on every level.

    >>> places_read(queries=2, layers=3, heads=4, levels=1, points=8)
    192
    """
    return sum(
        1
        for _layer, _query, _head, _level, _point in itertools.product(
            range(layers), range(queries), range(heads), range(levels), range(points)
        )
    )
