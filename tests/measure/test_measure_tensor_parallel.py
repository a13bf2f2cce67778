"""A block cut by DTensor over real ranks is the whole block; its collectives are those of the formula, counted
without and measured with the others.
"""

import sys

import pytest
import torch.distributed as dist

from threeloops.measure.training_loop import tensor_parallel as real
from threeloops.measure.training_loop.tensor_parallel import Collectives
from threeloops.training_loop.network.traffic import tensor_parallel_traffic

TP = 4
TWO_ALL_REDUCES = Collectives(all_reduces=2, all_gathers=0, reduce_scatters=0)
TWO_OF_EACH = Collectives(all_reduces=0, all_gathers=2, reduce_scatters=2)


@pytest.mark.parametrize("gated", [False, True])
def test_cut_blocks_compute_what_the_whole_block_computes(gated):
    found = real.agreement(*real.PLANS, tp=TP, gated=gated)
    for name, one in found.items():
        assert one.output_difference <= 1e-5 * one.largest_output, name
        assert one.gradient_difference <= 1e-5 * one.largest_gradient, name
        # norms and the biases behind a sum are whole
        assert one.parameters / TP < one.local_parameters < 1.02 * one.parameters / TP, name


@pytest.mark.parametrize(("world", "tp"), [(512, 8), (4, 4)])
def test_collectives_of_a_block_are_counted_without_the_other_ranks(world, tp):
    assert real.counted_collectives("joint", gated=False, world=world, tp=tp) == (TWO_ALL_REDUCES, TWO_ALL_REDUCES)
    assert real.counted_collectives("sequence", gated=True, world=world, tp=tp) == (TWO_OF_EACH, TWO_OF_EACH)
    # Each linear layer on its own: the input's gradient is added up once for queries, keys, values, gate and up each.
    for gated, inputs in ((False, 4), (True, 5)):
        assert real.counted_collectives("apart", gated=gated, world=world, tp=tp) == (
            TWO_ALL_REDUCES,
            Collectives(all_reduces=inputs, all_gathers=0, reduce_scatters=0),
        )
    assert not dist.is_initialized()


def test_a_plan_of_ones_own_is_cut_and_counted_as_the_named_ones_are():
    own = dict(real.plan("joint"))
    one = real.agreement(own, tp=TP)["own"]
    assert one.output_difference <= 1e-5 * one.largest_output
    assert real.counted_collectives(own, gated=True, world=8, tp=8) == (TWO_ALL_REDUCES, TWO_ALL_REDUCES)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the kernel counters are Linux's")
def test_the_wire_carries_what_the_formula_says():
    seen = real.block_wire(*real.PLANS, tp=TP)
    layer = tensor_parallel_traffic(
        tokens=real.BATCH * real.SEQUENCE,
        hidden=real.HIDDEN,
        num_layers=1,
        tp=TP,
        bytes_per_element=4,
        sequence_parallel=False,
        regather_input=False,
    )
    half = layer.forward_bytes / 4
    due = {  # forward, forward and backward
        "joint": (layer.forward_bytes, layer.total_bytes),
        "apart": (layer.forward_bytes, layer.forward_bytes + 4 * 2 * half),
        # gloo's reduce-scatter is an all-reduce: 3 halves instead of 2
        "sequence": (1.5 * layer.forward_bytes, 1.5 * layer.total_bytes),
    }
    for name, passes in due.items():
        for predicted, traffic in zip(passes, seen[name], strict=True):
            assert traffic.sent_bytes_per_rank == (pytest.approx(predicted, rel=0.01),) * TP, name


def test_refusals():
    with pytest.raises(ValueError, match="plan='joined' is not known"):
        real.agreement("joined", tp=2)
    with pytest.raises(ValueError, match="tp=3 must divide KV heads=8"):
        real.agreement("joint", tp=3)
    with pytest.raises(ValueError, match="tp=8 must divide world=12"):
        real.counted_collectives("joint", gated=False, world=12, tp=8)
