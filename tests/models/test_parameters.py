"""Parameter counts, against the real model classes of transformers on the meta device (no memory is allocated)."""

import functools
import re

import pytest
import torch
from tests.models.small_configs import OWN_CODE
from transformers import AutoConfig, AutoModelForCausalLM
from transformers.models.mistral4 import Mistral4ForCausalLM

from threeloops.models import catalogue
from threeloops.models.architecture import Attention, DenseMlp, LatentAttention, Layer, Model, MoeMlp
from threeloops.models.hf_config import SAME_CLASS
from threeloops.models.parameters import (
    attention_parameters,
    layer_parameters,
    mlp_parameters,
    model_parameters,
    norm_parameters,
    weights_bytes,
)

# What these have beside attention, MLPs, norms and tables: mixed streams, an attention over earlier residuals, further
# norms and scales around experts.
BESIDE = ("deepseek-v4-flash", "deepseek-v4-pro", "kimi-k3", "gemma-4-26b-a4b")
ALL_KEYS = catalogue.model_keys()
KEYS = [key for key in ALL_KEYS if key not in OWN_CODE]
MOE_KEYS = [key for key in ALL_KEYS if any(isinstance(layer.mlp, MoeMlp) for layer, _ in catalogue.model(key).groups)]


@functools.cache
def built(key: str) -> torch.nn.Module:
    """The whole model, all layers: the slowest takes 0.3 s, because meta tensors have a shape and no data."""
    config = dict(catalogue.model_entry(key).config)
    model_type = config.pop("model_type")
    with torch.device("meta"):
        if model_type == "mistral4":  # registered under no other name
            return Mistral4ForCausalLM(AutoConfig.for_model(model_type, **config))
        return AutoModelForCausalLM.from_config(AutoConfig.for_model(SAME_CLASS.get(model_type, model_type), **config))


def measured(key: str, pattern: str) -> int:
    """Parameters whose name matches; a tied matrix is one parameter and is listed once."""
    return sum(p.numel() for name, p in built(key).named_parameters() if re.search(pattern, name))


@pytest.mark.parametrize("key", KEYS)
def test_total_equals_the_real_model(key):
    assert model_parameters(catalogue.model(key)).total == measured(key, "")


@pytest.mark.parametrize("key", ["llama-3-8b", "mixtral-8x7b"])
def test_one_layer_equals_one_layer_of_the_real_model(key):
    shape = catalogue.model(key)
    ((layer, _),) = shape.groups
    counts = layer_parameters(layer, hidden=shape.hidden)
    assert counts.total == measured(key, r"layers\.3\.")
    assert attention_parameters(layer.attention, hidden=shape.hidden) == measured(key, r"layers\.3\.self_attn")
    expert, experts = (layer.mlp.expert, layer.mlp.num_experts) if isinstance(layer.mlp, MoeMlp) else (layer.mlp, 1)
    held = measured(key, r"layers\.3\..*(experts|mlp\.(gate|up|down)_proj)")
    assert experts * mlp_parameters(expert, hidden=shape.hidden) == held


# Nemotron-H calls every kind of layer a mixer.
NEMOTRON_MIXERS = r"mixer\.([qkvo]_proj|in_proj|out_proj|conv1d|dt_bias|A_log|D$)"
NEMOTRON_MLPS = r"mixer\.(experts|gate|shared_experts|up_proj|down_proj)"


def items(counts) -> int:
    """Everything but what stands beside attention, MLPs and tables."""
    return counts.embedding + counts.positions + counts.head + counts.attention + counts.mlp + counts.norms


