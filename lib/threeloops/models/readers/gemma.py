"""Gemma 3n and 4: layers that share caches, full layers with other heads than windows, and tables of a layer's own.

Source: modeling_*.py and configuration_*.py of Hugging Face transformers 5.23.0 (gemma3n, gemma4),
        https://github.com/huggingface/transformers
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from threeloops import checks
from threeloops.models.architecture import Attention, DenseMlp, Layer, Model, MoeMlp
from threeloops.models.hf_fields import Fields
from threeloops.models.hf_layers import configured_attention, gated_mlp, grouped, num_layers, windows
from threeloops.models.layers.beside import Beside

_SPARSE_GATES = {"activation_sparsity_pattern"}  # of activations: every weight is there, and is read


def _own_caches(fields: Fields) -> list[bool]:
    """Which layers cache keys and values: all but the last num_kv_shared_layers, which read those of the last layer of
    their kind before them.
    """
    depth, shared = num_layers(fields), fields.count("num_kv_shared_layers", at_least=0)
    if shared >= depth:
        raise ValueError(f"num_kv_shared_layers={shared} must be less than num_hidden_layers={depth}")
    return [layer < depth - shared for layer in range(depth)]


def _bias(fields: Fields) -> bool:
    if fields.config.get("use_bidirectional_attention") not in (None, False, "vision"):
        fields.must_equal("use_bidirectional_attention", False, "text read in both directions is another kind of model")
    fields.seen |= {"use_bidirectional_attention", "hidden_act"}
    return fields.flag("attention_bias")


def _finished(fields: Fields, name: str, layers: Sequence[Layer], beside: Beside | None) -> Model:
    return Model(
        name=name,
        hidden=fields.count("hidden_size"),
        vocab=fields.count("vocab_size"),
        groups=grouped(layers),
        tied_head=fields.flag("tie_word_embeddings"),
        max_context=fields.count("max_position_embeddings"),
        beside=beside,
    )


def _gemma3n_intermediates(fields: Fields) -> list[int]:
    """The width of every layer's MLP: one for all, or one for each."""
    depth, stated = num_layers(fields), fields.get("intermediate_size")
    widths = list(stated) if isinstance(stated, list | tuple) else [stated] * depth
    if len(widths) != depth:
        raise ValueError(f"intermediate_size lists {len(widths)} layers, but num_hidden_layers={depth}")
    for width in widths:
        checks.count(intermediate_size=width)
    return widths


def _gemma3n(fields: Fields, name: str) -> Model:
    """Gemma 3n: four streams of activations of which one is computed, a low-rank residual, inputs of each layer's
    own.
    """
    fields.seen |= _SPARSE_GATES | {"altup_active_idx", "altup_coef_clip", "altup_correct_scale"}
    hidden, depth, bias = fields.count("hidden_size"), num_layers(fields), _bias(fields)
    streams, rank = fields.count("altup_num_inputs"), fields.count("laurel_rank")
    own = fields.count("hidden_size_per_layer_input")
    widths, caches = _gemma3n_intermediates(fields), _own_caches(fields)
    layer_windows = windows(fields, window=fields.count("sliding_window"), slides=lambda layer: (layer + 1) % 5 != 0)
    fields.config = {**fields.config, "intermediate_size": widths[0]}
    mlp = gated_mlp(fields, act="hidden_activation")
    beside = Beside(
        name="streams, a low-rank residual and inputs of its own",
        matrices=2 * hidden * (rank + own) + hidden * streams + streams**2 * (streams + 1),
        others=4 * hidden,  # norms of the residual, of what chooses streams and of the own inputs; a scale
    )
    layers = [
        Layer(
            attention=replace(
                configured_attention(fields, window=window, qkv_bias=bias, output_bias=bias, qk_norm=True),
                owns_cache=owns,
            ),
            mlp=replace(mlp, intermediate=width),
            norm="rmsnorm",
            num_norms=4,
            beside=beside,
        )
        for window, owns, width in zip(layer_windows, caches, widths, strict=True)
    ]
    outside = Beside(
        name="a table of each layer's own inputs, and what makes streams",
        table=fields.count("vocab_size_per_layer_input") * depth * own,
        matrices=hidden * depth * own + 2 * (streams - 1) * hidden**2,
        others=own,
    )
    return _finished(fields, name, layers, outside)


