"""Drills on one sequence over several GPUs: what goes round a ring of attention, and from how many tokens on nobody
waits for it.
"""

import math
import random

from threeloops.drills.engine.drill import Derivation, Draw, Drill, Slip, Taught, drawn
from threeloops.training_loop.parallelism.context_parallel import hiding_tokens, ring_traffic
from threeloops.units import BITS_PER_BYTE, GB, TFLOP

TAUGHT = Taught("training", "Experts, contexts and hybrids")
SOURCE_RING = (
    "Liu, Zaharia, Abbeel, Ring Attention, 2023, arXiv:2310.01889, section 3 (blocks round the ring, overlapped from"
    " F/B tokens on)"
)

# --- what goes round -----------------------------------------------------------------------------


def _draw_bytes(rng: random.Random) -> Draw:
    cp, heads = rng.choice((5, 6, 7, 9, 10)), rng.choice(((24, 8), (32, 8), (96, 8), (48, 4), (16, 4), (128, 8)))
    return drawn(
        cp=cp,
        heads=heads[0],
        kv_heads=heads[1],
        head_dim=128,
        piece=rng.choice((3072, 5120, 6144, 7168, 10240, 12288, 14336)),
    )


def _part(p: Draw, heads: int | None = None) -> float:
    """Keys and values of one GPU's tokens, in elements."""
    return float(2 * p.piece * (p.kv_heads if heads is None else heads) * p.head_dim)


def _sent(p: Draw, *, rounds: int = 2, home: float | None = None, part: float | None = None) -> float:
    elements = _part(p) if part is None else part
    return float(rounds * (p.cp - 1) * elements * 2 + (p.cp if home is None else home) * elements * 4)


def _count_bytes(p: Draw) -> float:
    """Attention over a simulated ring for the forward pass; then every piece travels again, and its gradients go
    along until they are home.
    """
    import numpy as np  # which a reader's own drills do not need

    from threeloops.simulate.training_loop.context_ring import ring_attention

    sequence = p.cp * p.piece
    queries, keys = (
        np.ones((sequence, p.heads, p.head_dim), dtype=np.float16),
        np.ones((sequence, p.kv_heads, p.head_dim), dtype=np.float16),
    )
    forward = ring_attention(queries, keys, keys, ranks=p.cp, zigzag=False).sent_bytes[0]
    gradients = 0
    for owner in range(p.cp):
        at = (owner + 1) % p.cp
        gradients += 1
        while at != owner:
            at = (at + 1) % p.cp
            gradients += 1
    return float(2 * forward + gradients / p.cp * 2 * keys[: p.piece].size * 4)


BYTES = Drill(
    key="context-ring-bytes",
    taught=TAUGHT,
    title="Round the ring and home again",
    unit="B",
    target_s=150,
    draw=_draw_bytes,
    small=lambda rng: drawn(
        cp=rng.choice((3, 4, 5)), heads=6, kv_heads=2, head_dim=rng.choice((3, 4)), piece=rng.choice((4, 6))
    ),
    prompt=lambda p: (
        f"A sequence is cut over {p.cp} GPUs, {p.piece:,} tokens each. Attention has {p.heads} query heads and"
        f" {p.kv_heads} KV heads of {p.head_dim}. Keys and values go round a ring in bf16, in the forward pass and"
        " again in the backward pass; in the backward pass their gradients travel along in fp32, from the first hop"
        " on, and each makes the full circle back to the GPU that owns its tokens."
        " How many bytes does one GPU send for one layer, forward and backward?"
    ),
    derive=lambda p: Derivation(
        value=ring_traffic(
            tokens_per_rank=p.piece, kv_dim=p.kv_heads * p.head_dim, cp=p.cp, bytes_per_element=2, bytes_per_gradient=4
        ).total_bytes,
        formula="2 × tokens × KV heads × head dim × (2 passes × (GPUs − 1) × 2 bytes + GPUs × 4 bytes)",
        substitution=f"2 × {p.piece} × {p.kv_heads} × {p.head_dim} × (2 × ({p.cp} − 1) × 2 + {p.cp} × 4)",
        source=SOURCE_RING,
    ),
    count=_count_bytes,
    slips=(
        Slip("forward-only", lambda p: _sent(p, rounds=1, home=0))
        | "That is the forward pass. The way back needs the keys again, and more.",
        Slip("not-home", lambda p: _sent(p, home=p.cp - 1))
        | "The gradients stopped one GPU short of home. Count the hops of a full circle.",
        Slip("kept", lambda p: _sent(p, rounds=1))
        | "You kept all keys and values from the forward pass. Then every GPU would hold the whole sequence; the"
        " ring sends them once more.",
        Slip("query-heads", lambda p: _sent(p, part=_part(p, p.heads)))
        | "You sent one key and one value per query head. Several query heads share one.",
        Slip("keys-only", lambda p: _sent(p, part=_part(p) / 2)) | "You sent keys or values. Attention needs both.",
        Slip("whole-sequence", lambda p: _sent(p, part=_part(p) * p.cp))
        | "You passed the whole sequence on at every hop. One GPU's tokens travel at a time.",
    ),
)

