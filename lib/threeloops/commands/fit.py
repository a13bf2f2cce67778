"""`threeloops fit`: does a model, in the format that it is downloaded in, fit on a card with its users' contexts."""

import argparse

from threeloops import checks, units
from threeloops.commands.budget import (
    ROOM_HINT,
    WEIGHTS_HELP,
    Budget,
    add_budget_flags,
    budget_of,
    capacity_words,
    rounded_words,
    size_line,
    weight_lines,
    weights_format,
)
from threeloops.commands.cache_lines import CACHE_HELP, cache_assumed, cache_lines, cache_words, stored
from threeloops.commands.named import MEMORY_HELP, MODEL_HELP, memory_named, model_named
from threeloops.commands.typed import context, whole
from threeloops.commands.working import Line, Working, plain, said_of_positions
from threeloops.models.architecture import LatentAttention, Model
from threeloops.models.parameters import model_parameters
from threeloops.product_loop import kv_cache, kv_capacity
from threeloops.product_loop.gguf_recipes import FILE_TYPES, NEVER_WITHOUT_IMPORTANCES
from threeloops.product_loop.kv_quantisation import CacheFormat, cache_format
from threeloops.product_loop.sizing.bound_steps import bound_step_s
from threeloops.product_loop.sizing.served_layout import ServedLayout
from threeloops.product_loop.sizing.stored_weights import (
    BESIDE_EXPERTS,
    FORMATS,
    GROUPED,
    LEFT_WIDE,
    WHOLE,
    weights_bytes_in,
    weights_in,
)


def working(
    model: Model, *, wanted: str, budget: Budget, tokens: int, users: int, cache: CacheFormat, tp: int
) -> Working:
    """Weights and caches beside each card's memory: what is left, or what is missing and what would fit."""
    checks.count(tokens=tokens, users=users, tp=tp)
    part, room = budget.part, budget.room_bytes
    weights, held = weights_bytes_in(model, wanted) / tp, weights_in(model, wanted)
    request = kv_cache.request_bytes(model, tokens=tokens, **stored(cache), tp=tp)
    left = room - weights - users * request
    lines = [
        *weight_lines(model, wanted, tp=tp),
        *cache_lines(model, tokens=tokens, cache=cache, tp=tp),
        size_line("all caches", "users × one user's cache", f"{users} × {plain(request)}", users * request),
        size_line(
            "left",
            f"{budget.formula} - weights - caches",
            f"{budget.numbers} - {plain(weights)} - {plain(users * request)}",
            left,
        ),
    ]
    longest = (
        kv_capacity.longest_by_memory(model, batch=users, free_bytes=room - weights, **stored(cache), tp=tp)
        if weights < room
        else 0
    )
    asked = f"{model.name} in {wanted} with {units.counted(users, 'user')} of {tokens:,} tokens"
    cards, each = (part.name, "") if tp == 1 else (f"{tp} of {part.name}", " on each")
    if left >= 0:
        verdict = f"{asked} fits on {cards}: {units.fmt_bytes(left, base=2)} left{each}. " + (
            "Memory sets no limit to a user's context: no layer keeps all of it."
            if longest is None
            else f"Each user could have {longest:,} tokens by memory."
        )
        if part.peaks and _is_timed(model, cache):
            lines.append(
                _decode_line(model, wanted=wanted, budget=budget, tokens=tokens, users=users, cache=cache, tp=tp)
            )
            verdict += f" Together they get {lines[-1].value:,.0f} tokens/s at most."
    else:
        verdict = f"{asked} does not fit on {cards}: {units.fmt_bytes(-left, base=2)} missing{each}. " + _instead(
            model, users=users, longest=longest, room=room - users * request, tp=tp
        )
    verdict += said_of_positions(model, tokens)
    return Working(
        title=f"Does {model.name} fit on {cards}?",
        inputs={
            "weights": f"{wanted}, {8 * tp * weights / model_parameters(model).total:.4g} bits each with their scales",
            "context": f"{tokens:,} tokens for each of {units.counted(users, 'user')}, prompt and answer together",
            "cache": cache_words(cache),
            "memory": f"{capacity_words(part)}" + (f", {budget.share:g} of it" if budget.share != 1 else ""),
        }
        | ({"cards": f"{tp}, with tensor parallelism: figures are of one"} if tp > 1 else {}),
        lines=tuple(lines),
        conclusion=verdict,
        assumes=(
            *_assumed(wanted, budget, tp, experts_only=BESIDE_EXPERTS in held, left_wide=LEFT_WIDE in held),
            *rounded_words(model, wanted, tp=tp),
            *cache_assumed(cache),
        ),
        sources=(
            "llama.cpp, src/llama-quant.cpp and ggml/src/ggml-common.h (what a GGUF file keeps in which blocks)",
            "OCP Microscaling Formats (MX) v1.0, 2023; NVIDIA, Introducing NVFP4, 2025 (scales of blocks)",
            "Ainslie et al., 2023, arXiv:2305.13245 (what grouped-query attention caches)",
        ),
        data={"fits": left >= 0, "left_bytes": left, "weights_bytes": weights, "longest_context_by_memory": longest},
    )


