"""Drills on what sharding sends when practice bends the rule: accumulation without exchange, and shards that stay
inside a node.
"""

import random

from threeloops.drills.engine import catalogued
from threeloops.drills.engine.drill import Derivation, Draw, Drill, Slip, Taught, drawn
from threeloops.drills.engine.phrasing import billions
from threeloops.models.parameters import model_parameters
from threeloops.training_loop.network import traffic

TAUGHT = Taught("training", "ZeRO and FSDP")

SOURCE_POLICY = (
    "PyTorch documentation, fully_shard, MixedPrecisionPolicy and set_requires_gradient_sync, read in 2026; Rajbhandari"
    " et al., 2019, section 7"
)
SOURCE_HYBRID = "Zhao et al., PyTorch FSDP, 2023, arXiv:2304.11277, section 3.2.2 (hybrid sharding)"
FLOAT = 8  # bytes of a number in the simulators

# --- accumulation without exchange ---------------------------------------------------------------


def _draw_accumulated(rng: random.Random) -> Draw:
    key = rng.choice(("llama-2-7b", "llama-2-13b", "llama-3-8b"))
    sizes = {
        "ranks": rng.choice((6, 8, 10, 12, 14)),
        "micro_batches": rng.choice((3, 4, 5)),
        "weight_bytes": 2,
        "gradient_bytes": 4,
    }
    return drawn(**sizes, name=catalogued.model_name(key), parameters=model_parameters(catalogued.model(key)).total)


def _small_accumulated(rng: random.Random) -> Draw:
    ranks = rng.choice((4, 6))
    return drawn(
        ranks=ranks,
        micro_batches=rng.choice((3, 4, 5)),
        weight_bytes=2,
        gradient_bytes=4,
        parameters=ranks * rng.choice((2, 3)),
    )


def _derive_accumulated(p: Draw) -> Derivation:
    sizes = {
        "num_parameters": p.parameters,
        "dp": p.ranks,
        "bytes_per_gradient": p.gradient_bytes,
        "bytes_per_parameter": p.weight_bytes,
    }
    gathered = traffic.data_parallel_traffic(zero_stage=3, micro_batches=p.micro_batches, **sizes).parameter_bytes
    scattered = traffic.data_parallel_traffic(zero_stage=3, micro_batches=1, **sizes).gradient_bytes
    return Derivation(
        value=gathered + scattered,
        formula=(
            "(n − 1)/n × parameters × (micro-batches × 2 gathers × bytes of a weight + 1 scatter × bytes of a gradient)"
        ),
        substitution=(
            f"{p.ranks - 1}/{p.ranks} × {p.parameters:,} × ({p.micro_batches} × 2 × {p.weight_bytes} +"
            f" {p.gradient_bytes})"
        ),
        source=SOURCE_POLICY,
    )


