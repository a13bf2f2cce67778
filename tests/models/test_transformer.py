"""The operation table: its matrix FLOPs are what torch counts in real models, its weight bytes are the models'
parameters.
"""

import itertools
from dataclasses import replace

import pytest
import torch
from tests.models.small_configs import attending
from transformers import (
    DeepseekV3Config,
    DeepseekV3ForCausalLM,
    GPT2Config,
    GPT2LMHeadModel,
    LlamaConfig,
    LlamaForCausalLM,
    MixtralConfig,
    MixtralForCausalLM,
)

from threeloops.measure.inner_loop.flops import counted_flops
from threeloops.models import transformer
from threeloops.models.architecture import Attention, DenseMlp, LatentAttention, Layer, Model, MoeMlp
from threeloops.models.catalogue import model as catalogued
from threeloops.models.catalogue import model_keys
from threeloops.models.model_flops import forward_flops
from threeloops.models.parameters import model_parameters
from threeloops.models.transformer import MATRIX, VECTOR, ForwardStep
from threeloops.operations import kernels
from threeloops.operations.expert_layers import experts_touched

torch.set_num_threads(1)

PREFILL = ForwardStep(
    phase="prefill",
    batch=3,
    sequence=14,
    causal="full",
    fused_attention=True,
    logits="all",
    bytes_per_element=4,
    latent="expanded",
    routing="uniform",
)
DECODE = replace(PREFILL, phase="decode")

GQA = Attention(num_heads=6, num_kv_heads=2, head_dim=10)
SWIGLU = DenseMlp(intermediate=72, gated=True, activation="silu")
LLAMA = Model(
    name="small Llama",
    hidden=48,
    vocab=91,
    tied_head=False,
    max_context=64,
    groups=((Layer(attention=GQA, mlp=SWIGLU, norm="rmsnorm", num_norms=2), 3),),
)
MIXTRAL = replace(
    LLAMA,
    name="small Mixtral",
    groups=((Layer(attention=GQA, mlp=MoeMlp(num_experts=5, top_k=2, expert=SWIGLU), norm="rmsnorm", num_norms=2), 2),),
)
GPT2 = Model(
    name="small GPT-2",
    hidden=42,
    vocab=91,
    tied_head=True,
    max_context=64,
    learned_positions=64,
    groups=(
        (
            Layer(
                attention=Attention(num_heads=6, num_kv_heads=6, head_dim=7, qkv_bias=True, output_bias=True),
                mlp=DenseMlp(intermediate=4 * 42, gated=False, activation="gelu", bias=True),
                norm="layernorm",
                num_norms=2,
            ),
            2,
        ),
    ),
)
LATENT = LatentAttention(num_heads=6, q_rank=24, kv_rank=16, nope_head_dim=12, rope_head_dim=4, value_head_dim=10)
DEEPSEEK = Model(
    name="small DeepSeek",
    hidden=48,
    vocab=91,
    tied_head=False,
    max_context=64,
    groups=(
        (Layer(attention=LATENT, mlp=SWIGLU, norm="rmsnorm", num_norms=2), 1),
        (
            Layer(
                attention=LATENT,
                mlp=MoeMlp(
                    num_experts=8,
                    top_k=2,
                    expert=replace(SWIGLU, intermediate=20),
                    shared=replace(SWIGLU, intermediate=40),
                    correction_bias=True,
                ),
                norm="rmsnorm",
                num_norms=2,
            ),
            2,
        ),
    ),
)


