"""Redundant experts: copies of the popular ones, so that no GPU has much more to do than the others.

A layer waits for its busiest GPU. An expert with n copies gives each of them an nth of its tokens.

>>> loads = [90, 30, 20, 20]
>>> busiest_copy(loads, slots=4), busiest_copy(loads, slots=6), round(least_imbalance(loads, slots=6, num_gpus=2), 2)
(90.0, 30.0, 1.0)

Source: DeepSeek-V3, 2024, arXiv:2412.19437, sections 3.4.1 and 3.4.2 (redundant experts); DeepSeek-AI, EPLB, 2025
"""

from collections.abc import Sequence

from threeloops import checks


def busiest_copy(loads: Sequence[float], *, slots: int) -> float:
    """The load of the busiest copy when copies are given out as well as can be.

    Formula:  the smallest x among all loads / whole numbers for which the sum of ceil(load / x) is at most slots
    Units:    loads of the experts in tokens; slots for all copies together, the first of each expert included
    Assumes:  the copies of an expert share its tokens evenly
    Raises:   ValueError for fewer slots than experts
    Counted:  simulate.product_loop.experts.placed_experts.copied

    >>> busiest_copy([12, 6, 3], slots=5)
    6.0
    """
    _loads_fit(loads, slots)
    most = slots - len(loads) + 1
    tried = sorted({load / copies for load in loads if load for copies in range(1, most + 1)})
    low, high = 0, len(tried) - 1
    while low < high:
        middle = (low + high) // 2
        needed = sum(_copies(load, tried[middle]) for load in loads)
        low, high = (low, middle) if needed <= slots else (middle + 1, high)
    return tried[low]


def least_imbalance(loads: Sequence[float], *, slots: int, num_gpus: int) -> float:
    """The busiest GPU's load over the mean one that no placement beats: a bound. A packing may miss it.

    Formula:  max(1, busiest_copy * num_gpus / sum of loads)
    Assumes:  as busiest_copy; loads that stay as they were when the copies were given out
    Raises:   ValueError where the GPUs divide the slots unevenly
    Counted:  simulate.product_loop.experts.placed_experts.placed

    >>> least_imbalance([12, 6, 3, 3], slots=4, num_gpus=4)
    2.0
    """
    checks.divides(part="num_gpus", part_value=num_gpus, whole="slots", whole_value=slots)
    return max(1.0, busiest_copy(loads, slots=slots) * num_gpus / sum(loads))


def copies_bytes(*, copies_per_gpu: float, num_layers: int, expert_bytes: float) -> float:
    """Memory of one GPU that redundant experts take.

    Formula:  copies_per_gpu * num_layers * expert_bytes
    Units:    num_layers with experts; expert_bytes of one expert of one layer
    Source:   vLLM, docs/serving/expert_parallel_deployment.md, 2025 (about 2.4 GB for one a rank of DeepSeek-V3)
    Counted:  tests.product_loop.experts.test_redundant_experts.test_a_copy_a_gpu_costs_what_vllm_prints

    >>> round(copies_bytes(copies_per_gpu=1, num_layers=58, expert_bytes=3 * 7168 * 2048) / 2**30, 2)
    2.38
    """
    checks.non_negative(copies_per_gpu=copies_per_gpu)
    checks.count(num_layers=num_layers)
    checks.positive(expert_bytes=expert_bytes)
    return copies_per_gpu * num_layers * expert_bytes


def _copies(load: float, share: float) -> int:
    """Copies until none has more than the share; every expert has one."""
    return max(1, -int(-(load / share * (1 - 1e-12)) // 1))


def _loads_fit(loads: Sequence[float], slots: int) -> None:
    checks.count(slots=slots)
    for load in loads:
        checks.non_negative(load=load)
    if not sum(loads):
        raise ValueError(f"loads={list(loads)!r} must hold at least one token")
    if slots < len(loads):
        raise ValueError(f"slots={slots} must hold at least one copy of each of the {len(loads)} experts")
