"""Drills on what the ranks of one cut layer say to each other: how many bytes, and which share of the time."""

import random

from threeloops.drills.engine.drill import Derivation, Draw, Drill, Slip, Taught, drawn
from threeloops.drills.engine.phrasing import giga, tera
from threeloops.training_loop.network import traffic
from threeloops.training_loop.network.collectives import bus_factor
from threeloops.training_loop.parallelism import tensor_parallel
from threeloops.units import GB, TFLOP, fmt_si

TAUGHT = Taught("training", "Tensor and sequence parallelism")
SOURCE_MEGATRON = "Shoeybi et al., Megatron-LM, 2019, arXiv:1909.08053, section 3"
WIDTHS = (5120, 6144, 7168, 8192, 9216, 12288)


def counted_layer(p: Draw) -> tuple[float, float]:
    """FLOPs of one rank and bytes that it sends, for one layer forward and backward: both halves really cut, every
    product written down.
    """
    import numpy as np  # which a reader's own drills do not need

    from threeloops.simulate.training_loop.traffic import tensor_parallel_block

    x = np.ones((p.tokens, p.hidden))
    flops = sent = 0.0
    # queries, keys, values and output; up and down
    for outward, inward in ((3 * p.hidden, p.hidden), (4 * p.hidden, 4 * p.hidden)):
        for wide in (outward, inward):
            rows, inner, columns = p.tokens, p.hidden, wide // p.tp
            flops += 2 * rows * inner * columns  # forward
            # gradients of what came in, and of the weights
            flops += 2 * rows * columns * inner + 2 * inner * rows * columns
        sent += tensor_parallel_block(
            x, np.ones((p.hidden, inward)), np.ones((inward, p.hidden)), x, tp=p.tp
        ).sent_bytes[0]
    return flops, sent


def _small(rng: random.Random) -> Draw:
    tp = rng.choice((3, 4))
    rates = {"flops_per_s": rng.choice((3000.0, 5000.0)), "rate": 8.0 * rng.choice((40, 70))}
    return drawn(hidden=2 * tp, layers=3, tokens=rng.choice((4, 8)), tp=tp, bytes_per_element=8, **rates)


# --- bytes of a micro-batch ---------------------------------------------------------------------


def _derive_sent(p: Draw) -> Derivation:
    sent = traffic.tensor_parallel_traffic(
        tokens=p.tokens,
        hidden=p.hidden,
        num_layers=p.layers,
        tp=p.tp,
        bytes_per_element=p.bytes_per_element,
        sequence_parallel=False,
        regather_input=False,
    )
    return Derivation(
        value=sent.total_bytes,
        formula="layers × 4 all-reduces × 2 (n − 1)/n × tokens × hidden × bytes per element",
        substitution=f"{p.layers} × 4 × 2 × {p.tp - 1}/{p.tp} × {p.tokens:,} × {p.hidden} × {p.bytes_per_element}",
        source=SOURCE_MEGATRON,
    )


def _streams(p: Draw, count: float) -> float:
    """That many times the whole stream, in every layer."""
    return float(p.layers * count * p.tokens * p.hidden * p.bytes_per_element)


def _once(p: Draw) -> float:
    return float((p.tp - 1) / p.tp)


SENT = Drill(
    key="tensor-bytes-sent",
    taught=TAUGHT,
    title="Four times per layer",
    unit="B",
    target_s=100,
    draw=lambda rng: drawn(
        hidden=rng.choice(WIDTHS),
        layers=rng.randrange(40, 97, 4),
        tokens=512 * rng.randrange(6, 34, 2),
        tp=rng.choice((4, 8)),
        bytes_per_element=2,
    ),
    small=_small,
    prompt=lambda p: (
        f"A model of {p.layers} layers, {p.hidden} wide, is cut over {p.tp} GPUs by tensor parallelism: in attention"
        f" and in the MLP, column-parallel matrices, then a row-parallel one. A micro-batch has {p.tokens:,} tokens;"
        " activations and their gradients travel in 16 bits, on rings. How many bytes does each GPU send for the"
        " forward and the backward pass of one micro-batch? (Embedding and head left out.)"
    ),
    derive=_derive_sent,
    count=lambda p: p.layers * counted_layer(p)[1],
    prerequisites=("ring-bytes-per-rank",),
    slips=(
        Slip("half", lambda p: _streams(p, 4 * _once(p)))
        | "Half of it. Attention and MLP each end in a sum; so do their backward passes; and an all-reduce hands"
        " its sums out again.",
        Slip("every-matrix", lambda p: _streams(p, 16 * _once(p)))
        | "You joined results after every matrix. Columns followed by rows need no word in between.",
        Slip("many-ranks-limit", lambda p: _streams(p, 8))
        | "That is what it comes to among very many ranks. Here a rank need not send its own part.",
        Slip("shard", lambda p: _streams(p, 8 * _once(p) / p.tp))
        | "You let each GPU sum up a part of the stream only. What every rank has is a partial result for all"
        " of it.",
        Slip("all-ranks", lambda p: _streams(p, 8 * _once(p) * p.tp)) | "That is what all GPUs send together.",
        Slip("one-layer", lambda p: _streams(p, 8 * _once(p)) / p.layers) | "That is one layer.",
    ),
)

