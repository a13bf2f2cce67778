"""Errors to spot in serving: what fits beside the weights, and how fast tokens come."""

import random

from threeloops.drills.engine import catalogued
from threeloops.drills.engine.bank import DRILLS
from threeloops.drills.engine.drill import Draw, drawn
from threeloops.drills.kv_cache.contexts import real_shape
from threeloops.models.parameters import model_parameters
from threeloops.product_loop import serving
from threeloops.room.kinds.spots.spot import Line, Misstep, Worked
from threeloops.units import billion, fmt_bytes, fmt_percent, fmt_seconds, fmt_si


def _gb(value: float) -> str:
    return fmt_bytes(value, base=10)


# --- conversations beside the weights -----------------------------------------------------------

PAIRS = (
    ("llama-3-8b", "h100-sxm5"),
    ("llama-3-8b", "a100-sxm4-80gb"),
    ("qwen2.5-7b", "h100-sxm5"),
    ("mixtral-8x7b", "h200-sxm"),
    ("llama-3-70b", "b200-hgx"),
)


def _draw_fit(rng: random.Random) -> Draw:
    model, card = rng.choice(PAIRS)
    return drawn(
        **real_shape(model),
        parameters=model_parameters(catalogued.model(model)).total,
        card=catalogued.part(card).name,
        memory_bytes=catalogued.part(card)["usable_bytes"],
        share=0.9,
        tokens=rng.choice((2048, 4096, 6144, 8192)),
        bytes_per_element=2,
    )


FIT = Worked(
    key="spot-conversations-that-fit",
    title="A colleague's capacity",
    topic="kv_cache",
    loop="product",
    section="KV cache",
    target_s=90,
    draw=_draw_fit,
    prompt=lambda p: (
        f"{p.name} ({p.parameters / billion:.3g} billion parameters, {p.layers} layers, {p.query_heads} query heads,"
        f" {p.kv_heads} KV heads, {p.head_dim} wide), weights and cache in 16 bits, on an {p.card}. The driver reports"
        f" {_gb(p.memory_bytes)}; the engine may use {fmt_percent(p.share)} of that. How many whole conversations of"
        f" {p.tokens:,} tokens fit?"
    ),
    lines=(
        Line(
            name="per_token",
            value=lambda v: 2 * v.layers * v.kv_heads * v.head_dim * v.bytes_per_element,
            text=lambda v: (
                f"A token: 2 × {v.layers} layers × {v.kv_heads} × {v.head_dim} × {v.bytes_per_element} bytes ="
                f" {v.per_token:,} B"
            ),
        ),
        Line(
            name="conversation",
            value=lambda v: v.tokens * v.per_token,
            text=lambda v: f"A conversation: {v.tokens:,} × {v.per_token:,} B = {_gb(v.conversation)}",
        ),
        Line(
            name="weights",
            value=lambda v: 2 * v.parameters,
            text=lambda v: f"Weights: 2 bytes × parameters = {_gb(v.weights)}",
        ),
        Line(
            name="free",
            value=lambda v: v.share * v.memory_bytes - v.weights,
            text=lambda v: (
                f"Left for the cache: {v.share:g} × {_gb(v.memory_bytes)} − {_gb(v.weights)} = {_gb(v.free)}"
            ),
        ),
        Line(
            name="fit",
            value=lambda v: v.free // v.conversation,
            text=lambda v: f"Conversations: {_gb(v.free)} / {_gb(v.conversation)}, rounded down = {v.fit:,.0f}",
        ),
    ),
    missteps=(
        Misstep(
            key="query-heads",
            line="per_token",
            value=lambda v: 2 * v.layers * v.query_heads * v.head_dim * v.bytes_per_element,
            text=lambda v: (
                f"A token: 2 × {v.layers} layers × {v.query_heads} × {v.head_dim} × {v.bytes_per_element} bytes ="
                f" {v.per_token:,} B"
            ),
            story="Query heads were counted. Only the KV heads are cached.",
        ),
        Misstep(
            key="no-heads",
            line="per_token",
            value=lambda v: 2 * v.layers * v.head_dim * v.bytes_per_element,
            text=lambda v: (
                f"A token: 2 × {v.layers} layers × {v.head_dim} × {v.bytes_per_element} bytes = {v.per_token:,} B"
            ),
            story=(
                "The heads are missing: each KV head keeps vectors of its own. It is how a circulating 16 KB per token"
                " for a 7B model came about."
            ),
        ),
        Misstep(
            key="weights-forgotten",
            line="free",
            value=lambda v: v.share * v.memory_bytes,
            text=lambda v: f"Left for the cache: {v.share:g} × {_gb(v.memory_bytes)} = {_gb(v.free)}",
            story="The weights lie in the same memory.",
        ),
        Misstep(
            key="weights-as-elements",
            line="weights",
            value=lambda v: v.parameters,
            text=lambda v: f"Weights: {_gb(v.weights)}",
            story="Parameters were taken for bytes; in 16 bits each is two.",
        ),
    ),
    answer=lambda p: DRILLS["kv-largest-batch"].derive(drawn(**vars(p), weights_bytes=2 * p.parameters)).value,
    source="Kwon et al., 2023, arXiv:2309.06180, section 3; Ainslie et al., 2023, arXiv:2305.13245",
    prerequisites=("kv-largest-batch",),
)

