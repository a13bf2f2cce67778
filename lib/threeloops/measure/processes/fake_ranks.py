"""Fake ranks: one process plays rank 0 of many. Every collective is answered at once and nothing is sent, so who would
be called, how often, and which part of each tensor lies here are real; the values are not.

>>> with rank_zero_of(8) as mesh:
...     mesh.size(), dist.get_rank()
(8, 0)
"""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch.distributed as dist

from threeloops import checks

# what torch calls a collective in its own counts -> the word that everybody uses
NAMES = {
    "all_reduce": "all_reduce",
    "all_gather_into_tensor": "all_gather",
    "_allgather_base_": "all_gather",
    "reduce_scatter_tensor": "reduce_scatter",
    "_reduce_scatter_base_": "reduce_scatter",
}


@contextmanager
def rank_zero_of(world: int) -> Iterator[Any]:
    """Inside, this process is rank 0 of `world`; yields the mesh of all of them, one dimension, called "ranks".

    Raises:   ValueError for a process that is in a group already
    """
    from torch.distributed.device_mesh import init_device_mesh
    from torch.testing._internal.distributed.fake_pg import FakeStore  # torch has no public way

    checks.count(world=world)
    if dist.is_initialized():
        raise ValueError("this process is in a process group already; count in one that is not")
    dist.init_process_group("fake", store=FakeStore(), rank=0, world_size=world)
    try:
        with warnings.catch_warnings():
            # of FSDP2's hooks: the input is token numbers, which have no gradient; a linear layer's result is a view
            warnings.filterwarnings("ignore", message="Full backward hook is firing")
            warnings.filterwarnings("ignore", message="FSDP2-wrapped module .* returned a view")
            yield init_device_mesh("cpu", (world,), mesh_dim_names=("ranks",))
    finally:
        dist.destroy_process_group()


def counts(seen: Any) -> dict[str, int]:
    """How often each collective was called, by its usual name, from torch's CommDebugMode."""
    found = {str(op).rpartition(".")[2]: int(number) for op, number in seen.get_comm_counts().items()}
    unknown = set(found) - set(NAMES)
    assert not unknown, f"collectives that nobody expected: {unknown}"
    named = dict.fromkeys(NAMES.values(), 0)
    for op, number in found.items():
        named[NAMES[op]] += number
    return named
