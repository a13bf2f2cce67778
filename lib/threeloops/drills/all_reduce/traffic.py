"""Drills on what a training step sends besides a plain all-reduce: reduce-scatter, fully sharded data parallelism,
experts on many GPUs.
"""

import random

from threeloops.drills.all_reduce.ring import SOURCE_PARTS, counted_ring, engineering, ring
from threeloops.drills.engine import catalogued
from threeloops.drills.engine.drill import Derivation, Draw, Drill, Slip, Taught, drawn
from threeloops.models.architecture import MoeMlp
from threeloops.models.parameters import model_parameters
from threeloops.training_loop.network import traffic
from threeloops.units import GB, fmt_bytes, fmt_si

EXPERTS_PART = Taught("training", "Experts, contexts and hybrids")
ZERO_PART = Taught("training", "ZeRO and FSDP")

SOURCE_ZERO = "Rajbhandari et al., ZeRO, 2019, arXiv:1910.02054, section 7 (communication of the stages)"
SOURCE_EXPERTS = (
    "Lepikhin et al., GShard, 2020, arXiv:2006.16668, section 3 (dispatch and combine); OpenAI, 2025, arXiv:2508.10925"
    " (the model)"
)

# --- reduce-scatter ------------------------------------------------------------------------------


def _draw_scatter(rng: random.Random) -> Draw:
    link = catalogued.part(rng.choice(("infiniband-hdr", "infiniband-ndr", "infiniband-xdr")))
    ranks, shard = rng.choice((5, 6, 7)), rng.choice((0.3, 0.35, 0.45, 0.55, 0.65, 0.7, 0.95, 1.1)) * GB
    return drawn(
        ranks=ranks, shard=shard, size=ranks * shard, rate=link["bytes_per_s_one_way"], link=link.name, alpha=0
    )


def _small_scatter(rng: random.Random) -> Draw:
    ranks, shard = rng.choice((5, 6, 7)), 8 * rng.choice((3, 4))
    return drawn(ranks=ranks, shard=shard, size=ranks * shard, rate=50.0, alpha=0.0)


REDUCE_SCATTER = Drill(
    key="reduce-scatter",
    taught=ZERO_PART,
    title="Every rank keeps a shard of the sum",
    unit="s",
    target_s=75,
    draw=_draw_scatter,
    small=_small_scatter,
    prompt=lambda p: (
        f"{p.ranks} GPUs reduce-scatter their gradients on a ring of {p.link} links, {fmt_si(p.rate, 'B/s')} one way."
        f" Afterwards each GPU holds its own shard of the sum: {fmt_bytes(p.shard, base=10)}. Latency is negligible."
        " How long does it take?"
    ),
    derive=lambda p: Derivation(
        value=ring(p, "reduce_scatter").total_s,
        formula="(n − 1) steps × shard / rate of a link, one way",
        substitution=f"({p.ranks} − 1) × {engineering(p.shard)} / {engineering(p.rate)}",
        source=SOURCE_PARTS,
    ),
    count=lambda p: counted_ring(p, "reduce_scatter")[0],
    prerequisites=("ring-time",),
    slips=(
        Slip("shard-as-whole", lambda p: (p.ranks - 1) / p.ranks * p.shard / p.rate)
        | "You took the shard for the whole vector and cut it up again. The shard is what comes out at the end.",
        Slip("all-reduce", lambda p: 2 * (p.ranks - 1) * p.shard / p.rate)
        | "That is an all-reduce. Here no rank hands its finished sums out again.",
        Slip("whole-vector-each-step", lambda p: (p.ranks - 1) * p.size / p.rate)
        | "You passed the whole vector on in every step. The ring moves one shard at a time.",
        Slip("as-many-steps-as-ranks", lambda p: p.size / p.rate)
        | "You took a step too many: the last rank to add to a shard keeps it.",
        Slip("one-step", lambda p: p.shard / p.rate)
        | "You sent one shard. Every rank has gradients for every shard, and passes partial sums on.",
        Slip("both-directions", lambda p: (p.ranks - 1) * p.shard / p.rate / 2)
        | "You used the link in both directions. A ring sends to the right only.",
    ),
)

# --- fully sharded data parallelism --------------------------------------------------------------