# --- tokens per second ---------------------------------------------------------------------------


def _draw_rate(rng: random.Random) -> Draw:
    model, card = rng.choice(PAIRS[:3])
    part = catalogued.part(card)
    return drawn(
        **real_shape(model),
        parameters=model_parameters(catalogued.model(model)).total,
        card=part.name,
        memory=part["memory_bytes_per_s"],
        peak=part.peak_flops_per_s("bf16"),
        batch=rng.choice((12, 16, 24, 32)),
        tokens=rng.choice((3000, 4000, 6000)),
        bytes_per_element=2,
    )


def _rate_answer(p: Draw) -> float:
    cache = DRILLS["kv-whole-requests"].derive(drawn(**vars(p), requests=p.batch, prompt=p.tokens, generated=0)).value
    step_s = serving.decode_step_s(
        weights_bytes=2 * p.parameters,
        cache_bytes=cache,
        batch=p.batch,
        flops_per_token=2 * p.parameters,
        memory_bytes_per_s=p.memory,
        peak_flops_per_s=p.peak,
    )
    return float(p.batch / step_s)


RATE = Worked(
    key="spot-tokens-per-second",
    title="A colleague's decoding rate",
    topic="decode_speed",
    loop="product",
    section="Prefill and decode",
    target_s=100,
    draw=_draw_rate,
    prompt=lambda p: (
        f"{p.name} ({p.parameters / billion:.3g} billion parameters, {p.layers} layers, {p.query_heads} query heads,"
        f" {p.kv_heads} KV heads, {p.head_dim} wide) decodes {p.batch} requests of {p.tokens:,} tokens each, all in 16"
        f" bits, on an {p.card} with {fmt_si(p.memory, 'B/s')}. At best, limited by memory, how many tokens per second"
        " come out in all?"
    ),
    lines=(
        Line(
            name="weights",
            value=lambda v: 2 * v.parameters,
            text=lambda v: f"Weights, read once per step: 2 bytes × parameters = {_gb(v.weights)}",
        ),
        Line(
            name="cache",
            value=lambda v: v.batch * v.tokens * 2 * v.layers * v.kv_heads * v.head_dim * 2,
            text=lambda v: (
                f"Caches: {v.batch} × {v.tokens:,} × 2 × {v.layers} × {v.kv_heads} × {v.head_dim} × 2 bytes ="
                f" {_gb(v.cache)}"
            ),
        ),
        Line(
            name="moved",
            value=lambda v: v.weights + v.cache,
            text=lambda v: f"Read per step: {_gb(v.weights)} + {_gb(v.cache)} = {_gb(v.moved)}",
        ),
        Line(
            name="step_s",
            value=lambda v: v.moved / v.memory,
            text=lambda v: f"A step: {_gb(v.moved)} / {fmt_si(v.memory, 'B/s')} = {fmt_seconds(v.step_s)}",
        ),
        Line(
            name="rate",
            value=lambda v: v.batch / v.step_s,
            text=lambda v: f"Tokens: {v.batch} per step of {fmt_seconds(v.step_s)} = {v.rate:,.0f} tokens/s",
        ),
    ),
    missteps=(
        Misstep(
            key="weights-per-request",
            line="moved",
            value=lambda v: v.batch * v.weights + v.cache,
            text=lambda v: f"Read per step: {v.batch} × {_gb(v.weights)} + {_gb(v.cache)} = {_gb(v.moved)}",
            story="A step reads the weights once for all its requests. That is why batching pays.",
        ),
        Misstep(
            key="one-cache",
            line="cache",
            value=lambda v: v.tokens * 2 * v.layers * v.kv_heads * v.head_dim * 2,
            text=lambda v: (
                f"Cache: {v.tokens:,} × 2 × {v.layers} × {v.kv_heads} × {v.head_dim} × 2 bytes = {_gb(v.cache)}"
            ),
            story="Every request has a context of its own, and all of them are read.",
        ),
        Misstep(
            key="query-heads",
            line="cache",
            value=lambda v: v.batch * v.tokens * 2 * v.layers * v.query_heads * v.head_dim * 2,
            text=lambda v: (
                f"Caches: {v.batch} × {v.tokens:,} × 2 × {v.layers} × {v.query_heads} × {v.head_dim} × 2 bytes ="
                f" {_gb(v.cache)}"
            ),
            story="Query heads were counted; only the KV heads are cached.",
        ),
        Misstep(
            key="one-token",
            line="rate",
            value=lambda v: 1 / v.step_s,
            text=lambda v: f"Tokens: 1 per step of {fmt_seconds(v.step_s)} = {v.rate:,.0f} tokens/s",
            story="A step brings one token for every request, not one in all.",
        ),
        Misstep(
            key="weights-as-elements",
            line="weights",
            value=lambda v: v.parameters,
            text=lambda v: f"Weights, read once per step: {_gb(v.weights)}",
            story="Parameters were taken for bytes; in 16 bits each is two.",
        ),
    ),
    answer=_rate_answer,
    source="Pope et al., 2022, arXiv:2211.05102, section 2.1 (weights are read once per step, caches once per request)",
    prerequisites=("kv-whole-requests",),
)

WORKED = (FIT, RATE)
