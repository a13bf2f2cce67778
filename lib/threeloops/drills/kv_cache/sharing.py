"""Drills on KV caches that are not the same everywhere: layers with a window, a latent vector for all heads, heads
spread over GPUs.
"""

import random

from threeloops.drills.engine import catalogued
from threeloops.drills.engine.drill import AsFunction, Derivation, Draw, Drill, Slip, Taught, changed, drawn
from threeloops.drills.engine.fair_draws import fair
from threeloops.drills.kv_cache.contexts import attention, bare_model, real_shape
from threeloops.models.architecture import Attention, LatentAttention, Model
from threeloops.product_loop import kv_cache
from threeloops.simulate.product_loop import cache_walk

TAUGHT = Taught("product", "KV cache")

SOURCE_WINDOW = (
    "Gemma Team, Gemma 3 Technical Report, 2025, arXiv:2503.19786, section 2 (five local layers to one global, window"
    " 1,024)"
)
SOURCE_LATENT = (
    "DeepSeek-AI, DeepSeek-V2, 2024, arXiv:2405.04434, section 2.1 (latent attention); DeepSeek-V3, 2024,"
    " arXiv:2412.19437 (sizes)"
)
SOURCE_TENSOR_PARALLEL = (
    "Ainslie et al., 2023, arXiv:2305.13245, section 2.2 (KV heads repeated over model partitions); Llama Team, 2024,"
    " arXiv:2407.21783 (the model)"
)

# --- sliding windows -----------------------------------------------------------------------------


def _hybrid(p: Draw) -> Model:
    windowed = Attention(num_heads=p.query_heads, num_kv_heads=p.kv_heads, head_dim=p.head_dim, window=p.window)
    return bare_model((windowed, p.windowed_layers), (attention(p), p.full_layers))


def _draw_window(rng: random.Random) -> Draw:
    (local, windowed_layers), (_, full_layers) = catalogued.model("gemma-3-27b").groups
    assert isinstance(local.attention, Attention)
    heads = local.attention
    return drawn(
        windowed_layers=windowed_layers,
        full_layers=full_layers,
        window=heads.window,
        query_heads=heads.num_heads,
        kv_heads=heads.num_kv_heads,
        head_dim=heads.head_dim,
        bytes_per_element=2,
        tokens=rng.randrange(20_000, 60_500, 500),
    )


def _small_window(rng: random.Random) -> Draw:
    shape = {
        "windowed_layers": 5,
        "full_layers": rng.choice((1, 2)),
        "window": rng.choice((2, 3)),
        "query_heads": 6,
        "kv_heads": 3,
        "head_dim": 4,
    }
    return drawn(**shape, bytes_per_element=2, tokens=rng.choice((9, 13)))


def _slots(p: Draw, slots: float) -> float:
    """What that many slots, over all layers, would cost."""
    return float(slots * 2 * p.kv_heads * p.head_dim * p.bytes_per_element)


def _mixed_layers(rng: random.Random) -> Draw:
    """Any model with windows, not only the one that the question names."""
    kv_heads, full = rng.choice((3, 4, 6)), rng.choice((6, 7, 9))
    heads = {
        "kv_heads": kv_heads,
        "query_heads": kv_heads * rng.choice((5, 6, 7)),
        "head_dim": rng.choice((80, 96, 112)),
        "bytes_per_element": 2,
    }
    window = rng.choice((512, 1024, 2048))
    return drawn(
        windowed_layers=4 * full, full_layers=full, window=window, tokens=window * rng.choice((11, 13, 17)), **heads
    )


