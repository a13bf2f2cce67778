"""Hybrids in the header of a GGUF file: which layers attend, and the sizes of the states of the others.

Source: llama.cpp, gguf-py/gguf/constants.py (ssm.*, shortconv.*, per-layer attention.head_count_kv), and its converters
        of Qwen3-Next, LFM2, Falcon-H1, Granite 4, Nemotron-H and Jamba (from which field of a config.json each is
        written)
"""

from collections.abc import Callable, Container, Mapping
from typing import Any

Said = Callable[[str], Any]


def _every_layer(said: Said, name: str) -> list[int]:
    """A field as a list with a number for every layer."""
    value = said(name)
    return list(value) if isinstance(value, list) else [value or 0] * said("block_count")


def _heads(said: Said) -> dict[str, Any]:
    """KV heads of the layers that attend; where there are none, a 0 stands in the list."""
    found = sorted({heads for heads in _every_layer(said, "attention.head_count_kv") if heads})
    if len(found) != 1:
        raise ValueError(f"its layers have {found or 'no'} KV heads, which is not read")
    return {"num_key_value_heads": found[0]}


def _kinds(said: Said, *, other: str) -> dict[str, Any]:
    attending = _every_layer(said, "attention.head_count_kv")
    return {"layer_types": ["full_attention" if heads else other for heads in attending], **_heads(said)}


def _divided(said: Said, whole: int, part: int, what: str) -> int:
    if not part or whole % part:
        raise ValueError(f"ssm.inner_size={said('ssm.inner_size')} does not fit {what}")
    return whole // part


def _qwen3_next(said: Said, tensors: Container[str]) -> dict[str, Any]:
    heads = said("ssm.time_step_rank")
    return {
        "linear_conv_kernel_dim": said("ssm.conv_kernel"),
        "linear_key_head_dim": said("ssm.state_size"),
        "linear_num_key_heads": said("ssm.group_count"),
        "linear_num_value_heads": heads,
        "linear_value_head_dim": _divided(said, said("ssm.inner_size"), heads, "ssm.time_step_rank"),
        "full_attention_interval": said("full_attention_interval") or 4,
        "moe_intermediate_size": said("expert_feed_forward_length"),
        "shared_expert_intermediate_size": said("expert_shared_feed_forward_length"),
    }


def _lfm2(said: Said, tensors: Container[str]) -> dict[str, Any]:
    # the width that the file states is what became of the config's
    own = {"conv_L_cache": said("shortconv.l_cache"), "block_auto_adjust_ff_dim": False}
    return {**_kinds(said, other="conv"), **own}


def _mamba2(said: Said, tensors: Container[str]) -> dict[str, Any]:
    return {
        "mamba_n_heads": said("ssm.time_step_rank"),
        "mamba_d_state": said("ssm.state_size"),
        "mamba_n_groups": said("ssm.group_count"),
        "mamba_d_conv": said("ssm.conv_kernel"),
        "mamba_d_head": _divided(said, said("ssm.inner_size"), said("ssm.time_step_rank"), "ssm.time_step_rank"),
    }


def _falcon_h1(said: Said, tensors: Container[str]) -> dict[str, Any]:
    own = {"mamba_d_ssm": said("ssm.inner_size"), "mamba_rms_norm": "blk.0.ssm_norm.weight" in tensors}
    return {**_mamba2(said, tensors), **own}


def _granite_hybrid(said: Said, tensors: Container[str]) -> dict[str, Any]:
    dense = not said("expert_count")
    shared = said("feed_forward_length") if dense else said("expert_shared_feed_forward_length")
    return {
        **_kinds(said, other="linear_attention"),
        **_mamba2(said, tensors),
        "mamba_expand": _divided(said, said("ssm.inner_size"), said("embedding_length"), "embedding_length"),
        "shared_intermediate_size": shared,
        **({"num_local_experts": 0} if dense else {}),
    }