@pytest.mark.parametrize("key", KEYS)
def test_items_equal_the_real_model(key):
    counts = model_parameters(catalogue.model(key))
    norm = r"(?<!layer)norm|layernorm(?!_[12]\.)|\.ln_|_hc\."
    assert counts.embedding == measured(key, r"wte|embed_tokens|word_embeddings(?!_layernorm)|model\.embeddings")
    assert counts.positions == measured(key, r"wpe|embed_positions")
    assert counts.head == measured(key, r"lm_head")
    assert counts.norms == measured(key, norm.removesuffix(r"|_hc\."))
    # what mixes DeepSeek-V4's streams; what Gemma 4 has around its experts
    assert counts.total - items(counts) == measured(key, r"_hc\.|hc_head|layernorm_[12]\.|router\.\w*scale")
    assert counts.attention == measured(key, rf"^(?!.*({norm})).*(attn|attention|{NEMOTRON_MIXERS})")
    assert counts.mlp == measured(key, rf"mlp|fc1|fc2|feed_forward|router\.proj|\.experts\.|{NEMOTRON_MLPS}")
    assert counts.routed_experts == measured(key, r"\.experts\.")


# One for each expert: DeepSeek-V3 has 256 in 58 layers.
ROUTING_BIASES = {
    "deepseek-v3": 58 * 256,
    "deepseek-r1": 58 * 256,
    "deepseek-v3.1": 58 * 256,
    "deepseek-v3.2": 58 * 256,
    "glm-4.6": 89 * 160,
    "glm-4.7": 89 * 160,
    "deepseek-v4-flash": 40 * 256,  # the first three layers choose by a table
    "deepseek-v4-pro": 58 * 384,
    "glm-4.5": 89 * 160,
    "glm-4.5-air": 45 * 128,
    "glm-5": 75 * 256,
    "glm-5.1": 75 * 256,
    "glm-5.2": 75 * 256,
    "kimi-k2": 60 * 384,
    "kimi-k2.5": 60 * 384,
    "kimi-k2.6": 60 * 384,
    "mimo-v2-flash": 47 * 256,
    "minimax-m2.5": 62 * 256,
    "minimax-m2.7": 62 * 256,
    "nemotron-3-nano-30b-a3b": 23 * 128,
    "nemotron-3-super-120b-a12b": 40 * 512,
    "nemotron-3-ultra-550b-a55b": 48 * 512,
}


@pytest.mark.parametrize("key", KEYS)
def test_buffers_are_not_parameters(key):
    # Everything else that transformers keeps as a buffer (rotary tables, Gemma's embedding scale) is computed, not
    # stored in the checkpoint.
    stored = set(built(key).state_dict()) - {name for name, _ in built(key).named_parameters(remove_duplicate=False)}
    # DeepSeek-V4's tables from words to experts are whole numbers, 2.4 million of them, and no weights; Gemma 4's
    # factor of a layer is one number, and is not counted.
    kept = {name for name in stored if not name.endswith(("tid2eid", "layer_scalar"))}
    sizes = [buffer.numel() for name, buffer in built(key).named_buffers() if name in kept]
    counts = model_parameters(catalogue.model(key))
    assert counts.buffers == sum(sizes)
    assert counts.buffers == ROUTING_BIASES.get(key, 0)


@pytest.mark.parametrize("key", [key for key in MOE_KEYS if key not in OWN_CODE])
def test_active_leaves_out_the_experts_not_visited(key):
    # Experts are the first dimension of the stacked weights: a token visits top_k of them.
    config, idle = built(key).config.get_text_config(), 0
    top_k = getattr(config, "num_experts_per_tok", None) or config.top_k_experts  # as Gemma 4 calls it
    for name, parameter in built(key).named_parameters():
        if ".experts." in name:
            idle += parameter.numel() // parameter.shape[0] * (parameter.shape[0] - top_k)
    counts = model_parameters(catalogue.model(key))
    assert counts.active == counts.total - idle
    assert idle > 0


PUBLISHED = [(key, convention) for key in ALL_KEYS for convention in catalogue.model_entry(key).published]


