"""Drills on weights beyond the GPU: fetched by all links at once, worth it from what batch on, and taken in tiles."""

import random

from threeloops.drills.engine.drill import AsFunction, Derivation, Draw, Drill, Slip, Taught, drawn
from threeloops.drills.engine.phrasing import giga, tera
from threeloops.training_loop.memory import offload
from threeloops.units import GB, MB, TFLOP, fmt_bytes, fmt_percent, fmt_si

TAUGHT = Taught("training", "ZeRO and FSDP")

PAPER = "Rajbhandari et al., ZeRO-Infinity, 2021, arXiv:2104.07857, section"
FLOAT = 8  # bytes of a number in the simulators

# --- all links at once ---------------------------------------------------------------------------


def _draw_fetch(rng: random.Random) -> Draw:
    link, exchange = rng.choice(((12, 120), (20, 200), (24, 160), (25, 150), (50, 400)))
    return drawn(
        size=rng.choice(range(250, 1950, 100)) * MB, ranks=rng.choice((4, 5, 6)), link=link * GB, exchange=exchange * GB
    )


def _small_fetch(rng: random.Random) -> Draw:
    ranks = rng.choice((4, 5, 6))
    return drawn(size=FLOAT * ranks * rng.choice((3, 7)), ranks=ranks, link=rng.choice((12.0, 20.0)), exchange=150.0)


