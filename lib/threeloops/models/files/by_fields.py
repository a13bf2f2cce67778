"""Configs of a type that nobody knows, whose code ships with the checkpoint or lies elsewhere: read as Llama where
every field that a count needs has Llama's name, and nothing speaks of other layers; as DeepSeek V3 where all of that
one's fields for latent attention and experts stand there. What is read so says so.

>>> own = {"model_type": "kite", "auto_map": {}, "architectures": ["KiteForCausalLM"], "hidden_act": "silu"}
>>> own |= {"hidden_size": 256, "intermediate_size": 512, "num_hidden_layers": 2, "num_attention_heads": 4}
>>> read_by_its_fields(own | {"vocab_size": 1000})[1]
"model_type='kite' is not known, and its code was not seen: read as a Llama, whose fields it has"
>>> read_by_its_fields(own | {"vocab_size": 1000, "num_experts": 8})

Source: LlamaConfig and DeepseekV3Config of Hugging Face transformers 5.23.0 (names, and what is taken where nothing
        is said), https://github.com/huggingface/transformers
"""

import re
from collections.abc import Mapping
from typing import Any

from threeloops import checks
from threeloops.models.hf_fields import CHANGES_NO_COUNT, NUMBERS_OF_TOKENS, OUTSIDE_THE_DECODER, may_build
from threeloops.models.hf_not_read import NOT_READ, ON_THEIR_CLASS

_NEEDED = ("hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads", "vocab_size")
_LLAMA: tuple[str, ...] = (
    *_NEEDED,
    "num_key_value_heads",
    "head_dim",
    "max_position_embeddings",
    "tie_word_embeddings",
    "hidden_act",
)
_LLAMA += ("attention_bias", "mlp_bias")
_ACT_NAMES = ("hidden_act", "hidden_activation", "activation", "activation_function")
_ACTS = ("silu", "swish")
_KEPT = ("_name_or_path", "quantization_config", "compression_config", "quantization")
# What speaks of layers that a Llama has not, unless it is about images or sound.
_OTHER_LAYERS = re.compile(
    r"expert|moe|lora|latent|mamba|ssm|state|conv|linear_attn|recurren|sparse|index|cross|shared|memory|routing"
    r"|attn_type|layer_types|layers_block_type|per_layer|hybrid|rnn|kernel|mod_"
)
_DEEPSEEK = ("kv_lora_rank", "qk_nope_head_dim", "qk_rope_head_dim", "v_head_dim", "n_routed_experts")
_OF_EXPERTS = re.compile(r"expert|moe|router")
_BESIDE = re.compile(r"^(?:mm_|vision|image|video|visual|audio|speech|use_mm_)")
_HEADS = ("ForCausalLM", "ForConditionalGeneration", "MiniCPMV", "MiniCPMO")
# Where the decoder of a larger model has its config.
_PARTS = ("text_config", "llm_config", "language_config", "language", "language_model", "llm", "decoder_config")
_MOST = 6  # names of fields that are printed


def read_by_its_fields(config: Mapping[str, Any]) -> tuple[Mapping[str, Any], str] | None:
    """The config under Llama's or DeepSeek V3's type, and what was assumed for it; None where it is of another kind, or
    where its type is one that transformers knows and that has no reader here.
    """
    part = _decoder_of(config)
    unnamed = "model_type" not in config and "auto_map" not in config
    if unnamed or _known_elsewhere(config) or _known_elsewhere(part) or _other_class(config):
        return None
    kind = f"model_type={config['model_type']!r} is not known" if "model_type" in config else "model_type is missing"
    said = f"{kind}, and its code was not seen: read as"
    if all(part.get(name) for name in _DEEPSEEK):
        own = {"model_type": "deepseek_v3", "architectures": None}
        return {**part, **own}, f"{said} DeepSeek V3, whose fields it has"
    if _no_llama(part):
        return None
    kept = {name: part[name] for name in (*_LLAMA, *_KEPT) if part.get(name) is not None}
    if isinstance(part.get("bias"), bool):
        kept.setdefault("attention_bias", part["bias"])
    passed = [name for name in _further(part) if not _BESIDE.search(name)]
    said += " a Llama, whose fields it has"
    if passed:
        said += f"; not read: {', '.join(passed[:_MOST])}" + f" and {len(passed) - _MOST} more" * (len(passed) > _MOST)
    return {**kept, "model_type": "llama"}, said


