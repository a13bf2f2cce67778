"""Drills on what one carries home of a cluster: tokens that hide an exchange, the most and the best ranks for a layer,
a pipeline against sharding, and how wide and how full an expert has to be.
"""

import math
import random
from collections.abc import Callable

from threeloops.drills.engine.drill import Derivation, Draw, Drill, Slip, Taught, drawn
from threeloops.drills.engine.phrasing import billions, giga, tera
from threeloops.training_loop.parallelism import cluster_limits as limits
from threeloops.units import BITS_PER_BYTE, GB, TFLOP, fmt_si

TAUGHT = Taught("training", "Experts, contexts and hybrids")
SOURCE = (
    "Austin et al., How to Scale Your Model, 2025, gpus.md, Rooflines for LLM Scaling on GPUs, and training.md (the"
    " same bounds, without the last rank's part)"
)
SAFE = 1 - 1e-12  # of two floats that should be equal


def _first(enough: Callable[[int], bool]) -> float:
    """The first whole number that is enough."""
    number = 1
    while not enough(number):
        number += 1
    return float(number)


# --- data parallelism ----------------------------------------------------------------------------


def _draw_data(rng: random.Random) -> Draw:
    experts, top_k = rng.choice(((32, 4), (64, 6), (60, 4), (128, 8), (160, 6)))
    return drawn(
        nodes=rng.choice((3, 6, 12, 48)),
        gpus=8,
        tera=rng.randrange(420, 1000, 20),
        inside=rng.choice((450, 900)) * GB,
        gigabit=rng.choice((200, 400)),
        experts=experts,
        top_k=top_k,
        bytes=2,
    )


def _data(p: Draw, factor: float = 1.0, **other: int) -> float:
    at = {"nodes": p.nodes, "ranks_per_node": p.gpus, "num_experts": p.experts, "top_k": p.top_k} | other
    return math.ceil(
        SAFE
        * factor
        * limits.data_parallel_tokens(
            flops_per_s=p.tera * TFLOP,
            intra_bytes_per_s_one_way=p.inside,
            inter_bytes_per_s_one_way_per_rank=p.gigabit * GB / BITS_PER_BYTE,
            bytes_per_gradient=p.bytes,
            **at,
        )
    )


def _count_data(p: Draw) -> float:
    """The gradients of all experts really added up; of their weights only those multiply that a token visits."""
    # numpy, which a reader's own drills do not need
    from threeloops.simulate.training_loop.collectives import random_vectors
    from threeloops.simulate.training_loop.ring import hierarchical_all_reduce

    weights = 2 * p.nodes * p.gpus  # of one expert
    run = hierarchical_all_reduce(
        random_vectors(ranks=p.nodes * p.gpus, elements=p.experts * weights, seed=0), ranks_per_node=p.gpus
    )
    sent = {True: 0, False: 0}
    for message in run.messages:
        if message.source == 0:
            sent[message.destination < p.gpus] += message.num_bytes
    longest_s = max(sent[True] / p.inside, sent[False] * BITS_PER_BYTE / (p.gigabit * GB))
    flops = sum(4 for _ in range(p.top_k) for _ in range(weights))  # of one token, backward
    return _first(lambda tokens: tokens * flops / (p.tera * TFLOP) >= longest_s * SAFE)


