"""Decoders that lie whole within the config.json of a model whose code ships with it.

>>> decoder_within({"model_type": "kimi_vl", "text_config": {"model_type": "deepseek_v3"}})
{'model_type': 'deepseek_v3'}

Source: the classes that lie with the checkpoints build their language model of this part alone: OpenGVLab/InternVL,
        internvl_chat/internvl/model/internvl_chat/modeling_internvl_chat.py; MoonshotAI/Kimi-VL, as vLLM reads it,
        vllm/model_executor/models/kimi_vl.py, https://github.com/vllm-project/vllm
"""

from collections.abc import Mapping
from typing import Any

# model_type -> the field that holds the decoder's whole config
WITHIN = {"internvl_chat": "llm_config", "kimi_vl": "text_config"}


def decoder_within(config: Mapping[str, Any]) -> Mapping[str, Any]:
    """The decoder's own config.

    Raises: ValueError where it is not there
    """
    model_type = config["model_type"]
    field = WITHIN[model_type]
    part = config.get(field)
    if not isinstance(part, Mapping) or "model_type" not in part or part["model_type"] in WITHIN:
        raise ValueError(f"{field!r} is missing; {model_type} configs keep their language model there")
    return part
