"""A decode step of a model of which most layers read a window only: what it reads, and how long that takes."""

import random

from threeloops.drills.engine import catalogued
from threeloops.drills.engine.drill import AsFunction, Derivation, Draw, Drill, Slip, Taught, drawn
from threeloops.drills.kv_cache.contexts import bare_model
from threeloops.drills.kv_cache.sharing import SOURCE_WINDOW
from threeloops.models.architecture import Attention, Model
from threeloops.product_loop import kv_cache
from threeloops.simulate.product_loop import cache_walk
from threeloops.units import GB, MB, TB, fmt_bytes, fmt_si

TAUGHT = Taught("driving", "The reference sheet")
BYTES = 2  # of a key or a value
SOURCE_STEP = "Pope et al., 2022, arXiv:2211.05102, section 2.1 (a decode step reads weights and caches)"


def _model(p: Draw) -> Model:
    heads = {"num_heads": p.kv_heads, "num_kv_heads": p.kv_heads, "head_dim": p.head_dim}
    return bare_model((Attention(**heads, window=p.window), p.windowed), (Attention(**heads), p.full))


def _cache(p: Draw) -> float:
    return kv_cache.request_bytes(_model(p), tokens=p.tokens, bytes_per_element=BYTES)


def _slot(p: Draw) -> int:
    """What one token leaves in one layer."""
    return int(2 * p.kv_heads * p.head_dim * BYTES)


def _slots_told(p: Draw) -> str:
    return f"({p.full} × {p.tokens} + {p.windowed} × min({p.window}, {p.tokens}))"


# --- what a window saves -------------------------------------------------------------------------


def _draw_saved(rng: random.Random) -> Draw:
    (local, windowed), (_, full) = catalogued.model("gemma-3-27b").groups
    assert isinstance(local.attention, Attention)
    return drawn(
        windowed=windowed,
        full=full,
        window=local.attention.window,
        kv_heads=local.attention.num_kv_heads,
        head_dim=local.attention.head_dim,
        tokens=rng.randrange(7_200, 40_100, 100),
    )


def _saved(p: Draw) -> float:
    layers = p.full + p.windowed
    return float(layers * p.tokens * _slot(p) / _cache(p))


def _count_saved(p: Draw) -> float:
    """Walk all layers twice: as they are, and as if each of them read everything."""
    heads = Attention(num_heads=p.kv_heads, num_kv_heads=p.kv_heads, head_dim=p.head_dim)
    plain = bare_model((heads, p.full + p.windowed))
    return cache_walk.cached_elements(plain, tokens=p.tokens) / cache_walk.cached_elements(_model(p), tokens=p.tokens)


SAVED = Drill(
    key="coding-window-saves",
    taught=TAUGHT,
    title="What windows save",
    unit="",
    target_s=90,
    draw=_draw_saved,
    small=lambda rng: drawn(
        windowed=7,
        full=2,
        window=4,
        kv_heads=2,
        head_dim=3,
        tokens=rng.choice((19, 26)),
    ),
    prompt=lambda p: (
        f"Of the layers of Gemma 3 27B, {p.windowed} read only the last {p.window:,} tokens and {p.full}"
        f" read the whole context, {p.tokens:,} tokens by now. How many times as much cache would a decode step read"
        " if all of its layers read the whole context?"
    ),
    derive=lambda p: Derivation(
        value=_saved(p),
        formula="(full + windowed layers) × tokens / (full layers × tokens + windowed layers × window)",
        substitution=f"({p.full} + {p.windowed}) × {p.tokens} / {_slots_told(p)}",
        source=SOURCE_WINDOW,
    ),
    count=_count_saved,
    prerequisites=("kv-sliding-window",),
    slips=(
        Slip("layers-only", lambda p: (p.full + p.windowed) / p.full)
        | "You let the windowed layers read nothing. Each of them reads its window.",
        Slip("tokens-only", lambda p: p.tokens / p.window)
        | "That is what one windowed layer saves. Some layers have no window, and soon they are most of it.",
        Slip("swapped", lambda p: (p.full + p.windowed) * p.tokens / (p.windowed * p.tokens + p.full * p.window))
        | "You gave the window to the wrong layers.",
        Slip("share", lambda p: 1 / _saved(p))
        | "That is the share that is still read. The question asks for its inverse.",
    ),
)

