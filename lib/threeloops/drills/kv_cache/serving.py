"""Drills on KV caches beside weights: how many requests fit, and when the cache is the heavier of the two."""

import random
from itertools import count

from threeloops.drills.engine import catalogued
from threeloops.drills.engine.drill import Derivation, Draw, Drill, Slip, Taught, drawn
from threeloops.drills.engine.phrasing import to_the_byte
from threeloops.drills.kv_cache.contexts import attention, bare_model, per_token_bytes, real_shape
from threeloops.models.parameters import model_parameters
from threeloops.product_loop import kv_capacity
from threeloops.simulate.product_loop import block_allocator, cache_walk

TAUGHT = Taught("product", "KV cache")

SOURCE_FIT = (
    "Kwon et al., 2023, arXiv:2309.06180, section 3 (requests that fit); capacity as the driver reports it, see"
    " `threeloops sources`, read in 2026"
)
SOURCE_OUTWEIGHS = (
    "Pope et al., 2022, arXiv:2211.05102 (caches against weights); Ainslie et al., 2023, arXiv:2305.13245 (what is"
    " cached)"
)


def _real(key: str) -> dict[str, object]:
    """A catalogued model's shape, and its weights in 16 bits."""
    return real_shape(key) | {
        "weights_bytes": 2 * model_parameters(catalogued.model(key)).total,
        "bytes_per_element": 2,
    }


# --- requests beside the weights ----------------------------------------------------------------


PAIRS = (
    ("llama-3-8b", "h100-sxm5", (1500, 7000, 200)),
    ("mixtral-8x7b", "h200-sxm", (1600, 7000, 200)),
    ("qwen2.5-7b", "l40s", (2100, 9100, 200)),
)


def _draw_fit(rng: random.Random) -> Draw:
    model, card, lengths = rng.choice(PAIRS)
    usable = catalogued.part(card)["usable_bytes"]
    return drawn(
        **_real(model), card=catalogued.part(card).name, memory_bytes=usable, share=0.9, tokens=rng.randrange(*lengths)
    )


def _small_fit(rng: random.Random) -> Draw:
    shape = {"layers": 2, "query_heads": 6, "kv_heads": 2, "head_dim": 3, "bytes_per_element": 2}
    return drawn(
        **shape,
        memory_bytes=rng.choice((5000, 6000)),
        share=0.75,
        weights_bytes=rng.choice((1500, 2500)),
        tokens=rng.choice((4, 5)),
    )


def _free(p: Draw) -> float:
    return float(p.share * p.memory_bytes - p.weights_bytes)


def _derive_fit(p: Draw) -> Derivation:
    model = bare_model((attention(p), p.layers))
    memory = f"{p.share} × {p.memory_bytes:,.0f} − {p.weights_bytes:,}"
    return Derivation(
        value=kv_capacity.max_concurrent_requests(
            model, tokens=p.tokens, free_bytes=_free(p), bytes_per_element=p.bytes_per_element
        ),
        formula="⌊(share × memory − weights) / (tokens × bytes per token)⌋",
        substitution=f"floor(({memory}) / ({p.tokens:,} × {per_token_bytes(p):,}))",
        source=SOURCE_FIT,
    )


def _count_fit(p: Draw) -> float:
    """Admit one request after another, each grown token by token, until the next would not fit."""
    slot_bytes = cache_walk.readable_elements(attention(p), tokens=1) * p.bytes_per_element
    layers = [(None, slot_bytes)] * p.layers
    return block_allocator.requests_that_fit(
        layers=layers, block_tokens=1, tokens=p.tokens, budget_bytes=p.share * p.memory_bytes - p.weights_bytes
    )


