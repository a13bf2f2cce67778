"""Drills on experts that are not asked equally often: what finds no place, and whom everybody waits for."""

import random

from threeloops.drills.engine.drill import Derivation, Draw, Drill, Slip, Taught, drawn
from threeloops.models.architecture import DenseMlp
from threeloops.models.parameters import mlp_parameters
from threeloops.training_loop.parallelism.expert_load import busiest_rank_s, dropped_share, expert_capacity
from threeloops.units import TFLOP

PARTS = 2000  # of a choice, as small as the count needs
TAUGHT = Taught("training", "Experts, contexts and hybrids")
SOURCE_CAPACITY = "Fedus, Zoph, Shazeer, Switch Transformers, 2021, arXiv:2101.03961, section 2.2 (expert capacity)"
SOURCE_WAIT = "Lepikhin et al., GShard, 2020, arXiv:2006.16668, section 2.2 (the busiest expert decides)"

# --- tokens that find no place -------------------------------------------------------------------


def _draw_dropped(rng: random.Random) -> Draw:
    top_k, experts = rng.choice(((3, 11), (3, 12), (3, 13), (4, 15), (4, 16), (4, 17), (6, 22), (6, 23), (6, 25)))
    fair = 12 * rng.choice(range(20, 70, 5))  # choices per expert, if all were alike
    first, second = round(fair * rng.choice((2.7, 2.85, 3.0, 3.25))), round(fair * rng.choice((1.9, 2.1)))
    return drawn(
        experts=experts,
        top_k=top_k,
        tokens=fair * experts // top_k,
        first=first,
        second=second,
        factor=rng.choice((1.2, 1.3, 1.4)),
    )


def _small_dropped(rng: random.Random) -> Draw:
    fair = rng.choice((20, 40))
    return drawn(
        experts=9,
        top_k=2,
        tokens=fair * 9 // 2,
        first=round(2.8 * fair),
        second=round(1.9 * fair),
        factor=rng.choice((1.2, 1.3)),
    )


def _choices(p: Draw) -> int:
    return int(p.tokens * p.top_k)


def _loads(p: Draw) -> list[float]:
    return [p.first, p.second, *[(_choices(p) - p.first - p.second) / (p.experts - 2)] * (p.experts - 2)]


def _capacity(p: Draw) -> int:
    return expert_capacity(tokens=p.tokens, top_k=p.top_k, num_experts=p.experts, capacity_factor=p.factor)


def _count_dropped(p: Draw) -> float:
    """Fill the places of every expert, one choice after another."""
    places = [_capacity(p)] * p.experts
    dropped = 0
    waiting = [round(load * PARTS) for load in _loads(p)]  # in small parts, as an even rest need not be whole
    for expert, load in enumerate(waiting):
        taken = 0
        while taken < load and taken < places[expert] * PARTS:
            taken += 1
        dropped += load - taken
    return dropped / (PARTS * _choices(p))


DROPPED = Drill(
    key="experts-dropped-share",
    taught=TAUGHT,
    title="No place at the popular expert",
    unit="",
    target_s=120,
    draw=_draw_dropped,
    small=_small_dropped,
    prompt=lambda p: (
        f"A layer has {p.experts} experts and sends each token to {p.top_k} of them. Of {p.tokens:,} tokens,"
        f" {p.first:,} choose the most popular expert and {p.second:,} the next; all other choices are spread evenly"
        f" over the rest. Every expert has places for {p.factor:g} times its fair share of the choices, and what comes"
        " later is dropped. Which share of all choices is dropped?"
    ),
    derive=lambda p: Derivation(
        value=dropped_share(_loads(p), capacity=_capacity(p)),
        formula=(
            "(load − places) of the two full experts, over tokens × experts per token; places = factor × tokens ×"
            " experts per token / experts"
        ),
        substitution=(
            f"({p.first} + {p.second} − 2 × ceil({p.factor:g} × {p.tokens} × {p.top_k} / {p.experts})) / ({p.tokens} ×"
            f" {p.top_k})"
        ),
        source=SOURCE_CAPACITY,
    ),
    count=_count_dropped,
    slips=(
        Slip("no-factor", lambda p: dropped_share(_loads(p), capacity=_choices(p) / p.experts))
        | "You gave every expert its fair share of places. There are a few more.",
        Slip("hottest-only", lambda p: (p.first - _capacity(p)) / _choices(p))
        | "You looked at the most popular expert only. Is the next one full as well?",
        Slip(
            "of-the-popular",
            lambda p: dropped_share(_loads(p), capacity=_capacity(p)) * _choices(p) / (p.first + p.second),
        )
        | "You divided by what came to the two popular experts. The question is about all choices.",
        Slip("per-token", lambda p: dropped_share(_loads(p), capacity=_capacity(p)) * p.top_k)
        | "You divided by the tokens. Each of them makes several choices.",
    ),
)

