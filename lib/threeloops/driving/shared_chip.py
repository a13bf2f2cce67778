"""A chip that several networks share: how long a launch waits behind another network's kernel, and whether two networks
are done sooner side by side than one after the other.

>>> round(mean_launch_wait_s(kernel_s=513.20e-6, busy_share=1.0) * 1e6, 1)
256.6
>>> camera = Stage(name="camera", engine="gpu", ops=170e9, moved_bytes=100e6, peak_ops_per_s=85e12)
>>> words = Stage(name="words", engine="gpu", ops=17e9, moved_bytes=400e6, peak_ops_per_s=85e12)
>>> round(side_by_side_s([camera, words], memory_bytes_per_s=200e9) * 1e3, 1)  # one after the other: 4.0
2.5
"""

from collections.abc import Sequence

from threeloops import checks
from threeloops.driving.soc_fit import Stage


def mean_launch_wait_s(*, kernel_s: float, busy_share: float) -> float:
    """What a launch waits on average until the chip is free of another network's kernel.

    Formula:  busy share * kernel / 2
    Units:    busy_share is the share of time in which such a kernel runs
    Assumes:  kernels of equal length that fill the chip, one after the other; the launch comes at a moment that has
              nothing to do with them; equal priority, and nothing is interrupted
    Source:   Kleinrock, Queueing Systems, volume 1, 1975, section 5.2 (residual life)
    Counted:  simulate.driving.chip_sharing.run
    """
    checks.positive(kernel_s=kernel_s)
    checks.fraction(busy_share=busy_share)
    return busy_share * kernel_s / 2


def launch_wait_at_s(*, kernel_s: float, busy_share: float, share: float) -> float:
    """The wait that so large a share of launches does not exceed.

    Formula:  kernel * (share - (1 - busy share)) / busy share; 0 where that is negative
    Units:    share 0.99 is the p99
    Assumes:  as mean_launch_wait_s: a wait is anything between nothing and a whole kernel, all alike
    Source:   Kleinrock, Queueing Systems, volume 1, 1975, section 5.2 (residual life)
    Counted:  simulate.driving.chip_sharing.run

    >>> round(launch_wait_at_s(kernel_s=500e-6, busy_share=0.8, share=0.95) * 1e6, 2)
    468.75
    """
    checks.positive(kernel_s=kernel_s)
    checks.fraction(busy_share=busy_share, share=share)
    idle = 1 - busy_share
    return kernel_s * (share - idle) / busy_share if share > idle else 0.0


def side_by_side_s(stages: Sequence[Stage], *, memory_bytes_per_s: float) -> float:
    """The least time until several networks that share one engine and one memory are all done.

    Formula:  max(sum of operations / peak, sum of bytes / bandwidth); one after the other they take the sum of each
              one's own maximum (soc_fit.frame_latency_s)
    Assumes:  arithmetic of one hides behind the bytes of another perfectly; caches are not fought over
    Source:   Williams, Waterman, Patterson, CACM 52(4), 2009, doi:10.1145/1498765.1498785, for each resource of its own
    Counted:  simulate.driving.chip_sharing.run

    Raises:   ValueError without stages
    """
    checks.count(stages=len(stages))
    checks.positive(memory_bytes_per_s=memory_bytes_per_s)
    computing_s = sum(stage.ops / stage.peak_ops_per_s for stage in stages)
    return max(computing_s, sum(stage.moved_bytes for stage in stages) / memory_bytes_per_s)


def sms_for_memory_bound(stage: Stage, *, sms: int, memory_bytes_per_s: float) -> float:
    """How many SMs a network that waits for memory can do with and lose nothing.

    Formula:  SMs * (operations / peak) / (bytes / bandwidth), at most all
    Assumes:  so few SMs can still ask for all of the bandwidth: measure that
    Source:   by definition: with so many its arithmetic takes as long as its bytes
    Counted:  simulate.driving.chip_sharing.run

    >>> words = Stage(name="words", engine="gpu", ops=17e9, moved_bytes=400e6, peak_ops_per_s=85e12)
    >>> round(sms_for_memory_bound(words, sms=16, memory_bytes_per_s=200e9), 2)
    1.6
    """
    checks.count(sms=sms)
    checks.positive(memory_bytes_per_s=memory_bytes_per_s, moved_bytes=stage.moved_bytes)
    return sms * min(1.0, stage.ops / stage.peak_ops_per_s * memory_bytes_per_s / stage.moved_bytes)
