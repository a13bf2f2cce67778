"""`threeloops kv`: what a context costs in memory."""

from dataclasses import dataclass

from threeloops import checks, units
from threeloops.commands.budget import ROOM_HINT, Budget, capacity_words, rounded_words, size_line, weight_lines
from threeloops.commands.cache_lines import alike, cache_assumed, cache_lines, cache_words, describe, stored
from threeloops.commands.working import Line, Working, plain, said_of_positions
from threeloops.models.architecture import Attention, Model
from threeloops.models.layers.compressed import CompressedAttention
from threeloops.product_loop import kv_cache, kv_capacity
from threeloops.product_loop.kv_allocators import Allocator, InformationMinimum, WholeContext
from threeloops.product_loop.kv_quantisation import CacheFormat

SOURCES = (
    "Ainslie et al., 2023, arXiv:2305.13245 (grouped-query attention)",
    "DeepSeek-AI, 2024, arXiv:2405.04434, section 2.1 (latent attention)",
    "Kwon et al., 2023, arXiv:2309.06180 (paged allocation)",
)
STATE_FORMATS = "recurrent layers keep their matrices in fp32, their convolution's inputs in 16 bits"
WAITING = "tokens that wait to become an entry are not counted: fewer than twice as many as make one"
STATE_SOURCE = "Yang et al., 2024, arXiv:2412.06464; Dao, Gu, 2024, arXiv:2405.21060 (states that do not grow)"


@dataclass(frozen=True, slots=True, kw_only=True)
class Beside:
    """What the cache has to share an accelerator with."""

    budget: Budget
    weights: str  # their format


def working(
    model: Model,
    *,
    tokens: int,
    batch: int,
    cache: CacheFormat,
    tp: int,
    dcp: int = 1,
    allocator: Allocator | None,
    beside: Beside | None,
) -> Working:
    """The cache of `batch` requests of `tokens` tokens on each of `tp` ranks, of which `dcp` share the tokens of one
    that each would keep; with an accelerator, how many such requests fit beside the weights.
    """
    checks.count(tokens=tokens, batch=batch)
    kv_cache.refuse_sharing(model, dcp=dcp)
    allocator = allocator and allocator.shared_by(dcp)
    groups, states = alike(model), kv_cache.states_bytes(model, tp=tp)
    lines = cache_lines(model, tokens=tokens, cache=cache, tp=tp)
    request = kv_cache.per_rank(model, tokens=tokens, batch=1, tp=tp, **stored(cache), dcp=dcp).rank_bytes
    first, next_one = (
        kv_cache.bytes_per_token(model, **stored(cache), tp=tp, past_tokens=past) / dcp for past in (0, tokens)
    )
    if len(lines) > 1 or dcp > 1:
        formula, numbers = "sum over the layers", " + ".join(plain(line.value) for line in lines)
        if dcp > 1:
            formula, numbers = f"({formula}) / dcp", f"({numbers}) / {dcp}"
        lines.append(size_line("one request", formula, numbers, request))
    if batch > 1:
        lines.append(
            size_line("all requests", "requests × one request", f"{batch} × {plain(request)}", batch * request)
        )
    growth = f"one more token costs {units.fmt_bytes(next_one, base=2)}" + (
        f" (the first ones {units.fmt_bytes(first, base=2)})" if first != next_one else ""
    )
    conclusion = (
        f"{units.counted(batch, 'request')} of {tokens:,} tokens: {units.fmt_bytes(batch * request, base=2)} per GPU;"
        f" {growth}."
    )
    if allocator:
        held = kv_cache.held_bytes(model, tokens=tokens, **stored(cache), allocator=allocator, tp=tp) / dcp
        numbers = f"{batch} × {plain(held)}"
        lines.append(
            size_line(f"reserved by {allocator.name}", "requests × what it holds for one", numbers, batch * held)
        )
        conclusion += f" {allocator.name} reserves {units.fmt_bytes(batch * held, base=2)}."
    fits: dict[str, float | None] = {}
    if beside:
        fit_lines, fits, conclusion = _fit(
            model, beside, tokens=tokens, cache=cache, tp=tp, dcp=dcp, allocator=allocator or InformationMinimum()
        )
        lines += fit_lines
    conclusion += said_of_positions(model, tokens)
    return Working(
        title=f"KV cache of {model.name}",
        inputs={
            "tokens": f"{tokens:,} per request (prompt and answer together)",
            "requests": f"{batch:,}",
            "cache": cache_words(cache),
            "tensor parallel": units.counted(tp, "rank")
            + (f", {dcp} of which share the tokens of each cache (decode context parallelism)" if dcp > 1 else ""),
            "layers": f"{model.num_layers}: {', '.join(describe(layer, count, tp) for layer, count in groups)}",
        }
        | ({"accelerator": f"{beside.budget.part.name}, {capacity_words(beside.budget.part)}"} if beside else {}),
        lines=tuple(lines),
        conclusion=conclusion,
        assumes=(
            "the newest token is already cached; a windowed layer keeps min(tokens, window)",
            *_without_windows(model, tokens=tokens, batch=batch, cache=cache, tp=tp),
            "no sharing between requests",
            *((STATE_FORMATS,) if states else ()),
            *((WAITING,) if any(isinstance(one, CompressedAttention) for one, _ in groups) else ()),
            *cache_assumed(cache),
            *((_beside_assumed(beside), *rounded_words(model, beside.weights, tp=tp)) if beside else ()),
        ),
        sources=(*SOURCES, STATE_SOURCE) if states else SOURCES,
        data={"bytes_per_token": first, **fits},
    )