def torch_model(model):
    """The same model, as transformers builds it."""
    layer = model.groups[-1][0]
    common = {"vocab_size": model.vocab, "max_position_embeddings": 64, "bos_token_id": 0, "eos_token_id": 0}
    if model is GPT2:
        return GPT2LMHeadModel(GPT2Config(n_embd=42, n_layer=2, n_head=6, n_positions=64, **common))
    common |= {
        "hidden_size": model.hidden,
        "intermediate_size": 72,
        "num_hidden_layers": model.num_layers,
        "num_attention_heads": 6,
    }
    if model is LLAMA:
        return LlamaForCausalLM(LlamaConfig(num_key_value_heads=2, head_dim=10, **common))
    if model is MIXTRAL:
        return MixtralForCausalLM(
            MixtralConfig(num_key_value_heads=2, head_dim=10, num_local_experts=5, num_experts_per_tok=2, **common)
        )
    routing = {
        "n_routed_experts": 8,
        "num_experts_per_tok": 2,
        "n_group": 2,
        "topk_group": 1,
        "n_shared_experts": 2,
        "first_k_dense_replace": 1,
    }
    ranks = {
        "kv_lora_rank": LATENT.kv_rank,
        "q_lora_rank": LATENT.q_rank,
        "qk_nope_head_dim": 12,
        "qk_rope_head_dim": 4,
        "v_head_dim": 10,
    }
    assert layer.mlp.expert.intermediate == 20
    return DeepseekV3ForCausalLM(
        DeepseekV3Config(num_key_value_heads=6, moe_intermediate_size=20, **routing, **ranks, **common)
    )


MODELS = [LLAMA, MIXTRAL, GPT2, DEEPSEEK]


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.name)
def test_prefill_flops_are_what_torch_counts(model):
    tokens = torch.randint(0, model.vocab, (PREFILL.batch, PREFILL.sequence))
    counted = counted_flops(torch_model(model), tokens, use_cache=False).total
    assert transformer.total(transformer.model_ops(model, PREFILL), unit=MATRIX).flops == counted
    unfused = replace(PREFILL, fused_attention=False)
    assert transformer.total(transformer.model_ops(model, unfused), unit=MATRIX).flops == counted


@pytest.mark.parametrize("model", [LLAMA, MIXTRAL, GPT2], ids=lambda model: model.name)
def test_decode_flops_are_what_torch_counts(model):
    network = torch_model(model).eval()
    tokens = torch.randint(0, model.vocab, (DECODE.batch, DECODE.sequence))
    with torch.no_grad():
        cache = network(tokens[:, :-1], use_cache=True).past_key_values
        counted = counted_flops(lambda: network(tokens[:, -1:], past_key_values=cache, use_cache=True)).total
    assert transformer.total(transformer.model_ops(model, DECODE), unit=MATRIX).flops == counted


SHARED_EXPERT = MoeMlp(
    num_experts=6,
    top_k=3,
    expert=replace(SWIGLU, intermediate=20),
    shared=replace(SWIGLU, intermediate=44),
    shared_gate=True,
)
ODD = replace(
    LLAMA,
    name="every exception",
    groups=(
        (Layer(attention=replace(GQA, window=5), mlp=SHARED_EXPERT, norm="rmsnorm", num_norms=4), 2),
        (Layer(attention=replace(GQA, owns_cache=False), mlp=SWIGLU, norm="rmsnorm", num_norms=1), 3),
        (Layer(attention=replace(LATENT, q_rank=None), mlp=SWIGLU, norm="layernorm", num_norms=2), 1),
    ),
)


@pytest.mark.parametrize("model", [*MODELS, ODD], ids=lambda model: model.name)
@pytest.mark.parametrize("causal", ["full", "half", "exact"])
def test_the_table_adds_up_to_the_formula_for_the_whole_model(model, causal):
    step = replace(PREFILL, causal=causal, logits="last")
    formula = forward_flops(model, batch=step.batch, sequence=step.sequence, causal=causal, logits="last")
    work = transformer.total(transformer.model_ops(model, step), unit=MATRIX)
    assert work.flops == formula.total
    assert f"causal={causal}" in work.conventions


@pytest.mark.parametrize("model", [LLAMA, GPT2], ids=lambda model: model.name)
@pytest.mark.parametrize("step", [PREFILL, DECODE], ids=["prefill", "decode"])
def test_a_step_reads_every_weight_once(model, step):
    # One more byte per weight: the difference is the number of weights read. Norms are kept at the activations'
    # width.
    heavy, light = (
        transformer.total(transformer.model_ops(model, replace(step, weight_bytes_per_element=size))).moved_bytes
        for size in (3, 2)
    )
    sizes = model_parameters(model)
    looked_up = step.tokens * model.hidden
    assert (
        heavy - light
        == sizes.total
        - sizes.norms
        - sizes.embedding
        - sizes.positions
        + looked_up
        + (model.vocab * model.hidden) * model.tied_head
    )


