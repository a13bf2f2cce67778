"""Drills on what attention writes, moves and keeps when its scores go to memory, and when they do not.

Query heads are 5 to 7 per KV head, and batches such that a forgotten batch, a forgotten head and a forgotten byte are
three different numbers.
"""

import random
from typing import TYPE_CHECKING

from threeloops.drills.engine.drill import Derivation, Draw, Drill, Slip, Taught, drawn
from threeloops.inner_loop import attention_io
from threeloops.operations import kernels

if TYPE_CHECKING:
    from threeloops.simulate.inner_loop.tiled_attention import CountedAttention

TAUGHT = Taught("inner", "Fusion and FlashAttention")
SOURCE_STANDARD = "Dao et al., FlashAttention, 2022, arXiv:2205.14135, algorithm 0 (standard attention)"
SOURCE_KEPT = (
    "Dao, FlashAttention-2, 2023, arXiv:2307.08691, section 3.1 (one logarithm of a sum of exponentials per row)"
)


def shaped(rng: random.Random, *, batches: tuple[int, ...], tokens: tuple[int, ...]) -> dict[str, int]:
    """Heads, batch and length of one layer's attention."""
    kv_heads = rng.choice((3, 4))
    heads = {"heads": kv_heads * rng.choice((5, 6, 7)), "kv_heads": kv_heads, "head_dim": rng.choice((96, 112, 160))}
    return {**heads, "batch": rng.choice(batches), "tokens": rng.choice(tokens)}


def small_shape(rng: random.Random) -> dict[str, int]:
    """The same ratios, small enough to compute."""
    return {
        "heads": 2 * rng.choice((5, 7)),
        "kv_heads": 2,
        "head_dim": rng.choice((3, 5)),
        "batch": 3,
        "tokens": rng.choice((11, 13)),
    }


def counted(p: Draw) -> "CountedAttention":
    """One sequence of a small draw, attended with its scores written out, in numbers of the size that the draw
    says.
    """
    import numpy as np  # numpy, which a reader's own drills do not need

    from threeloops.simulate.inner_loop import tiled_attention

    generator = np.random.default_rng(seed=p.tokens)
    dtype = {2: np.float16, 4: np.float32}[p.bytes_per_element]
    q, k, v = (
        generator.standard_normal((heads, p.tokens, p.head_dim)).astype(dtype)
        for heads in (p.heads, p.kv_heads, p.kv_heads)
    )
    return tiled_attention.unfused_attention(q, k, v, causal=False)


# --- the scores ---------------------------------------------------------------------------------


def _draw_scores(rng: random.Random) -> Draw:
    return drawn(
        **shaped(rng, batches=(3, 4), tokens=(11_000, 12_000, 13_000, 14_000, 15_000, 16_000, 17_000, 18_000)),
        bytes_per_element=2,
    )


def _small_scores(rng: random.Random) -> Draw:
    return drawn(**small_shape(rng), bytes_per_element=2)


def _derive_scores(p: Draw) -> Derivation:
    shape = {"batch": p.batch, "num_heads": p.heads, "query_tokens": p.tokens, "context_tokens": p.tokens}
    return Derivation(
        value=attention_io.score_matrix_bytes(**shape, bytes_per_element=p.bytes_per_element),
        formula="sequences × query heads × tokens² × bytes per element",
        substitution=f"{p.batch} × {p.heads} × {p.tokens}² × {p.bytes_per_element}",
        source=SOURCE_STANDARD,
    )


def _count_scores(p: Draw) -> float:
    """What unfused attention stores, without its output: scores, and weights of the same size."""
    walk = counted(p)
    return float(p.batch * (walk.stored_bytes - walk.output.nbytes) / 2)


SCORES = Drill(
    key="attention-score-matrix",
    taught=TAUGHT,
    title="The matrix that no result needs",
    unit="B",
    capacity=True,
    target_s=60,
    draw=_draw_scores,
    small=_small_scores,
    prompt=lambda p: (
        f"A layer has {p.heads} query heads and {p.kv_heads} KV heads, {p.head_dim} wide. It reads {p.batch} prompts of"
        f" {p.tokens:,} tokens each, in {8 * p.bytes_per_element} bits. Attention is not fused, and stores the score of"
        " every token with every token, masked ones too. How large are the scores?"
    ),
    derive=_derive_scores,
    count=_count_scores,
    slips=(
        Slip("one-head", lambda p: p.batch * p.tokens**2 * p.bytes_per_element)
        | "That is one head. Every query head has scores of its own.",
        Slip("one-sequence", lambda p: p.heads * p.tokens**2 * p.bytes_per_element)
        | "That is one prompt. Scores are not shared by a batch.",
        Slip("kv-heads", lambda p: p.batch * p.kv_heads * p.tokens**2 * p.bytes_per_element)
        | "You counted KV heads. Query heads that share keys still score them separately.",
        Slip("elements", lambda p: p.batch * p.heads * p.tokens**2) | "You counted scores. How many bytes is each?",
        Slip("tokens-by-width", lambda p: p.batch * p.heads * p.tokens * p.head_dim * p.bytes_per_element)
        | "That is the size of the queries. A score belongs to a pair of tokens, and no longer knows about the"
        " width.",
    ),
)

# --- the traffic ---------------------------------------------------------------------------------


def _unfused(p: Draw, passes: int, heads: int, batch: int) -> float:
    """Bytes of unfused attention in which the scores cross `passes` times."""
    scores = passes * heads * p.tokens**2
    return float(batch * (scores + 2 * (heads + p.kv_heads) * p.tokens * p.head_dim) * p.bytes_per_element)


