"""`threeloops fit`: does a model, in the format that it is downloaded in, fit on a card with its users' contexts."""

import argparse

from threeloops import checks, dtypes, spelling, units
from threeloops.commands.kv import cache_lines, capacity_words
from threeloops.commands.named import HARDWARE_HELP, MODEL_HELP, model_named, part_named
from threeloops.commands.typed import context, whole
from threeloops.commands.working import Line, Working, plain, share_of_memory
from threeloops.facts.hardware import Part
from threeloops.models.architecture import Model
from threeloops.models.parameters import model_parameters
from threeloops.product_loop import kv_cache, kv_capacity
from threeloops.product_loop.gguf_recipes import FILE_TYPES, NEVER_WITHOUT_IMPORTANCES
from threeloops.product_loop.sizing.request_times import bound_step_s
from threeloops.product_loop.sizing.served_layout import ServedLayout
from threeloops.product_loop.sizing.stored_weights import FORMATS, WHOLE, WIDER, weights_bytes_in, weights_in


def working(
    model: Model, *, wanted: str, part: Part, tokens: int, users: int, cache_dtype: str, share: float
) -> Working:
    """Weights and caches beside the card's memory: what is left, or what is missing and what would fit."""
    checks.count(tokens=tokens, users=users)
    checks.one_of(dtypes.BITS, cache=cache_dtype)
    element = dtypes.bytes_per_element(cache_dtype)
    room = part.capacity_bytes() * share_of_memory(share)
    weights = weights_bytes_in(model, wanted)
    request = kv_cache.request_bytes(model, tokens=tokens, bytes_per_element=element)
    left = room - weights - users * request
    lines = [
        *_weight_lines(model, wanted),
        *cache_lines(model, tokens=tokens, element=element, tp=1),
        _bytes("all caches", "users × one user's cache", f"{users} × {plain(request)}", users * request),
        _bytes(
            "left",
            "memory × share - weights - caches",
            f"{plain(part.capacity_bytes())} × {share:g} - {plain(weights)} - {plain(users * request)}",
            left,
        ),
    ]
    longest = (
        kv_capacity.longest_by_memory(model, batch=users, free_bytes=room - weights, bytes_per_element=element)
        if weights < room
        else 0
    )
    asked = f"{model.name} in {wanted} with {units.counted(users, 'user')} of {tokens:,} tokens"
    if left >= 0:
        spare = units.fmt_bytes(left, base=2)
        verdict = f"{asked} fits on {part.name}: {spare} left. " + (
            "Memory sets no limit to a user's context: no layer keeps all of it."
            if longest is None
            else f"Each user could have {longest:,} tokens by memory."
        )
        if part.peaks:
            lines.append(_decode_line(model, wanted=wanted, part=part, tokens=tokens, users=users, cache=cache_dtype))
            verdict += f" Together they get {lines[-1].value:,.0f} tokens/s at most."
    else:
        verdict = f"{asked} does not fit on {part.name}: {units.fmt_bytes(-left, base=2)} missing. " + _instead(
            model, users=users, longest=longest, room=room - users * request
        )
    if tokens > model.max_context:
        verdict += f" {model.name} was made for {model.max_context:,} tokens at most."
    return Working(
        title=f"Does {model.name} fit on {part.name}?",
        inputs={
            "format": f"{wanted}, {8 * weights / model_parameters(model).total:.4g} bits per weight with its scales",
            "context": f"{tokens:,} tokens for each of {units.counted(users, 'user')}, prompt and answer together",
            "cache": f"{cache_dtype}, {element:g} bytes per element",
            "memory": f"{capacity_words(part)}" + (f", {share:g} of it" if share != 1 else ""),
        },
        lines=tuple(lines),
        conclusion=verdict,
        assumes=_assumed(wanted, share),
        sources=(
            "llama.cpp, src/llama-quant.cpp and ggml/src/ggml-common.h (what a GGUF file keeps in which blocks)",
            "OCP Microscaling Formats (MX) v1.0, 2023; NVIDIA, Introducing NVFP4, 2025 (scales of blocks)",
            "Ainslie et al., 2023, arXiv:2305.13245 (what grouped-query attention caches)",
        ),
        data={"fits": left >= 0, "left_bytes": left, "weights_bytes": weights, "longest_context_by_memory": longest},
    )


