"""Drills on split decode: one request's cache read by many multiprocessors, and into how many pieces it is cut."""

import random

from threeloops.drills.engine.drill import Derivation, Draw, Drill, Slip, Taught, drawn
from threeloops.product_loop import split_decode
from threeloops.units import TB

TAUGHT = Taught("product", "Paging")

SOURCE = "FlashAttention, hopper/heuristics.h, num_splits_heuristic, 2024 (waves over whole waves)"
CARDS = ((108, 2.04), (132, 3.35), (132, 4.8), (148, 8.0), (142, 0.864))  # multiprocessors, TB/s

# --- the time of a layer's attention -------------------------------------------------------------


def _draw_read(rng: random.Random) -> Draw:
    num_sms, bandwidth = rng.choice(CARDS)
    return drawn(
        batch=rng.choice((1, 3, 5, 6)),
        kv_heads=rng.choice((4, 8, 10)),
        head_dim=rng.choice((64, 96, 128)),
        splits=rng.choice((3, 5, 6, 7, 9)),
        tokens=rng.randrange(30, 120) * 630,  # whole pieces, however it is cut
        num_sms=num_sms,
        bandwidth=bandwidth * TB,
    )


def _caches(p: Draw) -> int:
    return int(p.batch * p.kv_heads * p.tokens * 2 * p.head_dim * 2)


def _read(p: Draw, *, splits: int) -> float:
    return split_decode.split_read_s(
        batch=p.batch,
        num_kv_heads=p.kv_heads,
        splits=splits,
        num_sms=p.num_sms,
        cache_bytes=_caches(p),
        memory_bytes_per_s=p.bandwidth,
    )


