"""Hybrids and models of Mamba's states alone: Bamba, Zamba 2, Mamba 1 and 2, Falcon Mamba, RecurrentGemma.

Source: modeling_*.py and configuration_*.py of Hugging Face transformers 5.23.0 (bamba, zamba2, mamba, mamba2,
        falcon_mamba, recurrent_gemma), https://github.com/huggingface/transformers
"""

from collections.abc import Callable
from dataclasses import replace

from threeloops import checks
from threeloops.models.architecture import Attention, DenseMlp, Layer, Model
from threeloops.models.hf_fields import Fields
from threeloops.models.hf_hybrid_families import mamba2_state
from threeloops.models.hf_layers import configured_attention, gated_mlp, grouped, num_layers, rotary_model
from threeloops.models.layers.beside import Beside
from threeloops.models.layers.states import GatedRecurrence, SelectiveScan
from threeloops.models.recurrent_layers import StateSpace


def _bamba(fields: Fields, name: str) -> Model:
    """Bamba: Mamba 2 in most layers, attention in those that the file lists, a dense block in each."""
    fields.seen |= {"z_loss_coefficient", "layer_types", "layers_block_type"}
    listed, depth = fields.layers_or_none("attn_layer_indices") or [], num_layers(fields)
    if outside := [layer for layer in listed if layer >= depth]:
        raise ValueError(f"attn_layer_indices has {outside[0]}, but num_hidden_layers={depth}")
    bias, inner = fields.flag("attention_bias"), fields.count("mamba_expand") * fields.count("hidden_size")
    decided = "mamba_expand * hidden_size"
    state = mamba2_state(fields, inner=inner, decided_by=decided, bias=fields.flag("mamba_proj_bias"))
    full = configured_attention(fields, window=None, qkv_bias=bias, output_bias=bias)
    mixers = [full if layer in listed else state for layer in range(depth)]
    return rotary_model(fields, name, mixers, [gated_mlp(fields, bias=fields.flag("mlp_bias"))])


