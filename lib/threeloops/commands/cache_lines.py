"""What a request keeps: the lines of a cache's working, layer by layer, and what is said of its format."""

from threeloops import units
from threeloops.commands.working import Line
from threeloops.models.architecture import LatentAttention, Mixer, Model, Recurrent
from threeloops.models.layers.compressed import CompressedAttention
from threeloops.product_loop import kv_cache
from threeloops.product_loop.caches.entry_caches import entries_bytes, entry_bytes, token_vector_bytes
from threeloops.product_loop.caches.kv_heads import kv_heads_per_rank
from threeloops.product_loop.kv_quantisation import CacheFormat, Stored
from threeloops.product_loop.recurrent_state import CONV_BYTES, MATRIX_BYTES, rank_state_bytes

CACHE_HELP = "how keys and values are stored: bf16, fp8, nvfp4; llama.cpp's q8_0, q4_0, …; vLLM's fp8_ds_mla, …"


def stored(cache: CacheFormat) -> Stored:
    """What the formulas of a cache want to know of its format."""
    return Stored(bytes_per_element=cache.bytes_per_element, quantisation=cache.quantisation)


def cache_lines(model: Model, *, tokens: int, cache: CacheFormat, tp: int) -> list[Line]:
    """What one request keeps on each rank, a line for each group of layers whose caches are alike."""
    return [_mixer_line(one, count, tokens=tokens, cache=cache, tp=tp) for one, count in alike(model)]


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


def _mixer_line(attention: Mixer, num_layers: int, *, tokens: int, cache: CacheFormat, tp: int) -> Line:
    """One group of equal layers: formula, numbers, bytes."""
    if isinstance(attention, Recurrent):
        return _state_line(attention, num_layers, tp=tp)
    if isinstance(attention, CompressedAttention):
        return _entries_line(attention, num_layers, tokens=tokens, cache=cache, tp=tp)
    twice = "2 × "
    if isinstance(attention, LatentAttention):
        readable, kind, twice = tokens, "latent", ""
        formula, numbers = _latent_words(attention, cache)
    else:
        readable = tokens if attention.window is None else min(tokens, attention.window)
        kind = "full" if attention.window is None else f"window {attention.window}"
        heads = (
            kv_heads_per_rank(num_heads=attention.num_heads, num_kv_heads=attention.num_kv_heads, tp=tp)
            if attention.owns_cache
            else 0
        )
        widths = [attention.head_dim]
        formula, numbers = "head dim × bytes", f"{attention.head_dim} × {cache.bytes_per_element:g}"
        if attention.value_head_dim not in (None, attention.head_dim):
            widths, twice = [attention.head_dim, attention.value_head_dim], ""
            formula = "(key dim + value dim) × bytes"
            numbers = f"({' + '.join(map(str, widths))}) × {cache.bytes_per_element:g}"
        if cache.quantisation.scale_bytes:
            beside = sum(map(cache.quantisation.vector_scale_bytes, widths))
            formula, numbers = f"({formula} + scales)", f"({numbers} + {beside:g})"
        formula, numbers = f"KV heads × {formula}", f"{heads} × {numbers}"
        if attention.blocks:
            index = cache.quantisation.index_bytes(attention.blocks.head_dim, bytes_per_element=cache.bytes_per_element)
            formula, numbers, twice = f"(2 × {formula} + index key)", f"(2 × {numbers} + {index:g})", ""
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


def _entries_line(attention: CompressedAttention, num_layers: int, *, tokens: int, cache: CacheFormat, tp: int) -> Line:
    """One group of layers that keep a window and, behind it, an entry for every so many tokens."""
    inside, entries = min(tokens, attention.window), tokens // attention.ratio if attention.ratio else 0
    vector, entry = token_vector_bytes(attention, **stored(cache)), entry_bytes(attention, **stored(cache))
    kept, numbers = "window × vector", f"{inside} × {vector:g}"
    if attention.ratio:
        kept, numbers = f"{kept} + tokens // {attention.ratio} × entry", f"{numbers} + {entries} × {entry:g}"
    kind = f"window {attention.window}" + (f", 1 entry for {attention.ratio} tokens" if attention.ratio else "")
    return Line(
        name=f"{units.counted(num_layers, 'layer')}, {kind}" + (f", each of {tp} ranks" if tp > 1 else ""),
        formula=f"layers × ({kept})",
        numbers=f"{num_layers} × ({numbers})",
        value=num_layers * entries_bytes(attention, entries=entries, window_tokens=inside, **stored(cache)),
        unit="B",
        binary=True,
    )


def alike(model: Model) -> list[tuple[Mixer, int]]:
    """What layers keep a cache or a state with, and how many layers; layers of an MLP alone keep nothing."""
    found: dict[Mixer, int] = {}
    for layer, count in model.groups:
        for one in (layer.attention, layer.state):
            if one is not None:
                found[one] = found.get(one, 0) + count
    return list(found.items())


def describe(mixer: Mixer, count: int, tp: int) -> str:
    """A group of equal layers, in the line of inputs."""
    if isinstance(mixer, Recurrent):
        return f"{count} with a state of {mixer.state_heads} heads"
    if isinstance(mixer, CompressedAttention):
        index = f" and an index key of {mixer.indexer.head_dim}" if mixer.indexer else ""
        entry = f", and the same{index} for {mixer.ratio} tokens" if mixer.ratio else ""
        everywhere = ", whole on every rank" if tp > 1 else ""
        return f"{count} with one vector of {mixer.head_dim}, window {mixer.window:,}{entry}{everywhere}"
    if isinstance(mixer, LatentAttention):
        index = f" and an index key of {mixer.indexer.head_dim}" if mixer.indexer else ""
        return f"{count} with a latent of {mixer.kv_rank} + {mixer.rope_head_dim}{index}" + (
            ", whole on every rank" if tp > 1 else ""
        )
    window = f", window {mixer.window:,}" if mixer.window else ""
    index = f" and an index key of {mixer.blocks.head_dim}" if mixer.blocks else ""
    if not mixer.owns_cache:
        return f"{count} that read another layer's cache{window}"
    values = f" and {mixer.value_head_dim}" if mixer.value_head_dim not in (None, mixer.head_dim) else ""
    heads = f"{count} with {mixer.num_kv_heads} KV heads of {mixer.head_dim}{values}{index}{window}"
    copies = tp // mixer.num_kv_heads
    return heads + (f", each on {copies} ranks" if copies > 1 else "")
