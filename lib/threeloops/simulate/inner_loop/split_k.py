"""A product in slices of its inner dimension: each slice is multiplied by itself, its sums go to slow memory, and a
last walk adds them up.

>>> a, b = np.ones((4, 8), dtype=np.float32), np.ones((8, 4), dtype=np.float32)
>>> run = multiply(a, b, tile=4, splits=2, fast_bytes=1024)
>>> run.product[0].tolist(), run.moved_bytes  # operands 256, two slices of sums out and in 256, the product 64
([8.0, 8.0, 8.0, 8.0], 576)
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from threeloops.simulate.inner_loop import tiled_gemm
from threeloops.simulate.inner_loop.tiled_gemm import CountedGemm

Matrix = NDArray[np.floating[Any]]


def multiply(a: Matrix, b: Matrix, *, tile: int, splits: int, fast_bytes: int) -> CountedGemm:
    """a [m, k] by b [k, n] in square tiles, with k cut into slices that are as equal as can be; tiles share
    nothing.
    """
    slices = np.array_split(np.arange(a.shape[1]), splits)
    sizes = {"tile_m": tile, "tile_n": tile, "tile_k": tile, "fast_bytes": fast_bytes, "keep_between_tiles": False}
    runs = [tiled_gemm.multiply(a[:, part[0] : part[-1] + 1], b[part[0] : part[-1] + 1], **sizes) for part in slices]  # type: ignore[arg-type]
    product, loaded, stored = (
        runs[0].product,
        sum(run.loaded_bytes for run in runs),
        sum(run.stored_bytes for run in runs),
    )
    if splits > 1:
        product = np.zeros_like(product)
        for run in runs:
            product += run.product
            loaded += run.product.nbytes
        stored += product.nbytes
    return CountedGemm(
        product=product,
        multiply_adds=sum(run.multiply_adds for run in runs),
        loaded_bytes=loaded,
        stored_bytes=stored,
        peak_fast_bytes=max(run.peak_fast_bytes for run in runs),
    )
