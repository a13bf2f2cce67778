"""Decoders of 2021 to 2024 whose layers are a later family's under other names: InternLM 1, CodeShell, TeleChat's 52B,
ChatGLM 1, GPT-Neo, Falcon as it first came; and MiniMax 1, whose layers are lightning attention but for every eighth.

Source: modeling_*.py and configuration_*.py, as the makers publish them with their checkpoints (Shanghai AI Laboratory,
        internlm-chat-7b; WisdomShell, codeshell; Tele-AI, TeleChat-52B; Zhipu, chatglm-6b; Technology Innovation
        Institute, falcon-40b; MiniMax, MiniMax-M1); transformers 5.23, models/gpt_neo and models/minimax,
        https://github.com/huggingface/transformers
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from threeloops import checks
from threeloops.models.architecture import Attention, Layer, Model, MoeMlp
from threeloops.models.hf_fields import Fields
from threeloops.models.hf_layers import (
    configured_attention,
    falcon_sizes,
    gated_mlp,
    grouped,
    learned_position_model,
    num_layers,
    plain_mlp,
    rotary_model,
)
from threeloops.models.layers.beside import Beside
from threeloops.models.layers.lightning import Lightning


def _moved(fields: Fields, names: Mapping[str, str], defaults: Mapping[str, Any]) -> None:
    """Fields under the later family's names, and what the class takes for those that the file leaves out."""
    stated = {names.get(name, name): value for name, value in fields.config.items()}
    fields.config = {**defaults, **stated}


_GPT = {
    "n_embd": "hidden_size", "n_layer": "num_hidden_layers", "n_head": "num_attention_heads",
    "n_inner": "intermediate_size", "n_positions": "max_position_embeddings", "activation_function": "hidden_act",
}  # fmt: skip


def _internlm(fields: Fields, name: str) -> Model:
    """InternLM 1: Llama whose attention has biases unless the file says that it has none."""
    _moved(
        fields,
        {},
        {
            "hidden_act": "silu",
            "tie_word_embeddings": False,
            "bias": True,
            "num_key_value_heads": None,
            "max_position_embeddings": 2048,
        },
    )
    fields.seen |= {"rotary"}
    bias = fields.flag("bias")
    attention = configured_attention(fields, window=None, qkv_bias=bias, output_bias=bias)
    return rotary_model(fields, name, [attention], [gated_mlp(fields)])


_CODESHELL_SAYS = {
    "attention_softmax_in_fp32", "scale_attention_softmax_in_fp32", "group_query_attention", "position_embedding_type",
    "inference_runner", "pad_key_length", "pre_allocate_kv_cache", "validate_runner_input", "max_batch_size",
}  # fmt: skip


def _codeshell(fields: Fields, name: str) -> Model:
    """CodeShell: StarCoder 2's layers under GPT-2's names; the head is the table."""
    heads = fields.config.get("num_query_groups") if fields.config.get("group_query_attention") else None
    if fields.config.get("n_inner") is None:
        raise ValueError("'n_inner' is missing; a codeshell config says there how wide its MLP is")
    _moved(fields, {**_GPT, "num_query_groups": "num_key_value_heads"}, {"tie_word_embeddings": True})
    fields.config = {**fields.config, "num_key_value_heads": heads}
    fields.seen |= _CODESHELL_SAYS
    fields.must_equal("position_embedding_type", "rope", "learned positions of this class are not described")
    attention = configured_attention(fields, window=None, qkv_bias=True, output_bias=True)
    return rotary_model(fields, name, [attention], [plain_mlp(fields, bias=True)], norm="layernorm")


_TELECHAT_SAYS = {
    "enable_flash_attn", "input_mult", "output_mult", "mup_base_width", "mup_scale_factor", "use_mup",
    "relative_encoding", "rotary_theta", "rotary_use_xpos", "rotary_xpos_scale_base", "use_RMSNorm",
}  # fmt: skip


def _telechat(fields: Fields, name: str) -> Model:
    """TeleChat 52B: Llama under GPT-2's names."""
    if "n_embd" not in fields.config or "n_inner" not in fields.config:
        raise ValueError("'n_inner' is missing: TeleChat 52B's fields are read here, others' layers are not described")
    fields.must_equal("add_bias_linear", False, "TeleChat 52B has no biases")
    fields.must_equal("relative_encoding", "rotary", "learned positions of this class are not described")
    fields.must_equal("use_RMSNorm", True, "TeleChat 52B has this norm")
    _moved(fields, _GPT, {"tie_word_embeddings": False, "num_key_value_heads": None})
    fields.seen |= _TELECHAT_SAYS
    return rotary_model(fields, name, [configured_attention(fields, window=None)], [gated_mlp(fields)])


