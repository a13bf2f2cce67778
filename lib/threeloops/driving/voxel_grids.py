"""Voxel grids: what it costs to say of every small box of space around a car what is in it, whole, as three planes, or
only where something is.

>>> shape = cells(extent_m=(80.0, 80.0, 6.4), edge_m=0.4)
>>> shape, dense_bytes(shape, channels=1, bytes_per_element=1)
((200, 200, 16), 640000)

Source: Tian et al., Occ3D, 2023, arXiv:2304.14365 (200 x 200 x 16 cells of 0.4 m around a car of nuScenes)
"""

import math

from threeloops import checks

Cells = tuple[int, int, int]


def cells(*, extent_m: tuple[float, float, float], edge_m: float) -> Cells:
    """Cells along each side of a box of space.

    Formula:  round(extent / edge), side by side
    Raises:   ValueError for a side that the edge does not divide
    Counted:  tests.driving.test_joint_formulas.test_cells_are_laid_side_by_side_until_the_box_is_full
    """
    checks.positive(edge_m=edge_m, **{f"extent_m[{side}]": length for side, length in enumerate(extent_m)})
    found = tuple(round(length / edge_m) for length in extent_m)
    for length, count in zip(extent_m, found, strict=True):
        if not math.isclose(count * edge_m, length, rel_tol=1e-6):
            raise ValueError(f"edge_m={edge_m} does not divide {length} m; choose one that does")
    return (found[0], found[1], found[2])


def dense_bytes(shape: Cells, *, channels: int, bytes_per_element: float) -> float:
    """Bytes of a grid that has every cell.

    Formula:  x * y * z * channels * bytes: an edge half as long makes it eight times as large
    Counted:  simulate.driving.voxel_scenes.bytes_dense
    """
    _check(shape, channels, bytes_per_element)
    return math.prod(shape) * channels * bytes_per_element


def planes_bytes(shape: Cells, *, channels: int, bytes_per_element: float) -> float:
    """Bytes of three planes, seen from above, from the front and from the side, whose features are added up in a cell.

    Formula:  (x y + y z + x z) * channels * bytes: an edge half as long makes it four times as large
    Source:   Huang et al., TPVFormer, 2023, arXiv:2302.07817
    Counted:  simulate.driving.voxel_scenes.bytes_in_planes
    """
    _check(shape, channels, bytes_per_element)
    x, y, z = shape
    return (x * y + y * z + x * z) * channels * bytes_per_element


def listed_bytes(occupied: float, *, channels: int, bytes_per_element: float, index_bytes: float) -> float:
    """Bytes of a list of the cells that are not empty, each with where it is.

    Formula:  occupied * (channels * bytes + bytes of an index)
    Counted:  simulate.driving.voxel_scenes.bytes_listed
    """
    checks.non_negative(occupied=occupied, index_bytes=index_bytes)
    _check((1, 1, 1), channels, bytes_per_element)
    return occupied * (channels * bytes_per_element + index_bytes)


def break_even_share(*, channels: int, bytes_per_element: float, index_bytes: float) -> float:
    """The share of occupied cells from which the whole grid is smaller than the list.

    Formula:  cell / (cell + index), cell = channels * bytes
    Counted:  simulate.driving.voxel_scenes.bytes_listed

    >>> break_even_share(channels=1, bytes_per_element=1, index_bytes=4)
    0.2
    """
    checks.non_negative(index_bytes=index_bytes)
    _check((1, 1, 1), channels, bytes_per_element)
    return channels * bytes_per_element / (channels * bytes_per_element + index_bytes)


def _check(shape: Cells, channels: int, bytes_per_element: float) -> None:
    checks.count(x=shape[0], y=shape[1], z=shape[2], channels=channels)
    checks.positive(bytes_per_element=bytes_per_element)
