"""What a request keeps: the lines of a cache's working, layer by layer, and what is said of its format."""

from typing import TypedDict

from threeloops import units
from threeloops.commands.working import Line
from threeloops.models.architecture import Attention, LatentAttention, Layer, Model, Recurrent
from threeloops.product_loop import kv_cache
from threeloops.product_loop.kv_quantisation import CacheFormat, Quantisation
from threeloops.product_loop.recurrent_state import CONV_BYTES, MATRIX_BYTES, rank_state_bytes

CACHE_HELP = "how keys and values are stored: bf16, fp8, nvfp4; llama.cpp's q8_0, q4_0, …; vLLM's fp8_ds_mla, …"


class Stored(TypedDict):
    """A format as the formulas of a cache take it."""

    bytes_per_element: float
    quantisation: Quantisation


def stored(cache: CacheFormat) -> Stored:
    """What the formulas of a cache want to know of its format."""
    return Stored(bytes_per_element=cache.bytes_per_element, quantisation=cache.quantisation)


def cache_lines(model: Model, *, tokens: int, cache: CacheFormat, tp: int) -> list[Line]:
    """What one request keeps on each rank, a line for each group of layers whose caches are alike."""
    return [_layer_line(layer, count, tokens=tokens, cache=cache, tp=tp) for layer, count in alike(model)]


def cache_words(cache: CacheFormat) -> str:
    """A cache's format as a line of inputs says it."""
    beside = cache.quantisation
    engine = f", as {cache.engine} keeps it" if cache.engine else ""
    if not beside.scale_bytes:
        return f"{cache.name}, {cache.bytes_per_element:g} bytes per element{engine}"
    every = "vector" if beside.elements_per_scale is None else f"{beside.elements_per_scale} elements"
    return (
        f"{cache.name}, {cache.bytes_per_element:g} bytes per element, and {beside.scale_bytes:g} of scales for each"
        f" {every}{engine}"
    )


def cache_assumed(cache: CacheFormat) -> list[str]:
    """What is said besides of scales and of an indexer's keys."""
    said, beside = [], cache.quantisation
    if not beside.scale_bytes:
        said.append("no scales beside the elements, unless the format has its own (nvfp4, mxfp8)")
    if beside.rope_bytes_per_element is not None:
        said.append("fp8_ds_mla: latents in fp8 with a 4-byte scale for 128, the position key in 16 bits")
    if beside.index_keys_apart:
        said.append("an indexer's keys in fp8 with a 4-byte scale for 128, as vLLM and SGLang keep them in any case")
    return said


def _layer_line(layer: Layer, num_layers: int, *, tokens: int, cache: CacheFormat, tp: int) -> Line:
    """One group of equal layers: formula, numbers, bytes."""
    attention = layer.attention
    if isinstance(attention, Recurrent):
        return _state_line(attention, num_layers, tp=tp)
    attention = layer.attending
    if isinstance(attention, LatentAttention):
        readable, kind = tokens, "latent"
        formula, numbers = _latent_words(attention, cache)
    else:
        readable = tokens if attention.window is None else min(tokens, attention.window)
        kind = "full" if attention.window is None else f"window {attention.window}"
        heads = (
            kv_cache.kv_heads_per_rank(num_heads=attention.num_heads, num_kv_heads=attention.num_kv_heads, tp=tp)
            if attention.owns_cache
            else 0
        )
        formula, numbers = "head dim × bytes", f"{attention.head_dim} × {cache.bytes_per_element:g}"
        if cache.quantisation.scale_bytes:
            beside = cache.quantisation.vector_scale_bytes(attention.head_dim)
            formula, numbers = f"({formula} + scales)", f"({numbers} + {beside:g})"
        formula, numbers = f"KV heads × {formula}", f"{heads} × {numbers}"
    twice = "" if isinstance(attention, LatentAttention) else "2 × "
    per_token = kv_cache.layer_bytes_per_token(attention, **stored(cache), tp=tp)
    name = f"{units.counted(num_layers, 'layer')}, {kind}" + (f", each of {tp} ranks" if tp > 1 else "")
    return Line(
        name=name,
        formula=f"{twice}layers × {formula} × tokens",
        numbers=f"{twice}{num_layers} × {numbers} × {readable}",
        value=num_layers * readable * per_token,
        unit="B",
        binary=True,
    )


def _latent_words(attention: LatentAttention, cache: CacheFormat) -> tuple[str, str]:
    """What a layer keeps of a token, in words and in numbers."""
    width, beside, indexer = cache.bytes_per_element, cache.quantisation, attention.indexer
    if not beside.scale_bytes and not beside.index_keys_apart:
        words = f"(latent rank + RoPE key{' + index key' if indexer else ''}) × bytes"
        index = f" + {indexer.head_dim}" if indexer else ""
        return words, f"({attention.kv_rank} + {attention.rope_head_dim}{index}) × {width:g}"
    rope = width if beside.rope_bytes_per_element is None else beside.rope_bytes_per_element
    terms = {
        "latent rank × bytes": f"{attention.kv_rank} × {width:g}",
        "RoPE key × its bytes": f"{attention.rope_head_dim} × {rope:g}",
    }
    if beside.scale_bytes:
        scaled = [attention.kv_rank] + ([attention.rope_head_dim] if beside.rope_bytes_per_element is None else [])
        terms["scales"] = f"{sum(map(beside.vector_scale_bytes, scaled)):g}"
    if indexer:
        terms["index key"] = f"{beside.index_bytes(indexer.head_dim, bytes_per_element=width):g}"
    return f"({' + '.join(terms)})", f"({' + '.join(terms.values())})"


def _state_line(recurrent: Recurrent, num_layers: int, *, tp: int) -> Line:
    """One group of recurrent layers: what they keep, however long the context is."""
    numbers = f"{recurrent.state_elements} × {MATRIX_BYTES} + {recurrent.conv_elements} × {CONV_BYTES}"
    return Line(
        name=f"{units.counted(num_layers, 'layer')}, recurrent" + (f", each of {tp} ranks" if tp > 1 else ""),
        formula="layers × (state × bytes + convolution's inputs × bytes)" + (" / ranks" if tp > 1 else ""),
        numbers=f"{num_layers} × ({numbers})" + (f" / {tp}" if tp > 1 else ""),
        value=num_layers * rank_state_bytes(recurrent, tp=tp),
        unit="B",
        binary=True,
    )


def alike(model: Model) -> list[tuple[Layer, int]]:
    """Groups of layers whose caches are alike, added up; layers of an MLP alone keep nothing."""
    found: dict[Attention | LatentAttention | Recurrent, tuple[Layer, int]] = {}
    for layer, count in model.groups:
        if layer.attention is None:
            continue
        first, before = found.get(layer.attention, (layer, 0))
        found[layer.attention] = (first, before + count)
    return list(found.values())


def describe(layer: Layer, count: int, tp: int) -> str:
    """A group of equal layers, in the line of inputs."""
    if isinstance(layer.attention, Recurrent):
        return f"{count} with a state of {layer.attention.state_heads} heads"
    attention = layer.attending
    if isinstance(attention, LatentAttention):
        index = f" and an index key of {attention.indexer.head_dim}" if attention.indexer else ""
        return f"{count} with a latent of {attention.kv_rank} + {attention.rope_head_dim}{index}" + (
            ", whole on every rank" if tp > 1 else ""
        )
    window = f", window {attention.window:,}" if attention.window else ""
    heads = f"{count} with {attention.num_kv_heads} KV heads of {attention.head_dim}{window}"
    copies = tp // attention.num_kv_heads
    return heads + (f", each on {copies} ranks" if copies > 1 else "")