def _bytes(name: str, formula: str, numbers: str, value: float) -> Line:
    return Line(name=name, formula=formula, numbers=numbers, value=value, unit="B", binary=True)


def _weight_lines(model: Model, wanted: str) -> list[Line]:
    """The weights, format by format, then their sum."""
    lines = [
        _bytes(
            f"weights in {name}" if name not in WIDER else name,
            "weights × bits / 8",
            f"{plain(number)} × {bits:g} / 8",
            number * bits / units.BITS_PER_BYTE,
        )
        for name, (number, bits) in weights_in(model, wanted).items()
    ]
    if len(lines) == 1:
        return lines
    total = sum(line.value for line in lines)
    return [*lines, _bytes("all weights", "sum", " + ".join(plain(line.value) for line in lines), total)]


def _decode_line(model: Model, *, wanted: str, part: Part, tokens: int, users: int, cache: str) -> Line:
    """Tokens/s with every context full: a bound."""
    layout = ServedLayout(
        model=model, part=part, weights=wanted, cache=cache, tp=1, memory_utilisation=1.0, other_bytes=0.0
    )
    step_s = bound_step_s(layout, requests=users, context=tokens)
    return Line(
        name="tokens/s of all users, at most",
        formula="users / step, the sum over products and attentions of max(FLOPs / peak, bytes / bandwidth)",
        numbers=f"{users} / {plain(step_s)}",
        value=users / step_s,
        unit="token/s",
    )


def _instead(model: Model, *, users: int, longest: int | None, room: float) -> str:
    """What would fit: a shorter context, or the widest format beside these caches."""
    possible = []
    if longest:
        possible.append(f"{longest:,} tokens for each user would fit")
    sizes = {}
    for name in FORMATS:
        try:
            sizes[name] = weights_bytes_in(model, name)
        except ValueError:  # a GGUF file of latent attention
            continue
    narrower = {name: size for name, size in sizes.items() if size <= room}
    if narrower:
        best = max(narrower, key=lambda name: narrower[name])
        possible.append(
            f"{best.upper()} weights ({units.fmt_bytes(narrower[best], base=2)}) would fit beside this context"
        )
    if not possible:
        return "No format known here would, nor a shorter context: take a larger card, or several."
    return "; ".join(possible) + "."


def _assumed(wanted: str, share: float) -> tuple[str, ...]:
    """What the figures leave out."""
    of_the_format = (
        f"llama.cpp's recipe with{'' if wanted.upper() in NEVER_WITHOUT_IMPORTANCES else 'out'} an importance matrix;"
        " the file's header is not counted"
        if wanted.upper() in FILE_TYPES
        else "tables, norms and routers in 16 bits, everything else in the format"
        if wanted not in WHOLE
        else "every parameter in the format"
    )
    left_out = "no activations, no workspace, no display" + (": --share 0.9 leaves room for them" if share == 1 else "")
    return (of_the_format, left_out, "caches without blocks, and nothing shared between users")


def add_flags(fit: argparse.ArgumentParser) -> None:
    """The flags of `threeloops fit`."""
    fit.add_argument("--model", required=True, help=MODEL_HELP)
    fit.add_argument(
        "--format",
        required=True,
        help="how its weights are stored: bf16, fp8, nvfp4, mxfp4, awq, gptq, q4_k_m, q8_0, …",
    )
    fit.add_argument("--hardware", required=True, help=HARDWARE_HELP)
    fit.add_argument("--tokens", type=context, required=True, help="context of each user, like 8192 or 32k")
    fit.add_argument("--users", type=whole, default=1, help="at once, each with a context of its own (default 1)")
    fit.add_argument("--cache", default="fp16", help="how the cache is stored (default fp16)")
    fit.add_argument(
        "--share", type=float, default=1.0, help="share of the memory that may be used, above 0 to 1 (default 1)"
    )


def from_flags(given: argparse.Namespace) -> Working:
    """The calculation that the flags ask for."""
    return working(
        model_named(given.model, given.catalog),
        wanted=spelling.key_of({name: dtypes.SPELLINGS.get(name, ()) for name in FORMATS}, format=given.format),
        part=part_named("hardware", given.hardware, given.catalog),
        tokens=given.tokens,
        users=given.users,
        cache_dtype=dtypes.dtype_named(cache=given.cache),
        share=given.share,
    )