def _draw_sharded(rng: random.Random) -> Draw:
    key = rng.choice(("llama-2-7b", "llama-2-13b", "llama-3-8b"))
    parameters = model_parameters(catalogued.model(key)).total
    sizes = {"ranks": rng.choice((6, 8, 10, 12, 14)), "micro_batches": rng.choice((4, 5, 6)), "bytes_per_element": 2}
    return drawn(**sizes, name=catalogued.model_name(key), parameters=parameters)


def _small_sharded(rng: random.Random) -> Draw:
    ranks = rng.choice((4, 6))
    return drawn(
        ranks=ranks, micro_batches=rng.choice((4, 5)), bytes_per_element=8, parameters=ranks * rng.choice((2, 3))
    )


def _derive_sharded(p: Draw) -> Derivation:
    sent = traffic.data_parallel_traffic(
        zero_stage=3,
        num_parameters=p.parameters,
        dp=p.ranks,
        bytes_per_gradient=p.bytes_per_element,
        bytes_per_parameter=p.bytes_per_element,
        micro_batches=p.micro_batches,
    )
    return Derivation(
        value=sent.total_bytes,
        formula=(
            "micro-batches × 3 (gather for forward, gather for backward, scatter of gradients) × (n − 1)/n × parameters"
            " × bytes per element"
        ),
        substitution=f"{p.micro_batches} × 3 × {p.ranks - 1}/{p.ranks} × {p.parameters:,} × {p.bytes_per_element}",
        source=SOURCE_ZERO,
    )


def _count_sharded(p: Draw) -> float:
    import numpy as np  # which a reader's own drills do not need

    from threeloops.simulate.training_loop.traffic import zero_step

    step = zero_step(np.arange(1.0, p.parameters + 1), [[0.5] * p.micro_batches] * p.ranks, stage=3, learning_rate=0.1)
    return step.sent_bytes[0]


def _once(p: Draw) -> float:
    """One collective over the model: each rank sends all but its own part."""
    return float((p.ranks - 1) / p.ranks * p.parameters * p.bytes_per_element)


SHARDED = Drill(
    key="fully-sharded-traffic",
    taught=ZERO_PART,
    title="What sharding costs the network",
    unit="B",
    target_s=120,
    draw=_draw_sharded,
    small=_small_sharded,
    prompt=lambda p: (
        f"{p.name} ({p.parameters:,} parameters) is trained fully sharded (FSDP, ZeRO stage 3) on {p.ranks} GPUs;"
        f" parameters and gradients travel in 16 bits. A step consists of {p.micro_batches} micro-batches. Parameters"
        " are dropped after every pass, forward or backward, and gradients are reduce-scattered after each backward"
        " pass. How many bytes does each GPU send per step?"
    ),
    derive=_derive_sharded,
    count=_count_sharded,
    prerequisites=("reduce-scatter",),
    slips=(
        Slip("like-an-all-reduce", lambda p: p.micro_batches * 2 * _once(p))
        | "You counted one gather and one scatter per micro-batch. What was dropped after the forward pass is"
        " missing in the backward pass.",
        Slip("once-per-step", lambda p: 3 * _once(p))
        | "You counted one micro-batch. With nothing kept between them, each gathers and scatters anew.",
        Slip("one-scatter-per-step", lambda p: (2 * p.micro_batches + 1) * _once(p))
        | "You exchanged gradients once per step. Here they are scattered after every backward pass, as no GPU"
        " has room for the whole of them.",
        Slip("plain-data-parallel", lambda p: 2 * _once(p))
        | "That is plain data parallelism, which keeps everything everywhere and talks once per step.",
        Slip("many-ranks-limit", lambda p: p.micro_batches * 3 * p.parameters * p.bytes_per_element)
        | "That is what it comes to among very many ranks. A rank need not send its own shard to itself.",
        Slip("all-ranks", lambda p: p.ranks * p.micro_batches * 3 * _once(p)) | "That is what all GPUs send together.",
    ),
)

# --- experts -------------------------------------------------------------------------------------


def _draw_experts(rng: random.Random) -> Draw:
    model = catalogued.model("gpt-oss-120b")
    mlp = model.groups[0][0].mlp
    assert isinstance(mlp, MoeMlp)
    sizes = {
        "layers": model.num_layers,
        "hidden": model.hidden,
        "experts": mlp.num_experts,
        "top_k": mlp.top_k,
        "bytes_per_element": 2,
    }
    return drawn(**sizes, ranks=rng.choice((4, 8, 16)), tokens=512 * rng.randrange(5, 24))