def _derive_read(p: Draw) -> Derivation:
    blocks = p.batch * p.kv_heads * p.splits
    whole = -(-blocks // p.num_sms) * p.num_sms
    return Derivation(
        value=_read(p, splits=p.splits),
        formula="bytes of keys and values / (bandwidth × blocks / (whole waves × multiprocessors))",
        substitution=(
            f"{p.batch} × {p.kv_heads} × {p.tokens} × 2 × {p.head_dim} × 2 / ({p.bandwidth:.4g} × {blocks} / {whole})"
        ),
        source=SOURCE,
    )


def _count_read(p: Draw) -> float:
    """Pieces go to the multiprocessor that is free first, which reads token after token at its share."""
    free = [0.0] * p.num_sms
    token_s = 2 * p.head_dim * 2 / (p.bandwidth / p.num_sms)
    for _request in range(p.batch):
        for _head in range(p.kv_heads):
            for _piece in range(p.splits):
                first = free.index(min(free))
                for _token in range(p.tokens // p.splits):
                    free[first] += token_s
    return max(free)


READ = Drill(
    key="split-decode-time",
    taught=TAUGHT,
    title="One cache, many readers",
    unit="s",
    target_s=120,
    draw=_draw_read,
    small=lambda rng: drawn(
        batch=rng.choice((1, 3)),
        kv_heads=rng.choice((3, 5)),
        head_dim=rng.choice((4, 6)),
        splits=rng.choice((2, 3)),
        tokens=rng.choice((12, 18, 30)),
        num_sms=rng.choice((4, 7)),
        bandwidth=rng.choice((1000.0, 2000.0)),
    ),
    prompt=lambda p: (
        f"Attention of one layer in decode, by a kernel that gives each block one KV head of one request, and cuts its"
        f" cache into {p.splits} equal pieces, a block for each. {p.batch} request{'s' if p.batch > 1 else ''} of"
        f" {p.tokens:,} tokens, {p.kv_heads} KV heads, {p.head_dim} wide, keys and values in bf16. The GPU has"
        f" {p.num_sms} multiprocessors, which take one block at a time, and {p.bandwidth / TB:g} TB/s of bandwidth;"
        " each reads at its share of that, also where others are idle. How long does the reading take?"
    ),
    derive=_derive_read,
    count=_count_read,
    slips=(
        Slip("whole-bandwidth", lambda p: _caches(p) / p.bandwidth)
        | "You let every multiprocessor read all the time. How many have a block?",
        Slip("not-split", lambda p: _read(p, splits=1)) | "You left the cache in one piece for each KV head.",
        Slip("keys-only", lambda p: _read(p, splits=p.splits) / 2) | "You read keys or values. Attention reads both.",
        Slip("one-byte", lambda p: _read(p, splits=p.splits) * 2) | "You gave a number four bytes. In bf16 it has two.",
    ),
)

# --- how many pieces -----------------------------------------------------------------------------


def _draw_fewest(rng: random.Random) -> Draw:
    kv_heads = rng.choice((1, 2, 3, 4, 5, 6, 8, 10))
    return drawn(
        batch=rng.choice((1, 2, 3)),
        kv_heads=kv_heads,
        heads=kv_heads * rng.choice((4, 5, 7, 8)),
        num_sms=rng.choice((78, 84, 108, 114, 132, 142, 148, 188)),
        tokens=rng.randrange(20, 65) * 2048,
        busy=rng.choice((70, 75, 80, 85, 90)),
    )


def _small_fewest(rng: random.Random) -> Draw:
    kv_heads = rng.choice((1, 2, 3))
    return drawn(
        batch=rng.choice((1, 2)),
        kv_heads=kv_heads,
        heads=kv_heads * rng.choice((4, 5)),
        num_sms=rng.choice((23, 29, 31, 37)),
        tokens=rng.randrange(20, 65) * 2048,
        busy=rng.choice((70, 80, 90)),
    )


def _filling(p: Draw, blocks: int) -> int:
    return int(-(-p.busy * p.num_sms // (100 * blocks)))


def _fewest(p: Draw, *, batch: int, heads: int) -> int:
    return split_decode.fewest_splits(
        batch=batch, num_kv_heads=heads, num_sms=p.num_sms, most=p.num_sms, enough=p.busy / 100
    )


def _count_fewest(p: Draw) -> float:
    """Play each number of pieces: the first whose last multiprocessor ends nearly as early as in the best."""
    took = {}
    for splits in range(1, p.num_sms + 1):
        free = [0] * p.num_sms
        for _block in range(p.batch * p.kv_heads * splits):
            free[free.index(min(free))] += 1
        took[splits] = max(free) / splits
    return float(next(splits for splits, one in took.items() if one * p.busy / 100 <= min(took.values()) * (1 + 1e-9)))


FEWEST = Drill(
    key="split-decode-pieces",
    taught=TAUGHT,
    title="Into how many pieces a cache is cut",
    unit="",
    whole="up",
    target_s=90,
    draw=_draw_fewest,
    small=_small_fewest,
    prompt=lambda p: (
        f"A decode attention kernel has a block for each KV head of each request, and the GPU has {p.num_sms}"
        " multiprocessors, which take one block at a time. So that more of them have one, each cache is cut into equal"
        f" pieces, a block for each: as few as keep at least {p.busy} % of the multiprocessors busy, in one wave."
        f" {p.batch} request{'s' if p.batch > 1 else ''} of {p.tokens:,} tokens, {p.heads} query heads that share"
        f" {p.kv_heads} KV head{'s' if p.kv_heads > 1 else ''}. Into how many pieces is each cache cut?"
    ),
    derive=lambda p: Derivation(
        value=float(_fewest(p, batch=p.batch, heads=p.kv_heads)),
        formula="ceil(share × multiprocessors / (requests × KV heads)), which one wave still holds",
        substitution=f"ceil({p.busy / 100} × {p.num_sms} / ({p.batch} × {p.kv_heads}))",
        source=SOURCE,
    ),
    count=_count_fewest,
    slips=(
        Slip("query-heads", lambda p: float(_filling(p, p.batch * p.heads)))
        | "You gave every query head a block. Those that share a KV head share its block.",
        Slip("all-of-them", lambda p: float(-(-p.num_sms // (p.batch * p.kv_heads))))
        | "You wanted all multiprocessors busy. Less is asked for.",
        Slip("one-request", lambda p: float(_filling(p, p.kv_heads if p.batch > 1 else 2 * p.kv_heads)))
        | "You counted the blocks of another number of requests.",
        Slip("tiles", lambda p: float(-(-p.tokens // 128)))
        | "You cut the cache into tiles of 128 tokens. Each piece writes a result that must be merged.",
    ),
    wanted=lambda p: (
        _filling(p, p.batch * p.kv_heads) * p.batch * p.kv_heads <= p.num_sms and p.batch * p.kv_heads < 0.8 * p.num_sms
    ),
)

DRILLS = (READ, FEWEST)