@pytest.mark.parametrize("key", attending(model_keys()))
def test_every_catalogued_model_reads_its_parameters_and_adds_up(key):
    model = catalogued(key)
    step = replace(PREFILL, sequence=5000, causal="half", routing="spread")
    ops = {size: transformer.model_ops(model, replace(step, weight_bytes_per_element=size)) for size in (3, 2)}
    sizes = model_parameters(model)
    # Attention sinks, one learned number per head, are the only parameters that the table leaves out.
    sinks = sum(
        layer.attention.num_heads
        for layer in model.layers()
        if isinstance(layer.attention, Attention) and layer.attention.sinks
    )
    weights = (
        sizes.total
        - sizes.norms
        - sizes.embedding
        - sizes.positions
        - sinks
        + (model.vocab * model.hidden) * model.tied_head
    )
    read = transformer.total(ops[3]).moved_bytes - transformer.total(ops[2]).moved_bytes
    assert read == weights + step.tokens * model.hidden
    formula = forward_flops(model, batch=step.batch, sequence=5000, causal="half", logits="all")
    assert transformer.total(ops[2], unit=MATRIX).flops == formula.total


def test_alibi_is_no_kernel_and_a_norm_behind_the_table_is_one():
    bloom = catalogued("bloom-176b")
    names = [op.name for op in transformer.model_ops(bloom, PREFILL)]
    assert names[:3] == ["embedding", "embedding_norm", "attention_norm"]
    assert not {"rotary", "position_embedding"} & set(names)
    assert not bloom.rotary
    assert LLAMA.rotary
    assert not GPT2.rotary


def test_experts_read_are_all_of_them_for_many_tokens_and_top_k_for_one():
    def weights(step):
        heavy, light = (
            transformer.total(transformer.model_ops(MIXTRAL, replace(step, weight_bytes_per_element=size))).moved_bytes
            - step.tokens * MIXTRAL.hidden * size
            for size in (3, 2)
        )
        return heavy - light

    sizes = model_parameters(MIXTRAL)
    matrices = sizes.total - sizes.norms - sizes.embedding
    experts = 2 * 5 * 3 * 48 * 72
    assert weights(replace(PREFILL, routing="spread")) == matrices
    assert weights(replace(DECODE, batch=1)) == pytest.approx(matrices - experts * 3 / 5)
    assert weights(replace(PREFILL, routing="same")) == matrices - experts * 3 / 5


@pytest.mark.parametrize(("num_experts", "top_k", "tokens"), [(4, 2, 3), (5, 1, 4), (3, 3, 2), (6, 2, 1)])
def test_experts_touched_by_enumerating_every_routing(num_experts, top_k, tokens):
    choices = list(itertools.combinations(range(num_experts), top_k))
    touched = [len(set().union(*routing)) for routing in itertools.product(choices, repeat=tokens)]
    arguments = {"num_experts": num_experts, "top_k": top_k, "tokens": tokens}
    assert experts_touched(**arguments, routing="uniform") == pytest.approx(sum(touched) / len(touched))
    assert experts_touched(**arguments, routing="spread") == max(touched)
    assert experts_touched(**arguments, routing="same") == min(touched)


