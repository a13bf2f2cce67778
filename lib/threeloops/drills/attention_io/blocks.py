"""Drills on attention in blocks: how many queries fit, what passes by again for every block of them, and which blocks
a causal mask spares; and the same traffic with the loops in the first FlashAttention's order.
"""

import random
from typing import Any

from threeloops.drills.engine.drill import AsFunction, Derivation, Draw, Drill, Slip, Taught, drawn
from threeloops.inner_loop import attention_io
from threeloops.operations import kernels
from threeloops.units import KiB

TAUGHT = Taught("inner", "Fusion and FlashAttention")

SOURCE_LOOP = "Dao, FlashAttention-2, 2023, arXiv:2307.08691, algorithm 1"
SOURCE_FIRST_LOOP = "Dao et al., FlashAttention, 2022, arXiv:2205.14135, algorithm 1"
SOURCE_BLOCK_SPARSE = (
    "Dao et al., FlashAttention, 2022, arXiv:2205.14135, section 3.3 (blocks that are masked are skipped)"
)


def arrays(tokens: int, width: int, bytes_per_element: int) -> list[Any]:
    """Random queries, keys and values of one head."""
    import numpy as np  # numpy, which a reader's own drills do not need

    generator = np.random.default_rng(seed=tokens)
    return [
        generator.standard_normal((tokens, width)).astype({2: np.float16, 4: np.float32}[bytes_per_element])
        for _ in range(3)
    ]


# --- queries that fit ---------------------------------------------------------------------------


def _elements(p: Draw) -> float:
    return float(p.fast_kib * KiB / p.bytes_per_element)


def _derive_fit(p: Draw) -> Derivation:
    sizes = {
        "fast_bytes": p.fast_kib * KiB,
        "head_dim": p.head_dim,
        "key_block": p.key_block,
        "bytes_per_element": p.bytes_per_element,
    }
    return Derivation(
        value=attention_io.largest_query_block(**sizes),
        formula="(elements that fit − 2 × key block × head dim) / (2 × head dim + key block + 2), rounded down",
        substitution=(
            f"floor(({p.fast_kib} × 1024 / {p.bytes_per_element} − 2 × {p.key_block} × {p.head_dim}) / (2 ×"
            f" {p.head_dim} + {p.key_block} + 2))"
        ),
        source=SOURCE_LOOP,
    )


def _count_fit(p: Draw) -> float:
    """One query more and one more, until the walk is refused."""
    from threeloops.simulate.inner_loop import bounded_attention

    rows, head = 0, arrays(p.fast_kib * 100, p.head_dim, p.bytes_per_element)
    while True:
        try:
            first = head[0][: rows + 1]
            bounded_attention.queries_outside(
                first,
                head[1][: p.key_block],
                head[2][: p.key_block],
                query_block=rows + 1,
                key_block=p.key_block,
                fast_bytes=p.fast_kib * KiB,
            )
        except ValueError:
            return float(rows)
        rows += 1


