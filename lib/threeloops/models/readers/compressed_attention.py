"""Attention to compressed or chosen tokens: DeepSeek-V4 and MiniMax-M3.

Source: modeling_*.py and configuration_*.py of Hugging Face transformers 5.23.0 (deepseek_v4, minimax_m3_vl),
        https://github.com/huggingface/transformers
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from threeloops import checks
from threeloops.models.architecture import DenseMlp, Layer, Model, MoeMlp
from threeloops.models.hf_fields import Fields
from threeloops.models.hf_layers import (
    configured_attention,
    gated_mlp,
    grouped,
    layer_kinds,
    num_layers,
    rotary_model,
    side_by_side,
)
from threeloops.models.layers.beside import Beside
from threeloops.models.layers.compressed import CompressedAttention
from threeloops.models.layers.indexers import BlockIndexer, Indexer

_WINDOW, _SPARSE, _HEAVY = "sliding_attention", "compressed_sparse_attention", "heavily_compressed_attention"
_BY_RATIO = {0: _WINDOW, 4: _SPARSE, 128: _HEAVY}
_RATES = {_SPARSE: 4, _HEAVY: 128}
# How scores are made, mixed and limited, and what the file packs: no count depends on it.
_V4_SAYS = {
    "compress_rope_theta", "hc_sinkhorn_iters", "hc_eps", "qk_rope_head_dim", "expert_dtype", "compress_ratios",
    "num_hash_layers", "compress_rates", "compress_rate_csa", "compress_rate_hca", "dspark_block_size",
    "intermediate_size",
}  # fmt: skip


def _v4_kinds(fields: Fields) -> list[str]:
    """What every layer attends to: as layer_types lists it, else by its ratio, of which files list one more for each
    layer that guesses further tokens.
    """
    depth, ratios = (
        num_layers(fields),
        fields.list_or_none("compress_ratios") if "compress_ratios" in fields.config else None,
    )
    if ratios is not None:
        for ratio in ratios:
            if ratio not in _BY_RATIO:
                raise ValueError(f"compress_ratios has {ratio!r}; known: {', '.join(map(str, _BY_RATIO))}")
        if len(ratios) < depth:
            raise ValueError(f"compress_ratios lists {len(ratios)} layers, but num_hidden_layers={depth}")
    return layer_kinds(
        fields,
        known=(_WINDOW, _SPARSE, _HEAVY),
        rule=lambda layer: (
            _BY_RATIO[ratios[layer]] if ratios is not None else _HEAVY if layer < 2 or layer % 2 == 0 else _SPARSE
        ),
    )


def _v4_rates(fields: Fields) -> Mapping[str, int]:
    stated: Any = fields.config.get("compress_rates")
    rates = {**(_RATES if stated is None else stated)}
    for kind, old in ((_SPARSE, "compress_rate_csa"), (_HEAVY, "compress_rate_hca")):
        rates[kind] = fields.config.get(old, rates.get(kind, _RATES[kind]))
        checks.count(**{old: rates[kind]})
    return rates


def _v4_attentions(fields: Fields) -> list[CompressedAttention]:
    fields.must_equal("num_key_value_heads", 1, "one vector is the key and the value of all heads")
    plain = CompressedAttention(
        num_heads=fields.count("num_attention_heads"),
        head_dim=fields.count("head_dim"),
        q_rank=fields.count("q_lora_rank"),
        window=fields.count("sliding_window"),
        groups=fields.count("o_groups"),
        output_rank=fields.count("o_lora_rank"),
    )
    indexer = Indexer(
        num_heads=fields.count("index_n_heads"),
        head_dim=fields.count("index_head_dim"),
        top_k=fields.count("index_topk"),
    )
    rates = _v4_rates(fields)
    of_kind = {
        _WINDOW: plain,
        _HEAVY: replace(plain, ratio=rates[_HEAVY]),
        _SPARSE: replace(plain, ratio=rates[_SPARSE], indexer=indexer),
    }
    return [of_kind[kind] for kind in _v4_kinds(fields)]


def _v4_sparse(fields: Fields) -> list[MoeMlp]:
    """Experts in every layer: chosen by a table in the first ones, else by their scores, with a correction."""
    depth, hashed = num_layers(fields), fields.config.get("num_hash_layers", 3)
    checks.count(at_least=0, num_hash_layers=hashed)
    kinds = fields.list_or_none("mlp_layer_types") or [
        "hash_moe" if layer < hashed else "moe" for layer in range(depth)
    ]
    if len(kinds) != depth:
        raise ValueError(f"mlp_layer_types lists {len(kinds)} layers, but num_hidden_layers={depth}")
    for kind in kinds:
        checks.one_of(("hash_moe", "moe"), mlp_layer_types=kind)
    expert = gated_mlp(fields, intermediate="moe_intermediate_size")
    fields.must_equal("n_shared_experts", 1, "the transformers class has one")
    scored = MoeMlp(
        num_experts=fields.count_either("n_routed_experts", "num_local_experts"),
        top_k=fields.count("num_experts_per_tok"),
        expert=expert,
        shared=replace(expert, bias=fields.flag("mlp_bias")),
        correction_bias=True,
    )
    return [scored if kind == "moe" else replace(scored, correction_bias=False) for kind in kinds]


def _deepseek_v4(fields: Fields, name: str) -> Model:
    """DeepSeek-V4: compressed attention, and several residual streams that every block mixes."""
    fields.seen |= _V4_SAYS
    hidden, streams = fields.count("hidden_size"), fields.count("hc_mult")
    mixing = streams * (streams + 2)  # what each of a layer's two blocks reads out of all streams
    beside = Beside(
        name="residual streams that are mixed",
        matrices=2 * mixing * streams * hidden,
        others=2 * (mixing + 3),
    )
    layers = [
        Layer(attention=attention, mlp=mlp, norm="rmsnorm", num_norms=2, beside=beside)
        for attention, mlp in zip(_v4_attentions(fields), _v4_sparse(fields), strict=True)
    ]
    return Model(
        name=name,
        hidden=hidden,
        vocab=fields.count("vocab_size"),
        groups=grouped(layers),
        tied_head=fields.flag("tie_word_embeddings"),
        max_context=fields.count("max_position_embeddings"),
        beside=Beside(name="the last mixing of streams", matrices=streams**2 * hidden, others=streams + 1),
    )


# How scores are made and blocks are chosen, and what the class takes for granted.
_M3_SAYS = {
    "rotary_dim", "index_local_blocks", "attention_output_gate", "qk_norm_type", "use_gemma_norm", "use_routing_bias",
    "use_qk_norm", "sparse_attention_config", "moe_layer_freq", "hidden_act", "layer_types", "mlp_layer_types",
}  # fmt: skip
_M3_ATTENDS = {"full_attention", "minimax_m3_sparse"}
_M3_OLD = {
    "index_n_heads": "sparse_num_index_heads",
    "index_head_dim": "sparse_index_dim",
    "index_block_size": "sparse_block_size",
    "index_topk_blocks": "sparse_topk_blocks",
}


def _m3_flags(fields: Fields, name: str, flags: Any) -> list[bool]:
    depth = num_layers(fields)
    if not isinstance(flags, list | tuple) or len(flags) != depth or set(flags) - {0, 1}:
        raise ValueError(f"{name} must list 0 or 1 for each of the {depth} layers")
    return [bool(flag) for flag in flags]


def _m3_blocks(fields: Fields, sparse: Mapping[str, Any]) -> BlockIndexer:
    sizes = {own: sparse.get(old, fields.count(own)) for own, old in _M3_OLD.items()}
    return BlockIndexer(
        num_heads=sizes["index_n_heads"],
        head_dim=sizes["index_head_dim"],
        block=sizes["index_block_size"],
        top_k=sizes["index_topk_blocks"],
    )


def _minimax_m3(fields: Fields, name: str) -> Model:
    """MiniMax-M3: keys and values in every layer; in most an indexer chooses the blocks that are read."""
    fields.seen |= _M3_SAYS
    fields.must_equal("attention_output_gate", False, "the transformers class has no such gate")
    fields.must_equal("n_shared_experts", 1, "the transformers class has one")
    if fields.config.get("hidden_act") == "swigluoai":  # its file's name for what the class computes in any case
        fields.config = {**fields.config, "hidden_act": "silu"}
    depth, sparse = num_layers(fields), fields.config.get("sparse_attention_config") or {}
    if not isinstance(sparse, Mapping):
        raise ValueError(f"sparse_attention_config={sparse!r} must be an object")
    kinds = fields.list_or_none("layer_types")
    if kinds is not None:
        for kind in kinds:
            checks.one_of(_M3_ATTENDS, layer_types=kind)
        chosen = _m3_flags(fields, "layer_types", [int(kind != "full_attention") for kind in kinds])
    elif "sparse_attention_freq" in sparse:
        chosen = _m3_flags(fields, "sparse_attention_freq", sparse["sparse_attention_freq"])
    else:
        chosen = [False] * depth
    full, blocks = configured_attention(fields, window=None, qk_norm=True), _m3_blocks(fields, sparse)
    attentions = [replace(full, blocks=blocks) if one else full for one in chosen]
    return rotary_model(fields, name, attentions, _m3_mlps(fields))


def _m3_mlps(fields: Fields) -> list[DenseMlp | MoeMlp]:
    kinds, stated = fields.list_or_none("mlp_layer_types"), fields.config.get("moe_layer_freq")
    if kinds is not None:
        for kind in kinds:
            checks.one_of(("dense", "sparse"), mlp_layer_types=kind)
        routed = _m3_flags(fields, "mlp_layer_types", [int(kind == "sparse") for kind in kinds])
    else:
        routed = [True] * num_layers(fields) if stated is None else _m3_flags(fields, "moe_layer_freq", stated)
    experts = MoeMlp(
        num_experts=fields.count_either("num_local_experts", "num_experts"),
        top_k=fields.count("num_experts_per_tok"),
        expert=gated_mlp(fields),
        shared=side_by_side(gated_mlp(fields, intermediate="shared_intermediate_size"), 1),
        correction_bias=True,
    )
    dense = gated_mlp(fields, intermediate="dense_intermediate_size")
    # copies without a part for the text say these two once more
    fields.must_equal("moe_intermediate_size", experts.expert.intermediate, "it is intermediate_size")
    fields.must_equal("first_k_dense_replace", [*routed, True].index(True), "the layers with experts say it")
    return [experts if one else dense for one in routed]


COMPRESSED_FAMILIES: dict[str, Callable[[Fields, str], Model]] = {
    "deepseek_v4": _deepseek_v4,
    "minimax_m3_vl_text": _minimax_m3,
}