def test_absorbed_latent_attention_as_torch_runs_it():
    rows, heads, context = 3, LATENT.num_heads, 14
    x, cache = torch.randn(rows, 1, 48), torch.randn(rows, context, LATENT.kv_rank + LATENT.rope_head_dim)
    down, query_up = torch.nn.Linear(48, 24 + 20, bias=False), torch.nn.Linear(24, heads * 16, bias=False)
    key_up, value_up = torch.randn(heads, 12, 16), torch.randn(heads, 16, 10)
    output = torch.nn.Linear(heads * 10, 48, bias=False)

    def absorbed():
        query = query_up(down(x)[..., :24]).view(rows, heads, 16)
        latent_query = torch.cat([torch.einsum("bhd,hdc->bhc", query[..., :12], key_up), query[..., 12:]], dim=-1)
        weights = torch.einsum("bhc,btc->bht", latent_query, cache).softmax(-1)
        mixed = torch.einsum("bht,btc->bhc", weights, cache[..., :16])
        return output(torch.einsum("bhc,hcd->bhd", mixed, value_up).reshape(rows, 1, heads * 10))

    step = replace(DECODE, latent="absorbed")
    ops = transformer.layer_ops(DEEPSEEK.groups[0][0], hidden=48, rotary=True, step=step)
    mlp = transformer.total([op for op in ops if op.name in ("gate_up_projection", "down_projection")])
    assert transformer.total(ops, unit=MATRIX).flops - mlp.flops == counted_flops(absorbed).total
    attention = next(op for op in ops if op.name == "attention")
    query_and_output = rows * heads * (20 + 16) * 4
    assert attention.work.moved_bytes == cache.nbytes + query_and_output


def test_absorbing_saves_work_in_decode_and_costs_work_in_prefill():
    def matrix_flops(step, latent):
        return transformer.total(transformer.model_ops(DEEPSEEK, replace(step, latent=latent)), unit=MATRIX).flops

    assert matrix_flops(DECODE, "absorbed") < matrix_flops(DECODE, "expanded")
    assert matrix_flops(PREFILL, "absorbed") > matrix_flops(PREFILL, "expanded")


def test_rows_of_a_dense_layer_by_name():
    ops = transformer.layer_ops(
        LLAMA.groups[0][0], hidden=48, rotary=True, step=replace(PREFILL, fused_attention=False)
    )
    names = (
        "attention_norm qkv_projection rotary attention_scores attention_softmax attention_values output_projection"
        " attention_residual"
    )
    assert [op.name for op in ops] == [
        *names.split(),
        "mlp_norm",
        "gate_up_projection",
        "gated_activation",
        "down_projection",
        "mlp_residual",
    ]
    by_name = {op.name: op for op in ops}
    tokens = 3 * 14
    assert by_name["qkv_projection"].work == kernels.gemm(m=tokens, n=60 + 40, k=48, bytes_per_element=4)
    assert by_name["mlp_residual"].work.moved_bytes == 3 * torch.empty(tokens, 48).nbytes
    assert by_name["gated_activation"].work.moved_bytes == 3 * torch.empty(tokens, 72).nbytes
    assert {op.name for op in ops if op.unit == VECTOR} == {
        *(
            "attention_norm",
            "rotary",
            "attention_softmax",
            "attention_residual",
            "mlp_norm",
            "gated_activation",
            "mlp_residual",
        ),
    }


def test_rows_of_a_layer_with_experts_by_name():
    ops = {op.name: op.work for op in transformer.layer_ops(ODD.groups[0][0], hidden=48, rotary=True, step=PREFILL)}
    tokens, routed = 3 * 14, 3 * 14 * 3
    # silu is 4 operations and the gate's product a fifth; three experts' outputs take 3 products and 2 sums; the
    # shared gate 1 product and 1 sum.
    assert ops["expert_activation"].flops == routed * 20 * 5
    assert ops["shared_gated_activation"].flops == tokens * 44 * 5
    assert ops["expert_combine"].flops == tokens * 48 * (3 + 2)
    assert ops["shared_add"].flops == tokens * 48 * 2
    assert ops["expert_gather"].moved_bytes == torch.empty(tokens, 48).nbytes + torch.empty(routed, 48).nbytes
    assert ops["expert_combine"].moved_bytes == torch.empty(routed, 48 + 1).nbytes + torch.empty(tokens, 48).nbytes
    assert "routing=uniform" in ops["expert_up"].conventions