DATA = Drill(
    key="cluster-data-tokens",
    taught=TAUGHT,
    title="Tokens that hide the gradients of all experts",
    unit="token",
    whole="up",
    loose="bound",
    target_s=180,
    draw=_draw_data,
    small=lambda rng: drawn(
        nodes=rng.choice((2, 3)),
        gpus=rng.choice((2, 4)),
        tera=rng.choice((100, 150)) * 1e-12,
        inside=70.0,
        gigabit=8 * rng.choice((2, 3)) / GB,
        experts=6,
        top_k=rng.choice((1, 2)),
        bytes=8,
    ),
    wanted=lambda p: (p.nodes - 1) / p.nodes / (p.gigabit / 8) > 1.1 * 7 / (p.inside / GB),
    prompt=lambda p: (
        f"{p.nodes} nodes of {p.gpus} GPUs train a mixture of {p.experts} experts a layer, of which a token visits"
        f" {p.top_k}, by plain data parallelism: every GPU keeps all experts, and what is not expert counts for"
        f" nothing. A GPU multiplies at {p.tera} TFLOP/s, sends {fmt_si(p.inside, 'B/s')} one way inside its node and"
        f" has a network card of {p.gigabit} Gbit/s to itself. Gradients, in 16 bits, are added up inside the nodes,"
        " then on rings between them; both levels run beside the backward pass and beside each other. How many tokens"
        " does a GPU need per step, at least, for the backward pass to hide all of it?"
    ),
    derive=lambda p: Derivation(
        value=_data(p),
        formula="E/k × rate of computing × (N − 1)/N / (GPUs of a node × rate of a card): 4 k/E × P × tokens FLOPs"
        " against 2 (N − 1)/N × 2 P / 8 bytes; NVLink takes less",
        substitution=(
            f"ceil({p.experts} / {p.top_k} × {p.tera:.12g}e12 × {p.nodes - 1} / {p.nodes} / ({p.gpus} ×"
            f" {p.gigabit:.12g}e9 / 8) − 0.000001)"
        ),
        source=SOURCE,
    ),
    count=_count_data,
    prerequisites=("two-level-all-reduce",),
    slips=(
        Slip("dense", lambda p: _data(p, num_experts=1, top_k=1))
        | "You computed with every expert. A token visits a few of them, and the gradients of all travel.",
        Slip("one-card", lambda p: _data(p, factor=p.gpus))
        | "You sent all gradients through each card. After the sums inside the node a GPU carries its part.",
        Slip("whole-pass", lambda p: _data(p, factor=2 / 3))
        | "You hid the exchange behind the forward pass, too. Gradients exist in the backward pass.",
        Slip("bits", lambda p: _data(p, factor=1 / 8)) | "You took the card's bits for bytes.",
        Slip("once-round", lambda p: _data(p, factor=1 / 2))
        | "Half of it: you sent the sums round once, or took four FLOPs a weight for eight.",
    ),
)

# --- tensor parallelism --------------------------------------------------------------------------


def _small_tensor(rng: random.Random) -> Draw:
    at = {"tera": rng.choice((70, 110, 130)) * 1e-12, "rate": 8.0 * rng.choice((9, 13))}
    return drawn(hidden=rng.choice((8, 12)), tokens=rng.choice((2, 3)), bytes=8, **at)


def _tensor(p: Draw, factor: float = 1.0, *, weights: int = 12) -> float:
    return limits.most_tensor_ranks(
        layer_parameters=weights * p.hidden**2,
        hidden=p.hidden,
        bytes_per_element=p.bytes,
        flops_per_s=p.tera * TFLOP,
        bytes_per_s_one_way=factor * p.rate,
    )


def _count_tensor(p: Draw) -> float:
    """One rank more until its four all-reduces, message by message, take longer than its share of the products."""
    # numpy, which a reader's own drills do not need
    from threeloops.simulate.training_loop.collectives import simulated

    flops = 0
    for outward, inward in ((3 * p.hidden, p.hidden), (4 * p.hidden, 4 * p.hidden)):  # attention, MLP
        for wide in (outward, inward):
            flops += sum(2 * p.tokens * p.hidden * wide for _ in ("forward", "inputs", "weights"))

    def waits(more: int) -> bool:
        ranks = 1 + more
        run = simulated(op="all_reduce", algorithm="ring", ranks=ranks, elements=p.tokens * p.hidden)
        sent = sum(run.total_bytes / ranks for _ in range(4))
        return bool(sent / p.rate * SAFE > flops / ranks / (p.tera * TFLOP))

    return _first(waits)


