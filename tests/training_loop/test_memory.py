"""Model states: published tables, a value-by-value deal on small machines, identities, refusals."""

from dataclasses import replace

import pytest

from threeloops.models.parameter_buckets import ParameterBuckets
from threeloops.simulate.inner_loop import packed_blocks
from threeloops.simulate.training_loop.sharding import Grid, Parameter, stored_bytes
from threeloops.training_loop.memory.rank_states import (
    expert_data_parallel,
    fewest_data_parallel_ranks,
    model_states,
)
from threeloops.training_loop.memory.recipes import RECIPES, Recipe, StateBytes, recipe_named

GB = 1e9


def states(total, *, recipe="zero-paper", zero_stage, dp, tp=1, pp=1):
    return model_states(
        parameters=ParameterBuckets(split_matrices=total), recipe=recipe, zero_stage=zero_stage, dp=dp, tp=tp, pp=pp
    )


# Rajbhandari et al., arXiv:1910.02054, table 1: GB per device for 7.5B, 128B and 1T parameters, by data-parallel
# degree and stage 1, 2, 3.
ZERO_TABLE_1 = [
    (7.5e9, 1, (120, 120, 120)),
    (7.5e9, 4, (52.5, 41.3, 30)),
    (7.5e9, 16, (35.6, 21.6, 7.5)),
    (7.5e9, 64, (31.4, 16.6, 1.88)),
    (7.5e9, 256, (30.4, 15.4, 0.47)),
    (7.5e9, 1024, (30.1, 15.1, 0.12)),
    (128e9, 4, (896, 704, 512)),
    (128e9, 16, (608, 368, 128)),
    (128e9, 64, (536, 284, 32)),
    (128e9, 256, (518, 263, 8)),
    (128e9, 1024, (513, 257, 2)),
    (1e12, 4, (7000, 5500, 4000)),
    (1e12, 16, (4750, 2875, 1000)),
    (1e12, 64, (4187, 2218, 250)),
    (1e12, 256, (4046, 2054, 62.5)),
    (1e12, 1024, (4011, 2013, 15.6)),
]


@pytest.mark.parametrize(("total", "dp", "printed"), ZERO_TABLE_1)
def test_zero_paper_table_1(total, dp, printed):
    for zero_stage, gigabytes in zip((1, 2, 3), printed, strict=True):
        # The table rounds some entries and cuts others: one unit of its last printed digit.
        unit = (
            0.1
            if gigabytes in (52.5, 41.3, 35.6, 21.6, 31.4, 16.6, 30.4, 15.4, 30.1, 15.1, 62.5, 15.6)
            else 0.01
            if gigabytes < 2
            else 1
        )
        assert states(total, zero_stage=zero_stage, dp=dp).total_bytes / GB == pytest.approx(gigabytes, abs=unit)


def test_gpt2_needs_24_gb():
    # arXiv:1910.02054, section 3.1: 1.5B parameters in mixed precision with Adam need at least 24 GB.
    assert states(1.5e9, zero_stage=0, dp=1).total_bytes == 24 * GB


@pytest.mark.parametrize(
    ("recipe", "whole", "kept", "shared"),
    # Megatron Core User Guide, Distributed Optimizer: bytes per parameter, whole and as kept + shared / d.
    [("deepspeed", 20, 4, 16), ("megatron", 18, 6, 12), ("autocast", 16, 8, 8)],
)
def test_megatron_distributed_optimizer_table(recipe, whole, kept, shared):
    assert states(1, recipe=recipe, zero_stage=0, dp=10).total_bytes == whole
    for dp in (1, 5, 10):
        assert states(1, recipe=recipe, zero_stage=1, dp=dp).total_bytes == pytest.approx(kept + shared / dp)


def test_deepspeed_estimator():
    # estimate_zero2_model_states_mem_needs without offload: 2 * parameters + 18 * parameters / GPUs.
    assert states(3e9, recipe="deepspeed", zero_stage=2, dp=12).total_bytes == pytest.approx(2 * 3e9 + 18 * 3e9 / 12)


@pytest.mark.parametrize(
    ("total", "largest", "gpus", "printed", "unit"),
    [
        # DeepSpeed documentation, Memory Requirements: t5-3b on 8 GPUs, "2851M total params, 32M largest layer
        # params", 6.09 (GiB, printed as GB); t5-large on 4 GPUs, 737.67M and 32.90M, "case1 gpu memory: 3291MB"
        # (MiB).
        (2851e6, 32e6, 8, 6.09, 2**30),
        (737.67e6, 32.90e6, 4, 3291, 2**20),
    ],
)
def test_deepspeed_prints_18_bytes_over_all_gpus_and_a_layer_at_stage_3(total, largest, gpus, printed, unit):
    shards = states(total, recipe="deepspeed-zero-3", zero_stage=3, dp=gpus)
    layer = (2 + 2) * largest  # its fp16 weights, gathered, and the fp16 gradients made from them
    assert (shards.total_bytes + layer) / unit == pytest.approx(printed, rel=1e-3)
    assert shards.total_bytes == pytest.approx(18 * total / gpus)


