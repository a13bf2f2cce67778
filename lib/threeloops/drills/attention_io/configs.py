"""A drill on a real model's attention: what its scores weigh beside the keys and values that they are made from."""

import random

from threeloops.drills.attention_io.scores import SOURCE_STANDARD
from threeloops.drills.engine import catalogued
from threeloops.drills.engine.drill import Derivation, Draw, Drill, Slip, Taught, drawn
from threeloops.drills.kv_cache.contexts import attention, bare_model, real_shape
from threeloops.inner_loop import attention_io
from threeloops.product_loop import kv_cache
from threeloops.simulate.product_loop import cache_walk

TAUGHT = Taught("inner", "Fusion and FlashAttention")

SOURCE_GROUPS = "Ainslie et al., 2023, arXiv:2305.13245 (grouped-query attention)"


def _draw_scores(rng: random.Random) -> Draw:
    key = rng.choice(("qwen2.5-7b", "qwen2.5-72b", "qwen3-32b", "mixtral-8x22b", "llama-3-405b"))
    model = catalogued.model(key)
    shape = {"name": catalogued.model_name(key), "hidden": model.hidden, **real_shape(key)}
    return drawn(**shape, tokens=rng.randrange(9_000, 31_000, 500), bytes_per_element=2)


def _small_scores(rng: random.Random) -> Draw:
    shape = {
        "name": "small",
        "hidden": 90,
        "layers": rng.choice((3, 4)),
        "query_heads": 10,
        "kv_heads": 2,
        "head_dim": rng.choice((3, 4)),
    }
    return drawn(**shape, tokens=rng.choice((11, 13)), bytes_per_element=2)


def _ratio(p: Draw, kept_heads: int) -> float:
    scores = attention_io.score_matrix_bytes(
        batch=1, num_heads=p.query_heads, query_tokens=p.tokens, context_tokens=p.tokens, bytes_per_element=2
    )
    return float(scores / (2 * kept_heads * p.head_dim * p.tokens * p.bytes_per_element))


def _derive_scores(p: Draw) -> Derivation:
    kept = kv_cache.request_bytes(bare_model((attention(p), 1)), tokens=p.tokens, bytes_per_element=p.bytes_per_element)
    scores = attention_io.score_matrix_bytes(
        batch=1,
        num_heads=p.query_heads,
        query_tokens=p.tokens,
        context_tokens=p.tokens,
        bytes_per_element=p.bytes_per_element,
    )
    return Derivation(
        value=scores / kept,
        formula="(heads × tokens²) / (2 (key and value) × KV heads × head dim × tokens)",
        substitution=f"{p.query_heads} × {p.tokens}² / (2 × {p.kv_heads} × {p.head_dim} × {p.tokens})",
        source=f"{SOURCE_STANDARD}; {SOURCE_GROUPS}",
    )


def _count_scores(p: Draw) -> float:
    """Every score of one layer, head by head and row by row, over every number that a cache walk finds."""
    scores = 0
    for _ in range(p.query_heads):
        for _ in range(p.tokens):
            scores += len(range(p.tokens))
    return scores / cache_walk.readable_elements(attention(p), tokens=p.tokens)


SCORES = Drill(
    key="attention-scores-of-a-model",
    taught=TAUGHT,
    title="A table beside what it was made from",
    unit="",
    target_s=120,
    draw=_draw_scores,
    small=_small_scores,
    prompt=lambda p: (
        f"The config of {p.name} says: {p.layers} layers, hidden size {p.hidden}, {p.query_heads} attention heads,"
        f" {p.kv_heads} key-value heads, head_dim {p.head_dim}. It reads a prompt of {p.tokens:,} tokens with attention"
        " that is not fused and stores every score, masked ones too; all is in 16 bits. In one layer, how many times"
        " as many bytes do the scores take as the keys and values?"
    ),
    derive=_derive_scores,
    count=_count_scores,
    prerequisites=("attention-score-matrix",),
    slips=(
        Slip("equal-heads", lambda p: _ratio(p, p.query_heads))
        | "You gave every attention head keys and values of its own. The config has fewer key-value heads.",
        Slip("keys-only", lambda p: 2 * _ratio(p, p.kv_heads))
        | "You compared with the keys. Values are stored beside them.",
        Slip("whole-cache", lambda p: _ratio(p, p.kv_heads) / p.layers)
        | "You compared one layer's scores with the keys and values of all layers.",
        Slip("all-scores", lambda p: _ratio(p, p.kv_heads) * p.layers)
        | "You compared the scores of all layers with one layer's keys and values.",
    ),
)

DRILLS = (SCORES,)
