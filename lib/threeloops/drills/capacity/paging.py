"""A drill on what paging is worth: more requests in the same memory, in longer steps."""

import random

from threeloops.drills.engine.drill import Derivation, Draw, Drill, Slip, Taught, drawn
from threeloops.product_loop import batching
from threeloops.simulate.product_loop.block_allocator import BlockAllocator
from threeloops.units import GB

TAUGHT = Taught("product", "Capacity and cost")


def _draw_paged(rng: random.Random) -> Draw:
    weights, memory, longest = rng.choice(((16, 52, 8192), (15, 54, 8192), (19, 50, 6144)))
    return drawn(
        weights=weights * GB,
        memory=memory * GB,
        per_token=rng.randrange(110_000, 150_000, 10_000),
        longest=longest,
        mean=rng.randrange(1300, 1800, 50),
    )


def _fit(p: Draw, tokens: int) -> int:
    return int(p.memory // (tokens * p.per_token))


def _read(p: Draw, requests: int) -> float:
    """Bytes of a step: weights, and what has been written of each cache."""
    return float(p.weights + requests * p.mean * p.per_token)


def _paged(p: Draw, *, weights: float = 1.0) -> float:
    return batching.slots_gain(
        weights_bytes=weights * p.weights,
        cache_bytes_per_request=p.mean * p.per_token,
        slots=_fit(p, p.longest),
        more_slots=_fit(p, p.mean),
    )


def _derive_paged(p: Draw) -> Derivation:
    before, after = _fit(p, p.longest), _fit(p, p.mean)
    size = f"{p.mean} × {p.per_token}"
    return Derivation(
        value=_paged(p),
        formula=(
            "(requests after / bytes of a step after) / (requests before / bytes of a step before); bytes of a step ="
            " weights + requests × written cache"
        ),
        substitution=f"({after} / ({p.weights} + {after} × {size})) / ({before} / ({p.weights} + {before} × {size}))",
        source=(
            "Kwon et al., 2023, arXiv:2309.06180, sections 3.1 and 6 (PagedAttention: larger batches from the same"
            " memory)"
        ),
    )


def _count_paged(p: Draw) -> float:
    """Admit requests until no block is left: once in blocks as long as the longest request, once token by token."""
    made = []
    for block in (p.longest, 1):
        blocks = BlockAllocator(num_blocks=p.memory // (block * p.per_token), block_tokens=block)
        needed, admitted = -(-p.mean // block), 0
        while blocks.reserved_slots // block + needed <= p.memory // (block * p.per_token):
            blocks.grow(str(admitted), tokens=p.mean)
            admitted += 1
        made.append(admitted / (p.weights + admitted * p.mean * p.per_token))
    return float(made[1] / made[0])


PAGED = Drill(
    key="serving-paging-throughput",
    taught=TAUGHT,
    title="What paging is worth in tokens",
    unit="",
    target_s=180,
    draw=_draw_paged,
    small=lambda rng: drawn(
        weights=rng.choice((900, 1100)),
        memory=rng.choice((1000, 1200)),
        per_token=1,
        longest=120,
        mean=rng.choice((20, 25)),
    ),
    prompt=lambda p: (
        f"A model's weights take {p.weights / GB:g} GB, and {p.memory / GB:g} GB are left for KV caches; a token costs"
        f" {p.per_token:,} bytes. Until now the server reserved {p.longest:,} tokens for every request; requests really"
        f" hold {p.mean:,} on average. A paged cache reserves no more than that. Decoding takes as long as reading the"
        " weights and what is written of the caches. How many times as many tokens per second does the full server"
        " make with paging as before?"
    ),
    derive=_derive_paged,
    count=_count_paged,
    prerequisites=("kv-reserved-in-advance", "serving-batch-throughput"),
    slips=(
        Slip("requests-only", lambda p: _fit(p, p.mean) / _fit(p, p.longest))
        | "That is how many times as many requests fit. With more of them a step takes longer.",
        Slip("step-ratio", lambda p: _read(p, _fit(p, p.mean)) / _read(p, _fit(p, p.longest)))
        | "That is how many times as long a step takes. How many tokens does it make?",
        Slip("one-request", lambda p: _read(p, _fit(p, p.longest)) / _read(p, _fit(p, p.mean)))
        | "That is the rate of one request, which gets slower. The server makes a token for each of them.",
        Slip("half-weights", lambda p: _paged(p, weights=0.5))
        | "You read half of the weights in a step. All of them are read.",
    ),
)

DRILLS = (PAGED,)