FIT = Drill(
    key="attention-queries-that-fit",
    taught=TAUGHT,
    title="How many queries fit",
    unit="",
    whole="down",
    target_s=120,
    draw=lambda rng: drawn(
        fast_kib=rng.choice((164, 192, 228, 256)),
        head_dim=rng.choice((72, 80, 88, 96, 104, 112)),
        key_block=rng.choice((48, 64)),
        bytes_per_element=2,
    ),
    small=lambda rng: drawn(
        fast_kib=rng.choice((3, 4)), head_dim=rng.choice((6, 7)), key_block=rng.choice((5, 6)), bytes_per_element=2
    ),
    prompt=lambda p: (
        f"A fused attention kernel has {p.fast_kib} KiB of fast memory. For one head, {p.head_dim} wide, it holds in it"
        f" a block of queries and their unfinished outputs, {p.key_block} keys and {p.key_block} values, the scores of"
        f" those queries with those keys, and two statistics per query, all in {8 * p.bytes_per_element} bits. How many"
        " queries can a block have?"
    ),
    derive=_derive_fit,
    count=_count_fit,
    slips=(
        Slip(
            "outputs-forgotten",
            lambda p: (_elements(p) - 2 * p.key_block * p.head_dim) // (p.head_dim + p.key_block + 2),
        )
        | "You left no room for the outputs. They stay as long as their queries do.",
        Slip("scores-forgotten", lambda p: (_elements(p) - 2 * p.key_block * p.head_dim) // (2 * p.head_dim + 2))
        | "You left no room for the scores. Even a block of them has to be somewhere.",
        Slip("keys-forgotten", lambda p: _elements(p) // (2 * p.head_dim + p.key_block + 2))
        | "You left no room for keys and values. They pass by, but while they do they take up space.",
        Slip(
            "bytes-as-elements",
            lambda p: (p.fast_kib * KiB - 2 * p.key_block * p.head_dim) // (2 * p.head_dim + p.key_block + 2),
        )
        | "You filled the memory with one byte per number. How large is each?",
    ),
)

# --- traffic of the fused kernel -----------------------------------------------------------------


def _draw_traffic(rng: random.Random) -> Draw:
    block, blocks = rng.choice((64, 96, 128)), rng.choice((7, 9, 11, 13))
    return drawn(
        block=block,
        tokens=block * blocks,
        head_dim=rng.choice((80, 96, 112)),
        heads=rng.choice((11, 15, 21)),
        bytes_per_element=2,
    )


def _small_traffic(rng: random.Random) -> Draw:
    block, blocks = rng.choice((3, 4)), rng.choice((5, 7))
    return drawn(
        block=block, tokens=block * blocks, head_dim=rng.choice((5, 6)), heads=rng.choice((3, 5)), bytes_per_element=2
    )


def _tensors(p: Draw, tensors: float) -> float:
    """Bytes of so many tensors of tokens × head dim in every head."""
    return float(p.heads * tensors * p.tokens * p.head_dim * p.bytes_per_element)


def _derive_traffic(p: Draw) -> Derivation:
    shape = {
        "batch": 1,
        "num_heads": p.heads,
        "num_kv_heads": p.heads,
        "head_dim": p.head_dim,
        "query_tokens": p.tokens,
        "context_tokens": p.tokens,
    }
    return Derivation(
        value=kernels.attention(
            **shape, causal="full", fused=True, query_block=p.block, bytes_per_element=p.bytes_per_element
        ).moved_bytes,
        formula=(
            "heads × (queries and output once + keys and values once per block of queries) × tokens × head dim × bytes"
            " per element"
        ),
        substitution=(
            f"{p.heads} × (2 + 2 × {p.tokens} / {p.block}) × {p.tokens} × {p.head_dim} × {p.bytes_per_element}"
        ),
        source=SOURCE_LOOP,
    )


def _count_traffic(p: Draw) -> float:
    """Walk every head, with keys in another block size than queries: it must not matter."""
    from threeloops.simulate.inner_loop import bounded_attention

    head = arrays(p.tokens, p.head_dim, p.bytes_per_element)
    walks = [
        bounded_attention.queries_outside(*head, query_block=p.block, key_block=p.block + 1, fast_bytes=64 * KiB)
        for _ in range(p.heads)
    ]
    return float(sum(walk.moved_bytes for walk in walks))


TRAFFIC = Drill(
    key="attention-fused-traffic",
    taught=TAUGHT,
    title="What passes by again",
    unit="B",
    target_s=120,
    draw=_draw_traffic,
    small=_small_traffic,
    prompt=lambda p: (
        f"A fused attention kernel works on {p.heads} heads, each with keys and values of its own, {p.head_dim} wide,"
        f" {p.tokens:,} tokens, no mask, in {8 * p.bytes_per_element} bits. A block of {p.block} queries stays in fast"
        " memory while all keys and values pass by; then comes the next block. No cache helps. How many bytes does the"
        " kernel move?"
    ),
    derive=_derive_traffic,
    count=_count_traffic,
    prerequisites=("attention-queries-that-fit",),
    slips=(
        Slip("everything-once", lambda p: _tensors(p, 4))
        | "You let every tensor cross once. What happens when the second block of queries comes in?",
        Slip("keys-only", lambda p: _tensors(p, 2 + p.tokens / p.block))
        | "You let the keys pass by and forgot the values, or the other way round.",
        Slip("queries-forgotten", lambda p: _tensors(p, 2 * p.tokens / p.block))
        | "You counted what passes by, and not what stays: the queries come in, the output goes out.",
        Slip("outputs-visit", lambda p: _tensors(p, 2 + 3 * p.tokens / p.block))
        | "You held keys and let queries pass, with their unfinished outputs. This kernel has its loops the other"
        " way round.",
        Slip("one-head", lambda p: _tensors(p, 2 + 2 * p.tokens / p.block) / p.heads)
        | "That is one head. Each head's queries see its own keys.",
    ),
    function=AsFunction(
        takes=("heads", "head_dim", "tokens", "block", "bytes_per_element"),
        limit=lambda p: {"tokens": p.block},
        limit_case="a sequence that is one block of queries",
    ),
)

# --- blocks that a causal mask spares ------------------------------------------------------------


def _draw_causal(rng: random.Random) -> Draw:
    block, blocks = rng.choice((64, 96, 128)), rng.choice((5, 6, 7, 9))
    return drawn(block=block, blocks=blocks, head_dim=rng.choice((80, 96, 112)), heads=rng.choice((10, 14, 22)))


def _block_flops(p: Draw, blocks: float) -> float:
    return float(p.heads * blocks * 4 * p.block**2 * p.head_dim)


def _count_causal(p: Draw) -> float:
    """Walk the heads with the mask on, and count what is multiplied."""
    import numpy as np

    from threeloops.simulate.inner_loop import tiled_attention

    shape = (p.heads, p.block * p.blocks, p.head_dim)
    q, k, v = (np.random.default_rng(seed=seed).standard_normal(shape) for seed in range(3))
    return (
        2.0
        * tiled_attention.fused_attention(q, k, v, causal=True, query_block=p.block, key_block=p.block).multiply_adds
    )


CAUSAL = Drill(
    key="attention-causal-blocks",
    taught=TAUGHT,
    title="Half of the mask, in whole blocks",
    unit="FLOP",
    target_s=120,
    draw=_draw_causal,
    small=lambda rng: drawn(
        block=rng.choice((3, 4)), blocks=rng.choice((5, 6)), head_dim=rng.choice((4, 6)), heads=rng.choice((3, 5))
    ),
    prompt=lambda p: (
        f"A fused causal attention kernel works in blocks of {p.block} queries by {p.block} keys. It skips a block in"
        " which every score is masked, and computes all others in full, the masked scores in them too. The sequence"
        f" has {p.block * p.blocks:,} tokens, and there are {p.heads} heads, {p.head_dim} wide. How many FLOPs do its"
        " two matmuls execute?"
    ),
    derive=lambda p: Derivation(
        value=float(
            attention_io.causal_block_flops(
                num_heads=p.heads, head_dim=p.head_dim, tokens=p.block * p.blocks, block=p.block
            )
        ),
        formula="heads × blocks × (blocks + 1) / 2 × 4 × block² × head dim",
        substitution=f"{p.heads} × {p.blocks} × ({p.blocks} + 1) / 2 × 4 × {p.block}² × {p.head_dim}",
        source=SOURCE_BLOCK_SPARSE,
    ),
    count=_count_causal,
    slips=(
        Slip("no-mask", lambda p: _block_flops(p, p.blocks**2))
        | "You computed every block. Which ones hold nothing but masked scores?",
        Slip("half", lambda p: _block_flops(p, p.blocks**2 / 2))
        | "You took exactly half, or the scores that are not masked. Blocks on the diagonal are computed whole.",
        Slip("diagonal-forgotten", lambda p: _block_flops(p, p.blocks * (p.blocks - 1) / 2))
        | "You skipped the diagonal. A token sees itself.",
        Slip("one-product", lambda p: _block_flops(p, p.blocks * (p.blocks + 1) / 4))
        | "That is one of the two matmuls, or multiply-adds counted once.",
        Slip("one-head", lambda p: _block_flops(p, p.blocks * (p.blocks + 1) / 2) / p.heads)
        | "That is one head. How many are there?",
    ),
    function=AsFunction(
        takes=("block", "blocks", "head_dim", "heads"), limit={"blocks": 1}, limit_case="a sequence of a single block"
    ),
)

# --- the first order of the loops ----------------------------------------------------------------


def _derive_first(p: Draw) -> Derivation:
    return Derivation(
        value=p.heads
        * attention_io.keys_outside_bytes(
            query_tokens=p.tokens,
            context_tokens=p.tokens,
            head_dim=p.head_dim,
            key_block=p.block,
            bytes_per_element=p.bytes_per_element,
        ),
        formula=(
            "heads × tokens × (2 × head dim once for keys and values + (3 × head dim + 4) per block of keys) × bytes"
            " per element"
        ),
        substitution=(
            f"{p.heads} × {p.tokens} × (2 × {p.head_dim} + {p.tokens} / {p.block} × (3 × {p.head_dim} + 4)) ×"
            f" {p.bytes_per_element}"
        ),
        source=SOURCE_FIRST_LOOP,
    )


def _count_first(p: Draw) -> float:
    """Walk every head, with queries in another block size than keys: it must not matter."""
    from threeloops.simulate.inner_loop import bounded_attention

    head = arrays(p.tokens, p.head_dim, p.bytes_per_element)
    walks = [
        bounded_attention.keys_outside(*head, query_block=p.block + 1, key_block=p.block, fast_bytes=64 * KiB)
        for _ in range(p.heads)
    ]
    return float(sum(walk.moved_bytes for walk in walks))


FIRST = Drill(
    key="attention-keys-outside",
    taught=TAUGHT,
    title="The first order of the loops",
    unit="B",
    target_s=150,
    draw=_draw_traffic,
    small=_small_traffic,
    prompt=lambda p: (
        f"The first FlashAttention held a block of {p.block} keys and {p.block} values in fast memory and let all"
        " queries pass by, then came the next block. With each query came its unfinished output, its maximum and its"
        f" sum, and all three went back to slow memory. There are {p.heads} heads, each with keys and values of its"
        f" own, {p.head_dim} wide, {p.tokens:,} tokens, no mask, everything in {8 * p.bytes_per_element} bits, and no"
        " cache helps. How many bytes does it move? (Neglect what fills output, maximum and sum at the start.)"
    ),
    derive=_derive_first,
    count=_count_first,
    prerequisites=("attention-fused-traffic",),
    slips=(
        Slip("everything-once", lambda p: _tensors(p, 4))
        | "You let every tensor cross once. What happens when the second block of keys comes in?",
        Slip("other-order", lambda p: _tensors(p, 2 + 2 * p.tokens / p.block))
        | "You held queries and let keys and values pass, or let unfinished outputs cross in one direction only."
        " What has to come back in before it can be added to?",
        Slip("outputs-stay", lambda p: _tensors(p, 2 + p.tokens / p.block))
        | "Only the queries passed by. Where is the output of a query until the next block of keys comes?",
        Slip("keys-pass-too", lambda p: _tensors(p, 5 * p.tokens / p.block))
        | "You fetched keys and values as often as queries. How long does a block of them stay?",
        Slip("one-head", lambda p: _derive_first(p).value / p.heads)
        | "That is one head. Each head's queries see its own keys.",
    ),
)

DRILLS = (FIT, TRAFFIC, CAUSAL, FIRST)