def _is_timed(model: Model, cache: CacheFormat) -> bool:
    """Whether the time of a step is counted: not of unusual layers, nor of chosen tokens, nor of caches whose bytes go
    by the vector.
    """
    latents = [layer.attention for layer, _ in model.groups if isinstance(layer.attention, LatentAttention)]
    if any(layer.unusual for layer, _ in model.groups):
        return False
    by_vector = cache.quantisation.scale_bytes > 0 and cache.quantisation.elements_per_scale is None
    return (
        not by_vector
        and cache.quantisation.rope_bytes_per_element is None
        and not any(latent.indexer for latent in latents)
    )


def _decode_line(
    model: Model, *, wanted: str, budget: Budget, tokens: int, users: int, cache: CacheFormat, tp: int
) -> Line:
    """Tokens/s with every context full: a bound."""
    layout = ServedLayout(
        model=model,
        part=budget.part,
        weights=wanted,
        cache=cache.name,
        tp=tp,
        memory_utilisation=1.0,
        other_bytes=0.0,
    )
    step_s = bound_step_s(layout, requests=users, context=tokens)
    return Line(
        name="tokens/s of all users, at most",
        formula="users / step, the sum over matmuls and attentions of max(FLOPs / peak, bytes / bandwidth)",
        numbers=f"{users} / {plain(step_s)}",
        value=users / step_s,
        unit="token/s",
    )


def _instead(model: Model, *, users: int, longest: int | None, room: float, tp: int) -> str:
    """What would fit: a shorter context, or the widest format beside these caches."""
    possible = []
    if longest:
        possible.append(f"{longest:,} tokens for each user would fit")
    sizes = {}
    for name in (one for one in FORMATS if one not in GROUPED):
        try:
            sizes[name] = weights_bytes_in(model, name) / tp
        except ValueError:  # a GGUF file of latent attention
            continue
    narrower = {name: size for name, size in sizes.items() if size <= room}
    if narrower:
        best = max(narrower, key=lambda name: narrower[name])
        possible.append(
            f"{best.upper()} weights ({units.fmt_bytes(narrower[best], base=2)}) would fit beside this context"
        )
    if not possible:
        return "No format known here would, nor a shorter context: take a larger card, or more of them (--gpus)."
    return "; ".join(possible) + "."


def _assumed(wanted: str, budget: Budget, tp: int, *, experts_only: bool, left_wide: bool) -> tuple[str, ...]:
    """What the figures leave out."""
    of_the_format = (
        f"llama.cpp's recipe with{'' if wanted.upper() in NEVER_WITHOUT_IMPORTANCES else 'out'} an importance matrix;"
        " the file's header is not counted"
        if wanted.upper() in FILE_TYPES
        else "experts' matrices in the format, everything else in 16 bits"
        if experts_only
        else "tables, norms and routers in 16 bits, what its config lists as not converted too, the rest in the format"
        if left_wide
        else "tables, norms and routers in 16 bits, everything else in the format"
        if wanted not in WHOLE
        else "every parameter in the format"
    )
    given = ", ".join(budget.besides) or "no activations, no workspace, no display"
    split = ("weights split evenly over the cards",) if tp > 1 else ()
    return (
        of_the_format,
        *split,
        f"counted besides: {given}; {ROOM_HINT}",
        "caches without blocks, and nothing shared between users",
    )


def add_flags(fit: argparse.ArgumentParser) -> None:
    """The flags of `threeloops fit`."""
    fit.add_argument("--model", required=True, help=MODEL_HELP)
    fit.add_argument("--weights", "--format", dest="weights", required=True, help=WEIGHTS_HELP)
    fit.add_argument("--hardware", required=True, help=MEMORY_HELP)
    fit.add_argument("--tokens", type=context, required=True, help="context of each user, like 8192 or 32k")
    fit.add_argument("--users", type=whole, default=1, help="at once, each with a context of its own (default 1)")
    fit.add_argument("--cache", default="fp16", help=f"{CACHE_HELP} (default fp16)")
    add_budget_flags(fit)


def from_flags(given: argparse.Namespace) -> Working:
    """The calculation that the flags ask for."""
    model = model_named(given.model, given.catalog)
    return working(
        model,
        wanted=weights_format(given.weights),
        budget=budget_of(given, memory_named(given.hardware, given.catalog)),
        tokens=given.tokens,
        users=given.users,
        cache=cache_format(model, cache=given.cache),
        tp=given.tp,
    )