TENSOR = Drill(
    key="cluster-tensor-ranks",
    taught=TAUGHT,
    title="How far a layer may be cut",
    unit="",
    whole="down",
    target_s=150,
    draw=lambda rng: drawn(
        hidden=512 * rng.randrange(10, 38, 2),
        tera=rng.randrange(420, 1000, 20),
        rate=rng.choice((450, 600, 900)) * GB,
        tokens=4096,
        bytes=2,
    ),
    small=_small_tensor,
    prompt=lambda p: (
        f"A layer of 12 × {p.hidden:,}² weights, {p.hidden:,} wide, is cut by tensor parallelism: attention and MLP"
        " each join their partial results in one all-reduce forward and one backward, on rings, in 16 bits. A GPU"
        f" multiplies at {p.tera} TFLOP/s, however thin its part, and sends {fmt_si(p.rate, 'B/s')} one way. Up to how"
        " many GPUs does a layer compute for at least as long as it sends, forward and backward together?"
    ),
    derive=lambda p: Derivation(
        value=_tensor(p),
        formula="1 + 3 × 12 hidden² / (4 × hidden × bytes) × rate of the link / rate of computing, rounded down: 72"
        " hidden² / n FLOPs a token against 8 (n − 1)/n × hidden × bytes",
        substitution=(f"1 + floor(3 × 12 × {p.hidden} / (4 × {p.bytes}) × {giga(p.rate)} / {p.tera:.12g}e12)"),
        source=SOURCE,
    ),
    count=_count_tensor,
    prerequisites=("tensor-bytes-sent",),
    slips=(
        Slip("forward-compute", lambda p: _tensor(p, 1 / 3))
        | "You counted the matmuls of the forward pass only. A backward pass makes two for each of them.",
        Slip("half-of-the-exchange", lambda p: _tensor(p, 2))
        | "Half of the exchange is missing: two halves of a layer, two passes, and an all-reduce goes round"
        " twice.",
        Slip("mlp-alone", lambda p: _tensor(p, weights=8))
        | "You took the MLP's weights against the exchange of the whole layer.",
        Slip("half-of-the-flops", lambda p: _tensor(p, 1 / 2))
        | "You counted a multiplication and its addition as one operation.",
    ),
)

# --- sharding against cutting --------------------------------------------------------------------


def _draw_split(rng: random.Random) -> Draw:
    hidden = 512 * rng.randrange(8, 34, 2)
    return drawn(hidden=hidden, weights=12 * hidden**2, tokens=256 * rng.randrange(1, 24), gpus=72, bytes=2)


