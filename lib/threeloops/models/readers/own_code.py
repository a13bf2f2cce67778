"""Families whose classes ship with their checkpoints and are not in transformers: MiMo 7B, and the Nemotrons whose
layers a search made unequal.

Source: vLLM, vllm/model_executor/models/mimo.py (Qwen 2's class; layers that guess tokens are left to the draft) and
        nemotron_nas.py (what a layer may lack, the widths of MLPs), https://github.com/vllm-project/vllm; mlx-lm,
        mlx_lm/models/nemotron-nas.py (one matrix instead of a part), https://github.com/ml-explore/mlx-lm. The makers'
        own classes, modeling_mimo.py and modeling_decilm.py, lie with the checkpoints and were not read
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from threeloops import checks
from threeloops.models.architecture import Attention, DenseMlp, Layer, Model
from threeloops.models.hf_fields import Fields
from threeloops.models.hf_layers import configured_attention, gated_mlp, grouped, num_layers, rotary_model
from threeloops.models.layers.beside import Beside


def _mimo(fields: Fields, name: str) -> Model:
    """MiMo 7B: Qwen 2, whose biases its file names."""
    fields.must_equal("attention_bias", True, "its class has these biases, as Qwen 2's has")
    fields.must_equal("use_sliding_window", False, "no published MiMo 7B uses its window")
    fields.seen |= {"sliding_window", "max_window_layers"}
    attention = configured_attention(fields, window=None, qkv_bias=True)
    return rotary_model(fields, name, [attention], [gated_mlp(fields)])


_MULTIPLE = 256  # that widths of MLPs are rounded up to


def _decilm(fields: Fields, name: str) -> Model:
    """Every layer's own number of KV heads and width of its MLP; a layer may lack either, or have one matrix there."""
    fields.seen |= {"num_key_value_heads", "intermediate_size", "sliding_window"}
    blocks, depth = fields.list_or_none("block_configs"), num_layers(fields)
    if blocks is None or len(blocks) != depth:
        listed = 0 if blocks is None else len(blocks)
        raise ValueError(f"block_configs lists {listed} layers, but num_hidden_layers={depth}")
    fields.config = {"intermediate_size": None, "num_key_value_heads": None, **fields.config}
    full = configured_attention(fields, window=None, qkv_bias=fields.flag("attention_bias"))
    full = replace(full, num_kv_heads=full.num_heads, output_bias=full.qkv_bias)
    stated = fields.config["intermediate_size"] or _MULTIPLE  # replaced in every layer
    fields.config = {**fields.config, "intermediate_size": stated}
    mlp, hidden = gated_mlp(fields), fields.count("hidden_size")
    layers = [_decilm_layer(block, number, full=full, mlp=mlp, hidden=hidden) for number, block in enumerate(blocks)]
    return Model(
        name=name,
        hidden=hidden,
        vocab=fields.count("vocab_size"),
        groups=grouped(layer for layer in layers if layer),
        tied_head=fields.flag("tie_word_embeddings"),
        max_context=fields.count("max_position_embeddings"),
    )


def _decilm_layer(block: object, number: int, *, full: Attention, mlp: DenseMlp, hidden: int) -> Layer | None:
    """One layer; none where it has neither part."""
    checks.table(**{f"block_configs[{number}]": block})
    assert isinstance(block, Mapping)
    attends, feeds = _part(block, "attention", number), _part(block, "ffn", number)
    attention, linear = _decilm_attention(attends, number, full)
    width = None
    if feeds.get("replace_with_linear"):
        linear += 1
    elif not feeds.get("no_op"):
        multiplied: Any = feeds.get("ffn_mult")
        checks.positive(**{f"block_configs[{number}].ffn.ffn_mult": multiplied})
        width = _MULTIPLE * -(-int(2 * multiplied * hidden / 3) // _MULTIPLE)
    norms = sum(not part.get("no_op") for part in (attends, feeds))
    if attention is None and width is None:
        if linear:
            raise ValueError(f"block_configs[{number}] has no part but single matrices; such a layer is not described")
        return None
    return Layer(
        attention=attention,
        mlp=replace(mlp, intermediate=width) if width else None,
        norm="rmsnorm",
        num_norms=norms,
        beside=Beside(name="a single matrix in a block's place", matrices=linear * hidden**2) if linear else None,
    )


def _part(block: Mapping[str, Any], name: str, number: int) -> Mapping[str, Any]:
    own = block.get(name)
    checks.table(**{f"block_configs[{number}].{name}": own})
    assert isinstance(own, Mapping)
    return own


def _decilm_attention(attends: Mapping[str, Any], number: int, full: Attention) -> tuple[Attention | None, int]:
    """The attention of a layer, and how many single matrices stand in its place."""
    if attends.get("num_sink_tokens") or attends.get("sparsify"):
        raise ValueError(f"block_configs[{number}].attention has sink tokens or is sparse, which is not described")
    if attends.get("replace_with_linear"):
        return None, 1
    if attends.get("no_op"):
        return None, 0
    group: Any = attends.get("n_heads_in_group")
    window: Any = attends.get("window_length")
    checks.count(**{f"block_configs[{number}].attention.n_heads_in_group": group})
    checks.divides(part="n_heads_in_group", part_value=group, whole="num_attention_heads", whole_value=full.num_heads)
    return replace(full, num_kv_heads=full.num_heads // group, window=window), 0


OWN_CODE: dict[str, Callable[[Fields, str], Model]] = {"mimo": _mimo, "nemotron-nas": _decilm, "deci": _decilm}
