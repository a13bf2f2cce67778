"""`threeloops kv`: what a context costs in memory."""

from dataclasses import dataclass

from threeloops import checks, dtypes, units
from threeloops.commands.working import Line, Working, plain, share_of_memory
from threeloops.facts.hardware import Part
from threeloops.models.architecture import Attention, LatentAttention, Layer, Model, Recurrent
from threeloops.models.parameters import model_parameters
from threeloops.product_loop import kv_cache, kv_capacity
from threeloops.product_loop.kv_allocators import Allocator, InformationMinimum
from threeloops.product_loop.recurrent_state import CONV_BYTES, MATRIX_BYTES, rank_state_bytes

SOURCES = (
    "Ainslie et al., 2023, arXiv:2305.13245 (grouped-query attention)",
    "DeepSeek-AI, 2024, arXiv:2405.04434, section 2.1 (latent attention)",
    "Kwon et al., 2023, arXiv:2309.06180 (paged allocation)",
)
STATE_FORMATS = "recurrent layers keep their matrices in fp32, their convolution's inputs in 16 bits"
STATE_SOURCE = "Yang et al., 2024, arXiv:2412.06464; Dao, Gu, 2024, arXiv:2405.21060 (states that do not grow)"


def _layer_line(layer: Layer, num_layers: int, *, tokens: int, element: float, tp: int) -> Line:
    """One group of equal layers: formula, numbers, bytes."""
    attention = layer.attention
    width = f"{element:g}"
    if isinstance(attention, Recurrent):
        return _state_line(attention, num_layers, tp=tp)
    attention = layer.attending
    if isinstance(attention, LatentAttention):
        readable, kind = tokens, "latent"
        index = f" + {attention.indexer.head_dim}" if attention.indexer else ""
        formula = f"layers × (latent rank + RoPE key{' + index key' if index else ''}) × bytes × tokens"
        numbers = f"{num_layers} × ({attention.kv_rank} + {attention.rope_head_dim}{index}) × {width} × {readable}"
    else:
        readable = tokens if attention.window is None else min(tokens, attention.window)
        kind = "full" if attention.window is None else f"window {attention.window}"
        heads = (
            kv_cache.kv_heads_per_rank(num_heads=attention.num_heads, num_kv_heads=attention.num_kv_heads, tp=tp)
            if attention.owns_cache
            else 0
        )
        formula = "2 × layers × KV heads × head dim × bytes × tokens"
        numbers = f"2 × {num_layers} × {heads} × {attention.head_dim} × {width} × {readable}"
    per_token = kv_cache.layer_bytes_per_token(attention, bytes_per_element=element, tp=tp)
    name = f"{units.counted(num_layers, 'layer')}, {kind}" + (f", each of {tp} ranks" if tp > 1 else "")
    return Line(
        name=name, formula=formula, numbers=numbers, value=num_layers * readable * per_token, unit="B", binary=True
    )


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


