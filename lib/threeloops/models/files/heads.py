"""Checkpoints that end in something else than a language model's head.

>>> refuse_other_heads({"architectures": ["LlamaForCausalLM"]}, multimodal=False)
"""

import re
from collections.abc import Mapping
from typing import Any

from threeloops import checks

# Classes that guess tokens for a larger model, by what their names say.
_DRAFTS = re.compile(r"eagle|draft|medusa|nextn", re.IGNORECASE)


def no_language_model(config: Mapping[str, Any]) -> str:
    """That the class of an unknown type is no language model's, where its name says so; empty where it does not.

    >>> no_language_model({"architectures": ["DebertaV2ForSequenceClassification"]})
    ": its class, 'DebertaV2ForSequenceClassification', is no language model's"
    """
    named = config.get("architectures")
    first = named[0] if isinstance(named, list | tuple) and len(named) == 1 else named
    other = re.search(
        r"For(?!CausalLM|ConditionalGeneration)[A-Z]\w*$|(?:Vision|Audio|Siglip|CLIP)\w*Model$", str(first)
    )
    return f": its class, {first!r}, is no language model's" if isinstance(first, str) and other else ""


def refuse_other_heads(config: Mapping[str, Any], *, multimodal: bool) -> None:
    """Refuse a checkpoint whose class does not end in a language model's head.

    Raises: ValueError, naming the class
    """
    # ChatGLMModel is what published files of ChatGLM 2 to 4 name, and their auto_map means the class with a head
    heads: tuple[str, ...] = ("ForCausalLM", "LMHeadModel", "MiniMindLM", "ChatGLMModel")
    heads += ("ForConditionalGeneration",) if multimodal else ()
    named = config.get("architectures") or []
    if _DRAFTS.search(str(named)) or isinstance(config.get("draft_vocab_size"), int):
        raise ValueError(
            f"architectures={checks.shortened(named)} is a draft for speculative decoding, which reads its target's"
            " hidden states and is not counted alone: give the config.json of that target"
        )
    for architecture in named if isinstance(named, list | tuple) else [named]:
        if not str(architecture).endswith(heads):
            raise ValueError(
                f"architectures={architecture!r} has no language-model head; only ...ForCausalLM and ...LMHeadModel are"
                " counted (`threeloops memory --classes` fine-tunes the decoder below it: give the config.json of that)"
            )