def _small_split(rng: random.Random) -> Draw:
    best, tokens = rng.choice((2, 3, 4, 6)), rng.choice((3, 6))
    return drawn(hidden=6, weights=8 * tokens * 6 * best**2 // 3, tokens=tokens, gpus=12, bytes=8)


def _split(p: Draw, weights: float = 1.0, tokens: float = 1.0) -> float:
    return limits.best_tensor_ranks(
        layer_parameters=weights * p.weights,
        hidden=p.hidden,
        tokens_per_gpu=tokens * p.tokens,
        sharded_bytes_per_s=1.0,
        tensor_bytes_per_s=1.0,
    )


def _count_split(p: Draw) -> float:
    """Every degree that divides the GPUs, its shards gathered and its parts joined message by message."""
    # numpy, which a reader's own drills do not need
    from threeloops.simulate.training_loop.collectives import simulated

    def mean_sent(op: str, ranks: int, elements: int) -> float:
        if ranks == 1:
            return 0.0
        return simulated(op=op, algorithm="ring", ranks=ranks, elements=elements).total_bytes / ranks

    def sent(tp: int) -> float:
        sharded = sum(
            mean_sent(op, p.gpus // tp, p.weights // tp) for op in ("all_gather", "all_gather", "reduce_scatter")
        )
        return sharded + sum(mean_sent("all_reduce", tp, tp * p.tokens * p.hidden) for _ in range(4))

    return float(min((tp for tp in range(1, p.gpus + 1) if p.gpus % tp == 0), key=sent))


SPLIT = Drill(
    key="cluster-best-split",
    taught=TAUGHT,
    title="Shards and slices",
    unit="",
    target_s=180,
    apart=1.06,
    draw=_draw_split,
    small=_small_split,
    prompt=lambda p: (
        f"{p.gpus} GPUs in one NVLink domain train layers of {billions(p.weights)} weights, {p.hidden:,} wide, with"
        f" {p.tokens:,} tokens per GPU in each pass. Groups of n cut every layer by tensor parallelism, two all-reduces"
        " of the group's activations forward and two backward; between the groups the slices are fully sharded,"
        " gathered forward and backward, their gradients reduce-scattered. All travels in 16 bits on rings over the"
        " same links. Which n lets a GPU send the fewest bytes, if n could be any number?"
    ),
    derive=lambda p: Derivation(
        value=_split(p),
        formula="sqrt(3 × weights / (8 × tokens × hidden)): 3 × weights / n for the shards and 8 × tokens × hidden ×"
        " (n − 1) for the slices, whose sum is least where the two are as large",
        substitution=f"(3 × {p.weights} / (8 × {p.tokens} × {p.hidden}))**0.5",
        source=SOURCE,
    ),
    count=_count_split,
    prerequisites=("tensor-bytes-sent", "fully-sharded-traffic"),
    slips=(
        Slip("no-root", lambda p: _split(p) ** 2)
        | "A group of n has n times the tokens of a GPU, so n stands in both terms.",
        Slip("half-of-the-exchange", lambda p: _split(p, tokens=0.5))
        | "Half of the activations are missing: an all-reduce sends each of them nearly twice.",
        Slip("one-gather", lambda p: _split(p, weights=2 / 3))
        | "Shards travel three times: gathered for each pass, and scattered as gradients.",
        Slip("tokens-of-all", lambda p: _split(p, tokens=p.gpus))
        | "You took the tokens of all GPUs. A group carries those of its own.",
    ),
)

# --- a pipeline against sharding -----------------------------------------------------------------


def _hiding(p: Draw) -> float:
    return limits.data_parallel_tokens(
        flops_per_s=p.tera * TFLOP,
        intra_bytes_per_s_one_way=p.gigabit * GB / BITS_PER_BYTE,
        inter_bytes_per_s_one_way_per_rank=1.0,
        nodes=1,
        ranks_per_node=p.pp,
        bytes_per_gradient=p.bytes,
    )


def _break_even(p: Draw, factor: float = 1.0) -> float:
    return math.ceil(
        SAFE
        * factor
        * limits.pipeline_break_even_tokens(sharded_tokens=_hiding(p), pp=p.pp, micro_batches=p.micro_batches)
    )


def _count_pipeline(p: Draw) -> float:
    """Both steps on a clock, for one token more until the sharded one is no longer behind."""
    # numpy, which a reader's own drills do not need
    from threeloops.simulate.training_loop.collectives import simulated
    from threeloops.simulate.training_loop.pipeline_schedules import Work, run

    weights = 2 * p.pp
    passed = simulated(op="all_gather", algorithm="ring", ranks=p.pp, elements=weights).sent_bytes[0]
    sends_s = passed * BITS_PER_BYTE / (p.gigabit * GB)

    def keeps_up(tokens: int) -> bool:
        """As many passes as micro-batches: each pass has the tokens of pp GPUs."""
        forward_s = 2 * weights * tokens / (p.tera * TFLOP)
        sharded_s = sum(
            max(computing_s, gathers * sends_s)
            for _ in range(p.micro_batches)
            for computing_s, gathers in ((forward_s, 1), (2 * forward_s, 2))
        )
        # a stage has a pp-th of the layers, and the tokens of all
        stage = Work(forward_s=forward_s, input_gradient_s=forward_s, weight_gradient_s=forward_s)
        piped_s = run(schedule="1f1b", pp=p.pp, micro_batches=p.micro_batches, work=stage, send_s=0).step_s
        return bool(sharded_s * SAFE <= piped_s)

    return _first(keeps_up)


PIPELINE = Drill(
    key="cluster-pipeline-or-shards",
    taught=TAUGHT,
    title="A bubble against a gather",
    unit="token",
    whole="up",
    loose="bound",
    target_s=200,
    draw=lambda rng: drawn(
        pp=rng.choice((6, 8, 12)),
        micro_batches=rng.choice((12, 16, 24, 32)),
        tera=rng.randrange(420, 1000, 20),
        gigabit=rng.choice((200, 400, 800)),
        bytes=2,
    ),
    small=lambda rng: drawn(
        pp=rng.choice((3, 4)),
        micro_batches=rng.choice((5, 7)),
        tera=rng.choice((120, 170)) * 1e-12,
        gigabit=8 * rng.choice((3, 5)) / GB,
        bytes=8,
    ),
    prompt=lambda p: (
        f"{p.pp} GPUs, each in a machine of its own with a card of {p.gigabit} Gbit/s, multiply at {p.tera} TFLOP/s."
        " They train a dense model in 16 bits, either fully sharded (weights gathered in each pass, gradients"
        " reduce-scattered, on rings, all beside computing), or as one pipeline under 1F1B with"
        f" {p.micro_batches} micro-batches, whose hops cost nothing. A step has as many tokens either way. From how"
        " many tokens per GPU and pass on is sharding at least as fast as the pipeline?"
    ),
    derive=lambda p: Derivation(
        value=_break_even(p),
        formula="(n − 1)/n × rate of computing / rate of the card × m / (m + n − 1): a sharded pass takes that many"
        " tokens over t times its computing, the pipeline 1 + (n − 1)/m times",
        substitution=(
            f"ceil({p.pp - 1} / {p.pp} × {p.tera:.12g}e12 / ({p.gigabit:.12g}e9 / 8) × {p.micro_batches} /"
            f" ({p.micro_batches} + {p.pp} − 1) − 0.000001)"
        ),
        source=SOURCE + "; Huang et al., GPipe, 2019, arXiv:1811.06965, section 2.3 (the bubble)",
    ),
    count=_count_pipeline,
    prerequisites=("pipeline-bubble-share", "fully-sharded-traffic"),
    slips=(
        Slip("no-bubble", lambda p: math.ceil(SAFE * _hiding(p)))
        | "That is where sharding costs nothing. The pipeline it is held against has a bubble.",
        Slip(
            "bubble-of-the-step",
            lambda p: math.ceil(SAFE * _hiding(p) * (p.micro_batches + p.pp - 1) / p.micro_batches),
        )
        | "You let the bubble ask for more tokens. A slower rival is beaten with fewer.",
        Slip("every-rank", lambda p: _break_even(p, 2))
        | "Twice as many: you hid an all-reduce behind the forward pass, or took one direction of the card for"
        " half.",
        Slip("bits", lambda p: _break_even(p, 1 / 8)) | "You took the card's bits for bytes.",
    ),
)

# --- experts -------------------------------------------------------------------------------------


def _small_width(rng: random.Random) -> Draw:
    at = {"tera": rng.choice((90, 130)) * 1e-12, "rate": 8.0 * rng.choice((1, 2))}
    return drawn(ep=rng.choice((3, 4)), hidden=3, tokens=4, there=4, back=8, **at)


def _width(p: Draw, *, matrices: int = 3, bytes_per_element: float | None = None, ep: int | None = None) -> float:
    return math.ceil(
        SAFE
        * limits.hiding_expert_width(
            flops_per_s=p.tera * TFLOP,
            bytes_per_s_one_way=p.rate,
            ep=ep or p.ep,
            bytes_per_element=bytes_per_element or (p.there + p.back) / 2,
            matrices=matrices,
        )
    )


def _count_width(p: Draw) -> float:
    """Every token goes to an expert on each rank and comes back; one column more until that is hidden."""
    import numpy as np  # which a reader's own drills do not need

    from threeloops.simulate.training_loop.traffic import expert_exchange

    choices = [np.tile(np.arange(p.ep, dtype=np.int8), (p.tokens, 1)) for _ in range(p.ep)]

    def both_ways(width: int) -> int:
        tokens = [np.ones((p.tokens, p.hidden), dtype=f"float{width * BITS_PER_BYTE}") for _ in range(p.ep)]
        return expert_exchange(tokens, choices, experts_per_rank=1).sent_bytes[0]

    sent_s = (both_ways(p.there) + both_ways(p.back)) / 2 / p.rate

    def hides(width: int) -> bool:
        rows = sum(p.tokens for _ in range(p.ep))  # that this rank's expert gets
        flops = sum(2 * rows * p.hidden * width for _ in ("gate", "up", "down"))
        return bool(flops / (p.tera * TFLOP) >= sent_s * SAFE)

    return _first(hides)


WIDTH = Drill(
    key="cluster-expert-width",
    taught=TAUGHT,
    title="An expert wide enough for its way",
    unit="",
    whole="up",
    loose="bound",
    target_s=150,
    draw=lambda rng: drawn(
        ep=rng.choice((8, 16, 32, 64)),
        tera=rng.randrange(420, 1000, 20),
        rate=rng.choice((50, 100, 450, 900)) * GB,
        hidden=rng.choice((4096, 5120, 7168)),
        tokens=4096,
        there=1,
        back=2,
    ),
    small=_small_width,
    prompt=lambda p: (
        f"Experts with three matrices (gate, up, down) are dealt out to {p.ep} GPUs; the router is even, and every copy"
        f" of a token travels to its expert by itself: {p.hidden:,} numbers in FP8 there, in bf16 back. A GPU"
        f" multiplies at {p.tera} TFLOP/s and sends {fmt_si(p.rate, 'B/s')} one way. How many columns must an expert's"
        " matrices have, at least, so that its matmuls of the forward pass take as long as the two exchanges?"
    ),
    derive=lambda p: Derivation(
        value=_width(p),
        formula="(n − 1)/n × (1 + 2) bytes / (2 × 3 matrices) × rate of computing / rate of the link: 6 × hidden ×"
        " width FLOPs a copy, whose (n − 1)/n × hidden × 3 bytes leave",
        substitution=(
            f"ceil({p.ep - 1} / {p.ep} × ({p.there} + {p.back}) / (2 × 3) × {tera(p.tera * TFLOP)} / {giga(p.rate)}"
            " − 0.000001)"
        ),
        source=SOURCE,
    ),
    count=_count_width,
    prerequisites=("expert-all-to-all",),
    slips=(
        Slip("two-matrices", lambda p: _width(p, matrices=2))
        | "You multiplied with two matrices. A gated expert has three.",
        Slip("one-way", lambda p: _width(p, bytes_per_element=p.there / 2))
        | "You sent the tokens there and left them. They come back, in twice the bytes.",
        Slip("both-wide", lambda p: _width(p, bytes_per_element=p.back)) | "You sent 16 bits both ways.",
        Slip("no-addition", lambda p: _width(p, bytes_per_element=p.there + p.back))
        | "You counted a multiplication and its addition as one operation.",
    ),
)


def _draw_rows(rng: random.Random) -> Draw:
    experts, top_k = rng.choice(((128, 4), (256, 8), (384, 8), (512, 10), (160, 6)))
    return drawn(
        experts=experts, top_k=top_k, tokens=rng.randrange(96, 900, 4), rows=rng.choice((160, 210, 300, 320, 580))
    )


def _rows(p: Draw, *, rows: float = 1.0, experts: int | None = None, top_k: int | None = None) -> float:
    return limits.fewest_expert_ranks(
        rows=rows * p.rows, tokens_per_gpu=p.tokens, num_experts=experts or p.experts, top_k=top_k or p.top_k
    )


def _count_rows(p: Draw) -> float:
    """Tokens dealt to experts one copy after another, from one GPU more until every expert has its rows."""

    def filled(ranks: int) -> bool:
        loads = [0] * p.experts
        for copy in range(ranks * p.tokens * p.top_k):
            loads[copy % p.experts] += 1
        return bool(sum(loads) >= p.rows * p.experts)

    return _first(filled)


ROWS = Drill(
    key="cluster-expert-rows",
    taught=TAUGHT,
    title="Ranks that fill an expert",
    unit="",
    whole="up",
    target_s=90,
    draw=_draw_rows,
    small=lambda rng: drawn(experts=12, top_k=rng.choice((1, 2)), tokens=rng.choice((5, 8)), rows=rng.choice((20, 30))),
    wanted=lambda p: _rows(p) >= 6,
    prompt=lambda p: (
        f"A GPU brings {p.tokens} tokens to a layer of {p.experts} experts, of which each token visits {p.top_k}; the"
        f" router is even. An expert's matmuls leave the slope of the memory at {p.rows} rows. Over how many GPUs, at"
        " least, must the experts be spread so that on average each gets as many?"
    ),
    derive=lambda p: Derivation(
        value=_rows(p),
        formula="rows × E / (tokens × k), rounded up: an expert gets GPUs × tokens × k / E rows",
        substitution=f"ceil({p.rows} × {p.experts} / ({p.tokens} × {p.top_k}))",
        source="by definition: copies of tokens over experts, 2026",
    ),
    count=_count_rows,
    slips=(
        Slip("one-expert", lambda p: _rows(p, top_k=1)) | "You sent each token to one expert.",
        Slip("all-experts", lambda p: math.ceil(p.rows / p.tokens) if p.rows > p.tokens else 1)
        | "You gave every expert all tokens of a GPU.",
        Slip("twice-the-rows", lambda p: _rows(p, rows=2))
        | "You asked for two rows where one will do: a row does two operations for two bytes of a weight.",
        Slip("half-the-rows", lambda p: _rows(p, rows=0.5))
        | "You gave each row two operations a byte. Weights in 16 bits have one.",
    ),
)

DRILLS = (DATA, TENSOR, SPLIT, PIPELINE, WIDTH, ROWS)
