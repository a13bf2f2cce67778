"""A class of transformers, built and stepped on torch's meta device: shapes without values, so no memory and no
arithmetic. What it holds, and what it keeps of a prompt.

Experts pass their input on: what they compute changes nothing that is kept.
"""

import contextlib
import warnings
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import torch
from torch.fx.experimental import _config as shapes_config
from transformers import AutoConfig, AutoModelForCausalLM, PreTrainedConfig, PreTrainedModel
from transformers.models.auto.configuration_auto import CONFIG_MAPPING
from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING
from transformers.utils import logging

from threeloops.models.layers.counted import CountedWeights

# How a file was saved and is to be run: no part of the model.
_NOT_THE_MODEL = {
    "auto_map", "dtype", "torch_dtype", "quantization_config", "compression_config", "attn_implementation",
    "_attn_implementation", "_attn_implementation_autoset", "experts_implementation", "_experts_implementation",
    "transformers_version", "use_cache",
}  # fmt: skip
_IN_CACHES = (dict, list, tuple)

Place = tuple[int | None, str]  # layer, if it has one, and name
Shapes = dict[Place, tuple[int, ...]]


@contextlib.contextmanager
def quietly() -> Iterator[None]:
    """Without what the classes say to whoever would run them."""
    before = logging.get_verbosity()
    logging.set_verbosity_error()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.set_verbosity(before)


def class_config(content: Mapping[str, Any]) -> PreTrainedConfig:
    """The config of the class that reads and writes text.

    Raises: ValueError where there is none, or its fields are refused
    """
    model_type = content["model_type"]
    if model_type not in CONFIG_MAPPING:
        raise ValueError(f"the transformers that is installed here has no class for {model_type!r} either")
    fields = {name: value for name, value in content.items() if name not in _NOT_THE_MODEL and name != "model_type"}
    try:
        config: PreTrainedConfig = AutoConfig.for_model(model_type, **fields)
    except Exception as error:  # each class checks its fields in its own way
        raise ValueError(f"its class in transformers refuses its fields: {first_line(error)}") from error
    found = next((one for one in (_text(config), config) if type(one) in MODEL_FOR_CAUSAL_LM_MAPPING), None)
    if found is None or found.is_encoder_decoder:
        raise ValueError(f"transformers has no class for {model_type!r} that is a decoder with a language model's head")
    if getattr(_text(config), "cross_attention_layers", None):
        raise ValueError("its layers keep keys and values of images, too, which a prompt of tokens does not show")
    return found


def _text(config: PreTrainedConfig) -> PreTrainedConfig:
    text: PreTrainedConfig = config.get_text_config(decoder=True)
    return text


def first_line(error: Exception) -> str:
    """What an error says first; its kind, where it says nothing."""
    return next(iter(str(error).strip().splitlines()), type(error).__name__).strip()


def built(config: PreTrainedConfig) -> PreTrainedModel:
    """The model without values.

    Raises: ValueError where its class cannot be built of these fields
    """
    try:
        with torch.device("meta"):
            model: PreTrainedModel = AutoModelForCausalLM.from_config(config, dtype=torch.bfloat16)
    except Exception as error:
        raise ValueError(f"its class in transformers cannot be built: {first_line(error)}") from error
    model.train(False)
    return model


def held(model: PreTrainedModel, *, how: str) -> CountedWeights:
    """Every parameter once, by what it is."""
    table, head = model.get_input_embeddings(), model.get_output_embeddings()
    counts = dict.fromkeys(("embedding", "further_tables", "head", "matrices", "experts", "others"), 0)
    seen: set[int] = set()
    for name, module in model.named_modules():
        inside = any("Experts" in type(model.get_submodule(above)).__name__ for above in _above(name))
        for parameter in module.parameters(recurse=False):
            if id(parameter) in seen:
                continue
            seen.add(id(parameter))
            if module is table:
                kind = "embedding"
            elif module is head:
                kind = "head"
            elif isinstance(module, torch.nn.Embedding):
                kind = "further_tables"
            elif inside and (parameter.ndim > 2 or (isinstance(module, torch.nn.Linear) and parameter.ndim > 1)):
                kind = "experts"
            else:
                kind = "matrices" if parameter.ndim > 1 and not inside else "others"
            counts[kind] += parameter.numel()
    return CountedWeights(how=how, **counts)


def _above(name: str) -> Iterator[str]:
    """The module itself and those that hold it."""
    parts = name.split(".") if name else []
    return (".".join(parts[:depth]) for depth in range(len(parts), 0, -1))


def kept(model: PreTrainedModel, lengths: Sequence[int]) -> list[Shapes]:
    """The shape of everything that it keeps of a prompt, for each length.

    Raises: ValueError where it keeps nothing, or needs values to be stepped
    """
    for module in model.modules():
        if type(module).__name__.endswith("Experts"):
            module.forward = _passed_on
    found = []
    for tokens in lengths:
        try:
            prompt = torch.zeros((1, tokens), dtype=torch.long, device="meta")
            with torch.no_grad(), shapes_config.patch(meta_nonzero_assume_all_nonzero=True):
                answer = model(input_ids=prompt, use_cache=True)
        except Exception as error:
            raise ValueError(
                f"its class in transformers cannot be stepped without values: {first_line(error)}"
            ) from error
        caches = (getattr(answer, name, None) for name in ("past_key_values", "cache_params", "state"))
        cache = next((one for one in caches if one is not None), None)
        if cache is None:
            raise ValueError("its class in transformers returns no cache, so that nothing can be counted of it")
        found.append(dict(_shapes(cache)))
    return found


def _passed_on(hidden: torch.Tensor, *_: Any, **__: Any) -> torch.Tensor:
    return hidden


def _shapes(cache: object) -> Iterator[tuple[Place, tuple[int, ...]]]:
    """Everything in a cache that is no whole number, by layer."""
    for name, value in vars(cache).items() if hasattr(cache, "__dict__") else [("state", cache)]:
        if isinstance(value, torch.Tensor):
            yield from _tensors(value, None, name)
        elif isinstance(value, list | tuple):
            for layer, one in enumerate(value):
                yield from _tensors(one, layer, "" if name == "layers" else name)
        elif isinstance(value, dict):
            for key, one in value.items():
                yield from _tensors(one, key if isinstance(key, int) else None, name)


def _tensors(value: object, layer: int | None, name: str) -> Iterator[tuple[Place, tuple[int, ...]]]:
    if isinstance(value, torch.Tensor):
        if value.is_floating_point() and value.numel():
            yield (layer, name), tuple(value.shape)
        return
    inside = value if isinstance(value, dict) else vars(value) if hasattr(value, "__dict__") else {}
    if isinstance(value, list | tuple):
        inside = dict(enumerate(value))
    for key, one in inside.items():
        if isinstance(one, (torch.Tensor, *_IN_CACHES)):
            yield from _tensors(one, layer, ".".join(filter(None, (name, str(key)))))