def _nemotron_h(said: Said, tensors: Container[str]) -> dict[str, Any]:
    attending, wide = (_every_layer(said, name) for name in ("attention.head_count_kv", "feed_forward_length"))
    experts = [f"blk.{layer}.ffn_gate_inp.weight" in tensors for layer in range(len(wide))]
    letters = [
        "*" if heads else "E" if has else "-" if width else "M"
        for heads, width, has in zip(attending, wide, experts, strict=True)
    ]
    dense = sorted({width for width, letter in zip(wide, letters, strict=True) if letter == "-"})
    if len(dense) > 1:
        raise ValueError(f"its dense layers are {dense} wide, which is not read")
    heads = said("ssm.time_step_rank")
    found = {
        "hybrid_override_pattern": "".join(letters),
        **_heads(said),
        "mamba_num_heads": heads,
        "mamba_head_dim": _divided(said, said("ssm.inner_size"), heads, "ssm.time_step_rank"),
        "ssm_state_size": said("ssm.state_size"),
        "n_groups": said("ssm.group_count"),
        "conv_kernel": said("ssm.conv_kernel"),
        "intermediate_size": dense[0] if dense else None,
        "num_local_experts": None,
        "num_experts_per_tok": None,
    }
    if any(experts):
        found |= {
            "n_routed_experts": said("expert_count"),
            "num_experts_per_tok": said("expert_used_count"),
            "n_shared_experts": said("expert_shared_count"),
            "moe_intermediate_size": said("expert_feed_forward_length"),
            "moe_shared_expert_intermediate_size": said("expert_shared_feed_forward_length"),
        }
    return found


def _jamba(said: Said, tensors: Container[str]) -> dict[str, Any]:
    layers = range(said("block_count"))
    attending = [bool(heads) for heads in _every_layer(said, "attention.head_count_kv")]
    experts = [f"blk.{layer}.ffn_gate_inp.weight" in tensors for layer in layers]
    return {
        **_heads(said),
        **_repeated("attn", attending),
        **(_repeated("expert", experts) if any(experts) else {}),
        "num_experts": said("expert_count") if any(experts) else 1,
        "num_local_experts": None,
        "mamba_d_state": said("ssm.state_size"),
        "mamba_d_conv": said("ssm.conv_kernel"),
        "mamba_dt_rank": said("ssm.time_step_rank"),
        "mamba_expand": _divided(said, said("ssm.inner_size"), said("embedding_length"), "embedding_length"),
    }


def _repeated(what: str, layers: list[bool]) -> dict[str, int]:
    """The period and the offset of the layers that have something, as the class states them."""
    there = [layer for layer, has in enumerate(layers) if has]
    period = there[1] - there[0] if len(there) > 1 else len(layers)
    if layers != [layer % period == there[0] for layer in range(len(layers))]:
        raise ValueError(f"{what} stands in layers {there}, which do not repeat")
    return {f"{what}_layer_period": period, f"{what}_layer_offset": there[0]}


# The file's architecture -> the model_type that it was converted from, and how its fields are read.
HYBRIDS: Mapping[str, tuple[str, Callable[[Said, Container[str]], dict[str, Any]]]] = {
    "qwen3next": ("qwen3_next", _qwen3_next),
    "lfm2": ("lfm2", _lfm2),
    "falcon-h1": ("falcon_h1", _falcon_h1),
    "granitehybrid": ("granitemoehybrid", _granite_hybrid),
    "nemotron_h": ("nemotron_h", _nemotron_h),
    "nemotron_h_moe": ("nemotron_h", _nemotron_h),
    "jamba": ("jamba", _jamba),
}
# Fields of every layer that these read by themselves.
READ_BY_LAYER = ("attention.head_count_kv", "feed_forward_length")


# Of these the tensors say which layers have experts, and a part of a split file has not all of them.
_BY_TENSORS = ("jamba", "nemotron_h_moe")


def hybrid_fields(architecture: str, said: Said, tensors: Container[str], *, whole: bool) -> dict[str, Any]:
    """What the header says of the layers of a hybrid, as its config.json would; None for what its class has not.

    Raises:   ValueError for a size of its states that the header leaves out, or what a part of a file cannot say
    """
    if not whole and architecture in _BY_TENSORS:
        raise ValueError("it is one part of several, and which layers have experts stands in the others")
    for name in ("shortconv.l_cache",) if architecture == "lfm2" else ("ssm.inner_size", "ssm.time_step_rank"):
        if said(name) is None:
            raise ValueError(f"it is without {architecture}.{name}")
    _, read = HYBRIDS[architecture]
    return read(said, tensors)
