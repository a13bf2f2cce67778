"""Gradient buckets: how a data-parallel trainer packs gradients into the pieces that it all-reduces while the
backward pass goes on.

>>> from threeloops.units import MiB
>>> [
...     size // MiB
...     for size in packed(
...         [32 * MiB, 32 * MiB, 8 * MiB, 4 * MiB, 4 * MiB, 4 * MiB], first_cap_bytes=MiB, cap_bytes=25 * MiB
...     )
... ]
[32, 32, 20]

Source: Li et al., PyTorch Distributed, VLDB 2020, arXiv:2006.15704, sections 3.2.3 and 4; torch 2.13,
        torch/nn/parallel/distributed.py
"""

from collections.abc import Sequence

from threeloops import checks
from threeloops.units import MiB

# torch's defaults; bucket_cap_mb counts MiB, and where it is given the first is no smaller
DDP_CAP_BYTES, DDP_FIRST_CAP_BYTES = 25 * MiB, 1 * MiB


def packed(gradients_bytes: Sequence[int], *, first_cap_bytes: int, cap_bytes: int) -> tuple[int, ...]:
    """Bytes of each bucket, in the order in which they are sent.

    Formula:  gradients go into a bucket in the order in which they become ready; it is closed as soon as it holds its
              cap or more
    Assumes:  one type of numbers, one device; DDP packs in this way from the second pass on (in the first, everything
              is one bucket)
    Source:   torch, torch/csrc/distributed/c10d/reducer.cpp, compute_bucket_assignment_by_size
    Measured: measure.training_loop.replicas.ddp_buckets
    """
    checks.count(first_cap_bytes=first_cap_bytes, cap_bytes=cap_bytes)
    buckets, filling, cap = [], 0, first_cap_bytes
    for size_bytes in gradients_bytes:
        checks.count(gradient_bytes=size_bytes)
        filling += size_bytes
        if filling >= cap:
            buckets.append(filling)
            filling, cap = 0, cap_bytes
    return (*buckets, filling) if filling else tuple(buckets)
