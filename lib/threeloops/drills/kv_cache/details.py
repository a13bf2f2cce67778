"""Drills on details that decide the size of a KV cache: which numbers of a config count, and what a quantised format
stores beside its elements.
"""

import random

from threeloops.drills.engine import catalogued
from threeloops.drills.engine.drill import Derivation, Draw, Drill, Slip, Taught, drawn
from threeloops.drills.kv_cache.contexts import attention, bare_model, per_token_bytes, real_shape
from threeloops.models.architecture import MoeMlp
from threeloops.product_loop import kv_cache
from threeloops.product_loop.kv_quantisation import Quantisation
from threeloops.simulate.product_loop import cache_walk

TAUGHT = Taught("product", "KV cache")

SOURCE_QWEN3 = (
    "Qwen Team, Qwen3 Technical Report, 2025, arXiv:2505.09388 (the model); Ainslie et al., 2023, arXiv:2305.13245"
    " (what is cached)"
)
SOURCE_Q4_1 = (
    "ggml-org/llama.cpp, 2024, ggml-common.h, block_q4_1 (32 elements, scale and minimum), and --cache-type-k in"
    " common/arg.cpp"
)

# --- what to read in a config --------------------------------------------------------------------


def _draw_config(rng: random.Random) -> Draw:
    model = catalogued.model("qwen3-235b-a22b")
    mlp = model.groups[0][0].mlp
    assert isinstance(mlp, MoeMlp)
    shape = {"hidden": model.hidden, "experts": mlp.num_experts, "top_k": mlp.top_k, "bytes_per_element": 2}
    return drawn(**real_shape("qwen3-235b-a22b"), **shape, tokens=rng.randrange(6_000, 40_500, 500))


def _small_config(rng: random.Random) -> Draw:
    numbers = {
        "layers": rng.choice((3, 5)),
        "query_heads": 12,
        "kv_heads": 4,
        "head_dim": rng.choice((6, 10)),
        "experts": 6,
        "top_k": 5,
    }
    return drawn(**numbers, hidden=6 * numbers["head_dim"], bytes_per_element=2, tokens=rng.choice((3, 7)))