def _count_fetch(p: Draw) -> float:
    """Each link brings its rank's shard; then the shards walk a ring, and the messages are weighed."""
    import numpy as np  # which a reader's own drills do not need

    from threeloops.simulate.training_loop import ring

    shards = [np.ones(int(p.size) // FLOAT // p.ranks) for _ in range(p.ranks)]
    return float(max(shard.nbytes for shard in shards) / p.link + ring.all_gather(shards).sent_bytes[0] / p.exchange)


FETCH = Drill(
    key="zero-fetch-shards",
    taught=TAUGHT,
    title="Every link brings its share",
    unit="s",
    target_s=120,
    draw=_draw_fetch,
    small=_small_fetch,
    prompt=lambda p: (
        f"The weights of a layer, {fmt_bytes(p.size, base=10)}, wait in host memory. {p.ranks} GPUs need all of them."
        f" Each GPU has a link of its own to the host, {fmt_si(p.link, 'B/s')} one way, over which it fetches an equal"
        f" shard, all at the same time; afterwards they all-gather the shards over links of {fmt_si(p.exchange, 'B/s')}"
        " one way. Latency is negligible. How long does it take until every GPU has the layer?"
    ),
    derive=lambda p: Derivation(
        value=offload.sharded_fetch_s(
            size_bytes=p.size, ranks=p.ranks, link_bytes_per_s_one_way=p.link, exchange_bytes_per_s_one_way=p.exchange
        ),
        formula="size / (n × rate of a host link) + (n − 1)/n × size / rate between GPUs",
        substitution=(
            f"{giga(p.size)} / ({p.ranks} × {giga(p.link)}) + {p.ranks - 1}/{p.ranks} × {giga(p.size)} /"
            f" {giga(p.exchange)}"
        ),
        source=f"{PAPER} 6.1 (bandwidth-centric partitioning)",
    ),
    count=_count_fetch,
    prerequisites=("reduce-scatter",),
    slips=(
        Slip("one-link", lambda p: p.size / p.link + (p.ranks - 1) / p.ranks * p.size / p.exchange)
        | "You brought the whole layer over one link. The others stand idle meanwhile, and need not.",
        Slip("shards-only", lambda p: p.size / p.ranks / p.link)
        | "Now every GPU has a shard. No GPU can compute with it yet.",
        Slip("own-shard-sent", lambda p: p.size / p.ranks / p.link + p.size / p.exchange)
        | "You let each GPU receive the whole layer from the others. A part of it is there already.",
        Slip(
            "everything-by-all", lambda p: p.size / p.ranks / p.link + (p.ranks - 1) / p.ranks**2 * p.size / p.exchange
        )
        | "You divided the exchange among the GPUs as well. Each of them must receive all the shards that it"
        " lacks.",
        Slip("each-for-itself", lambda p: p.size / p.link)
        | "You let every GPU fetch the whole layer for itself. The same bytes then cross from the host several"
        " times.",
    ),
    function=AsFunction(
        takes=("size", "ranks", "link", "exchange"),
        limit={"ranks": 1},
        limit_case="a single GPU, which has no other to gather from",
    ),
)

# --- from what batch on --------------------------------------------------------------------------


def _draw_tokens(rng: random.Random) -> Draw:
    speed = rng.choice((120, 280, 320, 400, 450, 480)) * TFLOP
    return drawn(share=rng.choice((0.6, 0.7, 0.75, 0.8, 0.9)), speed=speed, rate=rng.choice((12, 20, 25, 45, 50)) * GB)


def _derive_tokens(p: Draw) -> Derivation:
    crossing = offload.weight_crossings_bytes(weight_bytes=2, gradient_bytes=2, recompute="full")
    return Derivation(
        value=offload.tokens_needed(
            efficiency=p.share,
            flops_per_token=8,
            crossing_bytes=crossing,
            bytes_per_s_one_way=p.rate,
            flops_per_s=p.speed,
        ),
        formula="e / (1 − e) × FLOP/s / (B/s) × (3 × 2 + 2) bytes / 8 FLOP per token",
        substitution=f"{p.share} / (1 − {p.share}) × {tera(p.speed)} / {giga(p.rate)} × (3 × 2 + 2) / 8",
        source=f"{PAPER} 4 (efficiency from arithmetic intensity)",
    )


def _count_tokens(p: Draw) -> float:
    """Play steps of ever more tokens, parameter by parameter in turn, until the device computes for that share of the
    time.
    """
    from threeloops.simulate.training_loop.offloaded_layers import stream

    tokens = 1
    while True:
        # forward, recomputed forward, backward, gradient out: bytes, FLOPs per token
        passes = [(2, 2), (2, 2), (2, 4), (2, 0)]
        played = [
            stream(layers=5, hops_s=[moved / p.rate], compute_s=flops * tokens / p.speed, room=1)
            for moved, flops in passes
        ]
        computing = 5 * sum(one.compute_s for one in played)
        if computing / sum(one.finished_s for one in played) >= p.share - 1e-12:
            return tokens
        tokens += 1


def _tokens(p: Draw, *, odds: float, crossing: float = 8, flops: float = 8) -> float:
    return float(odds * p.speed / p.rate * crossing / flops)


TOKENS = Drill(
    key="zero-offload-tokens",
    taught=TAUGHT,
    title="From what batch on offload pays",
    unit="",
    target_s=180,
    draw=_draw_tokens,
    small=lambda rng: drawn(share=rng.choice((0.6, 0.75, 0.8)), speed=rng.choice((8.0, 12.0)) * 2, rate=2.0),
    prompt=lambda p: (
        "All weights (16 bits) wait in host memory. Per micro-batch each is fetched for the forward pass, for the"
        " recomputed forward pass and for the backward pass, and its 16-bit gradient is sent back; each GPU gets"
        f" {fmt_si(p.rate, 'B/s')}. The GPU does 8 FLOP per parameter and token, recomputation included, at"
        f" {fmt_si(p.speed, 'FLOP/s')}. Transfers and computing take turns. From how many tokens per micro-batch does"
        f" the GPU compute for {fmt_percent(p.share)} of the time?"
    ),
    derive=_derive_tokens,
    count=_count_tokens,
    slips=(
        Slip("share-for-odds", lambda p: _tokens(p, odds=p.share))
        | "You multiplied by the share. What is needed is the ratio of computing to moving, not of computing to"
        " everything.",
        Slip("break-even", lambda p: _tokens(p, odds=1))
        | "That is where computing takes as long as moving: half of the time, when the two take turns.",
        Slip("odds-inverted", lambda p: _tokens(p, odds=(1 - p.share) / p.share))
        | "You turned the ratio over: there the GPU waits for that share of the time.",
        Slip("a-crossing-forgotten", lambda p: _tokens(p, odds=p.share / (1 - p.share), crossing=6))
        | "You counted three crossings. The question names one more.",
        Slip("fp32-crossings", lambda p: _tokens(p, odds=p.share / (1 - p.share), crossing=16))
        | "You moved four bytes per value. What crosses is in 16 bits.",
        Slip("forward-only", lambda p: _tokens(p, odds=p.share / (1 - p.share), flops=2))
        | "You counted the FLOPs of one forward pass against the bytes of all passes.",
    ),
)

# --- tiles ---------------------------------------------------------------------------------------


def _count_tiles(p: Draw) -> float:
    """Run the product tile by tile, forward and backward, and keep the most bytes of weights that stood there;
    gradients are as many again.
    """
    import numpy as np  # which a reader's own drills do not need

    from threeloops.simulate.training_loop.offloaded_layers import tiled_linear

    ones = np.ones((2, p.hidden)), np.ones((p.wide * p.hidden, p.hidden)), np.ones((2, p.wide * p.hidden))
    return float(tiled_linear(*ones, tiles=p.tiles).peak_bytes / FLOAT * p.per_value)


TILES = Drill(
    key="zero-tiled-operator",
    taught=TAUGHT,
    title="One operator, piece by piece",
    unit="B",
    capacity=True,
    target_s=90,
    draw=lambda rng: drawn(hidden=768 * rng.randrange(14, 44), wide=4, tiles=rng.choice((6, 8, 12, 16)), per_value=4),
    small=lambda rng: drawn(hidden=rng.choice((6, 12, 18)), wide=4, tiles=rng.choice((3, 6)), per_value=4),
    prompt=lambda p: (
        f"Under ZeRO stage 3, the first matrix of an MLP, {p.hidden:,} to {p.wide * p.hidden:,}, is run as {p.tiles}"
        " tiles one after the other (memory-centric tiling). Each tile's 16-bit weights are gathered and released, and"
        " in the backward pass its 16-bit gradient stands beside them. How many bytes of weights and gradient must"
        " there be room for at a time?"
    ),
    derive=lambda p: Derivation(
        value=offload.tiled_working_bytes(
            inputs=p.hidden, outputs=p.wide * p.hidden, tiles=p.tiles, bytes_per_parameter=p.per_value
        ),
        formula="hidden × 4 × hidden × (2 + 2) / tiles",
        substitution=f"{p.hidden} × {p.wide} × {p.hidden} × {p.per_value} / {p.tiles}",
        source=f"{PAPER}s 3 and 5.1.3 (memory-centric tiling)",
    ),
    count=_count_tiles,
    slips=(
        Slip("untiled", lambda p: p.hidden * p.wide * p.hidden * p.per_value)
        | "That is the whole matrix with its gradient. Tiles are released before the next one comes.",
        Slip("no-gradient", lambda p: p.hidden * p.wide * p.hidden * 2 / p.tiles)
        | "You made room for weights. In the backward pass they have company.",
        Slip("square", lambda p: p.hidden * p.hidden * p.per_value / p.tiles) | "You took the matrix for a square one.",
        Slip("cut-twice", lambda p: p.hidden * p.wide * p.hidden * p.per_value / p.tiles**2)
        | "You cut both sides of the matrix. That makes more tiles than there are.",
        Slip("optimiser-too", lambda p: p.hidden * p.wide * p.hidden * 16 / p.tiles)
        | "You gathered the optimiser's state with them. It is not needed to multiply, and stays where it is.",
    ),
)

DRILLS = (FETCH, TOKENS, TILES)