@pytest.mark.parametrize(("key", "convention"), PUBLISHED)
def test_published_counts(key, convention):
    """Within one unit of the last printed digit: 8.03B allows 8.02 to 8.04, a count printed to the unit allows
    one.
    """
    fact = catalogue.model_entry(key).published[convention]
    digits = re.search(r"\d[\d,]*(\.\d+)?", fact.printed)[0].replace(",", "")
    decimals = len(digits.partition(".")[2])
    unit_in_last_place = fact.value / float(digits) * 10**-decimals
    assert abs(getattr(model_parameters(catalogue.model(key)), convention) - fact.value) <= unit_in_last_place


def test_gpt_2_published_architecture():
    # 12 layers of 12 * 768^2 + 13 * 768 = 7,087,872; tables 50257 * 768 and 1024 * 768; last norm 2 * 768 (Radford et
    # al., 2019, for the sizes).
    counts = model_parameters(catalogue.model("gpt2"))
    ((layer, num_layers),) = counts.layers
    assert (layer.total, num_layers) == (7_087_872, 12)
    assert (counts.embedding, counts.positions, counts.head) == (38_597_376, 786_432, 0)


def test_deepseek_v3_layers():
    # arXiv:2412.19437: 256 routed experts and one shared, each three matrices of 7168 x 2048 = 44,040,192, in 58 of
    # 61 layers; 8 run.
    counts = model_parameters(catalogue.model("deepseek-v3"))
    (dense, num_dense), (sparse, num_sparse) = counts.layers
    assert (num_dense, num_sparse) == (3, 58)
    assert sparse.routed_experts == 256 * 44_040_192
    assert sparse.active_routed_experts == 8 * 44_040_192
    assert sparse.shared_experts == 44_040_192
    assert sparse.router == 256 * 7168
    assert dense.routed_experts == dense.router == 0


@pytest.mark.parametrize("key", ALL_KEYS)
def test_identities(key):
    model = catalogue.model(key)
    counts = model_parameters(model)
    beside = counts.outside + sum(layer.beside * number for layer, number in counts.layers)
    assert counts.total == items(counts) + beside
    assert bool(beside) == (key in BESIDE)
    assert counts.total - counts.active == counts.non_embedding - counts.active_non_embedding
    assert counts.active_with_head == counts.active - counts.positions - (0 if model.tied_head else counts.embedding)
    assert (counts.active == counts.total) == (key not in MOE_KEYS)


def test_a_tied_table_is_counted_once_but_computes_as_head():
    tied, untied = (model_parameters(tiny(tied_head=tied_head)) for tied_head in (True, False))
    assert untied.total - tied.total == 31 * 20
    assert untied.active_with_head == tied.active_with_head
    assert untied.non_embedding == tied.non_embedding


def tiny(**options) -> Model:
    dense = DenseMlp(intermediate=70, gated=True, activation="silu")
    layer = Layer(attention=Attention(num_heads=6, num_kv_heads=3, head_dim=5), mlp=dense, norm="rmsnorm", num_norms=2)
    sizes = {"name": "tiny", "hidden": 20, "vocab": 31, "groups": ((layer, 4),), "tied_head": True, "max_context": 9}
    return Model(**(sizes | options))


def test_all_experts_visited_is_all_active():
    expert = DenseMlp(intermediate=11, gated=True, activation="silu")
    attention = Attention(num_heads=2, num_kv_heads=1, head_dim=5)
    for top_k in (1, 3, 7):
        counts = layer_parameters(
            Layer(
                attention=attention, mlp=MoeMlp(num_experts=7, top_k=top_k, expert=expert), norm="rmsnorm", num_norms=2
            ),
            hidden=20,
        )
        assert counts.total - counts.active == (7 - top_k) * 3 * 20 * 11


def test_one_more_layer_costs_one_layer():
    ((layer, num_layers),) = tiny().groups
    longer = model_parameters(tiny(groups=((layer, num_layers + 1),)))
    assert longer.total - model_parameters(tiny()).total == layer_parameters(layer, hidden=20).total


