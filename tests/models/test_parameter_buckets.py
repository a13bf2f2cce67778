"""Buckets hold every parameter of every catalogued model once, however it is cut into stages."""

import itertools
from dataclasses import replace

import pytest
from tests.models.small_configs import attending

from threeloops.models.architecture import LatentAttention, MoeMlp
from threeloops.models.catalogue import model, model_keys
from threeloops.models.parameter_buckets import (
    ParameterBuckets,
    check_vocab_split,
    layer_buckets,
    layers_on_stage,
    padded_vocab,
    stage_buckets,
)
from threeloops.models.parameters import model_parameters
from threeloops.models.recurrent_layers import DeltaState, StateSpace
from threeloops.training_loop.memory.rank_states import model_states


@pytest.mark.parametrize("key", attending(model_keys()))
def test_buckets_add_up_to_the_parameter_count(key):
    """The counts come from parameters.py, which itemises by sub-block and knows nothing of splitting."""
    counted, buckets = model_parameters(model(key)), stage_buckets(model(key), stage=0, pp=1)
    assert buckets.total == counted.total
    assert buckets.expert_matrices + buckets.expert_others == counted.routed_experts
    assert buckets.whole_others >= counted.norms


HYBRIDS = ("qwen3-next-80b-a3b", "nemotron-h-56b", "nemotron-3-nano-30b-a3b", "nemotron-3-super-120b-a12b")


@pytest.mark.parametrize("key", HYBRIDS)
def test_buckets_of_hybrids_add_up_too(key):
    counted, buckets = model_parameters(model(key)), stage_buckets(model(key), stage=0, pp=1)
    assert buckets.total == counted.total
    assert buckets.expert_matrices + buckets.expert_others == counted.routed_experts


def test_a_norm_over_all_heads_is_split_with_them_and_one_for_each_head_is_not():
    space, delta = (model(key).groups[0][0] for key in ("nemotron-h-56b", "qwen3-next-80b-a3b"))
    assert isinstance(space.attention, StateSpace)
    assert isinstance(delta.attention, DeltaState)
    assert layer_buckets(space, hidden=8192).whole_others == space.num_norms * 8192
    alone = replace(delta, mlp=None, num_norms=1)
    assert layer_buckets(alone, hidden=2048).whole_others == 2048 + delta.attention.value_head_dim


@pytest.mark.parametrize("key", attending(model_keys()))
def test_stages_together_are_the_model(key):
    shape = model(key)
    pp = 5
    stages = [stage_buckets(shape, stage=stage, pp=pp) for stage in range(pp)]
    second_table = shape.vocab * shape.hidden if shape.tied_head else 0
    assert sum(stage.total for stage in stages) == pytest.approx(model_parameters(shape).total + second_table)


def test_what_stands_whole_is_small():
    for shape in (model(key) for key in attending(model_keys())):
        buckets = stage_buckets(shape, stage=0, pp=1)
        special = any(
            isinstance(layer.attention, LatentAttention) or isinstance(layer.mlp, MoeMlp) for layer, _ in shape.groups
        )
        if not special and not shape.learned_positions:
            assert buckets.whole_matrices + buckets.whole_others < 0.001 * buckets.total


def test_a_plain_total_costs_what_the_model_costs_where_all_parameters_are_treated_alike():
    """ZeRO's states of Llama 3 8B by its buckets and by its total alone; with tp the norms, which no rank splits,
    make the difference.
    """
    buckets = stage_buckets(model("llama-3-8b"), stage=0, pp=1)
    plain, job = ParameterBuckets.plain(buckets.total), {"recipe": "zero-paper", "zero_stage": 2, "dp": 16, "pp": 1}
    by_bucket = model_states(parameters=buckets, tp=1, **job).total_bytes
    assert model_states(parameters=plain, tp=1, **job).total_bytes == pytest.approx(by_bucket)
    split = model_states(parameters=buckets, tp=8, **job).total_bytes
    assert split * (1 - 1e-3) < model_states(parameters=plain, tp=8, **job).total_bytes < split


def test_a_plain_total_may_be_nothing_but_not_less():
    assert ParameterBuckets.plain(0) == ParameterBuckets()
    assert not ParameterBuckets.plain(10).has_experts
    with pytest.raises(ValueError, match="num_parameters=-1 must be at least 0"):
        ParameterBuckets.plain(-1)


def test_layers_are_dealt_out():
    assert sum(layers_on_stage(num_layers=61, stage=stage, pp=16) for stage in range(16)) == 61
    assert {layers_on_stage(num_layers=96, stage=stage, pp=8) for stage in range(8)} == {12}


def test_megatron_pads_gpt2s_vocabulary_to_korthikantis():
    # arXiv:2205.05198, table 3 and section 5 train with t = 8 and v = 51200: GPT-2's 50257 tokens, padded to a
    # multiple of 128 * 8.
    assert padded_vocab(vocab=50257, multiple=128 * 8) == 51200
    for vocab, multiple in itertools.product((1, 9, 10, 11, 977), (1, 7, 10, 128)):
        rows = vocab
        while rows % multiple:
            rows += 1
        assert padded_vocab(vocab=vocab, multiple=multiple) == rows


def test_refusals():
    assert layers_on_stage(num_layers=6, stage=5, pp=6) == 1
    with pytest.raises(ValueError, match="stage=6 must be less than pp=6"):
        layers_on_stage(num_layers=6, stage=6, pp=6)
    with pytest.raises(ValueError, match="pp=7 must not exceed num_layers=6"):
        layers_on_stage(num_layers=6, stage=0, pp=7)
    with pytest.raises(ValueError, match="stage=-1 must be a whole number of at least 0"):
        stage_buckets(model(model_keys()[0]), stage=-1, pp=2)
    assert ParameterBuckets().total == 0
    check_vocab_split(vocab=51200, tp=8)
    with pytest.raises(
        ValueError,
        match=(
            r"tp=8 must divide vocab=50257; pad the vocabulary: to a multiple of 1024 \(Megatron-LM's 128 \* tp\) it"
            r" has 51200"
        ),
    ):
        check_vocab_split(vocab=50257, tp=8)
    with pytest.raises(ValueError, match="multiple=0 must be a whole number of at least 1"):
        padded_vocab(vocab=50257, multiple=0)