WINDOW = Drill(
    key="kv-sliding-window",
    taught=TAUGHT,
    title="Layers that forget",
    unit="B",
    capacity=True,
    target_s=120,
    draw=_draw_window,
    small=_small_window,
    prompt=lambda p: (
        f"Of the layers of Gemma 3 27B, {p.windowed_layers} read only the last {p.window:,} tokens and {p.full_layers}"
        f" read the whole context. Each layer has {p.query_heads} query heads and {p.kv_heads} KV heads, {p.head_dim}"
        f" wide; the cache is kept in 16 bits. A context has reached {p.tokens:,} tokens. How many bytes of keys and"
        " values does the next step still read?"
    ),
    derive=lambda p: Derivation(
        value=kv_cache.request_bytes(_hybrid(p), tokens=p.tokens, bytes_per_element=p.bytes_per_element),
        formula=(
            "(full layers × tokens + windowed layers × window) × 2 (key and value) × KV heads × head dim × bytes per"
            " element"
        ),
        substitution=(
            f"({p.full_layers} × {p.tokens:,} + {p.windowed_layers} × {p.window:,}) × 2 × {p.kv_heads} × {p.head_dim} ×"
            f" {p.bytes_per_element}"
        ),
        source=SOURCE_WINDOW,
    ),
    count=lambda p: cache_walk.cached_elements(_hybrid(p), tokens=p.tokens) * p.bytes_per_element,
    prerequisites=("kv-bytes-per-token",),
    slips=(
        Slip("no-window", lambda p: _slots(p, (p.full_layers + p.windowed_layers) * p.tokens))
        | "You let every layer keep the whole context. Most of these layers can no longer see its beginning.",
        Slip("window-everywhere", lambda p: _slots(p, (p.full_layers + p.windowed_layers) * p.window))
        | "You gave every layer a window. A few still read everything, and at this length they are what costs.",
        Slip("full-layers-only", lambda p: _slots(p, p.full_layers * p.tokens))
        | "You left the windowed layers out. Each keeps little, but there are many of them.",
        Slip("swapped", lambda p: _slots(p, p.windowed_layers * p.tokens + p.full_layers * p.window))
        | "You swapped the two kinds of layer. Read again which of them are many.",
        Slip(
            "query-heads",
            lambda p: _slots(p, p.full_layers * p.tokens + p.windowed_layers * p.window) * p.query_heads / p.kv_heads,
        )
        | "You counted query heads. Several of them read the same cached key and value.",
        Slip("keys-or-values", lambda p: _slots(p, p.full_layers * p.tokens + p.windowed_layers * p.window) / 2)
        | "You cached keys or values. Every later token needs both.",
    ),
    function=AsFunction(
        takes=(
            "windowed_layers",
            "full_layers",
            "window",
            "query_heads",
            "kv_heads",
            "head_dim",
            "bytes_per_element",
            "tokens",
        ),
        limit=lambda p: {"tokens": p.window // 3},
        limit_case="a context shorter than the window",
        draw=_mixed_layers,
    ),
)

# --- latent attention ----------------------------------------------------------------------------


def _latent(p: Draw) -> LatentAttention:
    return LatentAttention(
        num_heads=p.heads,
        q_rank=None,
        kv_rank=p.kv_rank,
        nope_head_dim=p.key_dim,
        rope_head_dim=p.rope_dim,
        value_head_dim=p.value_dim,
    )


def _draw_latent(rng: random.Random) -> Draw:
    model = catalogued.model("deepseek-v3")
    latent = model.groups[0][0].attention
    assert isinstance(latent, LatentAttention)
    sizes = {
        "heads": latent.num_heads,
        "kv_rank": latent.kv_rank,
        "rope_dim": latent.rope_head_dim,
        "bytes_per_element": 2,
        "layers": model.num_layers,
    }
    widths = {"key_dim": latent.nope_head_dim, "value_dim": latent.value_head_dim}
    return drawn(**sizes, **widths, tp=rng.choice((16, 32)), tokens=rng.randrange(6_000, 71_000, 1_000))


def _small_latent(rng: random.Random) -> Draw:
    sizes = {
        "heads": 12,
        "kv_rank": rng.choice((10, 14)),
        "rope_dim": 3,
        "key_dim": 7,
        "value_dim": 7,
        "bytes_per_element": 2,
    }
    return drawn(**sizes, layers=rng.choice((2, 3)), tp=4, tokens=rng.choice((5, 9)))


def _derive_latent(p: Draw) -> Derivation:
    model = bare_model((_latent(p), p.layers))
    return Derivation(
        value=kv_cache.request_bytes(model, tokens=p.tokens, bytes_per_element=p.bytes_per_element, tp=p.tp),
        formula="tokens × layers × (latent width + position key) × bytes per element, the same on every GPU",
        substitution=f"{p.tokens:,} × {p.layers} × ({p.kv_rank} + {p.rope_dim}) × {p.bytes_per_element}",
        source=SOURCE_LATENT,
    )


def _elements(p: Draw, per_layer: float) -> float:
    """The context's bytes if a token left that many elements in each layer."""
    return float(p.tokens * p.layers * per_layer * p.bytes_per_element)


LATENT = Drill(
    key="kv-latent",
    taught=TAUGHT,
    title="One vector for all heads",
    unit="B",
    capacity=True,
    target_s=100,
    draw=_draw_latent,
    small=_small_latent,
    prompt=lambda p: (
        f"DeepSeek-V3 has {p.layers} layers of latent attention with {p.heads} heads. Per token and layer it caches a"
        f" latent vector of {p.kv_rank} elements and a position key of {p.rope_dim} elements, both in 16 bits; keys and"
        f" values, {p.key_dim} wide per head, follow from them. It runs tensor-parallel on {p.tp} GPUs, which split"
        " the heads and nothing else (no decode context parallelism). How many bytes does one context of"
        f" {p.tokens:,} tokens take on each GPU?"
    ),
    derive=_derive_latent,
    count=lambda p: (
        cache_walk.cached_elements(bare_model((_latent(p), p.layers)), tokens=p.tokens, tp=p.tp, rank=p.tp - 1)
        * p.bytes_per_element
    ),
    prerequisites=("kv-bytes-per-token",),
    slips=(
        Slip("divided-by-gpus", lambda p: _elements(p, (p.kv_rank + p.rope_dim) / p.tp))
        | "You divided by the GPUs. The latent vector belongs to all heads at once, so every GPU needs the whole"
        " of it.",
        Slip("key-and-value", lambda p: _elements(p, 2 * (p.kv_rank + p.rope_dim)))
        | "You doubled it for keys and values. Both follow from the same vector: that is the trick.",
        Slip("no-position-key", lambda p: _elements(p, p.kv_rank))
        | "You left out the position key. It does not follow from the latent vector, so it is cached beside it.",
        Slip("every-head", lambda p: _elements(p, p.heads * (p.key_dim + p.value_dim)))
        | "You cached a key and a value for every head. Latent attention exists so as not to.",
        Slip("heads-of-one-gpu", lambda p: _elements(p, p.heads // p.tp * (p.key_dim + p.value_dim)))
        | "You cached keys and values of the heads on one GPU. What is kept is what both follow from.",
        Slip("one-layer", lambda p: _elements(p, (p.kv_rank + p.rope_dim) / p.layers))
        | "That is one layer. Each has a latent vector of its own.",
    ),
)

# --- more GPUs than KV heads ---------------------------------------------------------------------


def _draw_gpus(rng: random.Random) -> Draw:
    batch = {"requests": rng.choice((3, 5, 6, 7, 9, 11)), "tokens": rng.randrange(9_000, 35_000, 2_000)}
    return drawn(**real_shape("llama-3-405b"), **batch, tp=32, bytes_per_element=2)


def _small_gpus(rng: random.Random) -> Draw:
    shape = {
        "layers": rng.choice((2, 3)),
        "kv_heads": 3,
        "query_heads": 36,
        "head_dim": 4,
        "tp": rng.choice((9, 18)),
        "bytes_per_element": 2,
    }
    return drawn(**shape, requests=rng.choice((5, 7)), tokens=rng.choice((4, 6)))


def _derive_gpus(p: Draw) -> Derivation:
    model = bare_model((attention(p), p.layers))
    cache = kv_cache.per_rank(model, tokens=p.tokens, batch=p.requests, tp=p.tp, bytes_per_element=p.bytes_per_element)
    return Derivation(
        value=cache.rank_bytes,
        formula=(
            "requests × tokens × 2 (key and value) × layers × KV heads on one GPU (never less than 1) × head dim ×"
            " bytes per element"
        ),
        substitution=f"{p.requests} × {p.tokens:,} × 2 × {p.layers} × 1 × {p.head_dim} × {p.bytes_per_element}",
        source=SOURCE_TENSOR_PARALLEL,
    )


def _heads(p: Draw, heads: float) -> float:
    """The batch's bytes if a GPU kept that many heads of each layer."""
    return float(p.requests * p.tokens * 2 * p.layers * heads * p.head_dim * p.bytes_per_element)


def _enough_heads(rng: random.Random) -> Draw:
    p = fair(GPUS).draw(rng)
    return changed(p, tp=rng.choice((2, 4)))


def _any_heads(rng: random.Random) -> Draw:
    p = fair(GPUS).draw(rng)
    kv_heads = rng.choice((2, 4))
    return changed(
        p,
        layers=rng.choice((22, 28, 46)),
        head_dim=rng.choice((80, 96, 112)),
        kv_heads=kv_heads,
        query_heads=48,
        tp=rng.choice((12, 16, 24)),
    )


GPUS = Drill(
    key="kv-more-gpus-than-heads",
    taught=TAUGHT,
    title="More GPUs than KV heads",
    unit="B",
    capacity=True,
    target_s=120,
    draw=_draw_gpus,
    small=_small_gpus,
    prompt=lambda p: (
        f"Llama 3.1 405B runs tensor-parallel on {p.tp} GPUs. It has {p.layers} layers with {p.query_heads} query heads"
        f" and {p.kv_heads} KV heads, {p.head_dim} wide, and keeps its KV cache in 16 bits. {p.requests} requests have"
        f" reached {p.tokens:,} tokens each. How much cache does each GPU hold?"
    ),
    derive=_derive_gpus,
    count=lambda p: (
        sum(
            cache_walk.cached_elements(bare_model((attention(p), p.layers)), tokens=p.tokens, tp=p.tp)
            for _ in range(p.requests)
        )
        * p.bytes_per_element
    ),
    prerequisites=("kv-whole-requests",),
    slips=(
        Slip("divided-on", lambda p: _heads(p, p.kv_heads / p.tp))
        | "You divided the whole cache by the GPUs. A KV head is not cut in pieces: where there are more GPUs"
        " than heads, heads are copied.",
        Slip("every-head", lambda p: _heads(p, p.kv_heads))
        | "You kept the whole cache on every GPU. A GPU needs only what its own query heads read.",
        Slip("query-heads", lambda p: _heads(p, p.query_heads // p.tp))
        | "You cached one key and value for each query head on the GPU. Those query heads all read the same ones.",
        Slip("keys-or-values", lambda p: _heads(p, 0.5)) | "You cached keys or values. Every later token needs both.",
        Slip("one-request", lambda p: _heads(p, 1) / p.requests)
        | "That is one request. Weights are shared by a batch; caches are not.",
        Slip("one-layer", lambda p: _heads(p, 1) / p.layers)
        | "That is one layer. Tensor parallelism leaves every layer on every GPU.",
    ),
    function=AsFunction(
        takes=("tp", "layers", "query_heads", "kv_heads", "head_dim", "bytes_per_element", "requests", "tokens"),
        limit_draw=_enough_heads,
        limit_case="fewer GPUs than KV heads",
        draw=_any_heads,
    ),
)

DRILLS = (WINDOW, LATENT, GPUS)