def _mamba(fields: Fields, name: str, *, trained_on: int) -> Model:
    """Mamba 1 in every layer, on one norm, and nothing else.

    Assumes: trained on `trained_on` tokens, where the file says nothing: positions have no part in it
    Source:  Gu, Dao, Mamba, 2023, arXiv:2312.00752, appendix E.2 (2,048); Zuo et al., Falcon Mamba, 2024,
             arXiv:2410.05355, section 3 (8,192)
    """
    fields.seen |= {
        "use_mambapy", "use_falcon_mambapy", "use_associative_scan", "time_step_scale", "time_step_init_scheme",
        "mixer_rms_eps", "n_layer", "d_model", "d_inner", "d_state", "ssm_cfg", "fused_add_norm", "rms_norm",
        "pad_vocab_size_multiple", "layer_types", "hidden_act",
    }  # fmt: skip
    hidden, rank = fields.count("hidden_size"), fields.config.get("time_step_rank", "auto")
    inner = fields.count("expand") * hidden
    fields.must_equal("intermediate_size", inner, "it is expand * hidden_size")
    if rank != "auto":
        checks.count(time_step_rank=rank)
    scan = SelectiveScan(
        inner=inner,
        state_dim=fields.count("state_size"),
        step_rank=-(-hidden // 16) if rank == "auto" else rank,
        conv_entries=fields.count("conv_kernel"),
        conv_bias=fields.flag("use_conv_bias"),
        bias=fields.flag("use_bias"),
        normed=False,
    )
    layer = Layer(attention=scan, mlp=None, norm="rmsnorm", num_norms=1)
    stated = "max_position_embeddings" in fields.config
    return Model(
        name=name,
        hidden=hidden,
        vocab=fields.count("vocab_size"),
        groups=((layer, num_layers(fields)),),
        tied_head=fields.flag("tie_word_embeddings"),
        max_context=fields.count("max_position_embeddings") if stated else trained_on,
    )


def _mamba2(fields: Fields, name: str) -> Model:
    """Mamba 2 in every layer, on one norm, and nothing else.

    Assumes: trained on 2,048 tokens, where the file says nothing: positions have no part in it
    Source:  Dao, Gu, Transformers are SSMs, 2024, arXiv:2405.21060, appendix D.4
    """
    fields.seen |= {"layer_types", "hidden_act", "rms_norm", "norm_before_gate", "conv_bias", "intermediate_size"}
    width, hidden = fields.count("head_dim"), fields.count("hidden_size")
    expanded = fields.count("expand") * hidden
    if "num_heads" not in fields.config and expanded % width == 0:  # as flash-linear-attention writes it
        fields.config = {**fields.config, "num_heads": expanded // width}
    heads = fields.count("num_heads")
    if heads * width != expanded:
        raise ValueError(f"num_heads * head_dim = {heads * width:,} must be expand * hidden_size = {expanded:,}")
    state = StateSpace(
        num_heads=heads,
        head_dim=width,
        state_dim=fields.count("state_size"),
        groups=fields.count("n_groups"),
        conv_entries=fields.count("conv_kernel"),
        conv_bias=fields.flag("use_conv_bias"),
        bias=fields.flag("use_bias"),
        chunk=fields.count("chunk_size"),
    )
    stated = "max_position_embeddings" in fields.config
    return Model(
        name=name,
        hidden=hidden,
        vocab=fields.count("vocab_size"),
        groups=((Layer(attention=state, mlp=None, norm="rmsnorm", num_norms=1), num_layers(fields)),),
        tied_head=fields.flag("tie_word_embeddings"),
        max_context=fields.count("max_position_embeddings") if stated else 2048,
    )


_GRIFFIN = {"recurrent": False, "attention": True}


def _recurrent_gemma(fields: Fields, name: str) -> Model:
    """RecurrentGemma: a gated linear recurrence in two layers of three, attention inside a window in the third.

    Assumes: trained on 8,192 tokens, where the file says nothing
    Source:  Botev et al., RecurrentGemma, 2024, arXiv:2404.07839, section 2 (8,192)
    """
    fields.seen |= {
        "embeddings_scale_by_sqrt_dim", "logits_soft_cap", "w_init_variance_scale", "final_w_init_variance_scale",
        "layer_types", "layers_block_type", "_block_types", "hidden_act",
    }  # fmt: skip
    hidden, heads, depth = fields.count("hidden_size"), fields.count("num_attention_heads"), num_layers(fields)
    kinds, bias = fields.list_or_none("block_types") or [], fields.flag("attention_bias")
    for kind in kinds or [None]:
        checks.one_of(_GRIFFIN, block_types=kind)
    width = fields.count_or_none("lru_width") or hidden
    stated, window = fields.count("intermediate_size"), fields.count("attention_window_size")
    attention = configured_attention(fields, window=window, qkv_bias=bias, output_bias=True)
    state = GatedRecurrence(channels=width, heads=heads, conv_entries=fields.count("conv1d_width") - 1)
    mlp = replace(gated_mlp(fields, act="hidden_activation", bias=True), intermediate=stated // 2)
    layers = [
        Layer(
            attention=attention if _GRIFFIN[kinds[layer % len(kinds)]] else state,
            mlp=mlp,
            norm="rmsnorm",
            num_norms=2,
        )
        for layer in range(depth)
    ]
    longest = "max_position_embeddings" in fields.config
    return Model(
        name=name,
        hidden=hidden,
        vocab=fields.count("vocab_size"),
        groups=grouped(layers),
        tied_head=fields.flag("tie_word_embeddings"),
        max_context=fields.count("max_position_embeddings") if longest else 8192,
    )


# What Zamba 2's files say of kernels, positions and sizes that follow from others.
_ZAMBA_SAYS = {
    "use_mem_eff_path", "use_mem_rope", "use_long_context", "attention_head_dim", "mamba_headdim", "head_dim",
    "attention_hidden_size", "kv_channels", "num_query_groups", "hybrid_layer_ids", "use_conv_bias", "ft_rank",
    "ffn_hidden_size", "add_bias_linear", "layer_types", "layers_block_type", "use_shared_block_lora", "lora_rank",
    "use_shared_mlp_adapter", "use_shared_attention_lora", "gated_linear_unit", "n_layer", "mamba_d_head",
}  # fmt: skip
_ZAMBA_KINDS = {"mamba": False, "linear_attention": False, "hybrid": True}
_ZAMBA_PATTERN = [0, *([0] * 5 + [1]) * 7, *[0] * 4, 1, *[0] * 3, 1, 0, 0]  # the class's own, where a file says nothing


def _zamba2(fields: Fields, name: str) -> Model:
    """Zamba 2: Mamba 2 in every layer; in some it follows a block of attention and MLP whose weights a few such
    layers share, each with adapters and a cache of its own.
    """
    fields.seen |= _ZAMBA_SAYS
    hidden, depth, bias = fields.count("hidden_size"), num_layers(fields), fields.flag("add_bias_linear")
    hybrid, mlp = _zamba_hybrid(fields, depth), _zamba_mlp(fields, hidden=hidden, bias=bias)
    attention, rank = _zamba_attention(fields, hidden), fields.count("adapter_rank")
    adapted = 3 * 2 * rank * 2 * hidden if fields.flag("use_shared_attention_adapter") else 0
    own = Beside(
        name="adapters of a block that layers share",
        matrices=hidden**2 + adapted + rank * (hidden + 2 * mlp.intermediate),
    )
    state = _zamba_state(fields, hidden=hidden, bias=bias)
    plain = Layer(attention=state, mlp=None, norm="rmsnorm", num_norms=1)
    both = Layer(attention=attention, mlp=None, norm="rmsnorm", num_norms=1, state=state, beside=own)
    copies = min(fields.count("num_mem_blocks"), sum(hybrid))
    projections = 2 * hidden * (attention.query_dim + 2 * attention.kv_dim) + attention.query_dim * hidden
    block = projections + mlp.num_matrices * hidden * mlp.intermediate
    shared = Beside(
        name="blocks of attention and MLP that layers share",
        matrices=copies * block,
        others=copies * (3 * hidden + bias * (2 * mlp.intermediate + hidden)),
    )
    return Model(
        name=name,
        hidden=hidden,
        vocab=fields.count("vocab_size"),
        groups=grouped([both if here else plain for here in hybrid]),
        tied_head=fields.flag("tie_word_embeddings"),
        max_context=16384 if fields.flag("use_long_context") else fields.count("max_position_embeddings"),
        beside=shared,
    )


def _zamba_hybrid(fields: Fields, depth: int) -> list[bool]:
    listed = fields.list_or_none("layers_block_type")
    if listed is None and "layer_types" in fields.config:
        listed = fields.list_or_none("layer_types")
    if listed is None:
        listed = ["hybrid" if here else "mamba" for here in _ZAMBA_PATTERN]
    if len(listed) != depth:
        raise ValueError(f"layers_block_type lists {len(listed)} layers, but num_hidden_layers={depth}")
    for kind in listed:
        checks.one_of(_ZAMBA_KINDS, layers_block_type=kind)
    return [_ZAMBA_KINDS[kind] for kind in listed]


def _zamba_attention(fields: Fields, hidden: int) -> Attention:
    """Reads the layer's input beside the model's, so that its heads split twice the width."""
    heads = fields.count("num_attention_heads")
    checks.divides(part="num_attention_heads", part_value=heads, whole="2 * hidden_size", whole_value=2 * hidden)
    kv_heads = fields.count_or_none("num_key_value_heads") or heads
    return Attention(num_heads=heads, num_kv_heads=kv_heads, head_dim=2 * hidden // heads, shared_weights=True)


def _zamba_mlp(fields: Fields, *, hidden: int, bias: bool) -> DenseMlp:
    if fields.get("intermediate_size") is None:
        fields.config = {**fields.config, "intermediate_size": 4 * hidden}
    return gated_mlp(fields, bias=bias)


def _zamba_state(fields: Fields, *, hidden: int, bias: bool) -> StateSpace:
    inner, heads = fields.count("mamba_expand") * hidden, fields.count("n_mamba_heads")
    checks.divides(part="n_mamba_heads", part_value=heads, whole="mamba_expand * hidden_size", whole_value=inner)
    return StateSpace(
        num_heads=heads,
        head_dim=inner // heads,
        state_dim=fields.count("mamba_d_state"),
        groups=fields.count("mamba_ngroups"),
        conv_entries=fields.count("mamba_d_conv"),
        conv_bias=True,  # whatever use_conv_bias says: the class does not read it
        bias=bias,
        chunk=fields.count("chunk_size"),
    )


SCANS: dict[str, Callable[[Fields, str], Model]] = {
    "bamba": _bamba,
    "mamba2": _mamba2,
    "mamba": lambda fields, name: _mamba(fields, name, trained_on=2048),
    "falcon_mamba": lambda fields, name: _mamba(fields, name, trained_on=8192),
    "recurrent_gemma": _recurrent_gemma,
    "zamba2": _zamba2,
}