def _derive_traffic(p: Draw) -> Derivation:
    shape = {
        "batch": p.batch,
        "num_heads": p.heads,
        "num_kv_heads": p.kv_heads,
        "head_dim": p.head_dim,
        "bytes_per_element": p.bytes_per_element,
    }
    return Derivation(
        value=kernels.attention(
            **shape, query_tokens=p.tokens, context_tokens=p.tokens, causal="full", fused=False
        ).moved_bytes,
        formula=(
            "sequences × (4 × query heads × tokens² + 2 × (query heads + KV heads) × tokens × head dim) × bytes per"
            " element"
        ),
        substitution=(
            f"{p.batch} × (4 × {p.heads} × {p.tokens}² + 2 × ({p.heads} + {p.kv_heads}) × {p.tokens} × {p.head_dim}) ×"
            f" {p.bytes_per_element}"
        ),
        source=SOURCE_STANDARD,
    )


TRAFFIC = Drill(
    key="attention-unfused-traffic",
    taught=TAUGHT,
    title="How often the scores cross the bus",
    unit="B",
    target_s=120,
    draw=lambda rng: drawn(**shaped(rng, batches=(3, 6), tokens=(5_000, 7_000, 9_000)), bytes_per_element=2),
    small=_small_scores,
    prompt=lambda p: (
        f"A layer has {p.heads} query heads and {p.kv_heads} KV heads, {p.head_dim} wide, and reads {p.batch} prompts"
        f" of {p.tokens:,} tokens each, in {8 * p.bytes_per_element} bits. Attention is three kernels: scores, softmax"
        " (mask included), output. Each finds its operands in device memory, reads each of them once, and leaves its"
        " result there. How many bytes do the three move together?"
    ),
    derive=_derive_traffic,
    count=lambda p: float(p.batch * counted(p).moved_bytes),
    prerequisites=("attention-score-matrix",),
    slips=(
        Slip("written-once", lambda p: _unfused(p, 1, p.heads, p.batch))
        | "You let the scores cross the bus once. Follow them from kernel to kernel.",
        Slip("written-and-read", lambda p: _unfused(p, 2, p.heads, p.batch))
        | "You wrote the scores and read them again, as if the softmax had left nothing behind. Its result is as"
        " large.",
        Slip("softmax-in-place", lambda p: _unfused(p, 3, p.heads, p.batch))
        | "You forgot one crossing. Working in place saves room, not traffic.",
        Slip("one-head", lambda p: p.batch * (4 * p.tokens**2 + 4 * p.tokens * p.head_dim) * p.bytes_per_element)
        | "That is one head. Every query head has scores of its own.",
        Slip("one-sequence", lambda p: _unfused(p, 4, p.heads, 1)) | "That is one prompt. How many are there?",
    ),
)

# --- what is kept --------------------------------------------------------------------------------


def _count_kept(p: Draw) -> float:
    """The logarithms themselves, of random scores."""
    import numpy as np

    scores = (
        np.random.default_rng(seed=p.tokens).standard_normal((p.batch, p.heads, p.tokens, p.tokens)).astype(np.float32)
    )
    return float(np.log(np.exp(scores).sum(axis=-1)).nbytes)


KEPT = Drill(
    key="attention-kept-statistics",
    taught=TAUGHT,
    title="What fused attention keeps",
    unit="B",
    capacity=True,
    target_s=60,
    draw=_draw_scores,
    small=_small_scores,
    prompt=lambda p: (
        f"A layer with {p.heads} query heads and {p.kv_heads} KV heads, {p.head_dim} wide, reads {p.batch} sequences of"
        f" {p.tokens:,} tokens in {8 * p.bytes_per_element} bits. Its attention is a FlashAttention-2 kernel. Inputs"
        " and output are kept for the backward pass in any case. How much memory does the kernel need to keep beside"
        " them?"
    ),
    derive=lambda p: Derivation(
        value=attention_io.row_statistics_bytes(batch=p.batch, num_heads=p.heads, query_tokens=p.tokens),
        formula="sequences × query heads × tokens × 4 bytes",
        substitution=f"{p.batch} × {p.heads} × {p.tokens} × 4",
        source=SOURCE_KEPT,
    ),
    count=_count_kept,
    prerequisites=("attention-score-matrix",),
    slips=(
        Slip("score-matrix", lambda p: p.batch * p.heads * p.tokens**2 * p.bytes_per_element)
        | "You kept the scores. They are computed again, block by block, when the backward pass needs them.",
        Slip("output", lambda p: p.batch * p.heads * p.tokens * p.head_dim * p.bytes_per_element)
        | "That is the output. Every attention makes it; the question is what comes on top.",
        Slip("same-format", lambda p: p.batch * p.heads * p.tokens * p.bytes_per_element)
        | "You kept it in the format of the inputs. A sum over a whole row is kept in a wider one.",
        Slip("two-statistics", lambda p: p.batch * p.heads * p.tokens * 2 * 4)
        | "You kept maximum and sum. The second version of the kernel makes one number of them.",
        Slip("kv-heads", lambda p: p.batch * p.kv_heads * p.tokens * 4)
        | "You counted KV heads. Rows of scores belong to query heads.",
        Slip("one-sequence", lambda p: p.heads * p.tokens * 4) | "That is one sequence. How many are there?",
    ),
)

DRILLS = (SCORES, TRAFFIC, KEPT)
