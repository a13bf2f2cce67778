"""Activations of a block: Korthikanti's equations, a real eager block byte for byte, one rank of it, limits,
refusals.
"""

from dataclasses import replace

import pytest
import torch
from torch import nn
from transformers import BloomConfig, BloomModel

from threeloops.measure.models.transformer_block import TransformerBlock
from threeloops.measure.training_loop.alive_bytes import watched
from threeloops.measure.training_loop.saved_tensors import saved_bytes
from threeloops.models.architecture import Attention, DenseMlp, LatentAttention, Layer, MoeMlp
from threeloops.models.hf_config import from_hf_config
from threeloops.training_loop.memory.activation_kernels import KERNELS
from threeloops.training_loop.memory.activations import (
    embedding_activations,
    head_activations,
    loss_gradient_bytes,
    per_layer,
)


@pytest.fixture(autouse=True)
def one_thread():
    """Blocks this small only lose time to threads."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def gpt(*, heads, hidden, bias=True):
    return Layer(
        attention=Attention(
            num_heads=heads, num_kv_heads=heads, head_dim=hidden // heads, qkv_bias=bias, output_bias=bias
        ),
        mlp=DenseMlp(intermediate=4 * hidden, gated=False, activation="gelu", bias=bias),
        norm="layernorm",
        num_norms=2,
    )


GPT3, MT_NLG = gpt(heads=96, hidden=12288), gpt(heads=128, hidden=20480)
ATTENTION = Attention(num_heads=10, num_kv_heads=2, head_dim=8)
GATED = DenseMlp(intermediate=112, gated=True, activation="silu")
LAYERS = {
    "gelu, layernorm, MHA": gpt(heads=6, hidden=48),
    "relu, layernorm, MHA": replace(
        gpt(heads=6, hidden=48), mlp=DenseMlp(intermediate=112, gated=False, activation="relu")
    ),
    "gelu_new, layernorm, MHA": replace(
        gpt(heads=6, hidden=48), mlp=DenseMlp(intermediate=112, gated=False, activation="gelu_new")
    ),
    "swiglu, rmsnorm, GQA": Layer(attention=ATTENTION, mlp=GATED, norm="rmsnorm", num_norms=2),
    "geglu, four rmsnorms, GQA, qk-norm": Layer(
        attention=replace(ATTENTION, qk_norm=True), mlp=replace(GATED, activation="gelu"), norm="rmsnorm", num_norms=4
    ),
    "experts, a shared one, GQA": Layer(
        attention=ATTENTION,
        mlp=MoeMlp(
            num_experts=7,
            top_k=3,
            expert=replace(GATED, intermediate=24),
            shared=replace(GATED, intermediate=40),
            shared_gate=True,
        ),
        norm="rmsnorm",
        num_norms=2,
    ),
    "experts, latent attention": Layer(
        attention=LatentAttention(
            num_heads=5, q_rank=28, kv_rank=20, nope_head_dim=8, rope_head_dim=4, value_head_dim=6
        ),
        mlp=MoeMlp(num_experts=7, top_k=3, expert=replace(GATED, intermediate=24)),
        norm="rmsnorm",
        num_norms=2,
    ),
}


def per_sbh(layer, *, hidden, sequence=2048, **how):
    """Korthikanti's unit: bytes per token and channel."""
    kept = per_layer(
        layer,
        hidden=hidden,
        sequence=sequence,
        micro_batch=1,
        bytes_per_element=2,
        kernels="korthikanti",
        dropout=True,
        **how,
    )
    return kept.total_bytes / (sequence * hidden)


