"""Checkpoints that end in something else than a language model's head.

>>> refuse_other_heads({"architectures": ["LlamaForCausalLM"]}, multimodal=False)
"""

import re
from collections.abc import Mapping
from typing import Any

from threeloops import checks

# Classes that guess tokens for a larger model, by what their names say.
_DRAFTS = re.compile(r"eagle|draft|medusa|nextn", re.IGNORECASE)


def refuse_other_heads(config: Mapping[str, Any], *, multimodal: bool) -> None:
    """Refuse a checkpoint whose class does not end in a language model's head.

    Raises: ValueError, naming the class
    """
    heads = ("ForCausalLM", "LMHeadModel", "MiniMindLM", *(("ForConditionalGeneration",) if multimodal else ()))
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
