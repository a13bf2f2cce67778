"""`threeloops kv`: what a context costs in memory."""

import argparse
import dataclasses
from dataclasses import dataclass

from threeloops import checks, units
from threeloops.commands.budget import (
    ROOM_HINT,
    WEIGHTS_HELP,
    Budget,
    add_budget_flags,
    besides_without_hardware,
    budget_of,
    capacity_words,
    rounded_words,
    size_line,
    weight_lines,
    weights_format,
)
from threeloops.commands.cache_lines import CACHE_HELP, alike, cache_assumed, cache_lines, cache_words, describe, stored
from threeloops.commands.named import MEMORY_HELP, MODEL_HELP, memory_named, model_named
from threeloops.commands.serve.options import DCP_HELP
from threeloops.commands.typed import context, whole
from threeloops.commands.working import Line, Working, plain, said_of_positions
from threeloops.models.architecture import Attention, Model
from threeloops.models.layers.compressed import CompressedAttention
from threeloops.product_loop import kv_allocators, kv_cache, kv_capacity
from threeloops.product_loop.kv_allocators import Allocator, InformationMinimum, VllmPaged, WholeContext
from threeloops.product_loop.kv_quantisation import CacheFormat, cache_format

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


def _allocator(given: argparse.Namespace) -> Allocator | None:
    """The allocator that was asked for, with the options that it has."""
    options = {name: _options(kind) for name, kind in kv_allocators.ALLOCATORS.items()}
    every = {option for own in options.values() for option in own}
    chosen = {option: value for option, value in vars(given).items() if option in every and value is not None}
    if not given.allocator:
        for option, value in chosen.items():
            raise ValueError(
                f"{option}={value} belongs to an allocator; name it, for example --allocator {VllmPaged.name}"
            )
        return None
    checks.one_of(options, allocator=given.allocator)
    own = options[given.allocator]
    for option, value in chosen.items():
        if option not in own:
            fits = ", ".join(name for name, other in options.items() if option in other)
            raise ValueError(f"{option}={value} has no meaning for {given.allocator}; it belongs to {fits}")
    for option, default in own.items():
        if default is dataclasses.MISSING and option not in chosen:
            raise ValueError(f"{given.allocator} needs {option}=TOKENS, for example {option}=8192")
    return kv_allocators.by_name(given.allocator, **chosen)


def _options(kind: type[Allocator]) -> dict[str, object]:
    """What an allocator can be given, and its defaults."""
    return {field.name: field.default for field in dataclasses.fields(kind)}


def from_flags(given: argparse.Namespace) -> Working:
    """The cache that the flags ask for."""
    if bool(given.hardware) != bool(given.weights):
        raise ValueError(
            "--hardware and --weights go together: what fits beside the weights depends on how they are stored, for"
            " example --weights bf16"
        )
    if not given.hardware and (without := besides_without_hardware(given)):
        raise ValueError(f"{without} is taken from an accelerator's memory: name it with --hardware")
    beside = None
    if given.hardware:
        beside = Beside(
            budget=budget_of(given, memory_named(given.hardware, given.catalog)),
            weights=weights_format(given.weights),
        )
    model = model_named(given.model, given.catalog)
    return working(
        model,
        tokens=given.tokens,
        batch=given.batch,
        cache=cache_format(model, cache=given.cache),
        tp=given.tp,
        dcp=given.dcp,
        allocator=_allocator(given),
        beside=beside,
    )


def _no_dtype(text: str) -> str:
    """Refuses: the word means one thing in all calculations."""
    raise argparse.ArgumentTypeError(
        f"means what is multiplied, in `roofline` and `plan`; a cache is --cache {text} here"
    )


def add_flags(command: argparse.ArgumentParser) -> None:
    """The flags of `threeloops kv`."""
    command.add_argument("--model", required=True, help=MODEL_HELP)
    command.add_argument("--tokens", type=context, required=True, help="prompt and answer together, like 8192 or 32k")
    command.add_argument("--batch", type=whole, default=1, help="requests (default 1)")
    command.add_argument("--cache", required=True, help=CACHE_HELP)
    command.add_argument("--dtype", type=_no_dtype, help=argparse.SUPPRESS)
    command.add_argument("--allocator", help="also what this allocator reserves: vllm-paged, llama.cpp, hf-static, …")
    command.add_argument("--block", dest="block_tokens", type=whole, help="tokens per block of a paged allocator")
    command.add_argument("--reserve", dest="max_tokens", type=context, help="tokens that a static allocator reserves")
    command.add_argument(
        "--batched", dest="max_batched_tokens", type=context, help="tokens that vllm-admission may prefill in one step"
    )
    command.add_argument(
        "--ubatch", dest="ubatch_tokens", type=whole, help="tokens of llama.cpp's micro-batch (its default is 512)"
    )
    command.add_argument("--hardware", help=f"how many such requests fit on it: {MEMORY_HELP}")
    command.add_argument("--weights", help=f"for --hardware: {WEIGHTS_HELP}")
    add_budget_flags(command)
    command.add_argument("--dcp", type=whole, default=1, help=DCP_HELP)
