"""A softmax over rows as a memory-bound kernel: how often each number crosses the bus.

>>> READS
{'safe': 3, 'online': 2, 'in registers': 1}
"""

from threeloops import checks

# How often a kernel reads its row: maximum, sum and quotient in a pass each; maximum and sum in one pass; all at once.
READS = {"safe": 3, "online": 2, "in registers": 1}


def softmax_bytes(*, rows: int, columns: int, bytes_per_element: float, kind: str) -> float:
    """Bytes that a softmax over the last dimension moves between device memory and the chip.

    Formula:  rows * columns * bytes_per_element * (reads + 1)
    Units:    bytes; kind is one of READS
    Assumes:  nothing of a row stays on the chip between passes, so that each fetches it
              again; the result is written once, in the
              format of the input
    Source:   Milakov, Gimelshein, Online normalizer calculation for softmax, 2018, arXiv:1805.02867, sections 2 and 3
              (4 accesses of an element in the safe softmax, 3 in the online one)
    Counted:  drills.gpu_kernels.reductions.SOFTMAX

    >>> softmax_bytes(rows=2, columns=1000, bytes_per_element=2, kind="online")
    12000
    """
    checks.count(rows=rows, columns=columns)
    checks.positive(bytes_per_element=bytes_per_element)
    checks.one_of(READS, kind=kind)
    return rows * columns * bytes_per_element * (READS[kind] + 1)