# --- when nobody waits ---------------------------------------------------------------------------


def _draw_hides(rng: random.Random) -> Draw:
    heads = rng.choice(((40, 8), (28, 4), (48, 8), (96, 8), (72, 8)))
    return drawn(
        heads=heads[0],
        kv_heads=heads[1],
        head_dim=128,
        tera=rng.choice((310, 380, 440, 490, 530)),
        gigabit=rng.choice((200, 400, 800)),
    )


def _tokens(p: Draw, *, kv_heads: int | None = None, factor: float = 1.0) -> float:
    return factor * hiding_tokens(
        flops_per_s=p.tera * TFLOP,
        bytes_per_s_one_way=p.gigabit * GB / BITS_PER_BYTE,
        query_dim=p.heads * p.head_dim,
        kv_dim=(kv_heads or p.kv_heads) * p.head_dim,
        bytes_per_element=2,
    )


def _count_hides(p: Draw) -> float:
    """Try one token more until computing takes at least as long as sending."""
    tokens = 1
    while True:
        products = sum(2 * p.head_dim for _ in range(p.heads) for _ in range(tokens)) * tokens  # scores
        # weights times values
        products += sum(2 * tokens for _ in range(p.heads) for _ in range(p.head_dim)) * tokens
        elements = sum(p.head_dim for _ in ("keys", "values") for _ in range(p.kv_heads)) * tokens
        if products / (p.tera * TFLOP) >= elements * 16 / (p.gigabit * GB) * (1 - 1e-12):
            return float(tokens)
        tokens += 1


HIDES = Drill(
    key="context-ring-hides",
    taught=TAUGHT,
    title="Enough tokens to hide behind",
    unit="token",
    whole="up",
    loose="bound",
    target_s=150,
    draw=_draw_hides,
    small=lambda rng: drawn(
        heads=rng.choice((10, 12)),
        kv_heads=2,
        head_dim=4,
        tera=rng.choice((40, 52, 68)) * 1e-12,
        gigabit=8 * rng.choice((1, 3)) / GB,
    ),
    prompt=lambda p: (
        "In a step of ring attention, a GPU attends from its own tokens to a piece of as many other tokens, all pairs"
        f" counted, while it sends that piece's keys and values on in bf16. There are {p.heads} query heads and"
        f" {p.kv_heads} KV heads of {p.head_dim}; attention's two matmuls run at {p.tera:g} TFLOP/s; the link gives"
        f" {p.gigabit:g} Gbit/s one way. How many tokens must each GPU have, at least, so that it never waits for the"
        " link?"
    ),
    derive=lambda p: Derivation(
        value=math.ceil(_tokens(p)),
        formula=(
            "4 × tokens² × query heads × head dim / rate ≥ 4 × tokens × KV heads × head dim / link, so tokens ≥ KV"
            " heads / query heads × rate / link"
        ),
        substitution=f"ceil({p.kv_heads} / {p.heads} × {p.tera:.12g}e12 / ({p.gigabit:.12g}e9 / 8))",
        source=SOURCE_RING,
    ),
    count=_count_hides,
    slips=(
        Slip("query-heads", lambda p: math.ceil(_tokens(p, kv_heads=p.heads)))
        | "You sent one key and one value per query head. Several query heads share one.",
        Slip("keys-only", lambda p: math.ceil(_tokens(p, factor=0.5)))
        | "You sent keys or values. Attention needs both.",
        Slip("scores-only", lambda p: math.ceil(_tokens(p, factor=2)))
        | "You computed half of attention's operations. There are two matmuls, and each multiplies and adds.",
        Slip("bits", lambda p: math.ceil(_tokens(p, factor=1 / 8))) | "You took the link's bits for bytes.",
    ),
)

DRILLS = (BYTES, HIDES)