CONFIG = Drill(
    key="kv-from-the-config",
    taught=TAUGHT,
    title="Which numbers of a config matter",
    unit="B",
    capacity=True,
    target_s=90,
    draw=_draw_config,
    small=_small_config,
    prompt=lambda p: (
        f"The config of Qwen3-235B-A22B says: {p.layers} layers, hidden size {p.hidden}, {p.query_heads} attention"
        f" heads, {p.kv_heads} key-value heads, head_dim {p.head_dim}, {p.experts} experts of which {p.top_k} work on"
        f" each token. The KV cache is kept in 16 bits. How many bytes does a context of {p.tokens:,} tokens take?"
    ),
    derive=lambda p: Derivation(
        value=p.tokens * per_token_bytes(p),
        formula="2 (key and value) × layers × KV heads × head_dim × bytes per element × tokens",
        substitution=f"2 × {p.layers} × {p.kv_heads} × {p.head_dim} × {p.bytes_per_element} × {p.tokens:,}",
        source=SOURCE_QWEN3,
    ),
    count=lambda p: float(
        cache_walk.cached_elements(bare_model((attention(p), p.layers)), tokens=p.tokens) * p.bytes_per_element
    ),
    prerequisites=("kv-bytes-per-token",),
    slips=(
        Slip("half", lambda p: 2 * p.layers * p.kv_heads * (p.hidden // p.query_heads) * p.bytes_per_element * p.tokens)
        | "Half of it: either you worked the head width out from the hidden size, which this config overrides, or"
        " you left out keys or values.",
        Slip("query-heads", lambda p: 2 * p.layers * p.query_heads * p.head_dim * p.bytes_per_element * p.tokens)
        | "You counted the attention heads, which ask. What is kept belongs to the key-value heads.",
        Slip(
            "active-experts",
            lambda p: p.top_k * 2 * p.layers * p.kv_heads * p.head_dim * p.bytes_per_element * p.tokens,
        )
        | "You multiplied by the experts at work. Experts replace the feed-forward block; keys and values are"
        " made in attention, once per layer.",
        Slip(
            "all-experts", lambda p: p.experts * 2 * p.layers * p.kv_heads * p.head_dim * p.bytes_per_element * p.tokens
        )
        | "You gave every expert a cache. Experts replace the feed-forward block; attention, where the cache"
        " lives, is there once per layer.",
        Slip("hidden-size", lambda p: p.layers * p.hidden * p.bytes_per_element * p.tokens)
        | "You stored the hidden state of every layer. Attention keeps less than that here: look at which heads"
        " are kept, and what of each.",
        Slip("one-layer", lambda p: 2 * p.kv_heads * p.head_dim * p.bytes_per_element * p.tokens)
        | "That is one layer. Every layer keeps keys and values of its own.",
    ),
)

# --- scales of a quantised cache -----------------------------------------------------------------


def _draw_scales(rng: random.Random) -> Draw:
    shape = {
        "layers": rng.choice((22, 28, 36, 46)),
        "head_dim": rng.choice((64, 96, 128)),
        "group_elements": 32,
        "scale_bytes": 4,
    }
    kv_heads = rng.choice((3, 4, 6))
    return drawn(
        **shape,
        kv_heads=kv_heads,
        query_heads=kv_heads * rng.choice((5, 6, 7)),
        tokens=rng.choice((9_000, 14_000, 22_000, 35_000)),
    )


def _derive_scales(p: Draw) -> Derivation:
    stored = Quantisation(name="drawn", scale_bytes=p.scale_bytes, elements_per_scale=p.group_elements)
    return Derivation(
        value=kv_cache.request_bytes(
            bare_model((attention(p), p.layers)), tokens=p.tokens, bytes_per_element=0.5, quantisation=stored
        ),
        formula=(
            "tokens × 2 (key and value) × layers × KV heads × (head dim × bytes per element + groups per vector × bytes"
            " beside each group)"
        ),
        substitution=(
            f"{p.tokens:,} × 2 × {p.layers} × {p.kv_heads} × ({p.head_dim} × 0.5 + {p.head_dim // p.group_elements} ×"
            f" {p.scale_bytes})"
        ),
        source=SOURCE_Q4_1,
    )


def _count_scales(p: Draw) -> float:
    """Write every cached vector out, element by element, and open a new group where the last one is full."""
    written: list[float] = []
    vectors = cache_walk.cached_elements(bare_model((attention(p), p.layers)), tokens=p.tokens) // p.head_dim
    for _ in range(vectors):
        for element in range(p.head_dim):
            if element % p.group_elements == 0:
                written += [2, 2]  # scale and minimum, 16 bits each
            written.append(0.5)
    return sum(written)


SCALES = Drill(
    key="kv-scales",
    taught=TAUGHT,
    title="What four bits really cost",
    unit="B",
    capacity=True,
    target_s=120,
    draw=_draw_scales,
    small=lambda rng: drawn(
        layers=rng.choice((2, 3)),
        head_dim=rng.choice((8, 12)),
        group_elements=4,
        scale_bytes=4,
        kv_heads=2,
        query_heads=10,
        tokens=rng.choice((3, 5)),
    ),
    prompt=lambda p: (
        f"llama.cpp can keep the KV cache as q4_1: 4 bits per element, and beside every {p.group_elements} elements a"
        f" scale and a minimum of 16 bits each. A model has {p.layers} layers with {p.query_heads} query heads and"
        f" {p.kv_heads} KV heads, {p.head_dim} wide. How many bytes does a context of {p.tokens:,} tokens take in this"
        " format?"
    ),
    derive=_derive_scales,
    count=_count_scales,
    prerequisites=("kv-bytes-per-token",),
    slips=(
        Slip("no-scales", lambda p: p.tokens * 2 * p.layers * p.kv_heads * p.head_dim / 2)
        | "You stored the elements alone. Without what stands beside them a kernel cannot read them back.",
        Slip("one-group-per-vector", lambda p: p.tokens * 2 * p.layers * p.kv_heads * (p.head_dim / 2 + p.scale_bytes))
        | "You gave each cached vector one scale and one minimum. A vector is longer than one group.",
        Slip(
            "whole-bytes",
            lambda p: (
                p.tokens * 2 * p.layers * p.kv_heads * (p.head_dim + p.head_dim // p.group_elements * p.scale_bytes)
            ),
        )
        | "You gave each element a whole byte. Two of them share one.",
        Slip(
            "keys-or-values",
            lambda p: (
                p.tokens * p.layers * p.kv_heads * (p.head_dim / 2 + p.head_dim // p.group_elements * p.scale_bytes)
            ),
        )
        | "You cached keys or values. Every later token needs both, each with its own scales.",
        Slip(
            "query-heads",
            lambda p: (
                p.tokens
                * 2
                * p.layers
                * p.query_heads
                * (p.head_dim / 2 + p.head_dim // p.group_elements * p.scale_bytes)
            ),
        )
        | "You counted query heads. Several of them read the same cached key and value.",
        Slip("sixteen-bit", lambda p: p.tokens * 2 * p.layers * p.kv_heads * p.head_dim * 2)
        | "That is the cache in 16 bits, before it was quantised.",
    ),
)

DRILLS = (CONFIG, SCALES)