def test_deepspeed_with_the_optimiser_on_the_host_keeps_weights_and_a_layer():
    # The same page: 0.78 for t5-3b with offload_optimizer=cpu, offload_param=none; 125 MB (MiB) for t5-large with
    # everything offloaded.
    shards = states(2851e6, recipe="deepspeed-zero-3", zero_stage=3, dp=8)
    assert (shards.weights_bytes + (2 + 2) * 32e6) / 2**30 == pytest.approx(0.78, abs=0.005)
    assert int((2 + 2) * 32.90e6 / 2**20) == 125


def test_deepspeed_has_one_recipe_for_each_stage():
    for stage in (0, 1, 2):
        assert states(1e9, recipe="deepspeed", zero_stage=stage, dp=8).recipe == "deepspeed"
        with pytest.raises(
            ValueError,
            match=f"'deepspeed-zero-3' holds at ZeRO stage 3, not at zero_stage={stage}; try recipe='deepspeed'",
        ):
            states(1e9, recipe="deepspeed-zero-3", zero_stage=stage, dp=8)
    with pytest.raises(
        ValueError, match="'deepspeed' holds at ZeRO stages 0, 1, 2, not at zero_stage=3; try recipe='deepspeed-zero-3'"
    ):
        states(1e9, recipe="deepspeed", zero_stage=3, dp=8)


def test_8bit_adam_saves_three_quarters_of_the_moments():
    # bitsandbytes documentation: 8-bit optimisers use 75 % less memory than 32-bit ones; the block scales cost 1.6 %
    # of what is left.
    full, small = RECIPES["autocast"].others.moment_bytes, RECIPES["autocast-adam-8bit"].others.moment_bytes
    assert 1 - small / full == pytest.approx(0.75, abs=0.005)
    assert small > full / 4


def test_muon_halves_the_moments_of_hidden_matrices_only():
    # Liu et al., arXiv:2502.16982: one momentum where AdamW has two moments.
    muon, adam = RECIPES["megatron-muon"], RECIPES["megatron"]
    assert muon.hidden_matrices.moment_bytes == adam.hidden_matrices.moment_bytes / 2
    assert muon.others == adam.others


# A small machine and a model on it, with sizes that every degree below divides.
def small_model(grid, num_experts):
    tensors = []
    for stage in range(grid.pp):
        tensors += [
            Parameter(name=f"projection {stage}", size=120, kind="split", stage=stage),
            Parameter(name=f"table {stage}", size=240, kind="split", stage=stage, hidden_matrix=False),
            Parameter(name=f"router {stage}", size=60, kind="whole", stage=stage),
            Parameter(name=f"norm {stage}", size=180, kind="whole", stage=stage, hidden_matrix=False),
        ]
        tensors += [
            Parameter(name=f"expert {stage}.{n}", size=360, kind="expert", stage=stage, expert=n)
            for n in range(num_experts)
        ]
    return tensors


def buckets_of(tensors):
    size = {("split", True): 0, ("split", False): 0, ("whole", True): 0, ("whole", False): 0, ("expert", True): 0}
    for tensor in tensors:
        size[tensor.kind, tensor.hidden_matrix] += tensor.size
    return ParameterBuckets(
        split_matrices=size["split", True],
        split_others=size["split", False],
        whole_matrices=size["whole", True],
        whole_others=size["whole", False],
        expert_matrices=size["expert", True],
    )


GRIDS = [
    (Grid(dp=5, tp=1, pp=1), 0),
    (Grid(dp=2, tp=3, pp=1), 0),
    (Grid(dp=5, tp=2, pp=3), 0),
    (Grid(dp=6, tp=1, pp=1, ep=3), 6),
    (Grid(dp=4, tp=3, pp=2, ep=6), 6),
    (Grid(dp=4, tp=3, pp=1, ep=2, expert_tp=3), 6),
    (Grid(dp=2, tp=6, pp=1, ep=2, expert_tp=2), 4),
]