FIT = Drill(
    key="kv-largest-batch",
    taught=TAUGHT,
    title="How many conversations fit",
    unit="",
    whole="down",
    target_s=150,
    draw=_draw_fit,
    small=_small_fit,
    prompt=lambda p: (
        f"The driver of an {p.card} reports {to_the_byte(p.memory_bytes)}, of which the engine may use"
        f" {100 * p.share:g} %. The weights of {p.name} take {to_the_byte(p.weights_bytes)}. It has {p.layers} layers"
        f" with {p.query_heads} query heads and {p.kv_heads} KV heads, {p.head_dim} wide; the cache is kept in 16 bits."
        f" How many whole requests of {p.tokens:,} tokens fit at once?"
    ),
    derive=_derive_fit,
    count=_count_fit,
    prerequisites=("kv-bytes-per-token",),
    slips=(
        Slip("no-weights", lambda p: p.share * p.memory_bytes // (p.tokens * per_token_bytes(p)))
        | "You gave the whole card to the cache. The weights live there too.",
        Slip("no-reserve", lambda p: (p.memory_bytes - p.weights_bytes) // (p.tokens * per_token_bytes(p)))
        | "You used all of the memory. The engine keeps a part of it for activations and its own needs.",
        Slip("query-heads", lambda p: _free(p) // (p.tokens * per_token_bytes(p) * p.query_heads / p.kv_heads))
        | "You counted query heads. Only the KV heads are cached, so more conversations fit than that.",
        Slip("keys-or-values", lambda p: _free(p) // (p.tokens * per_token_bytes(p) / 2))
        | "You cached keys or values. Both have to fit.",
        Slip("one-layer", lambda p: _free(p) // (p.tokens * per_token_bytes(p) / p.layers))
        | "You paid for the cache of one layer. Every layer keeps keys and values of its own.",
    ),
)

# --- cache against weights -----------------------------------------------------------------------


def _draw_outweighs(rng: random.Random) -> Draw:
    p = drawn(**_real(rng.choice(("llama-3-8b", "qwen2.5-7b"))))
    # as many as layers: two mistakes look the same
    p.requests = rng.choice([requests for requests in range(14, 50) if abs(requests - p.layers) > 1])
    return p


def _small_outweighs(rng: random.Random) -> Draw:
    shape = {"layers": 3, "query_heads": 6, "kv_heads": 1, "head_dim": 2, "bytes_per_element": 2}
    return drawn(**shape, weights_bytes=rng.choice((1500, 2100)), requests=rng.choice((4, 5)))


def _derive_outweighs(p: Draw) -> Derivation:
    model = bare_model((attention(p), p.layers))
    return Derivation(
        value=kv_capacity.longest_context(
            model, batch=p.requests, free_bytes=p.weights_bytes, bytes_per_element=p.bytes_per_element
        ),
        formula="⌊weights / (requests × bytes per token)⌋",
        substitution=f"floor({p.weights_bytes:,} / ({p.requests} × {per_token_bytes(p):,}))",
        source=SOURCE_OUTWEIGHS,
    )


def _count_outweighs(p: Draw) -> float:
    """Let all conversations grow a token at a time, and stop before the cache is the heavier one."""
    model = bare_model((attention(p), p.layers))
    for tokens in count(1):
        if (
            sum(cache_walk.cached_elements(model, tokens=tokens) * p.bytes_per_element for _ in range(p.requests))
            > p.weights_bytes
        ):
            return tokens - 1
    raise AssertionError("a cache that grows outweighs anything in the end")


OUTWEIGHS = Drill(
    key="kv-outweighs-weights",
    taught=TAUGHT,
    title="When context is the model",
    unit="token",
    whole="down",
    loose="bound",
    target_s=120,
    draw=_draw_outweighs,
    small=_small_outweighs,
    prompt=lambda p: (
        f"{p.name} has {p.weights_bytes // p.bytes_per_element:,} parameters, {p.layers} layers, {p.query_heads} query"
        f" heads and {p.kv_heads} KV heads, {p.head_dim} wide. Weights and KV cache are both in 16 bits. {p.requests}"
        " conversations of equal length are running. How long may each of them be before the caches together outweigh"
        " the weights?"
    ),
    derive=_derive_outweighs,
    count=_count_outweighs,
    prerequisites=("kv-whole-requests",),
    slips=(
        Slip("one-conversation", lambda p: p.weights_bytes // per_token_bytes(p))
        | "You let one conversation grow alone. All of them grow at the same time.",
        Slip("one-byte-weights", lambda p: p.weights_bytes // 2 // (p.requests * per_token_bytes(p)))
        | "You took one byte per parameter. Read again how the weights are stored.",
        Slip(
            "query-heads", lambda p: p.weights_bytes // (p.requests * per_token_bytes(p) * p.query_heads // p.kv_heads)
        )
        | "You counted query heads. Only the KV heads are cached, so a token costs less than that.",
        Slip("keys-or-values", lambda p: 2 * p.weights_bytes // (p.requests * per_token_bytes(p)))
        | "You cached keys or values. A token leaves both behind.",
        Slip("one-layer", lambda p: p.layers * p.weights_bytes // (p.requests * per_token_bytes(p)))
        | "You paid for the cache of one layer. Every layer keeps keys and values of its own.",
    ),
)

DRILLS = (FIT, OUTWEIGHS)