def _gpt_neo(fields: Fields, name: str) -> Model:
    """GPT-Neo: GPT-2 without biases of queries, keys and values, and with a window in every second layer."""
    usual: dict[str, Any] = {
        "hidden_size": 2048,
        "num_layers": 24,
        "num_heads": 16,
        "intermediate_size": None,
        "vocab_size": 50257,
    }
    usual |= {"max_position_embeddings": 2048, "window_size": 256, "tie_word_embeddings": True}
    _moved(fields, {}, usual | {"activation_function": "gelu_new", "attention_types": [[["global", "local"], 12]]})
    fields.seen |= {"attention_layers"}
    hidden, context = fields.count("hidden_size"), fields.count("max_position_embeddings")
    model = learned_position_model(
        fields,
        name,
        hidden="hidden_size",
        num_heads="num_heads",
        num_layers="num_layers",
        intermediate=fields.count_or_none("intermediate_size") or 4 * hidden,
        max_context=context,
        learned_positions=context,
        bias=True,
    )
    full = model.groups[0][0]
    assert isinstance(full.attention, Attention)
    everything = replace(full, attention=replace(full.attention, qkv_bias=False))
    windowed = replace(full, attention=replace(full.attention, qkv_bias=False, window=fields.count("window_size")))
    kinds = {"global": everything, "local": windowed}
    depth = fields.count("num_layers")
    listed = _repeated(fields.list_or_none("attention_types") or [], most=depth)
    if len(listed) != depth or any(kind not in kinds for kind in listed):
        raise ValueError(
            f"attention_types must name global or local for each of the {depth} layers, as"
            f' [[["global", "local"], {depth // 2}]] does for {depth // 2 * 2}'
        )
    return replace(model, groups=grouped(kinds[kind] for kind in listed))


def _repeated(entries: Sequence[object], *, most: int) -> list[str]:
    """The names of GPT-Neo's pairs, a list and how often it is repeated; nothing where one is no such pair."""
    listed: list[str] = []
    for entry in entries:
        names, times = entry if isinstance(entry, list | tuple) and len(entry) == 2 else (None, None)
        if not isinstance(names, list | tuple) or type(times) is not int or not 0 < times <= most:
            return []
        if not all(isinstance(one, str) for one in names):
            return []
        listed += [*names] * times
    return listed


def _refined_web(fields: Fields, name: str) -> Model:
    """Falcon 7B and 40B under their first names: few KV heads are those of the larger one's class."""
    first = {"n_head": "num_attention_heads", "n_layer": "num_hidden_layers", "n_head_kv": "num_kv_heads"}
    usual: dict[str, Any] = {
        "tie_word_embeddings": True,
        "num_kv_heads": None,
        "num_ln_in_parallel_attn": None,
        "activation": "gelu",
    }
    usual |= {"ffn_hidden_size": None, "multi_query": False, "parallel_attn": True, "max_position_embeddings": 2048}
    _moved(fields, first, usual)
    fields.seen |= {"apply_residual_connection_post_layernorm"}
    fields.config = {**fields.config, "new_decoder_architecture": fields.config["num_kv_heads"] is not None}
    sizes = falcon_sizes(fields)
    rotary = rotary_model(fields, name, [sizes.attention], [sizes.mlp], norm="layernorm", num_norms=sizes.num_norms)
    return replace(rotary, alibi=fields.flag("alibi"))


# How residuals are scaled and the state is read, which costs no weight.
_MINIMAX_SAYS = {
    "postnorm", "shared_moe_mode", "attn_type_list", "layer_types", "block_size", "sliding_window",
    *(f"layernorm_{part}_{end}" for part in ("full_attention", "linear_attention", "mlp") for end in ("alpha", "beta")),
    *(f"{part}_{end}_factor" for part in ("full_attn", "linear_attn", "mlp") for end in ("alpha", "beta")),
}  # fmt: skip


def _minimax(fields: Fields, name: str) -> Model:
    """MiniMax-Text-01 and M1: lightning attention but for the layers that their list names."""
    usual: dict[str, Any] = {
        "tie_word_embeddings": False,
        "hidden_act": "silu",
        "head_dim": None,
        "num_experts_per_tok": 2,
    }
    _moved(
        fields,
        {"num_experts": "num_local_experts"},
        usual | {"num_local_experts": 8, "num_key_value_heads": 8, "max_position_embeddings": 131072},
    )
    fields.seen |= _MINIMAX_SAYS
    fields.must_equal("shared_intermediate_size", 0, "experts that all tokens share are not described for MiniMax 1")
    fields.must_equal("sliding_window", None, "no published MiniMax 1 has a window")
    full = configured_attention(fields, window=None)
    lightning = Lightning(num_heads=full.num_heads, head_dim=full.head_dim)
    depth, kinds = num_layers(fields), fields.config.get("layer_types")
    if kinds is None:
        types = fields.config.get("attn_type_list")
        if types is None and fields.model_type != "minimax":  # whose class alternates them
            raise ValueError(f"'attn_type_list' is missing; a {fields.model_type} config says there what each layer is")
        kinds = ["full_attention" if layer % 2 == 0 else "linear_attention" for layer in range(depth)]
        if isinstance(types, list):
            kinds = [{0: "linear_attention", 1: "full_attention"}.get(one) for one in types if type(one) is int]
    mixers: dict[object, Attention | Lightning] = {"full_attention": full, "linear_attention": lightning}
    if not isinstance(kinds, list) or len(kinds) != depth or not all(kind in mixers for kind in kinds):
        raise ValueError(f"layer_types or attn_type_list must name one of two kinds for each of the {depth} layers")
    mlp = MoeMlp(
        num_experts=fields.count("num_local_experts"),
        top_k=fields.count("num_experts_per_tok"),
        expert=gated_mlp(fields),
    )
    return rotary_model(fields, name, [mixers[kind] for kind in kinds], [mlp])


