"""A drill on a published model and a card: what the full server makes in a second."""

import random

from threeloops.drills.engine import catalogued
from threeloops.drills.engine.drill import Derivation, Draw, Drill, Slip, Taught, drawn
from threeloops.drills.kv_cache.contexts import attention, bare_model, real_shape
from threeloops.models import parameters
from threeloops.product_loop import decode_floor
from threeloops.simulate.product_loop import cache_walk
from threeloops.units import GB, TB, billion

TAUGHT = Taught("product", "Capacity and cost")

REAL = ("llama-3-8b", "qwen2.5-7b", "mistral-7b")
CARDS = (("h200-sxm", 4.8, 130), ("h100-sxm5", 3.35, 70))
POPE = "Pope et al., 2022, arXiv:2211.05102, section 2.1 (weights once per step, caches once per request)"


def _cache(p: Draw, *, heads: int | None = None, vectors: int = 2) -> float:
    """Bytes that one request's context leaves in a cache of 16 bits."""
    return float(vectors * p.layers * (heads or p.kv_heads) * p.head_dim * 2 * p.tokens)


def _rate(p: Draw, *, cache: float | None = None) -> float:
    """Tokens per second of as many requests as fit, when a step takes as long as reading everything."""
    each = _cache(p) if cache is None else cache
    held = 2 * p.billions * billion
    slots = (p.memory_gb * GB - held) // each
    step_s = decode_floor.tensor_parallel_step_s(
        weights_bytes=held,
        cache_bytes=slots * each,
        tp=1,
        memory_bytes_per_s=p.bandwidth,
        all_reduces=0,
        all_reduce_s=0,
    )
    return float(slots / step_s)


def _draw(rng: random.Random) -> Draw:
    key, (part, tb, memory_gb) = rng.choice(REAL), rng.choice(CARDS)
    total = parameters.model_parameters(catalogued.model(key)).total
    return drawn(
        **real_shape(key),
        part=catalogued.part(part).name,
        bandwidth=tb * TB,
        memory_gb=memory_gb,
        billions=round(total / billion, 2),
        tokens=rng.randrange(2000, 9000, 500),
    )


def _small(rng: random.Random) -> Draw:
    shape = {"layers": rng.choice((3, 5)), "query_heads": 12, "kv_heads": 4, "head_dim": rng.choice((6, 10))}
    return drawn(
        **shape,
        name="a small one",
        part="toy",
        bandwidth=1000.0,
        memory_gb=rng.choice((30e-6, 40e-6)),
        billions=rng.choice((3e-6, 5e-6)),
        tokens=rng.randrange(3, 9),
    )


def _count(p: Draw) -> float:
    """Let requests in while there is room, walking each one's cache; then read all of it once."""
    held = sum(2 for _parameter in range(round(p.billions * billion)))
    read, slots = held, 0
    each = 2 * cache_walk.cached_elements(bare_model((attention(p), p.layers)), tokens=p.tokens)
    while read + each <= p.memory_gb * GB:
        read, slots = read + each, slots + 1
    return float(slots * p.bandwidth / read)


RATE = Drill(
    key="capacity-from-the-config",
    taught=TAUGHT,
    title="A full server, from the config",
    unit="token/s",
    target_s=180,
    apart=1.06,
    draw=_draw,
    small=_small,
    prompt=lambda p: (
        f"{p.name} has {p.billions:g} billion parameters, {p.layers} layers, {p.query_heads} attention heads,"
        f" {p.kv_heads} key-value heads and head_dim {p.head_dim}; weights and KV cache are in 16 bits. Of an {p.part}"
        f" the engine may use {p.memory_gb:g} GB, and memory delivers {p.bandwidth / TB:g} TB/s. As many requests as"
        f" fit, each with a context of {p.tokens:,} tokens, share every step, and a step takes as long as reading"
        " weights and caches. How many tokens per second does the server make in all?"
    ),
    derive=lambda p: Derivation(
        value=_rate(p),
        formula="slots = ⌊(memory − weights) / cache⌋;  slots × bandwidth / (weights + slots × cache)",
        substitution=(
            f"floor(({p.memory_gb:g}e9 − 2 × {p.billions:g}e9) / {_cache(p):.0f}) × {p.bandwidth:.9g} /"
            f" (2 × {p.billions:g}e9 + floor(({p.memory_gb:g}e9 − 2 × {p.billions:g}e9) / {_cache(p):.0f}) ×"
            f" {_cache(p):.0f})"
        ),
        source=POPE,
    ),
    count=_count,
    prerequisites=("kv-from-the-config",),
    slips=(
        Slip("query-heads", lambda p: _rate(p, cache=_cache(p, heads=p.query_heads)))
        | "You cached the attention heads, which ask. What is kept belongs to the key-value heads.",
        Slip("keys-or-values", lambda p: _rate(p, cache=_cache(p, vectors=1)))
        | "You kept keys or values. Attention needs both.",
        Slip("no-weights", lambda p: p.bandwidth / _cache(p))
        | "You left the weights out. They take room, and every step reads them.",
        Slip("one-user", lambda p: p.bandwidth / (2 * p.billions * billion + _cache(p)))
        | "That is one request alone. As many as fit share the step.",
    ),
)

DRILLS: tuple[Drill, ...] = (RATE,)
