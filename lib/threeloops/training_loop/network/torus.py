"""A torus: chips in a grid whose rows and columns are closed to rings, with links to their neighbours and nowhere else.

>>> torus_all_reduce_s(size_bytes=2e9, side=16, axes=2, link_bytes_per_s_one_way=50e9)
0.019921875
"""

from threeloops import checks


def torus_all_reduce_s(*, size_bytes: float, side: int, axes: int, link_bytes_per_s_one_way: float) -> float:
    """Seconds for an all-reduce of size_bytes on each of side ** axes chips, all links busy all the time.

    Formula:  2 * (1 - 1/chips) * size_bytes / (2 * axes * link_bytes_per_s_one_way)
    Units:    the rate of one link, one way; a chip has 2 * axes links, so that the divisor is what it sends at most
    Assumes:  the vector in 2 * axes parts, one for each axis and direction to begin with; each part is
              reduce-scattered along one axis after the other and gathered on the way back, all on different links at
              any time. Every axis is closed to a ring. Latency is left out
    Source:   Austin et al., How to Scale Your Model, part 3, 2025 (twice the bytes over the bandwidth both ways, times
              the number of axes)
    Counted:  simulate.training_loop.torus.all_reduce

    >>> torus_all_reduce_s(size_bytes=1e9, side=4, axes=3, link_bytes_per_s_one_way=50e9)
    0.0065625
    """
    checks.count(side=side, axes=axes)
    checks.positive(size_bytes=size_bytes, link_bytes_per_s_one_way=link_bytes_per_s_one_way)
    chips: int = side**axes
    return 2 * (1 - 1 / chips) * size_bytes / (2 * axes * link_bytes_per_s_one_way)
