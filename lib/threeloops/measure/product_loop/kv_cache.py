"""Weigh a real KV cache: run a small random transformers model and add up the bytes of the tensors in its cache.

Bytes are taken twice, because they differ: what the tensors show, and the memory that they keep in use (each storage
once, whole, even if a tensor shows a part of it). Sizes depend on shapes and number formats only, so random weights
of a few kilobytes tell the same as the real model.
"""

import itertools
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from transformers import AutoConfig, AutoModelForCausalLM, Cache, PreTrainedModel, StaticCache

from threeloops import checks


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheWeight:
    """Bytes of one cache on this machine, and the tokens that each layer shows."""

    tensor_bytes: int  # elements shown, times their size
    storage_bytes: int  # memory kept in use
    layer_tokens: tuple[int, ...]  # 0 where a layer caches nothing of its own


def small_model(config: Mapping[str, Any], *, dtype: torch.dtype) -> PreTrainedModel:
    """A causal language model of this configuration (its `model_type` included), with random weights.

    >>> heads = dict(hidden_size=16, num_attention_heads=4, num_key_value_heads=2, head_dim=4)
    >>> model = small_model(
    ...     dict(model_type="llama", vocab_size=8, intermediate_size=8, num_hidden_layers=3, **heads),
    ...     dtype=torch.bfloat16,
    ... )
    >>> weighed_cache(
    ...     model, batch=1, prompt_tokens=5
    ... ).tensor_bytes == 3 * 2 * 2 * 4 * 5 * 2  # layers, K and V, KV heads, head_dim, tokens, bytes
    True
    """
    model: PreTrainedModel = AutoModelForCausalLM.from_config(AutoConfig.for_model(**config), dtype=dtype)
    model.train(False)
    return model


def filled_cache(
    model: PreTrainedModel, *, batch: int, prompt_tokens: int, decode_tokens: int = 0, cache: Cache | None = None
) -> Cache:
    """The cache after a prefill in one call and `decode_tokens` calls of one token; without `cache`, the one that the
    model makes for itself.
    """
    checks.count(batch=batch, prompt_tokens=prompt_tokens)
    checks.count(at_least=0, decode_tokens=decode_tokens)
    with torch.no_grad():
        for tokens in [prompt_tokens] + [1] * decode_tokens:
            cache = model(
                torch.zeros((batch, tokens), dtype=torch.long), past_key_values=cache, use_cache=True
            ).past_key_values
    assert cache is not None
    return cache


def static_cache(model: PreTrainedModel, *, max_tokens: int) -> Cache:
    """transformers' preallocated cache for this model, still empty."""
    checks.count(max_tokens=max_tokens)
    return StaticCache(config=model.config, max_cache_len=max_tokens)


def _keys_and_values(cache: Cache) -> list[tuple[torch.Tensor, ...]]:
    """Each layer's cached tensors; none for layers that read another's cache. States of recurrent layers are no part
    of a KV cache.
    """
    layers: list[Any] = cache.layers
    return [(layer.keys, layer.values) if getattr(layer, "keys", None) is not None else () for layer in layers]


def cache_weight(cache: Cache) -> CacheWeight:
    """Weigh the keys and values of every layer."""
    layers = _keys_and_values(cache)
    storages = {
        tensor.untyped_storage().data_ptr(): tensor.untyped_storage().nbytes() for layer in layers for tensor in layer
    }
    return CacheWeight(
        tensor_bytes=sum(tensor.nbytes for layer in layers for tensor in layer),
        storage_bytes=sum(storages.values()),
        layer_tokens=tuple(layer[0].shape[-2] if layer else 0 for layer in layers),
    )


def state_bytes(cache: Cache) -> int:
    """Bytes of the states that layers of linear attention keep: their matrices, and the inputs of their short
    convolutions.
    """
    kept = [
        state
        for layer in cache.layers
        for states in (getattr(layer, "recurrent_states", {}), getattr(layer, "conv_states", {}))
        for state in states.values()
        if state is not None
    ]
    return sum(state.nbytes for state in kept)


def weighed_cache(
    model: PreTrainedModel, *, batch: int, prompt_tokens: int, decode_tokens: int = 0, cache: Cache | None = None
) -> CacheWeight:
    """Fill a cache and weigh it."""
    return cache_weight(
        filled_cache(model, batch=batch, prompt_tokens=prompt_tokens, decode_tokens=decode_tokens, cache=cache)
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class QuantisedWeight:
    """A cache in int8 with one fp32 scale per token and head: bytes of both parts, and the error that the rounding
    left.
    """

    bytes_per_element: int
    scale_bytes: int
    largest_relative_error: float  # per vector: largest error over largest element

    @property
    def total(self) -> int:
        return self.bytes_per_element + self.scale_bytes


def int8_weight(cache: Cache) -> QuantisedWeight:
    """Quantise every key and value vector of a filled cache to int8 and weigh the result."""
    bytes_per_element = scale_bytes = 0
    worst = 0.0
    for tensor in itertools.chain.from_iterable(_keys_and_values(cache)):
        largest = tensor.float().abs().amax(dim=-1, keepdim=True).clamp(min=torch.finfo(torch.float32).tiny)
        scales = largest / torch.iinfo(torch.int8).max
        elements = (tensor.float() / scales).round().to(torch.int8)
        bytes_per_element += elements.nbytes
        scale_bytes += scales.nbytes
        worst = max(worst, float(((elements * scales - tensor.float()).abs() / largest).max()))
    return QuantisedWeight(bytes_per_element=bytes_per_element, scale_bytes=scale_bytes, largest_relative_error=worst)