def test_latent_attention_without_query_compression():
    # DeepSeek-V2-Lite projects queries directly; as q_rank grows to the hidden size the detour only adds one square
    # matrix and its norm.
    shape = {"num_heads": 4, "kv_rank": 16, "nope_head_dim": 8, "rope_head_dim": 4, "value_head_dim": 6}
    direct = attention_parameters(LatentAttention(q_rank=None, **shape), hidden=20)
    detour = attention_parameters(LatentAttention(q_rank=20, **shape), hidden=20)
    assert detour - direct == 20 * 20


def test_a_shared_gate_is_one_value_per_channel():
    expert = DenseMlp(intermediate=11, gated=True, activation="silu")
    plain = MoeMlp(num_experts=7, top_k=2, expert=expert, shared=expert)
    gated = MoeMlp(num_experts=7, top_k=2, expert=expert, shared=expert, shared_gate=True)
    attention = Attention(num_heads=2, num_kv_heads=1, head_dim=5)
    counts = [
        layer_parameters(Layer(attention=attention, mlp=mlp, norm="rmsnorm", num_norms=2), hidden=20)
        for mlp in (plain, gated)
    ]
    assert counts[1].shared_experts - counts[0].shared_experts == 20
    assert counts[1].active - counts[0].active == 20


@pytest.mark.parametrize(
    ("key", "printed"),
    [
        # model.safetensors.index.json, metadata.total_size, as transformers' own documentation prints it
        ("llama-3-8b", 16_060_522_496),
        ("mistral-7b", 14_483_464_192),  # the same field of Mistral-7B-Instruct-v0.2, a model of the same shape
    ],
)
def test_weight_bytes_are_what_a_checkpoint_says_of_itself(key, printed):
    assert weights_bytes(num_parameters=model_parameters(catalogue.model(key)).total, dtype="bf16") == printed


@pytest.mark.parametrize(
    ("dtype", "real"),
    [("fp32", torch.float32), ("bf16", torch.bfloat16), ("fp16", torch.float16), ("fp8", torch.float8_e4m3fn)],
)
def test_weight_bytes_are_what_torch_holds(dtype, real):
    layers = torch.nn.Sequential(torch.nn.Linear(7, 5, device="meta"), torch.nn.LayerNorm(5, device="meta")).to(real)
    held = sum(weight.nbytes for weight in layers.parameters())
    assert weights_bytes(num_parameters=sum(weight.numel() for weight in layers.parameters()), dtype=dtype) == held


@pytest.mark.parametrize(("dtype", "element_bits", "block"), [("mxfp4", 4, 32), ("nvfp4", 4, 16), ("mxfp8", 8, 32)])
def test_weight_bytes_count_the_scale_of_every_block(dtype, element_bits, block):
    """Block by block: the elements' bits, and eight for the scale."""
    bits = sum(block * element_bits + 8 for _ in range(0, 4096, block))
    assert weights_bytes(num_parameters=4096, dtype=dtype) == bits / 8


def test_weight_bytes_refuse():
    assert weights_bytes(num_parameters=1, dtype="int8") == 1
    with pytest.raises(ValueError, match="num_parameters=0 must be greater than 0"):
        weights_bytes(num_parameters=0, dtype="int8")
    with pytest.raises(ValueError, match="dtype='int9' is not known; did you mean 'int8'"):
        weights_bytes(num_parameters=1, dtype="int9")


def test_refusals():
    with pytest.raises(ValueError, match=r"^hidden=0 must be a whole number of at least 1"):
        mlp_parameters(DenseMlp(intermediate=1, gated=False, activation="relu"), hidden=0)
    with pytest.raises(ValueError, match=r"^hidden=2.5 must be a whole number"):
        attention_parameters(Attention(num_heads=1, num_kv_heads=1, head_dim=1), hidden=2.5)
    ((layer, _),) = tiny().groups
    with pytest.raises(ValueError, match=r"^hidden=-1 must be a whole number"):
        norm_parameters(layer, hidden=-1)
    assert mlp_parameters(DenseMlp(intermediate=1, gated=False, activation="relu"), hidden=1) == 2