def test_layers_that_share_a_cache_project_queries_only_and_four_norms_are_four_rows():
    layer = LLAMA.groups[0][0]
    shared = replace(layer, attention=replace(GQA, owns_cache=False, qk_norm=True), num_norms=4)
    ops = {op.name: op for op in transformer.layer_ops(shared, hidden=48, rotary=True, step=DECODE)}
    assert ops["qkv_projection"].work == kernels.gemm(m=3, n=60, k=48, bytes_per_element=4)
    assert ops["qk_norm"].work == kernels.rmsnorm(rows=3 * 6, width=10, bytes_per_element=4)
    assert sum(name.endswith("norm") for name in ops) == 4 + 1
    own = {
        op.name: op
        for op in transformer.layer_ops(
            replace(shared, attention=replace(GQA, qk_norm=True)), hidden=48, rotary=True, step=DECODE
        )
    }
    assert own["attention"].work == ops["attention"].work
    assert own["rotary"].work.flops == 3 * (60 + 20) * 3


def test_a_window_bounds_decode_attention():
    layer = LLAMA.groups[0][0]
    windowed = replace(layer, attention=replace(GQA, window=5))

    def attention_bytes(layer, sequence):
        ops = transformer.layer_ops(layer, hidden=48, rotary=True, step=replace(DECODE, sequence=sequence))
        return next(op.work.moved_bytes for op in ops if op.name == "attention")

    assert attention_bytes(windowed, 1000) == attention_bytes(windowed, 5) == attention_bytes(layer, 5)
    assert attention_bytes(layer, 1000) > 50 * attention_bytes(layer, 5)


def test_table_totals_and_times():
    ops = transformer.model_ops(LLAMA, DECODE)
    assert (
        transformer.total(ops, unit=MATRIX).flops + transformer.total(ops, unit=VECTOR).flops
        == transformer.total(ops).flops
    )
    assert sum(op.count for op in ops) == 3 * 11 + 3
    peaks = {"matrix_flops_per_s": 1e9, "vector_flops_per_s": 1e7, "memory_bytes_per_s": 1e8}
    once = transformer.model_time(ops, **peaks, launch_overhead_s=1e-6)
    assert once.overhead_s == pytest.approx(36e-6)
    assert len(once.parts) == 36
    doubled = transformer.model_time(ops, **{name: 2 * rate for name, rate in peaks.items()}, launch_overhead_s=0.5e-6)
    assert doubled.lower_bound_s == pytest.approx(once.lower_bound_s / 2)
    assert transformer.model_time(ops, **peaks, launch_overhead_s=10).bound == "overhead"
    # Two units: a slower vector unit lengthens the vector rows alone.
    slow = transformer.model_time(ops, **(peaks | {"vector_flops_per_s": 1e6}))
    assert slow.lower_bound_s > transformer.model_time(ops, **peaks).lower_bound_s


def test_refusals():
    layer = DEEPSEEK.groups[1][0]
    with pytest.raises(ValueError, match="latent=None must be one of expanded, absorbed"):
        transformer.layer_ops(layer, hidden=48, rotary=True, step=replace(PREFILL, latent=None))
    with pytest.raises(ValueError, match="routing=None must be one of uniform, spread, same"):
        transformer.layer_ops(layer, hidden=48, rotary=True, step=replace(PREFILL, routing=None))
    dense = LLAMA.groups[0][0]
    assert transformer.layer_ops(dense, hidden=48, rotary=True, step=replace(PREFILL, latent=None, routing=None))
    with pytest.raises(ValueError, match="num_norms=5 must be at most 4"):
        transformer.layer_ops(replace(dense, num_norms=5), hidden=48, rotary=True, step=PREFILL)
    with pytest.raises(ValueError, match="phase='pre-fill' is not known; did you mean 'prefill'"):
        replace(PREFILL, phase="pre-fill")
    with pytest.raises(ValueError, match="logits='none' is not known"):
        replace(PREFILL, logits="none")
    with pytest.raises(ValueError, match="unit='tensor' has no rows"):
        transformer.total(transformer.model_ops(LLAMA, DECODE), unit="tensor")