@pytest.mark.parametrize("recipe", ["zero-paper", "deepspeed", "megatron-muon", "fp8-deepseek-v3"])
@pytest.mark.parametrize(("grid", "num_experts"), GRIDS)
@pytest.mark.parametrize("zero_stage", [0, 1, 2, 3])
def test_every_rank_of_a_dealt_out_model(grid, num_experts, zero_stage, recipe):
    if zero_stage not in RECIPES[recipe].zero_stages:
        recipe = RECIPES[recipe].at_other_stages
    tensors, used = small_model(grid, num_experts), RECIPES[recipe]
    triples = [(s.weight_bytes, s.gradient_bytes, s.optimiser_bytes) for s in (used.hidden_matrices, used.others)]
    dealt = stored_bytes(tensors, grid, zero_stage=zero_stage, matrix_bytes=triples[0], other_bytes=triples[1])
    predicted = model_states(
        parameters=buckets_of(tensors),
        recipe=recipe,
        zero_stage=zero_stage,
        dp=grid.dp,
        tp=grid.tp,
        pp=grid.pp,
        ep=grid.ep,
        expert_tp=grid.expert_tp if num_experts else None,
    )
    assert len(dealt) == grid.dp * grid.tp * grid.pp
    for stored in dealt.values():
        assert stored.weights == pytest.approx(predicted.weights_bytes)
        assert stored.gradients == pytest.approx(predicted.gradients_bytes)
        assert stored.optimiser == pytest.approx(predicted.optimiser_bytes)


@pytest.mark.parametrize(
    ("recipe", "zero_stage", "room"),
    [("zero-paper", 2, 1350), ("megatron", 1, 4000), ("megatron", 3, 760), ("megatron-muon", 2, 2100)],
)
def test_with_one_rank_less_the_states_do_not_fit(recipe, zero_stage, room):
    tensors = [
        Parameter(name="matrix", size=420, kind="split", stage=0),
        Parameter(name="table", size=84, kind="whole", stage=0, hidden_matrix=False),
    ]
    used = RECIPES[recipe]
    triples = [(s.weight_bytes, s.gradient_bytes, s.optimiser_bytes) for s in (used.hidden_matrices, used.others)]

    def fullest(ranks):
        dealt = stored_bytes(
            tensors,
            Grid(dp=ranks, tp=1, pp=1),
            zero_stage=zero_stage,
            matrix_bytes=triples[0],
            other_bytes=triples[1],
        )
        return max(stored.weights + stored.gradients + stored.optimiser for stored in dealt.values())

    told = fewest_data_parallel_ranks(
        parameters=buckets_of(tensors), recipe=recipe, zero_stage=zero_stage, usable_bytes=room
    )
    assert fullest(told) <= room < fullest(told - 1)


def test_without_replicas_all_stages_are_one():
    buckets = ParameterBuckets(split_matrices=6e9, split_others=1e9, whole_others=1e6)
    alone = [
        model_states(parameters=buckets, recipe="megatron", zero_stage=stage, dp=1, tp=3, pp=2).total_bytes
        for stage in range(4)
    ]
    assert len(set(alone)) == 1


@pytest.mark.parametrize("recipe", [name for name, recipe in RECIPES.items() if recipe.zero_stages == (0, 1, 2, 3)])
def test_stage_3_on_all_ranks_together_is_one_copy(recipe):
    whole = states(6e9, recipe=recipe, zero_stage=0, dp=10)
    shard = states(6e9, recipe=recipe, zero_stage=3, dp=10)
    assert 10 * shard.total_bytes == pytest.approx(whole.total_bytes)
    assert whole.total_bytes == pytest.approx(
        whole.weights_bytes
        + whole.gradients_bytes
        + whole.master_bytes
        + whole.gradient_copy_bytes
        + whole.moments_bytes
    )


def test_each_stage_shards_one_more_part():
    whole = states(6e9, recipe="megatron", zero_stage=0, dp=10)
    one, two, three = (states(6e9, recipe="megatron", zero_stage=stage, dp=10) for stage in (1, 2, 3))
    assert (one.weights_bytes, one.gradients_bytes, one.optimiser_bytes) == (
        whole.weights_bytes,
        whole.gradients_bytes,
        whole.optimiser_bytes / 10,
    )
    assert (two.weights_bytes, two.gradients_bytes) == (whole.weights_bytes, whole.gradients_bytes / 10)
    assert three.weights_bytes == whole.weights_bytes / 10


def test_norms_stay_whole_on_every_tensor_rank():
    norms = ParameterBuckets(whole_others=1e6)
    one, many = (
        model_states(parameters=norms, recipe="megatron", zero_stage=0, dp=1, tp=tp, pp=1).total_bytes for tp in (1, 5)
    )
    assert one == many == 18e6


