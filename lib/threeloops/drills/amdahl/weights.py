"""A drill on Amdahl's law in bytes: what narrower weights in a part of a real model do for a step that waits for its
weights.
"""

import random
from fractions import Fraction

from threeloops.drills.amdahl.law import SOURCE_AMDAHL
from threeloops.drills.engine import catalogued
from threeloops.drills.engine.drill import Derivation, Draw, Drill, Slip, Taught, drawn
from threeloops.inner_loop import scaling
from threeloops.models.architecture import Attention, DenseMlp
from threeloops.units import BITS_PER_BYTE

TAUGHT = Taught("product", "Three loops")

SOURCE_DECODE = "Pope et al., 2022, arXiv:2211.05102, section 2 (a step of one request loads all weights)"
WIDE_BITS = 16


def _draw_narrow(rng: random.Random) -> Draw:
    key = rng.choice(("llama-3-8b", "llama-3-70b", "llama-3-405b", "mistral-7b", "qwen3-32b"))
    model = catalogued.model(key)
    layer, layers = model.groups[0]
    attention, mlp = layer.attention, layer.mlp
    assert isinstance(attention, Attention)
    assert isinstance(mlp, DenseMlp)
    shape = {"layers": layers, "hidden": model.hidden, "intermediate": mlp.intermediate, "vocab": model.vocab}
    heads = {"query_heads": attention.num_heads, "kv_heads": attention.num_kv_heads, "head_dim": attention.head_dim}
    return drawn(
        name=catalogued.model_name(key),
        **shape,
        **heads,
        bits=rng.choice((3.75, 4.25, 4.5, 4.85, 5.25, 5.5, 6.25, 6.6, 8.25, 8.5)),
    )


def _small_narrow(rng: random.Random) -> Draw:
    shape = {
        "layers": rng.choice((2, 3)),
        "hidden": 24,
        "intermediate": rng.choice((60, 72)),
        "vocab": rng.choice((50, 90)),
    }
    return drawn(name="small", **shape, query_heads=6, kv_heads=2, head_dim=4, bits=rng.choice((4.25, 6.5)))


def _narrowed(p: Draw) -> float:
    """Weights of the feed-forward blocks."""
    return float(p.layers * 3 * p.hidden * p.intermediate)


def _kept(p: Draw, kv_heads: int) -> float:
    """Weights of attention and of the output head."""
    return float(p.layers * 2 * p.hidden * (p.query_heads + kv_heads) * p.head_dim + p.vocab * p.hidden)


def _speedup(p: Draw, narrowed: float, kept: float) -> float:
    return scaling.amdahl_speedup(accelerated_share=narrowed / (narrowed + kept), factor=WIDE_BITS / p.bits)


def _derive_narrow(p: Draw) -> Derivation:
    feed_forward = f"{p.layers} × 3 × {p.hidden} × {p.intermediate}"
    others = f"{p.layers} × 2 × {p.hidden} × ({p.query_heads} + {p.kv_heads}) × {p.head_dim} + {p.vocab} × {p.hidden}"
    return Derivation(
        value=_speedup(p, _narrowed(p), _kept(p, p.kv_heads)),
        formula="(feed-forward + attention + head) × 16 / (feed-forward × bits + (attention + head) × 16)",
        substitution=f"({feed_forward} + {others}) × 16 / ({feed_forward} × {p.bits} + ({others}) × 16)",
        source=f"{SOURCE_AMDAHL}; {SOURCE_DECODE}",
    )


def _count_narrow(p: Draw) -> float:
    """Every matrix of the model, row by row: its bytes before and after."""
    before = after = Fraction(0)
    for name, rows, columns in _matrices(p):
        for _ in range(rows):
            before += Fraction(columns * WIDE_BITS, BITS_PER_BYTE)
            after += columns * Fraction(str(p.bits if name == "feed-forward" else WIDE_BITS)) / BITS_PER_BYTE
    return float(before / after)


def _matrices(p: Draw) -> list[tuple[str, int, int]]:
    """What a step reads, as (part, rows, columns)."""
    found = []
    for _ in range(p.layers):
        for heads in (p.query_heads, p.kv_heads, p.kv_heads):
            found += [("attention", p.head_dim, p.hidden) for _ in range(heads)]
        found.append(("attention", p.hidden, p.query_heads * p.head_dim))
        found += [
            ("feed-forward", p.intermediate, p.hidden),
            ("feed-forward", p.intermediate, p.hidden),
            ("feed-forward", p.hidden, p.intermediate),
        ]
    return [*found, ("head", p.vocab, p.hidden)]


NARROW = Drill(
    key="amdahl-narrow-weights",
    taught=TAUGHT,
    title="Narrower weights, in a part of a model",
    unit="",
    target_s=240,
    draw=_draw_narrow,
    small=_small_narrow,
    prompt=lambda p: (
        f"{p.name}, from its config: {p.layers} layers, hidden size {p.hidden}, {p.query_heads} attention heads and"
        f" {p.kv_heads} key-value heads of {p.head_dim}, gated feed-forward blocks (three matrices) of intermediate"
        f" size {p.intermediate}, vocabulary {p.vocab}. It answers one request, and a step takes as long as reading"
        " every matrix once, the output head's included (not the embedding table, of which it needs one row). Weights"
        f" are 16 bits wide. Now the feed-forward matrices are stored in {p.bits} bits per weight, scales included. How"
        " many times faster is a step, if nothing else counts?"
    ),
    derive=_derive_narrow,
    count=_count_narrow,
    prerequisites=("amdahl-one-part",),
    slips=(
        Slip("all-weights", lambda p: WIDE_BITS / p.bits)
        | "You made all weights narrow. Attention and the output head stay as wide as they were.",
        Slip(
            "mean-of-speeds",
            lambda p: 1 + _narrowed(p) / (_narrowed(p) + _kept(p, p.kv_heads)) * (WIDE_BITS / p.bits - 1),
        )
        | "You averaged factors, weighted by bytes. What adds up is the time to read them.",
        Slip("query-heads", lambda p: _speedup(p, _narrowed(p), _kept(p, p.query_heads)))
        | "You gave keys and values as many heads as queries. The config has fewer of them.",
        Slip("other-part", lambda p: _speedup(p, _kept(p, p.kv_heads), _narrowed(p)))
        | "You made attention and head narrow and kept the feed-forward blocks. It is the other way round.",
        Slip(
            "part-vanishes",
            lambda p: scaling.amdahl_limit(accelerated_share=_narrowed(p) / (_narrowed(p) + _kept(p, p.kv_heads))),
        )
        | "You let the feed-forward blocks take no time at all. They are narrower, and still read.",
    ),
)

DRILLS = (NARROW,)