# --- whom everybody waits for --------------------------------------------------------------------


def _draw_busiest(rng: random.Random) -> Draw:
    ep = rng.choice((7, 9, 10, 12))
    percent = round(100 / ep * rng.choice((1.75, 2.35, 2.7)))
    hidden, wide = rng.choice(((3072, 1024), (4096, 1536), (5120, 1536), (7168, 2048)))
    return drawn(
        ep=ep,
        percent=percent,
        tokens=rng.choice((3072, 4096, 6144)),
        top_k=rng.choice((4, 6, 8)),
        hidden=hidden,
        wide=wide,
        tera=rng.choice((350, 450, 550)),
    )


def _expert_s(
    p: Draw, *, share: float, gated: bool = True, top_k: int | None = None, ranks: int | None = None
) -> float:
    expert = DenseMlp(intermediate=p.wide, gated=gated, activation="silu")
    return busiest_rank_s(
        tokens=(p.ep if ranks is None else ranks) * p.tokens,
        top_k=p.top_k if top_k is None else top_k,
        busiest_share=share,
        expert_parameters=mlp_parameters(expert, hidden=p.hidden),
        flops_per_s=p.tera * TFLOP,
    )


def _count_busiest(p: Draw) -> float:
    """Every copy of every token goes to some GPU; each multiplies and adds what came to it."""
    arrived = [0] * p.ep
    for copy in range(p.ep * p.tokens * p.top_k):
        arrived[0 if copy % 100 < p.percent else 1 + copy % (p.ep - 1)] += 1
    operations = [0] * p.ep
    for gpu, copies in enumerate(arrived):
        for rows, columns in ((p.hidden, p.wide), (p.hidden, p.wide), (p.wide, p.hidden)):
            operations[gpu] += copies * sum(2 for _ in range(rows) for _ in range(columns))
    return float(max(operations) / (p.tera * TFLOP))


BUSIEST = Drill(
    key="experts-busiest-gpu",
    taught=TAUGHT,
    title="A layer as slow as its most popular GPU",
    unit="s",
    target_s=120,
    draw=_draw_busiest,
    small=lambda rng: drawn(
        ep=4, percent=rng.choice((45, 55)), tokens=100, top_k=rng.choice((3, 4)), hidden=6, wide=5, tera=7e-9
    ),
    prompt=lambda p: (
        f"The experts of a layer are dealt out over {p.ep} GPUs. Each GPU brings {p.tokens:,} tokens of width"
        f" {p.hidden:,}, and each token goes to {p.top_k} experts, wherever they are. An expert has three matrices of"
        f" {p.hidden:,} by {p.wide:,} (a gated feed-forward block). The experts of one GPU are popular: {p.percent} %"
        f" of all choices go there. Their matmuls run at {p.tera:g} TFLOP/s on every GPU. Sending aside, how long does"
        " it take until the last GPU has done the forward pass of its experts?"
    ),
    derive=lambda p: Derivation(
        value=_expert_s(p, share=p.percent / 100),
        formula=(
            "share of the busiest × GPUs × tokens × experts per token × 3 matrices × 2 × width × expert width / rate"
        ),
        substitution=(
            f"{p.percent} / 100 × {p.ep} × {p.tokens} × {p.top_k} × 3 × 2 × {p.hidden} × {p.wide} / {p.tera:g}e12"
        ),
        source=SOURCE_WAIT,
    ),
    count=_count_busiest,
    slips=(
        Slip("average-gpu", lambda p: _expert_s(p, share=1 / p.ep))
        | "That is an average GPU. The layer goes on when the last one is done.",
        Slip("own-tokens", lambda p: _expert_s(p, share=p.percent / 100, ranks=1))
        | "You counted the tokens of one GPU. All GPUs send theirs there.",
        Slip("one-expert-each", lambda p: _expert_s(p, share=p.percent / 100, top_k=1))
        | "You sent each token to one expert. How many does it visit?",
        Slip("two-matrices", lambda p: _expert_s(p, share=p.percent / 100, gated=False))
        | "You gave an expert two matrices. A gated block has a third.",
        Slip("multiply-adds", lambda p: _expert_s(p, share=p.percent / 100) / 2)
        | "You counted a multiplication and its addition as one operation. They are two.",
    ),
)

DRILLS = (DROPPED, BUSIEST)