# --- the step ------------------------------------------------------------------------------------


def _unlike(p: Draw) -> bool:
    """The caches weigh clearly less than the weights, or clearly more."""
    caches = p.batch * _cache(p) / p.weights
    return bool(0.55 < caches < 0.8 or 1.35 < caches < 1.6)


def _read(p: Draw, cache: float) -> float:
    return float((p.weights + p.batch * cache) / p.bandwidth)


def _count_step(p: Draw) -> float:
    """Walk every request's cache, layer by layer."""
    walked = sum(cache_walk.cached_elements(_model(p), tokens=p.tokens) for _request in range(p.batch))
    return float((p.weights + walked * BYTES) / p.bandwidth)


STEP = Drill(
    key="coding-decode-step",
    taught=TAUGHT,
    title="A decode step with windows",
    unit="s",
    target_s=150,
    wanted=_unlike,
    draw=lambda rng: drawn(
        weights=rng.randrange(12, 40) * GB,
        batch=rng.choice((5, 6)),
        windowed=rng.choice((35, 40, 44)),
        full=rng.choice((7, 8, 9)),
        window=rng.choice((2048, 4096)),
        kv_heads=rng.choice((12, 16)),
        head_dim=rng.choice((96, 112, 128)),
        tokens=rng.randrange(20_000, 60_100, 100),
        bandwidth=rng.choice((2.0, 3.35, 4.8)) * TB,
    ),
    small=lambda rng: drawn(
        weights=rng.choice((400, 700)),
        batch=3,
        windowed=5,
        full=2,
        window=4,
        kv_heads=2,
        head_dim=3,
        tokens=rng.choice((9, 13)),
        bandwidth=90.0,
    ),
    prompt=lambda p: (
        f"A decode step of {p.batch} requests reads {fmt_bytes(p.weights, base=10)} of weights once, and of each"
        f" request the cache: {p.windowed} layers read the last {p.window:,} tokens, {p.full} read the"
        f" whole context of {p.tokens:,} tokens. Each layer has {p.kv_heads} KV heads, {p.head_dim} wide, in"
        f" 16 bits. Memory delivers {fmt_si(p.bandwidth, 'B/s')}, and nothing else takes time."
        " How long is the step?"
    ),
    derive=lambda p: Derivation(
        value=_read(p, _cache(p)),
        formula="(weights + batch × slots × 2 × KV heads × head dim × bytes) / bandwidth",
        substitution=(
            f"({p.weights / GB:.10g}e9 + {p.batch} × {_slots_told(p)} × 2 × {p.kv_heads} × {p.head_dim} ×"
            f" {BYTES}) / {p.bandwidth / MB:.10g}e6"
        ),
        source=SOURCE_STEP,
    ),
    count=_count_step,
    prerequisites=("kv-sliding-window", "serving-decode-step"),
    slips=(
        Slip("no-weights", lambda p: p.batch * _cache(p) / p.bandwidth)
        | "You left the weights out. Every step reads them once.",
        Slip("no-caches", lambda p: _read(p, 0)) | "You left the caches out. Every request's is read, too.",
        Slip("no-window", lambda p: _read(p, (p.full + p.windowed) * p.tokens * _slot(p)))
        | "You let every layer read the whole context.",
        Slip("keys-or-values", lambda p: _read(p, _cache(p) / 2))
        | "You read the keys or the values. A step reads both.",
        Slip("one-request", lambda p: _read(p, _cache(p)) - (p.batch - 1) * _cache(p) / p.bandwidth)
        | "You read one request's cache. Each request of the batch has its own.",
    ),
    function=AsFunction(
        takes=(
            "weights",
            "batch",
            "windowed",
            "full",
            "window",
            "kv_heads",
            "head_dim",
            "tokens",
            "bandwidth",
        ),
        limit={"tokens": 700},
        limit_case="a context shorter than the window",
    ),
)

DRILLS = (SAVED, STEP)
