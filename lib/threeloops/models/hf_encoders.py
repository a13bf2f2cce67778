"""Encoders read from a config.json: BERT and ViT, which have parameters and FLOPs but keep no cache.

>>> print(encoder_sentence({"model_type": "bert"}))
model_type='bert' is an encoder, which keeps no cache of keys and values; it has 109,482,240 parameters, and a forward pass over 512 tokens takes 96.6 GFLOP

Source: configuration_bert.py and configuration_vit.py of Hugging Face transformers 5.23.0,
        https://github.com/huggingface/transformers
"""  # noqa: E501

from collections.abc import Mapping
from typing import Any

from threeloops import checks
from threeloops.models.encoders import (
    Bert,
    EncoderStack,
    Vit,
    bert_forward_flops,
    bert_parameters,
    vit_forward_flops,
    vit_parameters,
)
from threeloops.units import fmt_si

ENCODERS = ("bert", "vit")
_STACK = {"hidden_size": 768, "num_hidden_layers": 12, "num_attention_heads": 12, "intermediate_size": 3072}
_CLASS_DEFAULTS: dict[str, dict[str, Any]] = {
    "bert": _STACK | {"vocab_size": 30_522, "max_position_embeddings": 512, "type_vocab_size": 2, "hidden_act": "gelu"},
    "vit": _STACK | {"image_size": 224, "patch_size": 16, "num_channels": 3, "qkv_bias": True, "hidden_act": "gelu"},
}


def encoder_from_config(config: Mapping[str, Any]) -> Bert | Vit:
    """The encoder of a config.json without a head for a task: BERT with its pooler, ViT without a classifier.

    Assumes:  what the class assumes for every field that the file leaves out
    Raises:   ValueError for a model_type that is no encoder, and sizes that do not fit together

    >>> encoder_from_config({"model_type": "vit", "image_size": 384}).image_height
    384
    """
    model_type = config.get("model_type")
    checks.one_of(ENCODERS, model_type=model_type)
    defaults = _CLASS_DEFAULTS[str(model_type)]
    sizes = {name: config.get(name, default) for name, default in defaults.items()}
    for name in ("hidden_act", "qkv_bias"):
        if sizes.pop(name, defaults.get(name)) != defaults.get(name):
            raise ValueError(f"{name}={config[name]!r} is not understood; only {defaults[name]!r} is")
    checks.count(**sizes)
    stack = EncoderStack(
        hidden=sizes["hidden_size"],
        num_layers=sizes["num_hidden_layers"],
        num_heads=sizes["num_attention_heads"],
        intermediate=sizes["intermediate_size"],
    )
    if model_type == "bert":
        return Bert(
            stack=stack,
            vocab=sizes["vocab_size"],
            positions=sizes["max_position_embeddings"],
            token_types=sizes["type_vocab_size"],
            pooler=True,
        )
    return Vit(
        stack=stack,
        image_height=sizes["image_size"],
        image_width=sizes["image_size"],
        patch=sizes["patch_size"],
        channels=sizes["num_channels"],
        classes=0,
        pooler=True,
    )


def encoder_sentence(config: Mapping[str, Any]) -> str:
    """What can be said of an encoder to whoever asks for its cache."""
    encoder = encoder_from_config(config)
    if isinstance(encoder, Bert):
        total = bert_parameters(encoder).total
        flops = bert_forward_flops(encoder, batch=1, sequence=encoder.positions).total
        read = f"{encoder.positions:,} tokens"
    else:
        total = vit_parameters(encoder).total
        flops = vit_forward_flops(encoder, batch=1).total
        read = f"an image of {encoder.image_height} × {encoder.image_width} pixels"
    return (
        f"model_type={config['model_type']!r} is an encoder, which keeps no cache of keys and values; it has"
        f" {total:,} parameters, and a forward pass over {read} takes {fmt_si(flops, 'FLOP')}"
    )
