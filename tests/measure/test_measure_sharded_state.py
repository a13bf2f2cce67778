"""What FSDP2, DDP and ZeroRedundancyOptimizer really leave on gloo ranks, held against the formulas; and the same
training by all of them.
"""

import pytest

from threeloops.models.parameter_buckets import ParameterBuckets
from threeloops.training_loop.memory.rank_states import model_states
from threeloops.training_loop.memory.row_shards import local_elements

sharded_state = pytest.importorskip("threeloops.measure.training_loop.sharded_state")
RANKS = 4
EVEN = sharded_state.Sizes(hidden=48, num_layers=5, vocab=120)
UNEVEN = sharded_state.Sizes(hidden=6, num_layers=2, vocab=21)


@pytest.fixture(scope="module")
def held():
    return sharded_state.held_bytes(*sharded_state.WAYS, sizes=EVEN, ranks=RANKS)


def states(zero_stage: int):
    return model_states(
        parameters=ParameterBuckets(split_matrices=EVEN.parameters),
        recipe="fp32",
        zero_stage=zero_stage,
        dp=RANKS,
        tp=1,
        pp=1,
    )


@pytest.mark.parametrize(("way", "zero_stage"), [("ddp", 0), ("fsdp", 3), ("fsdp-root", 3), ("fsdp-mixed", 3)])
def test_every_rank_holds_what_the_stage_says(held, way, zero_stage):
    expected = states(zero_stage)
    for rank in held[way]:
        assert rank.parameter_bytes == expected.weights_bytes
        assert rank.gradient_bytes == expected.gradients_bytes
        assert rank.optimiser_bytes == expected.optimiser_bytes


def test_stage_one_shards_whole_tensors(held):
    expected = states(1)
    assert all(
        (rank.parameter_bytes, rank.gradient_bytes) == (expected.weights_bytes, expected.gradients_bytes)
        for rank in held["zero-1"]
    )
    each = [rank.optimiser_bytes for rank in held["zero-1"]]
    assert sum(each) == RANKS * expected.optimiser_bytes
    assert max(each) - min(each) <= 2 * 4 * 4 * EVEN.hidden**2  # the moments of one matrix


def test_wrapping_decides_what_stands_whole(held):
    table_and_head = 2 * EVEN.vocab * EVEN.hidden * 4
    for rank in range(RANKS):
        assert set(held["fsdp"][rank].whole_bytes) == {table_and_head + 4 * EVEN.block_parameters}
        assert set(held["fsdp-root"][rank].whole_bytes) == {4 * EVEN.parameters}
        assert set(held["fsdp-mixed"][rank].whole_bytes) == {(table_and_head + 4 * EVEN.block_parameters) / 2}


def test_the_training_is_the_same(held):
    for way in ("zero-1", "fsdp", "fsdp-root"):
        for rank in range(RANKS):
            assert held[way][rank].losses == pytest.approx(held["ddp"][rank].losses, rel=1e-5)
    assert held["fsdp-mixed"][0].losses == pytest.approx(held["ddp"][0].losses, rel=2e-2)
    assert held["fsdp-mixed"][0].losses != held["ddp"][0].losses


def test_tensor_parallelism_and_fsdp_divide_the_same_matrix(held):
    blocks, rest = 4 * EVEN.num_layers * EVEN.block_parameters, 4 * 2 * EVEN.vocab * EVEN.hidden
    for rank in held["fsdp-tp"]:
        assert rank.parameter_bytes == blocks / RANKS + rest / 2  # table and head are not split over the pair
        assert rank.up_shape == (4 * EVEN.hidden // RANKS, EVEN.hidden)


def test_uneven_rows_stay_uneven():
    (fsdp,) = sharded_state.held_bytes("fsdp", sizes=UNEVEN, ranks=RANKS).values()
    shapes = [(UNEVEN.vocab, UNEVEN.hidden)] * 2 + [
        (4 * UNEVEN.hidden, UNEVEN.hidden),
        (UNEVEN.hidden, 4 * UNEVEN.hidden),
    ] * UNEVEN.num_layers
    each = [rank.parameter_bytes for rank in fsdp]
    assert each == [4 * local_elements(shapes, ranks=RANKS, rank=rank) for rank in range(RANKS)]
    assert len(set(each)) > 1


def test_what_cannot_be_is_refused():
    with pytest.raises(ValueError, match="way='zero-2' is not known"):
        sharded_state.held_bytes("zero-2", sizes=EVEN, ranks=2)
    with pytest.raises(ValueError, match="tp=2 must divide ranks=3"):
        sharded_state.held_bytes("fsdp-tp", sizes=EVEN, ranks=3)