def _without_windows(model: Model, *, tokens: int, batch: int, cache: CacheFormat, tp: int) -> tuple[str, ...]:
    """What an engine would keep that gives every layer the whole context, where that is more."""
    windows = [layer.attention.window for layer, _ in model.groups if isinstance(layer.attention, Attention)]
    if not any(window and window < tokens for window in windows):
        return ()
    held = kv_cache.held_bytes(model, tokens=tokens, **stored(cache), allocator=WholeContext(), tp=tp)
    return (
        f"an engine that gives windowed layers the whole context (ik_llama.cpp, llama.cpp --swa-full) keeps"
        f" {units.fmt_bytes(batch * held, base=2)}: --allocator {WholeContext.name}",
    )


def _beside_assumed(beside: Beside) -> str:
    given = ", ".join(beside.budget.besides) or "no activations, workspace or graphs"
    return f"weights split evenly over the ranks; counted besides: {given}; {ROOM_HINT}"


def _fit(
    model: Model, beside: Beside, *, tokens: int, cache: CacheFormat, tp: int, dcp: int, allocator: Allocator
) -> tuple[list[Line], dict[str, float | None], str]:
    """How many such requests fit beside the weights: the working, the numbers for a script, the sentence."""
    budget, lines = beside.budget, weight_lines(model, beside.weights, tp=tp)
    weights, room = lines[-1].value, budget.room_bytes
    free = room - weights
    lines.append(
        size_line("left for the cache", f"{budget.formula} - weights", f"{budget.numbers} - {plain(weights)}", free)
    )
    if free <= 0:
        needed, there = units.fmt_bytes(weights, base=2), units.fmt_bytes(max(room, 0), base=2)
        return lines, {"fits": 0}, f"The weights alone need {needed} of {there}: raise tp, or store them in fewer bits."
    most = kv_cache.held_bytes(model, tokens=tokens, **stored(cache), allocator=allocator, tp=tp, peak=True) / dcp
    fits = kv_capacity.max_concurrent_requests(
        model, tokens=tokens, free_bytes=dcp * free, **stored(cache), allocator=allocator, tp=tp
    )
    longest = kv_capacity.longest_by_memory(
        model, batch=1, free_bytes=dcp * free, **stored(cache), allocator=allocator, tp=tp
    )
    exact = isinstance(allocator, InformationMinimum)
    held = "the tokens that its layers read, to the byte" if exact else f"the most that {allocator.name} sets aside"
    lines.append(size_line("one request at its largest", held, plain(most), most))
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
    such = "such request fits" if fits == 1 else "such requests fit"
    sentence = f"{fits:,} {such} on {budget.part.name} beside the weights; {alone}."
    return lines, {"fits": fits, "longest_context_by_memory": longest}, sentence