def cache_lines(model: Model, *, tokens: int, element: float, tp: int) -> list[Line]:
    """What one request keeps on each rank, a line for each group of layers whose caches are alike."""
    return [_layer_line(layer, count, tokens=tokens, element=element, tp=tp) for layer, count in _alike(model)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Beside:
    """What the cache has to share an accelerator with."""

    part: Part
    weights_dtype: str
    share: float  # of the memory, that may be used


def working(
    model: Model, *, tokens: int, batch: int, dtype: str, tp: int, allocator: Allocator | None, beside: Beside | None
) -> Working:
    """The cache of `batch` requests of `tokens` tokens on each of `tp` ranks; with an accelerator, how many such
    requests fit beside the weights.
    """
    checks.count(tokens=tokens, batch=batch)
    element = dtypes.bytes_per_element(dtype)
    groups, states = _alike(model), kv_cache.states_bytes(model, tp=tp)
    lines = cache_lines(model, tokens=tokens, element=element, tp=tp)
    request = kv_cache.request_bytes(model, tokens=tokens, bytes_per_element=element, tp=tp)
    first, next_one = (
        kv_cache.bytes_per_token(model, bytes_per_element=element, tp=tp, past_tokens=past) for past in (0, tokens)
    )
    if len(lines) > 1:
        lines.append(
            _sum("one request", "sum over the layers", " + ".join(plain(line.value) for line in lines), request)
        )
    if batch > 1:
        lines.append(_sum("all requests", "requests × one request", f"{batch} × {plain(request)}", batch * request))
    growth = f"one more token costs {units.fmt_bytes(next_one, base=2)}" + (
        f" (the first ones {units.fmt_bytes(first, base=2)})" if first != next_one else ""
    )
    conclusion = (
        f"{units.counted(batch, 'request')} of {tokens:,} tokens: {units.fmt_bytes(batch * request, base=2)} per GPU;"
        f" {growth}."
    )
    if allocator:
        reserved = kv_cache.held_bytes(model, tokens=tokens, bytes_per_element=element, allocator=allocator, tp=tp)
        lines.append(
            _sum(
                f"reserved by {allocator.name}",
                "requests × what it holds for one",
                f"{batch} × {plain(reserved)}",
                batch * reserved,
            )
        )
    fits: dict[str, float | None] = {}
    if beside:
        fit_lines, fits, conclusion = _fit(
            model, beside, tokens=tokens, element=element, tp=tp, allocator=allocator or InformationMinimum()
        )
        lines += fit_lines
    if tokens > model.max_context:
        conclusion += f" {model.name} was made for {model.max_context:,} tokens at most."
    return Working(
        title=f"KV cache of {model.name}",
        inputs={
            "tokens": f"{tokens:,} per request (prompt and answer together)",
            "requests": f"{batch:,}",
            "cache": f"{dtype}, {element:g} bytes per element",
            "tensor parallel": units.counted(tp, "rank"),
            "layers": f"{model.num_layers}: {', '.join(_describe(layer, count, tp) for layer, count in groups)}",
        }
        | ({"accelerator": f"{beside.part.name}, {capacity_words(beside.part)}"} if beside else {}),
        lines=tuple(lines),
        conclusion=conclusion,
        assumes=(
            "the newest token is already cached; a windowed layer keeps min(tokens, window)",
            "no sharing between requests",
            *((STATE_FORMATS,) if states else ()),
            "no scales beside the elements, unless the format has its own (nvfp4, mxfp8)",
            *(
                (
                    (
                        "weights in one format, split evenly over the ranks; no activations, workspace or graphs:"
                        " --share leaves room for them"
                    ),
                )
                if beside
                else ()
            ),
        ),
        sources=(*SOURCES, STATE_SOURCE) if states else SOURCES,
        data={"bytes_per_token": first, **fits},
    )


def capacity_words(part: Part) -> str:
    """How much memory a part has, and who says so."""
    who = "as the driver reports it" if "usable_bytes" in part.facts else "by its datasheet"
    return f"{units.fmt(part.capacity_bytes(), 'B', binary=True)} {who}"


def _sum(name: str, formula: str, numbers: str, value: float) -> Line:
    return Line(name=name, formula=formula, numbers=numbers, value=value, unit="B", binary=True)


def _fit(
    model: Model, beside: Beside, *, tokens: int, element: float, tp: int, allocator: Allocator
) -> tuple[list[Line], dict[str, float | None], str]:
    """How many such requests fit beside the weights: the working, the numbers for a script, the sentence."""
    parameters = model_parameters(model).total
    weight_element = dtypes.bytes_per_element(beside.weights_dtype)
    capacity, share = beside.part.capacity_bytes(), share_of_memory(beside.share)
    weights = parameters * weight_element / tp
    free = capacity * share - weights
    lines = [
        _sum(
            "weights per GPU", "parameters × bytes / ranks", f"{plain(parameters)} × {weight_element:g} / {tp}", weights
        ),
        _sum(
            "left for the cache",
            "capacity × share - weights",
            f"{plain(capacity)} × {share:g} - {plain(weights)}",
            free,
        ),
    ]
    if free <= 0:
        needed, there = units.fmt_bytes(weights, base=2), units.fmt_bytes(capacity * share, base=2)
        return lines, {"fits": 0}, f"The weights alone need {needed} of {there}: raise tp, or store them in fewer bits."
    most = kv_cache.held_bytes(model, tokens=tokens, bytes_per_element=element, allocator=allocator, tp=tp, peak=True)
    fits = kv_capacity.max_concurrent_requests(
        model, tokens=tokens, free_bytes=free, bytes_per_element=element, allocator=allocator, tp=tp
    )
    longest = kv_capacity.longest_by_memory(
        model, batch=1, free_bytes=free, bytes_per_element=element, allocator=allocator, tp=tp
    )
    lines.append(
        _sum("one request at its largest", f"what {allocator.name} holds at most on the way", plain(most), most)
    )
    lines.append(
        Line(
            name="requests that fit",
            formula="left / one request at its largest, rounded down",
            numbers=f"{plain(free)} // {plain(most)}",
            value=fits,
            unit="",
        )
    )
    made_for = f", though the model was made for {model.max_context:,}"
    alone = (
        f"memory sets no limit to the length of a single one{made_for} tokens"
        if longest is None
        else f"a single one would have memory for {longest:,} tokens" + made_for * (longest > model.max_context)
    )
    sentence = f"{fits:,} such requests fit on {beside.part.name} beside the weights; {alone}."
    return lines, {"fits": fits, "longest_context_by_memory": longest}, sentence


def _alike(model: Model) -> list[tuple[Layer, int]]:
    """Groups of layers whose caches are alike, added up; layers of an MLP alone keep nothing."""
    found: dict[Attention | LatentAttention | Recurrent, tuple[Layer, int]] = {}
    for layer, count in model.groups:
        if layer.attention is None:
            continue
        first, before = found.get(layer.attention, (layer, 0))
        found[layer.attention] = (first, before + count)
    return list(found.values())


def _describe(layer: Layer, count: int, tp: int) -> str:
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
