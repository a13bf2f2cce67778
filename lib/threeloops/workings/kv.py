"""`threeloops kv`: what a context costs in memory."""

from threeloops import dtypes, kv_cache, units
from threeloops.hardware import Part
from threeloops.kv_allocators import Allocator, InformationMinimum
from threeloops.models import Attention, LatentAttention, Layer, Model
from threeloops.parameters import model_parameters
from threeloops.workings.working import Line, Working, plain

SOURCES = (
    "Ainslie et al., 2023, arXiv:2305.13245 (grouped-query attention)",
    "DeepSeek-AI, 2024, arXiv:2405.04434, section 2.1 (latent attention)",
    "Kwon et al., 2023, arXiv:2309.06180 (paged allocation)",
)


def _layer_line(layer: Layer, num_layers: int, *, tokens: int, element: float, tp: int) -> Line:
    """One group of equal layers: formula, numbers, bytes."""
    attention = layer.attention
    width = f"{element:g}"
    if isinstance(attention, LatentAttention):
        readable, kind = tokens, "latent"
        formula = "layers × (latent rank + RoPE key) × bytes × tokens"
        numbers = f"{num_layers} × ({attention.kv_rank} + {attention.rope_head_dim}) × {width} × {readable}"
    else:
        readable = tokens if attention.window is None else min(tokens, attention.window)
        kind = "full" if attention.window is None else f"window {attention.window}"
        heads = kv_cache.kv_heads_per_rank(num_heads=attention.num_heads, num_kv_heads=attention.num_kv_heads, tp=tp) if attention.owns_cache else 0
        formula = "2 × layers × KV heads × head dim × bytes × tokens"
        numbers = f"2 × {num_layers} × {heads} × {attention.head_dim} × {width} × {readable}"
    per_token = kv_cache.layer_bytes_per_token(attention, bytes_per_element=element, tp=tp)
    name = f"{num_layers} layers, {kind}" + (f", each of {tp} ranks" if tp > 1 else "")
    return Line(name=name, formula=formula, numbers=numbers, value=num_layers * readable * per_token, unit="B", binary=True)


def working(
    model: Model, *, tokens: int, batch: int, dtype: str, tp: int, allocator: Allocator | None, part: Part | None, weights_dtype: str | None, share: float
) -> Working:
    """The cache of `batch` requests of `tokens` tokens on each of `tp` ranks; with a part, how many such requests fit beside the weights."""
    element = dtypes.bytes_per_element(dtype)
    lines = [_layer_line(layer, count, tokens=tokens, element=element, tp=tp) for layer, count in model.groups]
    request = kv_cache.request_bytes(model, tokens=tokens, bytes_per_element=element, tp=tp)
    one_token = kv_cache.bytes_per_token(model, bytes_per_element=element, tp=tp)
    if len(lines) > 1:
        lines.append(_sum("one request", "sum over the layers", " + ".join(plain(line.value) for line in lines), request))
    if batch > 1:
        lines.append(_sum("all requests", "requests × one request", f"{batch} × {plain(request)}", batch * request))
    kept, next_token = units.fmt_bytes(batch * request, base=2), units.fmt_bytes(one_token, base=2)
    conclusion = f"{units.counted(batch, 'request')} of {tokens:,} tokens: {kept} per GPU. The first tokens cost {next_token} each."
    if allocator:
        reserved = kv_cache.reserved_bytes(model, tokens=tokens, bytes_per_element=element, allocator=allocator, tp=tp)
        lines.append(_sum(f"reserved by {allocator.name}", "requests × slots held × bytes of a slot", f"{batch} × {plain(reserved)}", batch * reserved))
    if part and weights_dtype:
        fit_lines, conclusion = _fit(model, part, tokens=tokens, element=element, tp=tp, allocator=allocator, weights_dtype=weights_dtype, share=share)
        lines += fit_lines
    return Working(
        title=f"KV cache of {model.name}",
        inputs={
            "tokens": f"{tokens:,} per request (prompt and answer together)",
            "requests": f"{batch:,}",
            "cache": f"{dtype}, {element:g} bytes per element",
            "tensor parallel": units.counted(tp, "rank"),
            "layers": f"{model.num_layers}, of which {_describe(model)}",
        }
        | ({"accelerator": part.name} if part else {}),
        lines=tuple(lines),
        conclusion=conclusion,
        assumes=(
            "the newest token is already cached; a windowed layer keeps min(tokens, window)",
            "no sharing between requests",
            "no scales beside the elements, unless the format has its own (nvfp4, mxfp8)",
        ),
        sources=SOURCES,
        data={"bytes_per_token": one_token},
    )


def _sum(name: str, formula: str, numbers: str, value: float) -> Line:
    return Line(name=name, formula=formula, numbers=numbers, value=value, unit="B", binary=True)


def _fit(
    model: Model, part: Part, *, tokens: int, element: float, tp: int, allocator: Allocator | None, weights_dtype: str, share: float
) -> tuple[list[Line], str]:
    """How many such requests fit beside the weights."""
    parameters = model_parameters(model).total
    weight_element = dtypes.bytes_per_element(weights_dtype)
    weights = parameters * weight_element / tp
    capacity = part.capacity_bytes()
    free = capacity * share - weights
    lines = [
        _sum("weights per GPU", "parameters × bytes / ranks", f"{plain(parameters)} × {weight_element:g} / {tp}", weights),
        _sum("left for the cache", "capacity × share - weights", f"{plain(capacity)} × {share:g} - {plain(weights)}", free),
    ]
    if free <= 0:
        needed, there = units.fmt_bytes(weights, base=2), units.fmt_bytes(capacity * share, base=2)
        return lines, f"The weights alone need {needed} of {there}: raise tp, or store them in fewer bits."
    used = allocator or InformationMinimum()
    fits = kv_cache.largest_batch(model, tokens=tokens, free_bytes=free, bytes_per_element=element, allocator=used, tp=tp)
    longest = kv_cache.longest_context(model, batch=1, free_bytes=free, bytes_per_element=element, allocator=used, tp=tp)
    return lines, f"{fits:,} such requests fit on {part.name} beside the weights; one request alone could reach {longest:,} tokens."


def _describe(model: Model) -> str:
    words = []
    for layer, count in model.groups:
        attention = layer.attention
        if isinstance(attention, Attention):
            words.append(f"{count} with {attention.num_kv_heads} KV heads of {attention.head_dim}")
        else:
            words.append(f"{count} with a latent of {attention.kv_rank} + {attention.rope_head_dim}")
    return ", ".join(words)