def test_twice_the_bytes_of_every_value_is_twice_the_bytes():
    def doubled(state):
        parts = {name: 2 * getattr(state, name) for name in state.__slots__}
        return StateBytes(**parts)

    once = RECIPES["megatron-muon"]
    twice = replace(once, hidden_matrices=doubled(once.hidden_matrices), others=doubled(once.others))
    buckets = ParameterBuckets(split_matrices=5e9, split_others=1e9, whole_others=2e6)
    small, large = (
        model_states(parameters=buckets, recipe=recipe, zero_stage=2, dp=5, tp=3, pp=2).total_bytes
        for recipe in (once, twice)
    )
    assert large == pytest.approx(2 * small)


def test_results_echo_their_conventions():
    result = model_states(
        parameters=ParameterBuckets(split_matrices=1e9, expert_matrices=9e9),
        recipe="autocast",
        zero_stage=1,
        dp=10,
        tp=3,
        pp=2,
        ep=5,
        expert_tp=1,
    )
    assert (result.recipe, result.zero_stage, result.dp, result.tp, result.pp, result.ep, result.expert_dp) == (
        "autocast",
        1,
        10,
        3,
        2,
        5,
        6,
    )


def test_copies_in_nvfp4_are_as_large_as_what_is_written_bit_by_bit():
    rows, columns = 32, 48
    weights = [(-1) ** k * (1 + k % 7) / 8 for k in range(rows * columns)]
    turned = [weights[row * columns + column] for column in range(columns) for row in range(rows)]
    written = sum(len(packed_blocks.packed_in_two_levels(one, block=16)) / 8 - 4 for one in (weights, turned))
    narrow, wide = (RECIPES[f"{name}-transformer-engine"].hidden_matrices for name in ("nvfp4", "fp8"))
    assert narrow.weight_bytes * rows * columns == 2 * rows * columns + written  # without the tensor's fp32 scale
    assert wide.total_bytes - narrow.total_bytes == 2 - 2 * 4.5 / 8


@pytest.mark.parametrize("recipe", RECIPES.values(), ids=lambda recipe: recipe.name)
def test_every_recipe_says_what_it_assumes_and_where_it_is_from(recipe):
    assert isinstance(recipe, Recipe)
    assert recipe_named(recipe.name) is recipe
    assert len(recipe.assumes) > 20
    assert len(recipe.source) > 20
    # No practice keeps less than an 8-bit weight and its gradient, or more than fp32 of everything plus copies.
    assert 5 <= recipe.hidden_matrices.total_bytes <= 24


def test_refusals():
    dense, sparse = ParameterBuckets(split_matrices=1e9), ParameterBuckets(split_matrices=1e9, expert_matrices=1e9)
    good = {"recipe": "megatron", "zero_stage": 1, "dp": 10, "tp": 3, "pp": 1}
    assert model_states(parameters=dense, **good).expert_dp is None
    assert model_states(parameters=sparse, **good, ep=6, expert_tp=1).expert_dp == 5
    with pytest.raises(ValueError, match="recipe='megatronn' is not known; did you mean 'megatron'"):
        model_states(parameters=dense, **{**good, "recipe": "megatronn"})
    with pytest.raises(ValueError, match="zero_stage=4 must be 0, 1, 2 or 3"):
        model_states(parameters=dense, **{**good, "zero_stage": 4})
    with pytest.raises(ValueError, match="dp=0 must be a whole number of at least 1"):
        model_states(parameters=dense, **{**good, "dp": 0})
    with pytest.raises(ValueError, match="expert_tp must be stated"):
        model_states(parameters=sparse, **good, ep=6)
    with pytest.raises(ValueError, match="ep=6 needs experts"):
        model_states(parameters=dense, **good, ep=6)
    with pytest.raises(ValueError, match=r"ep\*expert_tp=4 must divide dp\*tp=30"):
        expert_data_parallel(dp=10, tp=3, ep=4, expert_tp=1)
    with pytest.raises(ValueError, match="zero_stage=0 must be 1, 2 or 3"):
        fewest_data_parallel_ranks(parameters=dense, recipe="megatron", zero_stage=0, usable_bytes=1e12)
    with pytest.raises(ValueError, match=r"usable_bytes=6e\+09 must exceed the 6e\+09 bytes that stay whole"):
        fewest_data_parallel_ranks(parameters=dense, recipe="megatron", zero_stage=1, usable_bytes=6e9)
    with pytest.raises(ValueError, match="split_matrices=-1 must be at least 0"):
        ParameterBuckets(split_matrices=-1)
    with pytest.raises(ValueError, match="weight_bytes=0 must be greater than 0"):
        StateBytes(weight_bytes=0, gradient_bytes=2)