@pytest.mark.parametrize(
    ("layer", "hidden", "scores"),
    # arXiv:2205.05198, section 5: 5as/h is 80 for GPT-3 (5 * 96 * 2048 / 12288) and 64 for MT-NLG (5 * 128 * 2048 /
    # 20480), with s = 2048.
    [(GPT3, 12288, 80), (MT_NLG, 20480, 64)],
)
def test_korthikanti_table_2(layer, hidden, scores):
    sharded = {"hidden": hidden, "tp": 8}
    assert per_sbh(layer, hidden=hidden) == 34 + scores
    assert per_sbh(layer, **sharded) == 10 + 24 / 8 + scores / 8
    assert per_sbh(layer, **sharded, sequence_parallel=True) == (34 + scores) / 8
    assert per_sbh(layer, **sharded, recompute="selective") == 10 + 24 / 8
    assert per_sbh(layer, **sharded, sequence_parallel=True, recompute="selective") == 34 / 8
    assert per_sbh(layer, **sharded, recompute="full") == 2


def test_korthikanti_savings():
    # Section 5: selective recomputation saves 70 % (GPT-3) and 65 % (MT-NLG). Abstract: with sequence parallelism,
    # 5x.
    for layer, hidden, saved in ((GPT3, 12288, 0.70), (MT_NLG, 20480, 0.65)):
        assert 1 - per_sbh(layer, hidden=hidden, recompute="selective") / per_sbh(
            layer, hidden=hidden
        ) == pytest.approx(saved, abs=0.005)
        both = per_sbh(layer, hidden=hidden, tp=8, sequence_parallel=True, recompute="selective")
        assert round(per_sbh(layer, hidden=hidden, tp=8) / both) == 5


def test_masks_stay_one_byte_in_fp32():
    # 16 two-byte values and 2 mask bytes per channel, 2 values and a mask byte per score: fp32 is 66 + 9as/h, not
    # twice 34 + 5as/h.
    kept = per_layer(
        GPT3, hidden=12288, sequence=2048, micro_batch=1, bytes_per_element=4, kernels="korthikanti", dropout=True
    )
    assert kept.total_bytes / (2048 * 12288) == 66 + 9 * 96 * 2048 / 12288


# torch's CPU flash attention has neither dropout nor values narrower than keys: those pairs have no block to measure.
BLOCKS = [
    (layer, name, dropout)
    for layer, shape in LAYERS.items()
    for name, kernels in KERNELS.items()
    for dropout in (0.0, 0.1)
    if kernels.attention == "explicit" or not (dropout or isinstance(shape.attention, LatentAttention))
]


