"""A drill on a published model's config: what one decode step has to read, and how long that takes."""

import random
from typing import Any

from threeloops.drills.decode_speed.times import POPE
from threeloops.drills.engine import catalogued
from threeloops.drills.engine.drill import Derivation, Draw, Drill, Slip, Taught, drawn
from threeloops.drills.engine.fair_draws import alike
from threeloops.drills.engine.searches import wanted
from threeloops.drills.kv_cache.contexts import attention, bare_model, real_shape
from threeloops.models import parameters
from threeloops.product_loop import serving
from threeloops.simulate.product_loop import cache_walk
from threeloops.units import TB, billion

TAUGHT = Taught("product", "Prefill and decode")

# Dense models with one kind of layer, of which a card holds enough requests to tell every mistake apart.
REAL = ("llama-3-8b", "qwen2.5-7b", "qwen3-8b", "llama-3.2-1b", "llama-3.2-3b", "qwen3-32b")
CARDS = (("h200-sxm", 4.8), ("h100-sxm5", 3.35))
LONGEST = 40_000  # tokens of a request's context, where the model takes as many


def _cache(p: Draw, *, vectors: int = 2, heads: int | None = None) -> float:
    """Bytes that one request's context leaves in a cache of 16 bits."""
    return float(vectors * p.layers * (heads or p.kv_heads) * p.head_dim * 2 * p.tokens)


def _step(p: Draw, *, batch: int | None = None, weights: float = 2.0, **cache: Any) -> float:
    """Seconds to read the weights, of so many bytes each, and every request's cache."""
    requests = p.batch if batch is None else batch
    return float((weights * p.billions * billion + requests * _cache(p, **cache)) / p.bandwidth)


def _draw(rng: random.Random) -> Draw:
    """The model first: drawn again with the rest, those that rarely fit would hardly ever be asked."""
    key = rng.choice(REAL)
    return wanted(lambda: _served(rng, key), lambda p: not alike(STEP, p))


def _served(rng: random.Random, key: str) -> Draw:
    """A model on a card, with requests none of which is longer than the model takes."""
    model = catalogued.model(key)
    card, tb = rng.choice(CARDS)
    part = catalogued.part(card)
    return drawn(
        **real_shape(key),
        part=part.name,
        bandwidth=tb * TB,
        memory_bytes=part["memory_bytes"],
        billions=round(parameters.model_parameters(model).total / billion, 2),
        tokens=rng.randrange(3000, min(model.max_context, LONGEST) + 1, 500),
        batch=rng.randrange(4, 48),
    )


def _fits(p: Draw) -> bool:
    """The card holds the model with all its requests."""
    return bool(_step(p) * p.bandwidth < p.memory_bytes)


def _small(rng: random.Random) -> Draw:
    shape = {"layers": rng.choice((3, 5)), "query_heads": 12, "kv_heads": 4, "head_dim": rng.choice((6, 10))}
    return drawn(
        **shape,
        name="a small one",
        part="toy",
        bandwidth=100.0,
        billions=rng.choice((3e-6, 5e-6)),
        tokens=rng.randrange(3, 9),
        batch=rng.choice((2, 3)),
    )


def _count(p: Draw) -> float:
    """Read every parameter, then walk every request's cache."""
    read = sum(2 for _parameter in range(round(p.billions * billion)))
    for _request in range(p.batch):
        read += 2 * cache_walk.cached_elements(bare_model((attention(p), p.layers)), tokens=p.tokens)
    return float(read / p.bandwidth)


STEP = Drill(
    key="decode-from-the-config",
    taught=TAUGHT,
    title="A decode step from a config",
    unit="s",
    target_s=150,
    apart=1.06,
    wanted=_fits,
    draw=_draw,
    small=_small,
    prompt=lambda p: (
        f"{p.name} has {p.billions:g} billion parameters, {p.layers} layers, {p.query_heads} attention heads,"
        f" {p.kv_heads} key-value heads and head_dim {p.head_dim}; weights and KV cache are in 16 bits. It decodes for"
        f" {p.batch} requests of {p.tokens:,} tokens each on an {p.part} ({p.bandwidth / TB:g} TB/s), and arithmetic"
        " takes less time than reading. How long does one step take at least, if it reads every parameter once, the"
        " embedding table too?"
    ),
    derive=lambda p: Derivation(
        value=serving.decode_step_s(
            weights_bytes=2 * p.billions * billion,
            cache_bytes=p.batch * _cache(p),
            batch=p.batch,
            flops_per_token=2 * p.billions * billion,
            memory_bytes_per_s=p.bandwidth,
            peak_flops_per_s=2 * p.batch * p.bandwidth,
        ),
        formula="(parameters × 2 + requests × 2 × layers × KV heads × head dim × 2 × tokens) / bandwidth",
        substitution=(
            f"(2 × {p.billions:g}e9 + {p.batch} × 2 × {p.layers} × {p.kv_heads} × {p.head_dim} × 2 × {p.tokens})"
            f" / {p.bandwidth:.9g}"
        ),
        source=POPE,
    ),
    count=_count,
    prerequisites=("serving-decode-step", "kv-from-the-config"),
    slips=(
        Slip("query-heads", lambda p: _step(p, heads=p.query_heads))
        | "You read a cache of the attention heads, which ask. What is kept belongs to the key-value heads.",
        Slip("keys-or-values", lambda p: _step(p, vectors=1)) | "You read keys or values. Attention needs both.",
        Slip("one-request", lambda p: _step(p, batch=1))
        | "You read one request's cache. Every request in the batch has one.",
        Slip("no-cache", lambda p: _step(p, batch=0))
        | "You read the weights alone. The caches are read in every step, too.",
        Slip("one-byte", lambda p: _step(p, weights=1.0)) | "You gave a parameter one byte. 16 bits are two.",
    ),
)

DRILLS: tuple[Drill, ...] = (STEP,)
