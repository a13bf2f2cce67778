"""Model FLOPs: published budgets and utilisations, torch's own count of forward, backward and recomputation,
identities.
"""

import pytest
import torch
from torch.utils.checkpoint import checkpoint as run_again
from torch.utils.checkpoint import set_checkpoint_early_stop
from transformers import LlamaConfig, LlamaForCausalLM

from threeloops.measure.inner_loop.flops import counted_flops
from threeloops.measure.models.transformer_block import TransformerBlock
from threeloops.measure.training_loop.alive_bytes import watched
from threeloops.models.architecture import Attention, DenseMlp, LatentAttention, Layer, Model, MoeMlp
from threeloops.models.model_flops import (
    RECOMPUTE,
    early_stop_flops,
    forward_flops,
    layer_matmul_parameters,
    six_n_corrections,
    six_n_d,
    training_flops,
)
from threeloops.models.parameters import model_parameters
from threeloops.models.utilisation import dense_flops_per_token, mfu, mfu_from_hfu, utilisation
from threeloops.training_loop.parallelism import step_time

torch.set_num_threads(1)


def gpt(hidden, num_layers, num_heads, vocab):
    attention = Attention(num_heads=num_heads, num_kv_heads=num_heads, head_dim=hidden // num_heads)
    layer = Layer(
        attention=attention,
        mlp=DenseMlp(intermediate=4 * hidden, gated=False, activation="gelu"),
        norm="layernorm",
        num_norms=2,
    )
    groups = ((layer, num_layers),)
    return Model(
        name="GPT", hidden=hidden, vocab=vocab, groups=groups, tied_head=True, max_context=2048, learned_positions=2048
    )


def gated(hidden, num_layers, heads, kv_heads, head_dim, intermediate, vocab, tied=False):
    attention = Attention(num_heads=heads, num_kv_heads=kv_heads, head_dim=head_dim)
    layer = Layer(
        attention=attention,
        mlp=DenseMlp(intermediate=intermediate, gated=True, activation="silu"),
        norm="rmsnorm",
        num_norms=2,
    )
    return Model(
        name="gated", hidden=hidden, vocab=vocab, groups=((layer, num_layers),), tied_head=tied, max_context=8192
    )


def deepseek(hidden, heads, dense, sparse, expert, vocab):
    """dense: (layers, intermediate); sparse: (layers, experts, top_k, shared intermediate)."""
    attention = LatentAttention(
        num_heads=heads, q_rank=1536, kv_rank=512, nope_head_dim=128, rope_head_dim=64, value_head_dim=128
    )

    def mlp(intermediate):
        return DenseMlp(intermediate=intermediate, gated=True, activation="silu")

    moe = MoeMlp(num_experts=sparse[1], top_k=sparse[2], expert=mlp(expert), shared=mlp(sparse[3]))
    layers = [Layer(attention=attention, mlp=block, norm="rmsnorm", num_norms=2) for block in (mlp(dense[1]), moe)]
    groups = ((layers[0], dense[0]), (layers[1], sparse[0]))
    return Model(name="DeepSeek", hidden=hidden, vocab=vocab, groups=groups, tied_head=False, max_context=4096)


GPT3 = gpt(12288, 96, 96, 50257)
LLAMA_405B = gated(16384, 126, 128, 8, 128, 53248, 128256)
PALM_540B = gated(18432, 118, 48, 1, 256, 4 * 18432, 256_000, tied=True)

# ---- published figures --------------------------------------------------------------------------


def test_gpt3_budget_as_published():
    # Brown et al., 2020, arXiv:2005.14165, table D.1: 174,600 million parameters, 300 billion tokens, 3.14e23 FLOPs.
    assert six_n_d(num_parameters=174_600e6, tokens=300e9) == pytest.approx(3.14e23, rel=0.002)
    assert model_parameters(GPT3).total == pytest.approx(174_600e6, rel=0.001)
    # Attention, which the table leaves out, is 12 * layers * hidden * sequence per token: 2.8 % on top. The half
    # convention takes half of that away.
    full, half = (
        training_flops(GPT3, batch=1, sequence=2048, causal=causal, recompute="none").model / 2048 * 300e9
        for causal in ("full", "half")
    )
    assert full / 3.14e23 - 1 == pytest.approx(12 * 96 * 12288 * 2048 / (6 * 174.6e9), rel=0.05)
    assert 1 - half / full == pytest.approx(0.0135, abs=0.0001)


@pytest.mark.parametrize("tokens", [1, 6])
def test_six_flops_for_each_weight_of_matrices_and_token(tokens):
    layers = torch.nn.Sequential(torch.nn.Linear(12, 40, bias=False), torch.nn.Linear(40, 7, bias=False))
    x = torch.randn(tokens, 12, requires_grad=True)
    weights = sum(weight.numel() for weight in layers.parameters())
    step = counted_flops(lambda: layers(x).sum().backward())
    assert step.total == six_n_d(num_parameters=weights, tokens=tokens)


def test_llama_3_405b_budget_as_published():
    # Llama Team, 2024, arXiv:2407.21783, section 1: 405B parameters, 15.6T tokens, 3.8e25 FLOPs.
    assert six_n_d(num_parameters=model_parameters(LLAMA_405B).total, tokens=15.6e12) == pytest.approx(3.8e25, rel=0.01)


def test_palm_utilisation_as_published():
    # Chowdhery et al., 2022, arXiv:2204.02311, section 4.1: 238.3 thousand tokens/s on 6144 TPU v4 of 275 TFLOP/s;
    # 46.2 % MFU, 45.7 % without attention.
    step = training_flops(PALM_540B, batch=2048, sequence=2048, causal="full", recompute="none")
    reached = utilisation(step, step_s=step.tokens / 238.3e3, num_gpus=6144, peak_flops_per_s=275e12)
    assert round(reached.mfu, 3) == 0.462
    assert round(reached.mfu * (1 - step.forward.attention / step.forward.total), 3) == 0.457
    assert reached.hfu == reached.mfu


@pytest.mark.parametrize(
    ("hidden", "layers", "heads", "devices", "batch", "step_s", "mfu"),
    [
        (6144, 48, 64, 8, 4, 1.10, 0.415),
        (12288, 96, 96, 64, 64, 13.75, 0.514),
        (20480, 105, 128, 280, 280, 37.83, 0.560),
        (25600, 128, 160, 512, 512, 71.49, 0.563),
    ],
)
def test_megatron_utilisation_as_published(hidden, layers, heads, devices, batch, step_s, mfu):
    # Korthikanti et al., 2022, arXiv:2205.05198, tables 3 and 5: sequence 2048, vocabulary 51200, A100 (312 TFLOP/s),
    # selective recomputation.
    step = training_flops(
        gpt(hidden, layers, heads, 51200), batch=batch, sequence=2048, causal="full", recompute="selective"
    )
    reached = utilisation(step, step_s=step_s, num_gpus=devices, peak_flops_per_s=312e12)
    # Both columns are rounded: the MFU to 0.1 %, the seconds to 0.01.
    assert reached.mfu == pytest.approx(mfu, abs=0.0005 + mfu * 0.005 / step_s)
    # Their HFU charges the recomputed attention three times (eq. 8); once, as it is executed, the ratio is 1 + (4 s
    # h) / (72 h^2 + ...).
    assert 1 < reached.hfu / reached.mfu < 1.03


@pytest.mark.parametrize(("hidden", "layers", "heads", "batch"), [(12288, 80, 96, 2304), (25600, 128, 160, 3072)])
def test_flops_per_batch_by_narayanan(hidden, layers, heads, batch):
    # Narayanan et al., 2021, arXiv:2104.04473, eq. 3, with full recomputation: 96 B s l h^2 (1 + s/6h + V/16lh).
    s, vocab = 2048, 51200
    published = 96 * batch * s * layers * hidden**2 * (1 + s / (6 * hidden) + vocab / (16 * layers * hidden))
    assert training_flops(
        gpt(hidden, layers, heads, vocab), batch=batch, sequence=s, causal="full", recompute="full"
    ).hardware == pytest.approx(published)


def test_training_days_of_a_trillion_parameters_as_published():
    # Ibid., section 5.1: 1T parameters, 450 billion tokens, 3072 A100 at 163 TFLOP/s: 84 days, recomputation
    # included.
    step = training_flops(gpt(25600, 128, 160, 51200), batch=3072, sequence=2048, causal="full", recompute="full")
    days = step.hardware * (450e9 / step.tokens) / (3072 * 163e12) / 86400
    assert days == pytest.approx(84, rel=0.04)  # theirs drops attention and the head: 8 N per token


def test_blooms_throughput_as_published():
    # BigScience, train/tr11-176B-ml (commit e726b159): 70 layers of 14,336, 112 heads, vocabulary padded to 250,880;
    # chronicles.md, iteration 12,695: 2,048 sequences of 2,048 in 105.22 s on 384 A100, "TFLOPs: 149.02", which its
    # README says to be hardware FLOPs with activation checkpointing.
    step = training_flops(gpt(14336, 70, 112, 250_880), batch=2048, sequence=2048, causal="full", recompute="full")
    assert step.hardware / 105.22 / 384 == pytest.approx(149.02e12, rel=5e-5)


def test_deepseek_flops_per_token_as_published():
    # Zhao et al., Insights into DeepSeek-V3, 2025, arXiv:2505.09343, table 2 (sequence 4096): 155 GFLOP/token for V2
    # and 250 for V3.
    models = {
        155e9: deepseek(5120, 128, (1, 12288), (59, 160, 6, 2 * 1536), 1536, 102400),
        250e9: deepseek(7168, 128, (3, 18432), (58, 256, 8, 2048), 2048, 129280),
    }
    for published, model in models.items():
        step = training_flops(model, batch=1, sequence=4096, causal="half", recompute="none")
        assert step.model / step.tokens == pytest.approx(published, rel=0.005)


# ---- torch's count -----------------------------------------------------------------------------

SMALL = gated(48, 3, 6, 2, 10, 72, 91)
SHAPE = {"batch": 3, "sequence": 14, "causal": "full"}


def torch_step(attention, checkpoint):
    """FLOPs that torch counts for forward and backward of the small model."""
    sizes = {
        "hidden_size": 48,
        "intermediate_size": 72,
        "num_hidden_layers": 3,
        "num_attention_heads": 6,
        "num_key_value_heads": 2,
        "head_dim": 10,
    }
    config = LlamaConfig(
        **sizes,
        vocab_size=91,
        max_position_embeddings=64,
        bos_token_id=0,
        eos_token_id=0,
        attn_implementation=attention,
    )
    model = LlamaForCausalLM(config).train()
    if checkpoint:
        # The re-entrant form runs each layer's whole forward pass again; the other form stops early, where nothing
        # more is needed.
        model.activation_checkpointing_enable(activation_checkpointing_kwargs={"use_reentrant": True})
        model.enable_input_require_grads()
    tokens = torch.randint(0, 91, (3, 14))
    return counted_flops(lambda: model(tokens, use_cache=False).logits.sum().backward()).total


@pytest.mark.parametrize(
    ("recompute", "attention", "checkpoint"),
    [("none", "eager", False), ("scores", "sdpa", False), ("full", "eager", True)],
)
def test_training_flops_are_what_torch_counts(recompute, attention, checkpoint):
    assert training_flops(SMALL, **SHAPE, recompute=recompute).hardware == torch_step(attention, checkpoint)


def blocks_step(layer, *, recompute, every=1, num_layers=1, dropout=0.0, early, kernels="eager"):
    """A chain of plain blocks of width 48, checkpointed as asked: forward and backward."""
    inside = recompute if recompute == "selective" else "none"
    blocks = [
        TransformerBlock(layer, hidden=48, kernels=kernels, dropout=dropout, dtype=torch.float32, recompute=inside)
        for _ in range(num_layers)
    ]
    segments = [torch.nn.Sequential(*blocks[start : start + every]) for start in range(0, num_layers, every)]
    x = torch.randn(3, 14, 48, requires_grad=True)

    def step():
        y = x
        with set_checkpoint_early_stop(early):
            for segment in segments:
                y = run_again(segment, y, use_reentrant=False) if recompute == "full" else segment(y)
        y.sum().backward()

    return step


GATED = DenseMlp(intermediate=72, gated=True, activation="silu")
MLPS = {
    "gated": GATED,
    "plain": DenseMlp(intermediate=120, gated=False, activation="gelu", bias=True),
    "routed": MoeMlp(num_experts=4, top_k=2, expert=GATED),
    "shared": MoeMlp(
        num_experts=4, top_k=2, expert=GATED, shared=DenseMlp(intermediate=36, gated=True, activation="silu")
    ),
    "shared, gated": MoeMlp(num_experts=4, top_k=2, expert=GATED, shared=GATED, shared_gate=True),
}


@pytest.mark.parametrize("recompute", ["none", "selective", "full"])
@pytest.mark.parametrize("num_norms", [2, 4])
@pytest.mark.parametrize("mlp", MLPS)
def test_what_early_stop_leaves_out_is_what_torch_does_not_count(mlp, num_norms, recompute):
    layer = Layer(
        attention=Attention(num_heads=6, num_kv_heads=2, head_dim=10),
        mlp=MLPS[mlp],
        norm="rmsnorm",
        num_norms=num_norms,
    )
    model = Model(name="small", hidden=48, vocab=91, groups=((layer, 1),), tied_head=False, max_context=64)
    counted = []
    for early in (False, True):
        torch.manual_seed(3)
        counted.append(counted_flops(blocks_step(layer, recompute=recompute, early=early)).total)
    assert counted[0] - counted[1] == early_stop_flops(model, **SHAPE, recompute=recompute)


@pytest.mark.parametrize("every", [1, 2, 3, 5])
def test_early_stop_leaves_out_one_product_per_segment(every):
    model = gated(48, 5, 6, 2, 10, 72, 91)
    whole, early = (
        counted_flops(blocks_step(model.groups[0][0], recompute="full", every=every, num_layers=5, early=early)).total
        for early in (False, True)
    )
    assert whole - early == early_stop_flops(model, **SHAPE, recompute="full", every=every)


def test_a_real_llama_with_the_checkpoint_that_stops_early():
    config = {
        "hidden_size": 48,
        "intermediate_size": 72,
        "num_hidden_layers": 3,
        "num_attention_heads": 6,
        "num_key_value_heads": 2,
        "head_dim": 10,
    }
    model = LlamaForCausalLM(
        LlamaConfig(
            **config,
            vocab_size=91,
            max_position_embeddings=64,
            bos_token_id=0,
            eos_token_id=0,
            attn_implementation="eager",
        )
    ).train()
    model.activation_checkpointing_enable(activation_checkpointing_kwargs={"use_reentrant": False})
    tokens = torch.randint(0, 91, (3, 14))
    executed = counted_flops(lambda: model(tokens, use_cache=False).logits.sum().backward()).total
    step = training_flops(SMALL, **SHAPE, recompute="full")
    assert executed == step.hardware - early_stop_flops(SMALL, **SHAPE, recompute="full")


def test_dropout_behind_the_block_and_fused_attention_leave_nothing_out():
    layer = SMALL.groups[0][0]
    for options in ({"recompute": "full", "dropout": 0.1}, {"recompute": "selective", "kernels": "sdpa"}):
        whole, early = (counted_flops(blocks_step(layer, **options, early=early)).total for early in (False, True))
        assert whole == early, options


def test_early_stop_does_not_lower_the_peak_of_a_step():
    peaks = []
    for early in (False, True):
        step = blocks_step(SMALL.groups[0][0], recompute="full", num_layers=3, early=early)
        with watched() as seen:
            step()
        peaks.append(seen.peak().alive_bytes)
    assert peaks[0] == peaks[1]


def test_early_stop_refuses_segments_that_it_cannot_place():
    mixed = deepseek(64, 4, (1, 96), (2, 8, 2, 48), 24, 100)
    # the dense layer's rows, and those of the shared experts
    assert early_stop_flops(mixed, **SHAPE, recompute="full") == 2 * 64 * (3 * 14) * (96 + 2 * 48)
    with pytest.raises(
        ValueError, match="every=2 needs recompute='full' and equal layers; DeepSeek has 2 kinds; try every=1"
    ):
        early_stop_flops(mixed, **SHAPE, recompute="full", every=2)
    assert early_stop_flops(SMALL, **SHAPE, recompute="full", every=3) > 0
    with pytest.raises(ValueError, match="every=4 must be at most the model's 3 layers"):
        early_stop_flops(SMALL, **SHAPE, recompute="full", every=4)
    with pytest.raises(ValueError, match="recompute='scores' is not known"):
        early_stop_flops(SMALL, **SHAPE, recompute="scores")


# ---- identities --------------------------------------------------------------------------------


def test_forward_is_two_flops_per_parameter_and_token_when_the_context_is_short():
    model = gated(4096, 32, 32, 8, 128, 14336, 128256)
    sizes = model_parameters(model)
    forward = forward_flops(model, batch=7, sequence=1, causal="exact", logits="all")
    assert forward.projections + forward.head == 2 * 7 * (sizes.total - sizes.embedding - sizes.norms)
    assert forward.attention == 2 * 7 * 32 * 2 * 4096


@pytest.mark.parametrize(
    "model",
    [SMALL, GPT3, PALM_540B, deepseek(64, 4, (1, 96), (2, 8, 2, 48), 24, 100)],
    ids=["llama", "gpt", "palm", "deepseek"],
)
@pytest.mark.parametrize("count", ["total", "active", "non_embedding"])
def test_corrections_lead_from_any_count_of_parameters_to_the_same_total(model, count):
    parameters = getattr(model_parameters(model), count)
    corrections = six_n_corrections(model, num_parameters=parameters, sequence=512, causal="half")
    step = training_flops(model, batch=5, sequence=512, causal="half", recompute="none")
    assert corrections.total == pytest.approx(step.model / step.tokens)
    assert corrections.six_n == six_n_d(num_parameters=parameters, tokens=1)
    assert corrections.idle_parameters < 0 or count == "non_embedding"


def test_llama_3_8b_loses_a_fifth_of_its_flops_without_attention_at_8k():
    # 6 (N - V h) over the counted FLOPs: (7.50e9 * 6) / (7.50e9 * 6 + 12 * 32 * 4096 * 8192) = 0.778.
    model = gated(4096, 32, 32, 8, 128, 14336, 128256)
    corrections = six_n_corrections(model, num_parameters=model_parameters(model).total, sequence=8192, causal="full")
    assert (corrections.six_n + corrections.idle_parameters) / corrections.total == pytest.approx(0.778, abs=0.001)


def test_recomputation_is_ordered_and_leaves_the_model_count_alone():
    steps = [training_flops(SMALL, **SHAPE, recompute=recompute) for recompute in RECOMPUTE]
    assert len({step.model for step in steps}) == 1
    hardware = [step.hardware for step in steps]
    assert hardware == sorted(hardware)
    assert hardware[0] == steps[0].model
    assert hardware[3] + steps[3].forward.head == steps[3].model * 4 / 3
    assert [step.recompute for step in steps] == list(RECOMPUTE)


def test_half_and_full_differ_only_in_attention_and_windows_cap_it():
    full, half = (
        forward_flops(SMALL, batch=3, sequence=14, causal=causal, logits="all") for causal in ("full", "half")
    )
    assert (half.projections, half.head, half.attention) == (full.projections, full.head, full.attention / 2)
    layer = SMALL.groups[0][0]
    windowed = Attention(num_heads=6, num_kv_heads=2, head_dim=10, window=4)
    narrow = Model(
        name="w",
        hidden=48,
        vocab=91,
        tied_head=False,
        max_context=64,
        groups=((Layer(attention=windowed, mlp=layer.mlp, norm="rmsnorm", num_norms=2), 3),),
    )
    assert forward_flops(narrow, batch=3, sequence=14, causal="full", logits="all").attention == full.attention * 4 / 14


def test_only_the_visited_experts_and_the_router_multiply():
    expert = DenseMlp(intermediate=14336, gated=True, activation="silu")
    attention = Attention(num_heads=32, num_kv_heads=8, head_dim=128)
    moe, dense = (
        layer_matmul_parameters(Layer(attention=attention, mlp=mlp, norm="rmsnorm", num_norms=2), hidden=4096)
        for mlp in (MoeMlp(num_experts=8, top_k=2, expert=expert), expert)
    )
    assert moe - dense == 3 * 4096 * 14336 + 8 * 4096


@pytest.mark.parametrize(
    ("achieved", "peak", "printed"),
    [
        (430e12, 989e12, 0.43),  # Llama Team, 2024, arXiv:2407.21783, table 4: 430 TFLOPs per GPU, BF16 MFU 43 %
        (380e12, 989e12, 0.38),  # the same table, sequences of 131,072: 380 and 38 %
        # Narayanan et al., 2021, arXiv:2104.04473, table 1: 163 teraFLOP/s per A100, 52 % of theoretical peak
        (163e12, 312e12, 0.52),
        (502e15, 3072 * 312e12, 0.52),  # the same run, all GPUs together: 502 petaFLOP/s on 3072
    ],
)
def test_mfu_from_two_rates_as_published(achieved, peak, printed):
    assert round(mfu(model_flops_per_s=achieved, peak_flops_per_s=peak), 2) == printed


def test_mfu_has_one_value_by_every_door():
    step = training_flops(GPT3, batch=64, sequence=2048, causal="full", recompute="none")
    used = utilisation(step, step_s=9.0, num_gpus=128, peak_flops_per_s=312e12)
    assert mfu(model_flops_per_s=used.model_flops_per_s, peak_flops_per_s=312e12) == pytest.approx(used.mfu)
    rate = step_time.tokens_per_gpu_s(tokens=step.tokens, step_s=9.0, num_gpus=128)
    assert step_time.mfu_of_tokens(
        flops_per_token=step.model / step.tokens, tokens_per_gpu_s=rate, peak_flops_per_s=312e12
    ) == pytest.approx(used.mfu)


def test_mfu_refuses_no_rate():
    assert mfu(model_flops_per_s=1, peak_flops_per_s=1) == 1
    assert mfu(model_flops_per_s=3, peak_flops_per_s=2) == 1.5  # a convention that charges what the step skips
    with pytest.raises(ValueError, match="peak_flops_per_s=0 must be greater than 0"):
        mfu(model_flops_per_s=1, peak_flops_per_s=0)


@pytest.mark.parametrize("causal", ["full", "half"])
def test_five_published_numbers_give_the_flops_of_the_whole_model(causal):
    model = gated(40, 3, 6, 2, 8, 72, 90)
    layer, num_layers = model.groups[0]
    step = training_flops(model, batch=2, sequence=50, causal=causal, recompute="none")
    assert dense_flops_per_token(
        num_parameters=num_layers * layer_matmul_parameters(layer, hidden=40) + 40 * 90,
        num_layers=num_layers,
        num_heads=6,
        head_dim=8,
        sequence=50,
        causal=causal,
    ) == pytest.approx(step.model / step.tokens)


@pytest.mark.parametrize("recompute", RECOMPUTE)
def test_mfu_is_hfu_without_what_is_run_again(recompute):
    step = training_flops(SMALL, **SHAPE, recompute=recompute)
    used = utilisation(step, step_s=2.0, num_gpus=4, peak_flops_per_s=1e9)
    assert mfu_from_hfu(hfu=used.hfu, recomputed_share=step.recomputed / step.forward.total) == pytest.approx(used.mfu)


def test_utilisation_scales():
    step = training_flops(SMALL, **SHAPE, recompute="full")
    one = utilisation(step, step_s=2.0, num_gpus=4, peak_flops_per_s=1e9)
    assert utilisation(step, step_s=4.0, num_gpus=2, peak_flops_per_s=1e9).mfu == one.mfu
    assert utilisation(step, step_s=2.0, num_gpus=4, peak_flops_per_s=2e9).hfu == pytest.approx(one.hfu / 2)
    assert one.hfu / one.mfu == pytest.approx(step.hardware / step.model)
    assert one.model_flops_per_s == pytest.approx(one.mfu * 1e9)
    assert (one.causal, one.recompute) == ("full", "full")


def test_refusals():
    with pytest.raises(ValueError, match="recompute='attention' is not known"):
        training_flops(SMALL, **SHAPE, recompute="attention")
    assert training_flops(SMALL, **SHAPE, recompute="selective").recompute == "selective"
    with pytest.raises(ValueError, match="causal='causal' is not known"):
        forward_flops(SMALL, batch=1, sequence=4, causal="causal", logits="all")
    with pytest.raises(ValueError, match="sequence=0 must be a whole number of at least 1"):
        forward_flops(SMALL, batch=1, sequence=0, causal="half", logits="all")
    with pytest.raises(ValueError, match="num_gpus=0"):
        utilisation(training_flops(SMALL, **SHAPE, recompute="none"), step_s=1, num_gpus=0, peak_flops_per_s=1)
    with pytest.raises(ValueError, match="causal='exactly' is not known"):
        dense_flops_per_token(num_parameters=1e6, num_layers=2, num_heads=3, head_dim=4, sequence=5, causal="exactly")
    with pytest.raises(ValueError, match="recomputed_share=2 must lie between 0 and 1"):
        mfu_from_hfu(hfu=0.5, recomputed_share=2)
    with pytest.raises(ValueError, match="tokens=0 must be greater than 0"):
        six_n_d(num_parameters=1, tokens=0)