def _small_experts(rng: random.Random) -> Draw:
    ranks = rng.choice((3, 4))
    return drawn(
        layers=3,
        hidden=2,
        experts=2 * ranks,
        top_k=rng.choice((3, 5)),
        bytes_per_element=8,
        ranks=ranks,
        tokens=2 * ranks * rng.choice((1, 2)),
    )


def _derive_experts(p: Draw) -> Derivation:
    sent = traffic.expert_parallel_traffic(
        tokens_per_rank=p.tokens,
        hidden=p.hidden,
        top_k=p.top_k,
        num_moe_layers=p.layers,
        ep=p.ranks,
        bytes_per_element=p.bytes_per_element,
    )
    return Derivation(
        value=sent.total_bytes,
        formula=(
            "2 (forward, backward) × layers × 2 (dispatch, combine) × tokens × experts per token × hidden × bytes per"
            " element × (n − 1)/n"
        ),
        substitution=(
            f"2 × {p.layers} × 2 × {p.tokens:,} × {p.top_k} × {p.hidden} × {p.bytes_per_element} ×"
            f" {p.ranks - 1}/{p.ranks}"
        ),
        source=SOURCE_EXPERTS,
    )


def _count_experts(p: Draw) -> float:
    """Send every token to its experts and back, layer by layer; the gradients then take the same ways. All experts
    are chosen equally often.
    """
    import numpy as np  # which a reader's own drills do not need

    from threeloops.simulate.training_loop.traffic import expert_exchange

    vectors = [np.ones((p.tokens, p.hidden)) for _ in range(p.ranks)]
    choices = [
        np.array([[(token + place) % p.experts for place in range(p.top_k)] for token in range(p.tokens)])
        for _ in range(p.ranks)
    ]
    sent = 0
    for _ in range(p.layers):
        for _ in ("activations", "gradients"):
            sent += expert_exchange(vectors, choices, experts_per_rank=p.experts // p.ranks).sent_bytes[0]
    return sent


def _exchanges(p: Draw, exchanges: float, copies: float) -> float:
    """That many all-to-alls, each with that many copies of every token."""
    return float(exchanges * p.tokens * copies * p.hidden * p.bytes_per_element * (p.ranks - 1) / p.ranks)


EXPERTS = Drill(
    key="expert-all-to-all",
    taught=EXPERTS_PART,
    title="Tokens that travel to their experts",
    unit="B",
    target_s=150,
    draw=_draw_experts,
    small=_small_experts,
    prompt=lambda p: (
        f"gpt-oss-120b has {p.layers} layers with {p.experts} experts each, spread evenly over {p.ranks} GPUs. A"
        f" token's vector, {p.hidden} wide and in 16 bits, goes to the {p.top_k} experts it chose, one copy each, and"
        f" every result comes back. All experts are chosen equally often. Each GPU trains on {p.tokens:,} tokens of its"
        " own. How many bytes does it send in all-to-alls, forward and backward, through all layers?"
    ),
    derive=_derive_experts,
    count=_count_experts,
    slips=(
        Slip("half", lambda p: _exchanges(p, 2 * p.layers, p.top_k))
        | "Half of it: either the results never came back, or the gradients never took the same ways.",
        Slip("one-copy", lambda p: _exchanges(p, 4 * p.layers, 1))
        | "You sent each token once. It goes to several experts, and each of them answers.",
        Slip("one-layer", lambda p: _exchanges(p, 4, p.top_k))
        | "That is one layer. Every layer has experts of its own, and the tokens are home again in between.",
        Slip("all-experts", lambda p: _exchanges(p, 4 * p.layers, p.experts))
        | "You sent every token to every expert. Choosing a few is the whole idea.",
        Slip("nobody-at-home", lambda p: _exchanges(p, 4 * p.layers, p.top_k) * p.ranks / (p.ranks - 1))
        | "You sent every copy over the network. Some of the chosen experts live on the token's own GPU.",
        Slip("all-ranks", lambda p: p.ranks * _exchanges(p, 4 * p.layers, p.top_k))
        | "That is what all GPUs send together.",
    ),
)

DRILLS = (REDUCE_SCATTER, SHARDED, EXPERTS)
