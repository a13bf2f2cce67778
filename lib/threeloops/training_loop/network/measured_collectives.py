"""Measured collectives: what NCCL took among the GPUs of one node, and what to expect between the sizes measured.

>>> small, large = (
...     expected_collective("h100-sxm5", op="all_reduce", ranks=8, size_bytes=size) for size in (4096, 512e6)
... )
>>> small.seconds > 100 * small.bound_s, large.share > 0.9  # start-up alone, and hardly any of it
(True, True)

Source: facts/kernel_times.py; each table says whose measurements stand behind it
"""

from collections.abc import Mapping

from threeloops import checks
from threeloops.facts.kernel_times import EXCHANGES, KernelTable, kernel_table
from threeloops.operations.expected_times import Expected, stretched
from threeloops.training_loop.network.collectives import bus_factor


def expected_collective(part: str, *, op: str, ranks: int, size_bytes: float) -> Expected:
    """A collective among the GPUs of one node, by NCCL.

    Formula:  (bus factor * size / one-way link rate + shortest) * stretch(ranks, size)
    Units:    size_bytes as collectives.SIZE_MEANS says for each operation
    Assumes:  nothing else on the links; the bound is that of sending every byte from GPU to GPU: an all-reduce that
              the switch adds up (NVLS) sends fewer
    Raises:   ValueError for a part, an operation or a number of ranks that was not measured
    """
    checks.one_of(EXCHANGES, op=op)
    return collective_expected(kernel_table(part, op, "bf16"), {"ranks": ranks, "size_bytes": size_bytes})


def collective_expected(table: KernelTable, sizes: Mapping[str, float]) -> Expected:
    """The same by one table."""
    bound_s = bus_factor(op=table.family, ranks=int(sizes["ranks"])) * sizes["size_bytes"] / table.rate_bytes_per_s
    return stretched(table, bound_s=bound_s, place=sizes)