def _count_accumulated(p: Draw) -> float:
    """Gather for every pass of every micro-batch; add gradients up at home; scatter their sums once. Message by
    message.
    """
    import numpy as np  # which a reader's own drills do not need

    from threeloops.simulate.training_loop import ring

    shards, sent = [np.ones(p.parameters // p.ranks) for _ in range(p.ranks)], 0.0
    for _ in range(p.micro_batches):
        for _ in ("forward", "backward"):
            sent += ring.all_gather(shards).sent_bytes[0] / FLOAT * p.weight_bytes
    return float(
        sent
        + ring.reduce_scatter([np.ones(p.parameters) for _ in range(p.ranks)]).sent_bytes[0] / FLOAT * p.gradient_bytes
    )


def _bytes(p: Draw, gathers: float, scatters: float, *, weight: float = 2, gradient: float = 4) -> float:
    return float((p.ranks - 1) / p.ranks * p.parameters * (gathers * weight + scatters * gradient))


ACCUMULATED = Drill(
    key="zero-accumulated-traffic",
    taught=TAUGHT,
    title="Gradients that wait for the last micro-batch",
    unit="B",
    target_s=120,
    draw=_draw_accumulated,
    small=_small_accumulated,
    prompt=lambda p: (
        f"{p.name} ({p.parameters:,} parameters) trains with FSDP2 on {p.ranks} GPUs. A mixed-precision policy gathers"
        f" weights in bf16 and reduces gradients in fp32. A step has {p.micro_batches} micro-batches; weights are"
        " dropped after every pass, and the exchange of gradients is switched off in all micro-batches but the last,"
        " so that gradients add up whole on each GPU. How many bytes does each GPU send per step?"
    ),
    derive=_derive_accumulated,
    count=_count_accumulated,
    prerequisites=("fully-sharded-traffic",),
    slips=(
        Slip("scattered-each-time", lambda p: _bytes(p, 2 * p.micro_batches, p.micro_batches))
        | "You scattered gradients after every micro-batch. That is what was switched off here.",
        Slip("sixteen-bit-gradients", lambda p: _bytes(p, 2 * p.micro_batches, 1, gradient=2))
        | "You sent gradients in the format of the weights. The policy names two formats.",
        Slip("fp32-weights", lambda p: _bytes(p, 2 * p.micro_batches, 1, weight=4))
        | "You gathered weights in the format in which they are stored. They are cast before they travel.",
        Slip("one-gather", lambda p: _bytes(p, p.micro_batches, 1))
        | "You gathered weights once per micro-batch. What was dropped after the forward pass is missing in the"
        " backward pass.",
        Slip("one-micro-batch", lambda p: _bytes(p, 2, 1))
        | "You counted one micro-batch. Gradients may wait; weights are needed in each of them.",
        Slip("many-ranks-limit", lambda p: _bytes(p, 2 * p.micro_batches, 1) * p.ranks / (p.ranks - 1))
        | "That is what it comes to among very many ranks. A rank need not send its own shard to itself.",
    ),
)

# --- hybrid sharding -----------------------------------------------------------------------------


def _small_hybrid(rng: random.Random) -> Draw:
    per_node, nodes = rng.choice((3, 4)), rng.choice((5, 7))
    return drawn(parameters=per_node * nodes * rng.choice((2, 3)), per_node=per_node, nodes=nodes, bytes_per_element=2)


def _derive_hybrid(p: Draw) -> Derivation:
    sent = traffic.data_parallel_traffic(
        zero_stage=0,
        num_parameters=p.parameters / p.per_node,
        dp=p.nodes,
        bytes_per_gradient=p.bytes_per_element,
        bytes_per_parameter=p.bytes_per_element,
    )
    return Derivation(
        value=sent.total_bytes,
        formula="2 × (nodes − 1)/nodes × parameters / GPUs of a node × bytes of a gradient",
        substitution=f"2 × {p.nodes - 1}/{p.nodes} × {p.parameters:,} / {p.per_node} × {p.bytes_per_element}",
        source=SOURCE_HYBRID,
    )


def _count_hybrid(p: Draw) -> float:
    """Every GPU meets its namesakes in the other nodes, each with the same shard of the gradient, on a ring of their
    own.
    """
    import numpy as np  # which a reader's own drills do not need

    from threeloops.simulate.training_loop import ring

    shards = [np.ones(p.parameters // p.per_node) for _ in range(p.nodes)]
    return float(ring.all_reduce(shards).sent_bytes[0] / FLOAT * p.bytes_per_element)


HYBRID = Drill(
    key="zero-hybrid-between-nodes",
    taught=TAUGHT,
    title="Shards that stay in the node",
    unit="B",
    target_s=120,
    draw=lambda rng: drawn(
        parameters=rng.randrange(7_000_000_000, 34_000_000_000, 1_000_000_000),
        per_node=8,
        nodes=rng.choice((5, 6, 7, 9, 10, 12)),
        bytes_per_element=2,
    ),
    small=_small_hybrid,
    prompt=lambda p: (
        f"A model of {billions(p.parameters)} parameters trains on {p.nodes} nodes of {p.per_node} GPUs with hybrid"
        " sharding: fully sharded inside each node, replicated from node to node. Weights are gathered and 16-bit"
        " gradients reduce-scattered inside the nodes; then each GPU all-reduces what it owns with the GPUs that own"
        " the same in the other nodes, on a ring. How many bytes does a GPU send to other nodes per step?"
    ),
    derive=_derive_hybrid,
    count=_count_hybrid,
    prerequisites=("reduce-scatter",),
    slips=(
        Slip("whole-gradient", lambda p: 2 * (p.nodes - 1) / p.nodes * p.parameters * p.bytes_per_element)
        | "You sent the whole gradient between nodes. By then each GPU owns a part of it.",
        Slip("one-way", lambda p: (p.nodes - 1) / p.nodes * p.parameters / p.per_node * p.bytes_per_element)
        | "That is half of an all-reduce. All nodes must end with the sum, not with a part of it each.",
        Slip("weights-too", lambda p: 3 * (p.nodes - 1) / p.nodes * p.parameters / p.per_node * p.bytes_per_element)
        | "You counted three exchanges, as for full sharding. Whose weights have to come from another node?",
        Slip("fully-sharded", lambda p: 3 * (p.nodes - 1) / p.nodes * p.parameters * p.bytes_per_element)
        | "You let whole weights and gradients cross between nodes, as if nothing were kept inside them.",
        Slip(
            "shared-by-all",
            lambda p: 2 * (p.nodes - 1) / p.nodes * p.parameters / (p.per_node * p.nodes) * p.bytes_per_element,
        )
        | "You divided the gradient by all GPUs. It is sharded over those of one node.",
        Slip("many-nodes-limit", lambda p: 2 * p.parameters / p.per_node * p.bytes_per_element)
        | "That is what it comes to among very many nodes. A node need not send its own part to itself.",
    ),
)

DRILLS = (ACCUMULATED, HYBRID)