def _known_elsewhere(config: Mapping[str, Any]) -> bool:
    """Whether transformers has a class for this type, whatever code the file names for itself."""
    return isinstance(named := config.get("model_type"), str) and named in {*ON_THEIR_CLASS, *NOT_READ}


def _decoder_of(config: Mapping[str, Any]) -> Mapping[str, Any]:
    """The part of the file that describes its decoder; the file itself where it does."""
    inside = next((config[name] for name in _PARTS if isinstance(config.get(name), Mapping)), None)
    return config if inside is None or "hidden_size" in config else _decoder_of(inside)


def _other_class(config: Mapping[str, Any]) -> str:
    """The class that the file names, where that is no language model's; empty where it names none."""
    named = config.get("architectures")
    head = str(named[0]) if isinstance(named, list | tuple) and len(named) == 1 else ""
    return "" if not named or head.endswith(_HEADS) else head or "several"


def _further(part: Mapping[str, Any]) -> list[str]:
    """Fields that a Llama has not and that may build something."""
    one_mlp = part.get("num_experts") == 1
    known = {*_LLAMA, *_KEPT, *_ACT_NAMES, "auto_map", "model_type", "architectures", "bias"}
    return [
        name
        for name, value in part.items()
        if name not in known | CHANGES_NO_COUNT | OUTSIDE_THE_DECODER
        and not name.endswith(NUMBERS_OF_TOKENS)
        and not name.startswith("_")
        and may_build(value)
        and not (one_mlp and _OF_EXPERTS.search(name))
        and not (name == "layer_types" and isinstance(value, list) and all(one == "full_attention" for one in value))
    ]


def _no_llama(part: Mapping[str, Any]) -> str:
    """What keeps the fields from being a Llama's; empty where nothing does."""
    for name in _NEEDED:
        if type(part.get(name)) is not int:
            return f"no field is called {name!r}, as a Llama's is"
    for name in _ACT_NAMES:
        if part.get(name) is not None and str(part[name]) not in _ACTS:
            return f"{name}={checks.shortened(part[name])} is no Llama's, which is 'silu'"
    for name in _further(part):
        if _of_other_layers(name):
            return f"{name!r} speaks of layers that a Llama has not"
    return ""


def _of_other_layers(name: str) -> bool:
    return bool(_OTHER_LAYERS.search(name)) and not _BESIDE.search(name)


def why_not_by_its_fields(config: Mapping[str, Any]) -> str:
    """What keeps the config of a type that nobody knows from being read as a Llama; empty for a type that transformers
    has a class for.

    >>> why_not_by_its_fields({"model_type": "kite", "hidden_size": 512, "num_blocks": 8})
    ": its code was not seen, and no field is called 'intermediate_size', as a Llama's is"
    >>> sizes = dict.fromkeys(("hidden_size", "intermediate_size", "num_hidden_layers"), 2)
    >>> heads = {"num_attention_heads": 2, "vocab_size": 100}
    >>> why_not_by_its_fields({"model_type": "kite", **sizes, **heads, "num_memory_slots": 4})
    ": its code was not seen, and 'num_memory_slots' speaks of layers that a Llama has not"
    """
    if _known_elsewhere(config):
        return ""
    part = _decoder_of(config)
    if _known_elsewhere(part):
        return f": its decoder is of model_type={part['model_type']!r}, which is not read either"
    named = config.get("text_model_id") or (part is not config and part.get("_name_or_path"))
    if "num_hidden_layers" not in part and isinstance(named, str) and named.isprintable():
        return f": it names its decoder, {named[:60]!r}, and does not describe it: give that one's config.json"
    why = _no_llama(part)
    if not why and (other := _other_class(config)):
        why = f"its architectures name {checks.shortened(other)}, which is not known to be a language model's"
    return f": its code was not seen, and {why}" if why else ""
