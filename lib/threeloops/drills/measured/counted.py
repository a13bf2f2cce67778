"""Small calls walked element by element: what the drills' counts are made of.

>>> walked_product(m=2, n=3, k=4, operand_bytes=1)
(48, 32)
"""

from itertools import product


def walked_product(*, m: int, n: int, k: int, operand_bytes: int) -> tuple[int, int]:
    """Operations of a product, one multiplication and one addition at a time, and bytes of each element that it reads
    or writes, once; results have two bytes.
    """
    operations, read, written = 0, set[tuple[str, int, int]](), set[tuple[int, int]]()
    for row, column, inner in product(range(m), range(n), range(k)):
        operations += 2
        read.update((("input", row, inner), ("weight", inner, column)))
        written.add((row, column))
    return operations, len(read) * operand_bytes + 2 * len(written)
