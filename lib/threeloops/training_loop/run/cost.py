"""What a training run costs: from FLOPs to GPU-seconds, from there to days on so many GPUs and to money.

A GPU-hour is an hour of one GPU, however many run at once. It is what is bought; days are what one waits. More GPUs
change the days and not the bill, as long as each computes as fast as before.

>>> work_s = gpu_s(flops=3.14e23, flops_per_s_per_gpu=140e12)  # GPT-3 at what Megatron-LM reached on A100s
>>> (
...     round(work_s / hour),
...     round(wall_s(gpu_s=work_s, num_gpus=1024) / (24 * hour), 1),
...     round(dollars(gpu_s=work_s, dollars_per_gpu_hour=2.0)),
... )
(623016, 25.4, 1246032)

Source: Narayanan et al., 2021, arXiv:2104.04473, section 5.1 (days from FLOPs); DeepSeek-AI, DeepSeek-V3, 2024,
        arXiv:2412.19437, table 1 (dollars)
"""

from threeloops import checks
from threeloops.units import hour


def gpu_s(*, flops: float, flops_per_s_per_gpu: float) -> float:
    """Seconds of one GPU that a run takes, all GPUs added up.

    Formula:  flops / flops_per_s_per_gpu
    Units:    flops of the whole run, and the rate at which one GPU gets through FLOPs of the same kind: either model
              FLOPs (6 N D) and MFU times the peak, or FLOPs with recomputation and HFU times the peak
    Assumes:  the rate holds from the first step to the last; failures and restarts are another factor (reliability)
    Raises:   ValueError unless both are greater than 0
    Source:   Narayanan et al., 2021, arXiv:2104.04473, section 5.1
    Counted:  tests.training_loop.test_cost.test_a_run_played_step_by_step_takes_as_long

    >>> gpu_s(
    ...     flops=6 * 8e9 * 15e12, flops_per_s_per_gpu=400e12
    ... ) / hour / 1e6  # 8 billion parameters, 15 trillion tokens
    0.5
    """
    checks.positive(flops=flops, flops_per_s_per_gpu=flops_per_s_per_gpu)
    return flops / flops_per_s_per_gpu


def wall_s(*, gpu_s: float, num_gpus: int) -> float:
    """Seconds on the clock until so many GPUs have done it together.

    Formula:  gpu_s / num_gpus
    Assumes:  all GPUs work at once, and each as fast as when the GPU-seconds were counted: many more of them rarely
              do
    Raises:   ValueError for no GPUs, or no work
    Source:   Touvron et al., LLaMA, 2023, arXiv:2302.13971, section 2.4 and table 15 (days, and GPU-hours)
    Counted:  tests.training_loop.test_cost.test_a_run_played_step_by_step_takes_as_long

    >>> round(
    ...     wall_s(gpu_s=1_022_362 * hour, num_gpus=2048) / (24 * hour), 1
    ... )  # LLaMA 65B; the paper says "approximately 21 days"
    20.8
    """
    checks.positive(gpu_s=gpu_s)
    checks.count(num_gpus=num_gpus)
    return gpu_s / num_gpus


def dollars(*, gpu_s: float, dollars_per_gpu_hour: float) -> float:
    """The price of a run at so much an hour and GPU.

    Formula:  gpu_s in hours * dollars_per_gpu_hour
    Units:    dollars, or any other money
    Assumes:  every GPU-second is paid for and none stands idle; people, storage, and the runs that failed before this
              one are not in it
    Raises:   ValueError unless both are greater than 0
    Source:   DeepSeek-AI, 2024, arXiv:2412.19437, table 1
    Counted:  tests.training_loop.test_cost.test_a_run_played_step_by_step_takes_as_long

    >>> dollars(gpu_s=2_788_000 * hour, dollars_per_gpu_hour=2.0) / 1e6  # DeepSeek-V3, millions
    5.576
    """
    checks.positive(gpu_s=gpu_s, dollars_per_gpu_hour=dollars_per_gpu_hour)
    return gpu_s / hour * dollars_per_gpu_hour
