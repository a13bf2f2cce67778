"""Configs whose own name is known to nobody: read by the class that they name, or by the decoder that lies in them.

>>> known = {"deepseekv3": "deepseek_v3"}
>>> inside = {"text_config": {"architectures": ["DeepseekV3ForCausalLM"]}}
>>> read_under_another_name({"model_type": "kite", **inside}, known)[1]
"model_type='kite' is not known: its text_config is read, as deepseek_v3, and nothing around it"

Source: vLLM, vllm/model_executor/models/registry.py, which chooses by `architectures`,
        https://github.com/vllm-project/vllm
"""

from collections.abc import Mapping
from typing import Any

_HEADS = ("ForCausalLM", "LMHeadModel", "ForConditionalGeneration")
# Where the decoder of a larger model has its config.
_PARTS = ("text_config", "llm_config", "language_config", "language", "language_model", "llm", "decoder_config")


# Classes whose names have the letters of their type in another order.
_IN_OTHER_ORDER = {"hunyuanmoev1": "hunyuan_v1_moe", "hunyuandensev1": "hunyuan_v1_dense"}


def by_letters(names: tuple[str, ...]) -> Mapping[str, str]:
    """Each type by its letters and digits alone, some also by those of their class."""
    ordered = {letters: name for letters, name in _IN_OTHER_ORDER.items() if name in names}
    return ordered | {squeezed(name): name for name in names}


def squeezed(name: object) -> str:
    """A name without case and signs."""
    return "".join(letter for letter in str(name).lower() if letter.isalnum())


def read_under_another_name(
    config: Mapping[str, Any], known: Mapping[str, str]
) -> tuple[Mapping[str, Any], str] | None:
    """The config of a type that is known, and what was done to have it; None where neither its class nor a part of it
    is known.

    Assumes:  the class that a file names among its `architectures` is what its weights are for
    """
    named = config.get("model_type")
    if own := _type_of(config, known):
        what = f"model_type={named!r}" if named is not None else "a config without model_type"
        said = f"{what} is read as {own}, whose class its architectures name"
        return {**config, "model_type": own}, said
    for field in _PARTS:
        part = config.get(field)
        if not isinstance(part, Mapping):
            continue
        inside = part.get("model_type")
        model_type = known.get(squeezed(inside)) if isinstance(inside, str) else None
        if model_type := model_type or _type_of(part, known):
            tied = config.get("tie_word_embeddings")
            outside = {} if tied is None else {"tie_word_embeddings": tied}
            said = f"model_type={named!r} is not known: its {field} is read, as {model_type}, and nothing around it"
            return {**part, **outside, "model_type": model_type}, said
    return None


def _type_of(config: Mapping[str, Any], known: Mapping[str, str]) -> str | None:
    """The type whose class the config names, with or without images."""
    named = config.get("architectures")
    first = named[0] if isinstance(named, list | tuple) and len(named) == 1 else named
    for head in _HEADS:
        if isinstance(first, str) and first.endswith(head):
            name = squeezed(first.removesuffix(head))
            text = known.get(f"{name}text") if head != _HEADS[-1] else None
            return text or known.get(name)
    return None