def refuse_prefix(fields: Fields) -> None:
    """ChatGLM with a tuned prefix keeps an encoder of it beside the model, whose weights no count here has.

    Raises: ValueError where the file has one
    """
    why = "its encoder of a prefix holds weights that are not counted: take the field out to count the model without it"
    fields.must_equal("pre_seq_len", 0, why)


def chatglm_1(fields: Fields, name: str) -> Model:
    """ChatGLM 1: biases everywhere but in the head, norms with biases, a plain MLP of 4 times the width."""
    refuse_prefix(fields)
    fields.seen |= {"position_encoding_2d", "prefix_projection", "layernorm_epsilon", "gmask_token_id"}
    usual: dict[str, Any] = {"tie_word_embeddings": False, "max_sequence_length": 2048, "hidden_act": "gelu"}
    fields.config = {**usual, **fields.config}
    heads, hidden = fields.count("num_attention_heads"), fields.count("hidden_size")
    checks.divides(part="num_attention_heads", part_value=heads, whole="hidden_size", whole_value=hidden)
    attention = Attention(
        num_heads=heads, num_kv_heads=heads, head_dim=hidden // heads, qkv_bias=True, output_bias=True
    )
    mlp = plain_mlp(fields, bias=True, intermediate="inner_hidden_size")
    return Model(
        name=name,
        hidden=hidden,
        vocab=fields.count("vocab_size"),
        groups=((Layer(attention=attention, mlp=mlp, norm="layernorm", num_norms=2), fields.count("num_layers")),),
        tied_head=fields.flag("tie_word_embeddings"),
        max_context=fields.count("max_sequence_length"),
    )


# How logits and scores are scaled; `intermediate_size` is that of dense layers, of which Ling 1 has none.
_BAILING_SAYS = {
    "norm_head", "norm_softmax", "image_patch_token", "score_function", "moe_router_enable_expert_bias",
    "moe_shared_expert_intermediate_size", "output_dropout", "use_rmsnorm", "max_window_layers", "router_dtype",
    "intermediate_size",
}  # fmt: skip


def _bailing(fields: Fields, name: str, *, first: bool) -> Model:
    """Ling 1 and 2 (and Ming's text): routed experts with shared ones beside them behind the first, dense layers; Ming
    has a router for images and one for sound beside each of text.
    """
    qk_norm = not first
    usual: dict[str, Any] = {"first_k_dense_replace": 0, "use_bias": first, "use_qkv_bias": False, "head_dim": None}
    usual |= {"multi_gate": False}
    usual |= {"num_shared_experts": 0, "tie_word_embeddings": False, "hidden_act": "silu", "use_qk_norm": qk_norm}
    _moved(fields, {}, usual)
    fields.seen |= _BAILING_SAYS
    bias, shared = fields.flag("use_bias"), fields.count("num_shared_experts", at_least=0)
    attention = configured_attention(
        fields, window=None, qkv_bias=fields.flag("use_qkv_bias"), output_bias=bias, qk_norm=fields.flag("use_qk_norm")
    )
    expert = gated_mlp(fields, intermediate="moe_intermediate_size")
    sparse = MoeMlp(
        num_experts=fields.count("num_experts"),
        top_k=fields.count("num_experts_per_tok"),
        expert=expert,
        shared=replace(expert, intermediate=shared * expert.intermediate) if shared else None,
        correction_bias=fields.config.get("moe_router_enable_expert_bias") is True,
    )
    dense, depth = fields.count("first_k_dense_replace", at_least=0), num_layers(fields)
    mlps = [gated_mlp(fields) if layer < dense else sparse for layer in range(depth)]
    model = rotary_model(fields, name, [attention], mlps)
    if not fields.flag("multi_gate"):
        return model
    routers = Beside(name="routers for images and sound", others=2 * sparse.num_experts * model.hidden)
    groups = ((replace(layer, beside=routers if layer.mlp is sparse else None), many) for layer, many in model.groups)
    return replace(model, groups=tuple(groups))


FIRST_FORMS: dict[str, Callable[[Fields, str], Model]] = {
    "internlm": _internlm,
    "codeshell": _codeshell,
    "telechat": _telechat,
    "gpt_neo": _gpt_neo,
    "RefinedWeb": _refined_web,
    "RefinedWebModel": _refined_web,
    "minimax": _minimax,
    "bailing_moe": lambda fields, name: _bailing(fields, name, first=True),
    "bailing_moe_v2": lambda fields, name: _bailing(fields, name, first=False),
    "minimax_text_01": _minimax,
    "minimax_m1": _minimax,
}