# --- share of the time ---------------------------------------------------------------------------


def _compute(p: Draw) -> float:
    return float(6 * 12 * p.hidden**2 * p.tokens / (p.tp * p.flops_per_s))


def _exchange(p: Draw) -> float:
    return float(4 * 2 * _once(p) * p.tokens * p.hidden * p.bytes_per_element / p.rate)


def _derive_share(p: Draw) -> Derivation:
    all_reduce_s = bus_factor(op="all_reduce", ranks=p.tp) * p.tokens * p.hidden * p.bytes_per_element / p.rate
    layer = tensor_parallel.layer_time(
        layer_parameters=12 * p.hidden**2,
        tokens=p.tokens,
        tp=p.tp,
        flops_per_s=p.flops_per_s,
        all_reduce_s=all_reduce_s,
    )
    sent = f"8 × ({p.tp} − 1) × {p.bytes_per_element} / {giga(p.rate)}"
    return Derivation(
        value=layer.exchange_s / layer.total_s,
        formula=(
            "exchange / (exchange + compute), with 8 (n − 1)/n × hidden × bytes / rate and 6 × 12 hidden² / (n ×"
            " FLOP/s) for each token"
        ),
        substitution=f"{sent} / ({sent} + 72 × {p.hidden} / {tera(p.flops_per_s)})",
        source=SOURCE_MEGATRON,
    )


def _count_share(p: Draw) -> float:
    flops, sent = counted_layer(p)
    return _share(sent / p.rate, flops / p.flops_per_s)


def _share(exchange: float, compute: float) -> float:
    return exchange / (exchange + compute)


SHARE = Drill(
    key="tensor-exchange-share",
    taught=TAUGHT,
    title="Calculating or talking",
    unit="",
    target_s=150,
    apart=1.06,
    draw=lambda rng: drawn(
        hidden=rng.choice(WIDTHS),
        tokens=512 * rng.randrange(6, 34, 2),
        tp=rng.choice((4, 8, 16)),
        bytes_per_element=2,
        flops_per_s=rng.randrange(300, 900, 20) * TFLOP,
        rate=rng.choice((150, 200, 300, 450, 900)) * GB,
    ),
    small=_small,
    prompt=lambda p: (
        f"A layer of 12 × {p.hidden}² weights, {p.hidden} wide, is cut over {p.tp} GPUs by tensor parallelism and"
        f" trained on micro-batches of {p.tokens:,} tokens in 16 bits. A GPU's matmuls reach"
        f" {fmt_si(p.flops_per_s, 'FLOP/s')}, however thin; its link moves {fmt_si(p.rate, 'B/s')} one way, on rings"
        " without latency. Attention scores cost nothing, and nothing is hidden behind anything. Which share of the"
        " time of a forward and a backward pass goes into all-reduces?"
    ),
    derive=_derive_share,
    count=_count_share,
    prerequisites=("tensor-bytes-sent",),
    slips=(
        Slip("ratio", lambda p: _exchange(p) / _compute(p))
        | "You held the exchange against the computing. The question holds it against both together.",
        Slip("compute-share", lambda p: _share(_compute(p), _exchange(p)))
        | "That is the share in which the GPU calculates.",
        Slip("cut-the-wrong-one", lambda p: _share(_exchange(p), p.tp * _compute(p)))
        | "You cut what is not cut, or did not cut what is: matmuls are divided among the GPUs, and each has a"
        " partial result of the full width.",
        Slip("half", lambda p: _share(_exchange(p) / 2, _compute(p)))
        | "Half of the exchange is missing: attention and MLP, forward and backward, and each all-reduce goes"
        " round twice.",
        Slip("forward-compute", lambda p: _share(_exchange(p), _compute(p) / 3))
        | "You counted the matmuls of the forward pass only. A backward pass makes two for each of them.",
    ),
)

DRILLS = (SENT, SHARE)
