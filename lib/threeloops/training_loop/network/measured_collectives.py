"""Measured collectives: what NCCL took among the GPUs of one node, what to expect between the sizes measured, and the
latency that two timings give away.

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
from threeloops.training_loop.network.collective_algorithms import plan
from threeloops.training_loop.network.collectives import bus_factor


def expected_collective(part: str, *, op: str, ranks: int, size_bytes: float) -> Expected:
    """A collective among the GPUs of one node, by NCCL.

    Formula:  (bus factor * size / one-way link rate + shortest) * stretch(ranks, size)
    Units:    size_bytes as collectives.SIZE_MEANS says for each operation
    Assumes:  nothing else on the links; the bound is that of sending every byte from GPU to GPU: an all-reduce that
              the switch adds up (NVLS) sends fewer
    Raises:   ValueError for a part, an operation or a number of ranks that was not measured
    Measured: tests.training_loop.test_measured_collectives.test_an_h100_node_s_published_bus_bandwidth
    """
    checks.one_of(EXCHANGES, op=op)
    return collective_expected(kernel_table(part, op, "bf16"), {"ranks": ranks, "size_bytes": size_bytes})


def collective_expected(table: KernelTable, sizes: Mapping[str, float]) -> Expected:
    """The expected time of an exchange of these sizes, by one table."""
    bound_s = bus_factor(op=table.family, ranks=int(sizes["ranks"])) * sizes["size_bytes"] / table.rate_bytes_per_s
    return stretched(table, bound_s=bound_s, place=sizes)


def step_latency_s(
    *, op: str, algorithm: str, ranks: int, few_bytes: float, few_s: float, many_bytes: float, many_s: float
) -> float:
    """Latency of one step, alpha, from the times of one collective at two sizes.

    Formula:  (few_s - (many_s - few_s) * few_bytes / (many_bytes - few_bytes)) / steps: the line through both points,
              at size zero
    Units:    sizes as collectives.SIZE_MEANS says
    Assumes:  the α–β model of collective_time with one algorithm and one rate at both sizes; what the call itself costs
              is spread over the steps
    Raises:   ValueError for one rank, for an algorithm that is pipelined in chunks, and unless few_bytes < many_bytes
              and few_s <= many_s <= few_s * many_bytes / few_bytes
    Source:   Thakur, Rabenseifner, Gropp, IJHPCA 19(1), 2005, doi:10.1177/1094342005051521 (the model)
    Counted:  simulate.training_loop.collectives.simulated

    >>> alpha_s = step_latency_s(
    ...     op="all_reduce", algorithm="ring", ranks=5, few_bytes=1e6, few_s=60e-6, many_bytes=3e6, many_s=108e-6
    ... )
    >>> round(alpha_s * 1e6, 3)
    4.5
    """
    checks.count(at_least=2, ranks=ranks)
    checks.positive(few_bytes=few_bytes, few_s=few_s, many_bytes=many_bytes, many_s=many_s)
    if not few_bytes < many_bytes:
        raise ValueError(f"few_bytes={few_bytes:g} must be less than many_bytes={many_bytes:g}")
    if not few_s <= many_s <= few_s * many_bytes / few_bytes:
        raise ValueError(
            f"many_s={many_s:g} must lie between few_s={few_s:g} and {few_s * many_bytes / few_bytes:g}, where nothing"
            " is left for the latency"
        )
    steps = plan(op=op, algorithm=algorithm, ranks=ranks, chunks=None).steps
    return (few_s - (many_s - few_s) * few_bytes / (many_bytes - few_bytes)) / steps
