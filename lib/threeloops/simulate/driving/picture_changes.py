"""Picture changes: which patches of the cameras' pictures differ from the frame before, and how much of a network must
be run again because of them.

>>> import numpy as np
>>> still = np.zeros((1, 16, 24, 3))
>>> moved = still.copy()
>>> moved[0, :8, :8] = 40
>>> changed = changed_patches(still, moved, patch=8, above=10)
>>> int(changed.sum()), int(with_neighbours(changed, around=1).sum())
(1, 4)
"""

import numpy as np
from numpy.typing import NDArray

from threeloops import checks

Pictures = NDArray[np.uint8] | NDArray[np.float64]


def changed_patches(before: Pictures, now: Pictures, *, patch: int, above: float) -> NDArray[np.bool_]:
    """(cameras, rows, columns) of patches: does the mean difference of a patch's values exceed `above`?

    Assumes:  pictures are (cameras, rows, columns, colours), in whole patches
    Raises:   ValueError if a patch does not divide the pictures
    """
    checks.count(patch=patch)
    cameras, rows, columns, _ = now.shape
    if rows % patch or columns % patch:
        raise ValueError(f"patch={patch} must divide pictures of {rows} x {columns}; 8 divides 64 x 176")
    difference = np.abs(now.astype(float) - before.astype(float)).mean(axis=-1)
    mean = difference.reshape(cameras, rows // patch, patch, columns // patch, patch).mean(axis=(2, 4))
    return np.asarray(mean > above)


def with_neighbours(changed: NDArray[np.bool_], *, around: int) -> NDArray[np.bool_]:
    """The patches that have a changed one at most `around` patches away: what a network that sees so far must compute
    again.
    """
    checks.count(at_least=0, around=around)
    wide = np.pad(changed, ((0, 0), (around, around), (around, around)))
    seen = np.lib.stride_tricks.sliding_window_view(wide, (2 * around + 1,) * 2, axis=(1, 2))
    return np.asarray(seen.any(axis=(3, 4)))