def _gemma4_overrides(fields: Fields) -> Callable[[int, bool], dict[str, int]]:
    """What a layer has in place of the text's own head_dim and num_key_value_heads."""
    listed: dict[Any, Any] | None = fields.config.get("per_layer_config")
    head_dim = fields.config.get("global_head_dim", 512)  # the class's own, where a file says nothing
    kv_heads = fields.config.get("num_global_key_value_heads") if fields.flag("attention_k_eq_v") else None
    fields.seen |= {"per_layer_config", "global_head_dim", "num_global_key_value_heads"}
    if listed is not None and (not isinstance(listed, dict) or not all(str(layer).isdigit() for layer in listed)):
        raise ValueError(f"per_layer_config={listed!r} must be an object of layers' numbers")
    own = {int(layer): changes for layer, changes in (listed or {}).items()}
    known = {"head_dim", "num_key_value_heads"}

    def overrides(layer: int, full: bool) -> dict[str, int]:
        if listed is None:
            stated: dict[str, Any] = {"head_dim": head_dim, "num_key_value_heads": kv_heads} if full else {}
        else:
            stated = dict(own.get(layer, {}))
        if unknown := sorted(stated.keys() - known):
            raise ValueError(f"per_layer_config has {unknown[0]!r}, which is not understood")
        found = {field: size for field, size in stated.items() if size is not None}
        for field, size in found.items():
            checks.count(**{field: size})
        return found

    return overrides


def _gemma4_mlps(fields: Fields, caches: Sequence[bool]) -> list[DenseMlp | MoeMlp]:
    """Dense blocks, twice as wide where caches are shared and the file says so; experts beside them."""
    dense, doubled = gated_mlp(fields, act="hidden_activation"), fields.flag("use_double_wide_mlp")
    wide = [replace(dense, intermediate=(1 + (doubled and not owns)) * dense.intermediate) for owns in caches]
    fields.seen |= {"num_experts", "top_k_experts", "moe_intermediate_size"}
    if not fields.flag("enable_moe_block"):
        return list(wide)
    expert = replace(dense, intermediate=fields.count("moe_intermediate_size"))
    number, top_k = fields.count("num_experts"), fields.count("top_k_experts")
    return [MoeMlp(num_experts=number, top_k=top_k, expert=expert, shared=one) for one in wide]


def _gemma4_beside(fields: Fields, *, hidden: int, own: int) -> Beside | None:
    experts = fields.flag("enable_moe_block")
    words = ["inputs of its own"] * bool(own) + ["further norms around its experts"] * experts
    if not words:
        return None
    return Beside(
        name=" and ".join(words),
        matrices=2 * hidden * own,
        # three norms and a scale of what is routed, a scale of every expert; a norm of the own inputs
        others=experts * 4 * hidden + (fields.count("num_experts") if experts else 0) + (hidden if own else 0),
    )


def _gemma4(fields: Fields, name: str) -> Model:
    """Gemma 4: full layers with wider heads, and in some sizes keys that are values, shared caches or experts."""
    hidden, depth, bias, caches = fields.count("hidden_size"), num_layers(fields), _bias(fields), _own_caches(fields)
    own, sliding = fields.count("hidden_size_per_layer_input", at_least=0), fields.count("sliding_window")
    layer_windows = windows(fields, window=sliding, slides=lambda layer: (layer + 1) % 6 != 0)
    layer_windows[-1] = None  # whatever the file says: the class makes it so
    overrides, beside = _gemma4_overrides(fields), _gemma4_beside(fields, hidden=hidden, own=own)
    plain = configured_attention(fields, window=sliding, qkv_bias=bias, output_bias=bias, qk_norm=True)
    same = fields.flag("attention_k_eq_v")

    def attention(layer: int) -> Attention:
        window = layer_windows[layer]
        changed = overrides(layer, window is None)
        return replace(
            plain,
            window=window,
            head_dim=changed.get("head_dim", plain.head_dim),
            num_kv_heads=changed.get("num_key_value_heads", plain.num_kv_heads),
            keys_are_values=same and window is None,
            owns_cache=caches[layer],
        )

    layers = [
        Layer(attention=attention(layer), mlp=mlp, norm="rmsnorm", num_norms=4, beside=beside)
        for layer, mlp in enumerate(_gemma4_mlps(fields, caches))
    ]
    outside = (
        Beside(
            name="a table of each layer's own inputs",
            table=fields.count("vocab_size_per_layer_input") * depth * own,
            matrices=hidden * depth * own,
            others=own,
        )
        if own
        else None
    )
    fields.seen.add("vocab_size_per_layer_input")
    return _finished(fields, name, layers, outside)


GEMMA_FAMILIES: dict[str, Callable[[Fields, str], Model]] = {"gemma3n_text": _gemma3n, "gemma4_text": _gemma4}
