"""Kernel counts: what the counters of a GPU said of kernels of our own, read by NVIDIA's profiler: requests, sectors,
turns of shared memory, instructions, bytes of memory.

>>> one = kernel_count("strided-fp32-reads16777216-stride1", "h100-sxm5")
>>> one["load_sectors"] / one["load_requests"]  # 32 threads side by side: four sectors of 32 bytes
4.0

Source: a recording of our own (`threeloops record --counters`), with its stamp
"""

import functools
from collections.abc import Mapping

from threeloops import checks
from threeloops.facts.recorded import Stamp
from threeloops.facts.stamped_files import stamped, stamped_text

KERNELS = "kernels"
# Our name of a counter: NVIDIA's, and what it counts.
COUNTERS = {
    "load_requests": ("l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum", "loads of warps from global memory"),
    "load_sectors": ("l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum", "sectors of 32 bytes that hold what they ask"),
    "store_requests": ("l1tex__t_requests_pipe_lsu_mem_global_op_st.sum", "stores of warps to global memory"),
    "store_sectors": ("l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum", "sectors that they write"),
    "shared_loads": ("smsp__inst_executed_op_shared_ld.sum", "loads of warps from shared memory"),
    "shared_stores": ("smsp__inst_executed_op_shared_st.sum", "stores of warps to shared memory"),
    "shared_load_turns": ("l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum", "turns (wavefronts) of those loads"),
    "shared_load_conflicts": ("l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld.sum", "turns for bank conflicts"),
    "instructions": ("smsp__inst_executed.sum", "instructions that warps executed"),
    "threads_per_instruction": ("smsp__thread_inst_executed_per_inst_executed.ratio", "threads at work in one"),
    "multiply_adds": ("smsp__sass_thread_inst_executed_op_ffma_pred_on.sum", "of threads, in fp32"),
    "memory_read_bytes": ("dram__bytes_read.sum", "bytes that memory delivered"),
    "l2_read_sectors": ("lts__t_sectors_op_read.sum", "sectors read in the L2, those between its halves too"),
    "warps_active_percent": ("sm__warps_active.avg.pct_of_peak_sustained_active", "of the warps that fit"),
    "cycles": ("sm__cycles_elapsed.max", "at the clock that the profiler holds"),
}


def kernel_count(case: str, part: str) -> Mapping[str, float]:
    """The counts of one kernel on one part, by the names of COUNTERS.

    Raises:   ValueError for a part or a case of which nothing was counted
    """
    checks.one_of(_counted(), part=part)
    counted = _counted()[part][1]
    checks.one_of(counted, case=case)
    return counted[case]


def kernel_counts(part: str) -> Mapping[str, Mapping[str, float]]:
    """The same of every kernel that was counted on a part, by the names of their cases."""
    checks.one_of(_counted(), part=part)
    return _counted()[part][1]


@functools.cache
def _counted() -> dict[str, tuple[Stamp, dict[str, dict[str, float]]]]:
    return stamped("counted", KERNELS)


def counts_as_text(stamp: Stamp, kernels: Mapping[str, Mapping[str, float]]) -> str:
    """The file of a recording."""
    return stamped_text(stamp, KERNELS, {name: dict(counts) for name, counts in kernels.items()})
