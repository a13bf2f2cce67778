"""Matrix products on a systolic array, as in a TPU: tiles of weights stand in a square of cells, rows flow through.

>>> (
...     systolic_cycles(rows=1000, inner=300, columns=500, side=128),
...     systolic_cycles(rows=16, inner=300, columns=500, side=128),
... )
(12000, 1536)
>>> laid_out_bytes(shape=(12, 500, 80), tile=(8, 128), bytes_per_element=2)
1548288
"""

import math
from collections.abc import Sequence

from threeloops import checks
from threeloops.inner_loop.padding import padded


def systolic_cycles(*, rows: int, inner: int, columns: int, side: int) -> int:
    """Cycles that a rows × inner by inner × columns product keeps an array of side × side cells: from its first row to
    the first row of a product that follows at once.

    Formula:  ceil(inner / side) * ceil(columns / side) * max(rows, side)
    Units:    one row of `side` numbers enters per cycle; a cell does one multiply-add per cycle
    Assumes:  the weights (inner × columns) stand still, a tile of side × side at a time; the next tile shifts in, a row
              per cycle, while the rows of this one flow, and so does the first tile of the product that follows
    Source:   Jouppi et al., 2017, arXiv:1704.04760, section 2 (a row per cycle; two tiles, so that the 256 cycles of
              shifting one in are hidden)
    Counted:  tests.inner_loop.test_systolic.flow

    >>> systolic_cycles(rows=8, inner=128, columns=128, side=128)
    128
    """
    checks.count(rows=rows, inner=inner, columns=columns, side=side)
    return math.ceil(inner / side) * math.ceil(columns / side) * max(rows, side)


def laid_out_bytes(*, shape: Sequence[int], tile: tuple[int, int], bytes_per_element: float) -> float:
    """Bytes that an array takes where memory holds its last two dimensions in whole tiles.

    Formula:  product of the leading dimensions * padded(second last) * padded(last) * bytes_per_element
    Units:    tile: (sublanes, lanes), on TPUs (8, 128); XLA takes (4, 128), (2, 128) where there are as few rows
    Assumes:  dimensions in the order in which they lie in memory; a compiler may order them anew to pad less
    Raises:   ValueError for fewer than two dimensions
    Source:   Google Cloud, Cloud TPU performance guide, read in 2026 (chunks of 128 × 8; tensors in HBM are rounded up)
    Counted:  drills.gpu_kernels.systolic.LAYOUT
    """
    checks.count(**{f"shape[{place}]": length for place, length in enumerate(shape)}, sublanes=tile[0], lanes=tile[1])
    checks.positive(bytes_per_element=bytes_per_element)
    if len(shape) < 2:
        raise ValueError(f"shape={tuple(shape)} must have at least two dimensions; write one row as (1, length)")
    *leading, rows, columns = shape
    elements = math.prod(leading) * padded(length=rows, multiple=tile[0]) * padded(length=columns, multiple=tile[1])
    return elements * bytes_per_element
