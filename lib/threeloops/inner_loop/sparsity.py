"""2:4 sparsity: of every four neighbouring weights at least two are zero, so half of them are stored, with two bits
each that say where they stood.

>>> stored_share(bytes_per_element=2), stored_share(bytes_per_element=1)
(0.5625, 0.625)

Source: Mishra et al., "Accelerating Sparse Deep Neural Networks", 2021, arXiv:2104.08378, section 3
"""

from threeloops import checks
from threeloops.operations.roofline import Work
from threeloops.units import BITS_PER_BYTE

GROUP, KEPT, INDEX_BITS = 4, 2, 2


def stored_share(*, bytes_per_element: float) -> float:
    """Bytes of a 2:4 matrix, indices included, over those of the full one.

    Formula:  (2 * bits per element + 2 * 2) / (4 * bits per element)
    Assumes:  formats of 8 or 16 bits
    Counted:  simulate.inner_loop.two_of_four.pack
    """
    checks.positive(bytes_per_element=bytes_per_element)
    bits = bytes_per_element * BITS_PER_BYTE
    return KEPT * (bits + INDEX_BITS) / (GROUP * bits)


def sparse_bytes(*, rows: int, columns: int, bytes_per_element: float) -> float:
    """Bytes of a [rows, columns] matrix with 2:4 sparsity along its rows.

    Formula:  rows * columns / 4 * 2 * (bytes_per_element + 2 / 8)
    Raises:   ValueError unless 4 divides the columns
    Counted:  simulate.inner_loop.two_of_four.pack

    >>> sparse_bytes(rows=4096, columns=4096, bytes_per_element=2) / (4096 * 4096 * 2)
    0.5625
    """
    checks.count(rows=rows, columns=columns)
    checks.positive(bytes_per_element=bytes_per_element)
    checks.divides(part="group", part_value=GROUP, whole="columns", whole_value=columns)
    return rows * (columns // GROUP) * KEPT * (bytes_per_element + INDEX_BITS / BITS_PER_BYTE)


def sparse_gemm(*, m: int, n: int, k: int, bytes_per_element: float) -> Work:
    """FLOPs really done, and bytes moved, of [m, k] activations by [k, n] weights with 2:4 sparsity along k.

    Formula:  m * n * k  (half of 2 * m * n * k);  (m*k + m*n) * bytes_per_element + sparse_bytes(n, k)
    Assumes:  every operand moved once. At the dense peak these FLOPs take as long as the nominal 2 * m * n * k would
              at the sparse peak
    Counted:  simulate.inner_loop.two_of_four.multiply
    """
    checks.count(m=m, n=n, k=k)
    weights = sparse_bytes(rows=n, columns=k, bytes_per_element=bytes_per_element)
    return Work(flops=m * n * k, moved_bytes=(m * k + m * n) * bytes_per_element + weights)
