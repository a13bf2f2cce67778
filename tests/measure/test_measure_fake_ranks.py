"""One process that plays rank 0 of many calls what real ranks call, and leaves no group behind."""

import pytest
import torch
import torch.distributed as dist
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor.debug import CommDebugMode

from threeloops.measure.processes import fake_ranks
from threeloops.measure.training_loop import sharded_state

SIZES = sharded_state.Sizes(hidden=16, num_layers=3, vocab=24)


def test_every_unit_is_gathered_and_scattered_as_fsdp_says():
    """Three blocks and the rest: gathered forward; blocks again backward, the root stays; each scattered once."""
    with fake_ranks.rank_zero_of(4) as mesh, CommDebugMode() as seen:
        model = sharded_state.Stack(SIZES)
        for block in model.blocks:
            fully_shard(block, mesh=mesh)
        fully_shard(model, mesh=mesh)
        model(torch.randint(SIZES.vocab, (2, 4))).sum().backward()
    assert fake_ranks.counts(seen) == {"all_reduce": 0, "all_gather": 4 + 3, "reduce_scatter": 4}
    local = sum(parameter.to_local().numel() for parameter in model.parameters())
    assert local == SIZES.parameters // 4
    assert not dist.is_initialized()


def test_a_group_within_a_group_is_refused_and_none_is_left_behind():
    with (
        fake_ranks.rank_zero_of(2),
        pytest.raises(ValueError, match="in a process group already"),
        fake_ranks.rank_zero_of(2),
    ):
        pass
    assert not dist.is_initialized()