@pytest.mark.parametrize("recompute", ["none", "selective", "full"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
@pytest.mark.parametrize(("layer_name", "name", "dropout"), BLOCKS)
def test_a_real_block_saves_exactly_these_bytes(layer_name, name, dropout, dtype, recompute):
    layer = LAYERS[layer_name]
    # The paper leaves small tensors out; autograd does not.
    kernels = replace(KERNELS[name], small_tensors=True)
    block = TransformerBlock(layer, hidden=48, kernels=kernels, dropout=dropout, dtype=dtype, recompute=recompute)
    measured = saved_bytes(block, torch.randn(3, 14, 48, dtype=dtype, requires_grad=True))
    predicted = per_layer(
        layer,
        hidden=48,
        sequence=14,
        micro_batch=3,
        bytes_per_element=dtype.itemsize,
        kernels=kernels,
        dropout=dropout > 0,
        recompute=recompute,
    )
    assert predicted.total_bytes == measured


@pytest.mark.parametrize("recompute", ["none", "selective", "full"])
@pytest.mark.parametrize(
    ("layer_name", "name", "dropout"),
    # Where queries are normalised, a softmax in the dtype of its block would be fp32 in this block alone.
    [
        (layer_name, name, dropout)
        for layer_name, name, dropout in BLOCKS
        if not ("qk-norm" in layer_name and name == "korthikanti")
    ],
)
def test_a_real_block_under_autocast_saves_these_bytes_and_copies_of_its_matrices(layer_name, name, dropout, recompute):
    layer = LAYERS[layer_name]
    kernels = replace(KERNELS[name], small_tensors=True)
    block = TransformerBlock(
        layer, hidden=48, kernels=kernels, dropout=dropout, dtype=torch.float32, recompute=recompute
    )
    with torch.autocast("cpu", torch.bfloat16):
        measured = saved_bytes(block, torch.randn(3, 14, 48, requires_grad=True))
    shapes = {
        "hidden": 48,
        "sequence": 14,
        "micro_batch": 3,
        "bytes_per_element": 2,
        "kernels": kernels,
        "dropout": dropout > 0,
    }
    predicted = per_layer(layer, **shapes, recompute=recompute, autocast=True)
    copies = 0 if recompute == "full" else 2 * sum(p.numel() for p in block.parameters() if p.dim() == 2)
    assert measured == predicted.total_bytes + copies


def test_what_the_paper_leaves_out_is_two_statistics_per_norm_and_token():
    block = TransformerBlock(
        LAYERS["gelu, layernorm, MHA"], hidden=48, kernels="korthikanti", dropout=0.1, dtype=torch.bfloat16
    )
    measured = saved_bytes(block, torch.randn(3, 14, 48, dtype=torch.bfloat16, requires_grad=True))
    assert measured == 3 * 14 * 48 * (34 + 5 * 6 * 14 / 48) + 2 * 2 * 4 * (3 * 14)


@pytest.mark.parametrize("name", ["korthikanti", "eager", "sdpa", "fused"])
def test_one_tensor_rank_is_a_block_with_fewer_heads_and_columns(name):
    """Without sequence parallelism, a rank runs a block of the same hidden width with 1/t of the heads and of the
    MLP: build it and measure.
    """
    layer = LAYERS["swiglu, rmsnorm, GQA"]
    share = replace(
        layer, attention=Attention(num_heads=5, num_kv_heads=1, head_dim=8), mlp=replace(GATED, intermediate=56)
    )
    kernels = replace(KERNELS[name], small_tensors=True)
    block = TransformerBlock(share, hidden=48, kernels=kernels, dropout=0.0, dtype=torch.bfloat16)
    measured = saved_bytes(block, torch.randn(3, 14, 48, dtype=torch.bfloat16, requires_grad=True))
    predicted = per_layer(
        layer, hidden=48, sequence=14, micro_batch=3, bytes_per_element=2, kernels=kernels, dropout=False, tp=2
    )
    assert predicted.total_bytes == measured


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
@pytest.mark.parametrize("name", ["eager", "sdpa"])
def test_a_llama_layer_of_transformers_saves_exactly_these_bytes(name, dtype):
    """A block that somebody else wrote. Its rotary tables, which all layers share, come on top."""
    from transformers import LlamaConfig
    from transformers.models.llama.modeling_llama import LlamaDecoderLayer, LlamaRotaryEmbedding

    config = LlamaConfig(
        hidden_size=80,
        intermediate_size=112,
        num_attention_heads=10,
        num_key_value_heads=2,
        head_dim=8,
        attn_implementation=name,
    )
    block, x = LlamaDecoderLayer(config, 0).to(dtype).train(), torch.randn(3, 14, 80, dtype=dtype, requires_grad=True)
    tables = LlamaRotaryEmbedding(config)(x, torch.arange(14)[None])
    # sdpa masks by itself
    future = torch.full((1, 1, 14, 14), float("-inf"), dtype=dtype).triu(1) if name == "eager" else None
    measured = saved_bytes(lambda x: block(x, attention_mask=future, position_embeddings=tables), x, module=block)
    layer = LAYERS["swiglu, rmsnorm, GQA"]
    predicted = per_layer(
        layer, hidden=80, sequence=14, micro_batch=3, bytes_per_element=dtype.itemsize, kernels=name, dropout=False
    )
    assert measured == predicted.total_bytes + sum(table.nbytes for table in tables)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
@pytest.mark.parametrize("activation", ["gelu_new", "gelu_pytorch_tanh", "relu"])
def test_a_gpt2_mlp_of_transformers_saves_exactly_these_bytes(activation, dtype):
    """gelu_new is written in plain operations: five wide tensors, where the same function as one operation keeps
    two.
    """
    from transformers import GPT2Config
    from transformers.models.gpt2.modeling_gpt2 import GPT2MLP

    config = GPT2Config(n_embd=48, n_layer=1, n_head=6, vocab_size=100, activation_function=activation)
    mlp = GPT2MLP(192, config).to(dtype).eval()  # eval: its own dropout off
    measured = saved_bytes(mlp, torch.randn(3, 14, 48, dtype=dtype, requires_grad=True))
    layer, _ = from_hf_config(config.to_dict(), name="tiny").groups[0]
    kept = per_layer(
        layer, hidden=48, sequence=14, micro_batch=3, bytes_per_element=dtype.itemsize, kernels="eager", dropout=False
    )
    norm_bytes = sum(num_bytes for name, num_bytes in kept.rows if name.startswith("MLP norm"))
    assert measured == sum(item.bytes for item in kept.items if item.part == "mlp") - norm_bytes
    wide = 3 * 14 * 192 * dtype.itemsize
    assert [num_bytes for _, num_bytes in kept.rows].count(wide) == {"gelu_new": 5, "gelu_pytorch_tanh": 2, "relu": 1}[
        activation
    ]


class Head(nn.Module):
    """Final norm, output head and cross-entropy in fp32."""

    def __init__(self, dtype):
        super().__init__()
        self.norm, self.head = nn.LayerNorm(48), nn.Linear(48, 100, bias=False, dtype=dtype)
        self.targets = torch.zeros(3 * 14, dtype=torch.int64)

    def forward(self, x):
        return nn.functional.cross_entropy(self.head(self.norm(x)).float().flatten(0, 1), self.targets)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
def test_a_real_head_saves_exactly_these_bytes(dtype):
    measured = saved_bytes(Head(dtype), torch.randn(3, 14, 48, dtype=dtype, requires_grad=True))
    predicted = head_activations(
        norm="layernorm",
        vocab=100,
        hidden=48,
        sequence=14,
        micro_batch=3,
        bytes_per_element=dtype.itemsize,
        kernels="fused",
    )
    # The loss also keeps the number of targets it averaged over: one fp32 value, whatever the sizes.
    assert measured == predicted.total_bytes + 4


def test_the_backward_pass_of_a_real_loss_adds_two_more_tensors_of_logits():
    x = torch.randn(3, 14, 48, requires_grad=True)
    head, sizes = Head(torch.float32), {"hidden": 48, "sequence": 14, "micro_batch": 3, "bytes_per_element": 4}
    kept = head_activations(norm="layernorm", vocab=100, kernels="fused", **sizes)
    with watched() as scales:
        loss = head(x)
        waiting = scales.alive_bytes
        loss.backward()
    most = max(reading.alive_bytes for reading in scales.readings) - waiting
    assert most == loss_gradient_bytes(kept, cross_entropy="plain")
    assert loss_gradient_bytes(kept, cross_entropy="in-place") == 0


def test_a_real_loss_in_slices_keeps_both_gradients_of_the_head_and_no_logits():
    x = torch.randn(3 * 14, 48, requires_grad=True)
    weight, targets = torch.randn(700, 48, requires_grad=True), torch.zeros(3 * 14, dtype=torch.int64)
    sizes = {"hidden": 48, "sequence": 14, "micro_batch": 3, "bytes_per_element": 4, "kernels": "fused"}
    kept = dict(head_activations(norm="layernorm", vocab=700, cross_entropy="sliced", **sizes).rows)
    with watched() as scales:
        loss = nn.functional.linear_cross_entropy(x, weight, targets, options=nn.LinearCrossEntropyOptions())
        waiting = scales.alive_bytes
    gradients = kept["gradient of the head input"] + kept["gradient of the head"]
    assert gradients <= waiting - loss.nbytes < 1.05 * gradients
    assert kept["a slice of logits"] <= 1.05 * kept["gradient of the head input"]
    with pytest.raises(ValueError, match="'sliced' is counted for tp=1, not for tp=2"):
        head_activations(norm="layernorm", vocab=700, cross_entropy="sliced", **sizes, tp=2)


def test_a_real_embedding_saves_exactly_these_bytes():
    table = nn.Embedding(100, 48)
    ids = torch.zeros(3, 14, dtype=torch.int64)
    measured = saved_bytes(lambda ids: torch.native_dropout(table(ids), 0.1, True)[0], ids, module=table)
    assert (
        embedding_activations(
            hidden=48, sequence=14, micro_batch=3, bytes_per_element=4, kernels="fused", dropout=True
        ).total_bytes
        == measured
    )


def test_a_real_bloom_saves_exactly_these_bytes():
    """A norm behind the table, and blocks to which ALiBi adds nothing: its slopes are no parameter."""
    sizes = {"hidden_size": 48, "n_layer": 2, "n_head": 6, "vocab_size": 131}
    network = BloomModel(BloomConfig(**sizes)).train()
    measured = saved_bytes(
        lambda ids: network(ids, use_cache=False).last_hidden_state,
        torch.zeros(3, 14, dtype=torch.int64),
        module=network,
    )
    ours = from_hf_config({"model_type": "bloom", **sizes})
    (layer, count), shape = ours.groups[0], {"hidden": 48, "sequence": 14, "micro_batch": 3, "bytes_per_element": 4}
    block = per_layer(layer, **shape, kernels="eager", dropout=False).total_bytes
    table = embedding_activations(**shape, kernels="eager", dropout=False, norm="layernorm").total_bytes
    head = dict(head_activations(norm="layernorm", vocab=131, **shape, kernels="eager").rows)
    final_norm = sum(size for name, size in head.items() if name.startswith("final norm"))
    assert ours.embedding_norm
    assert table + count * block + final_norm == measured


def test_korthikanti_head():
    # Section 4.3 with t = 8: 4sbh/t for norm and projection inputs, 4sbv/t for the fp32 logits; GPT-3 as trained
    # there, v = 51200.
    kept = head_activations(
        norm="layernorm",
        vocab=51200,
        hidden=12288,
        sequence=2048,
        micro_batch=1,
        bytes_per_element=2,
        kernels="korthikanti",
        tp=8,
        sequence_parallel=True,
    )
    assert kept.total_bytes == 2048 * (4 * 12288 + 4 * 51200) / 8


@pytest.mark.parametrize("layer", LAYERS.values(), ids=LAYERS)
def test_sequence_parallel_ranks_together_keep_one_whole_copy(layer):
    shapes = {
        "hidden": 48,
        "sequence": 20,
        "micro_batch": 3,
        "bytes_per_element": 2,
        "kernels": "korthikanti",
        "dropout": True,
    }
    tp = 5 if isinstance(layer.attention, LatentAttention) else 2
    experts = 1 if isinstance(layer.mlp, MoeMlp) else None
    mlp = layer.mlp if isinstance(layer.mlp, MoeMlp) else replace(layer.mlp, intermediate=120)
    one = per_layer(replace(layer, mlp=mlp), **shapes)
    rank = per_layer(replace(layer, mlp=mlp), **shapes, tp=tp, sequence_parallel=True, expert_tp=experts)
    assert tp * rank.total_bytes == one.total_bytes


def test_experts_split_like_the_rest_hold_the_same_wide_tensors_and_more_inputs():
    shapes = {
        "hidden": 48,
        "sequence": 20,
        "micro_batch": 3,
        "bytes_per_element": 2,
        "kernels": "fused",
        "dropout": False,
        "tp": 2,
        "sequence_parallel": True,
    }
    apart, split = (
        {
            item.name: item.bytes
            for item in per_layer(LAYERS["experts, a shared one, GQA"], **shapes, expert_tp=expert_tp).items
        }
        for expert_tp in (1, 2)
    )
    assert split["expert gate"] == apart["expert gate"]
    assert split["expert inputs"] == 2 * apart["expert inputs"]


def test_scaling():
    shapes = {"hidden": 48, "micro_batch": 3, "bytes_per_element": 2, "dropout": False}
    layer = LAYERS["swiglu, rmsnorm, GQA"]
    for kernels in KERNELS:
        once = per_layer(layer, **shapes, sequence=14, kernels=kernels).total_bytes
        assert per_layer(layer, **{**shapes, "micro_batch": 6}, sequence=14, kernels=kernels).total_bytes == 2 * once
    # Twice the sequence: twice everything with flash attention; with explicit attention four times the scores.
    short, long = (per_layer(layer, **shapes, sequence=sequence, kernels="fused").total_bytes for sequence in (14, 28))
    assert long == 2 * short
    short, long = (per_layer(layer, **shapes, sequence=sequence, kernels="korthikanti") for sequence in (14, 28))
    core = sum(item.bytes for item in short.items if item.part == "core")
    assert long.total_bytes == 2 * short.total_bytes + 2 * core


def test_results_echo_their_conventions():
    kept = per_layer(
        LAYERS["gelu, layernorm, MHA"],
        hidden=48,
        sequence=14,
        micro_batch=1,
        bytes_per_element=4,
        kernels="sdpa",
        dropout=True,
        tp=2,
        sequence_parallel=True,
        recompute="selective",
    )
    assert (kept.kernels, kept.bytes_per_element, kept.dropout, kept.tp, kept.sequence_parallel, kept.recompute) == (
        "sdpa",
        4,
        True,
        2,
        True,
        "selective",
    )
    assert not kept.autocast
    assert kept.total_bytes == sum(num_bytes for _, num_bytes in kept.rows)
    assert kept.rows[0] == ("attention norm input", 14 // 2 * 48 * 4)


def test_refusals():
    good = {
        "hidden": 48,
        "sequence": 14,
        "micro_batch": 1,
        "bytes_per_element": 2,
        "kernels": "fused",
        "dropout": False,
    }
    layer, experts = LAYERS["swiglu, rmsnorm, GQA"], LAYERS["experts, a shared one, GQA"]
    assert per_layer(layer, **good, tp=2, sequence_parallel=True).tp == 2
    assert per_layer(experts, **good, tp=2, expert_tp=2).tp == 2
    # More ranks than KV heads: each KV head stands on several ranks.
    assert per_layer(replace(layer, mlp=replace(GATED, intermediate=120)), **good, tp=10).tp == 10
    with pytest.raises(ValueError, match="tp=4 must divide num_heads=10"):
        per_layer(layer, **good, tp=4)
    with pytest.raises(ValueError, match="tp=5 must be a multiple of num_kv_heads=2"):
        per_layer(layer, **good, tp=5)
    with pytest.raises(ValueError, match="tp=2 must divide sequence=15"):
        per_layer(layer, **{**good, "sequence": 15}, tp=2, sequence_parallel=True)
    with pytest.raises(ValueError, match="kernels='flash' is not known"):
        per_layer(layer, **{**good, "kernels": "flash"})
    with pytest.raises(ValueError, match="bytes_per_element=4 must be 2 under autocast"):
        per_layer(layer, **{**good, "bytes_per_element": 4}, autocast=True)
    with pytest.raises(ValueError, match="tp=2 must divide vocab=101; pad the vocabulary: to a multiple of 256"):
        head_activations(
            norm="rmsnorm", vocab=101, hidden=48, sequence=14, micro_batch=1, bytes_per_element=2, kernels="fused", tp=2
        )
    with pytest.raises(ValueError, match="bytes_per_element=1 must be 2"):
        per_layer(layer, **{**good, "bytes_per_element": 1})
    with pytest.raises(ValueError, match="recompute='all' is not known"):
        per_layer(layer, **good, recompute="all")
    with pytest.raises(ValueError, match="expert_tp must be stated with experts and tp=2"):
        per_layer(experts, **good, tp=2)
    with pytest.raises(ValueError, match="expert_tp=1 below tp=2 needs sequence_parallel=True"):
        per_layer(experts, **good, tp=2, expert_tp=1)
    with pytest.raises(ValueError, match="norm='batchnorm' is not known"):
        head_activations(
            norm="batchnorm", vocab=100, hidden=48, sequence=14, micro_batch=1, bytes_per_element=2, kernels="fused"
        )
