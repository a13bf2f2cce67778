"""Drills on what moves and what it costs: caches between pools, weights over a link, adapters in a batch, cached
prompts, and how busy a rented machine must be.
"""

import random

from threeloops.drills.engine.drill import AsFunction, Derivation, Draw, Drill, Slip, Taught, changed, drawn
from threeloops.drills.engine.fair_draws import fair
from threeloops.drills.engine.searches import holds_up_to
from threeloops.product_loop import adapter_batches, decode_floor, kv_transfer, prices
from threeloops.units import GB, MB, TB, TFLOP

TAUGHT = Taught("product", "Capacity and cost")
MILLION = 1e6

# --- a cache over three hops ---------------------------------------------------------------------


def _size(p: Draw) -> float:
    return float(p.tokens * p.per_token)


def _hops(p: Draw) -> tuple[float, float, float]:
    return p.host * GB, p.gbit / 8 * GB, p.host * GB


def _count_hops(p: Draw) -> float:
    """Every hop sends the cache token by token, and begins when the one before has sent all."""
    clock = 0.0
    for rate in _hops(p):
        for _token in range(p.tokens):
            clock += p.per_token / rate
    return clock


HOPS = Drill(
    key="capacity-staged-handover",
    taught=TAUGHT,
    title="A cache changes machines",
    unit="s",
    target_s=120,
    draw=lambda rng: drawn(
        tokens=rng.randrange(6000, 32_000, 500),
        per_token=rng.choice((160_000, 240_000, 320_000)),
        host=rng.choice((36, 40, 44, 50, 60)),
        gbit=100,
    ),
    small=lambda rng: drawn(
        tokens=rng.choice((20, 30)), per_token=rng.choice((5, 7)), host=rng.choice((40, 50)), gbit=100
    ),
    prompt=lambda p: (
        f"A prompt of {p.tokens:,} tokens has been read on one machine and shall be decoded on another. A token's cache"
        f" is {p.per_token:,} bytes. It is copied from the GPU to host memory, sent over a network of {p.gbit} Gbit/s,"
        f" and copied up to the other GPU; a copy between GPU and host runs at {p.host} GB/s. Each of the three begins"
        " when the one before has ended. How long does the handover take?"
    ),
    derive=lambda p: Derivation(
        value=kv_transfer.transfer_s(cache_bytes=_size(p), hops_bytes_per_s=_hops(p)),
        formula="tokens × bytes per token × (1 / copy + 8 / network bits per second + 1 / copy)",
        substitution=(f"{p.tokens} × {p.per_token} × (1 / {p.host}e9 + 8 / {p.gbit}e9 + 1 / {p.host}e9)"),
        source="Patel et al., Splitwise, 2023, arXiv:2311.18677 (moving the KV cache between machines)",
    ),
    count=_count_hops,
    slips=(
        Slip("network-only", lambda p: _size(p) / (p.gbit / 8 * GB))
        | "You sent it over the network only. It goes down to the host and up again besides.",
        Slip("bits-as-bytes", lambda p: _size(p) * (2 / (p.host * GB) + 1 / (p.gbit * GB)))
        | "You took the network's bits for bytes.",
        Slip("one-copy", lambda p: _size(p) * (1 / (p.host * GB) + 8 / (p.gbit * GB))) | "You copied on one side only.",
        Slip("keys-and-values", lambda p: 2 * _size(p) * (2 / (p.host * GB) + 8 / (p.gbit * GB)))
        | "You counted keys and values once more. A token's bytes hold both.",
    ),
)

# --- streamed weights ----------------------------------------------------------------------------


def _count_streamed(p: Draw) -> float:
    """A layer of a million parameters comes over the link; add tokens until computing takes at least as long."""
    parameters, tokens = 1_000_000, 0
    fetch = parameters * p.bytes_per_parameter / (p.link * GB)
    while tokens * 2 * parameters / (p.tflops * TFLOP) < fetch * (1 - 1e-12):
        tokens += 1
    return float(tokens)


def _tokens(p: Draw) -> float:
    """Tokens that keep the GPU busy for as long as a fetch takes, parameter by parameter; weights are read over the
    link.
    """
    return decode_floor.compute_bound_batch(
        weights_bytes=p.bytes_per_parameter,
        cache_bytes_per_request=0,
        flops_per_token=2,
        memory_bytes_per_s=p.link * GB,
        peak_flops_per_s=p.tflops * TFLOP,
    )


def _even_stream(rng: random.Random) -> Draw:
    p = fair(STREAMED).draw(rng)
    return changed(p, link=rng.choice((10, 20, 25)), tflops=rng.choice((100, 200, 300)))


STREAMED = Drill(
    key="capacity-streamed-weights",
    taught=TAUGHT,
    title="Enough tokens for one fetch",
    unit="",
    whole="up",
    loose="bound",
    target_s=120,
    draw=lambda rng: drawn(
        bytes_per_parameter=rng.choice((0.5, 2)),
        link=rng.choice((12, 14, 21, 24, 28, 48)),
        tflops=rng.randrange(120, 460, 20),
    ),
    small=lambda rng: drawn(
        bytes_per_parameter=rng.choice((0.5, 2)), link=rng.choice((20, 25, 50)), tflops=rng.choice((2.25, 3.15))
    ),
    prompt=lambda p: (
        "A model is larger than the GPU. Its layers are streamed from host memory, the next one coming while this one"
        f" is computed, over a link that delivers {p.link} GB/s. Weights take {p.bytes_per_parameter:g}"
        f" bytes each, the GPU computes {p.tflops:g} TFLOP/s, and a token needs two"
        " FLOP per parameter. How many tokens, of all requests together, must each pass hold so that computing takes at"
        " least as long as fetching?"
    ),
    derive=lambda p: Derivation(
        value=float(-(-_tokens(p) * (1 - 1e-12) // 1)),
        formula="⌈bytes per parameter × FLOP/s / (2 × link)⌉: the number of parameters cancels",
        substitution=f"ceil({p.bytes_per_parameter} × {p.tflops} × 1000 / (2 × {p.link}) − 0.000001)",
        source="Aminabadi et al., DeepSpeed Inference, 2022, arXiv:2207.00032 (ZeRO-Inference)",
    ),
    count=_count_streamed,
    slips=(
        Slip("one-flop", lambda p: 2 * _tokens(p)) | "You gave a parameter one FLOP. It is multiplied and added.",
        Slip("link-in-bits", lambda p: 8 * _tokens(p)) | "You divided the link by eight. It is given in bytes already.",
        Slip("training", lambda p: _tokens(p) / 3)
        | "You counted six FLOP per parameter. That is training; serving goes forward only.",
        Slip("inverted", lambda p: _tokens(p) / p.bytes_per_parameter**2)
        | "You put the bytes on the wrong side. The more bytes a weight has, the more tokens it must serve.",
    ),
    function=AsFunction(
        takes=("bytes_per_parameter", "link", "tflops"),
        limit_draw=_even_stream,
        limit_case="a number of tokens that comes out even",
    ),
)

# --- a batch of adapters -------------------------------------------------------------------------


def _draw_adapters(rng: random.Random) -> Draw:
    batch = rng.choice((48, 64, 80))
    return drawn(
        weights=rng.choice((14, 15, 16)) * GB,
        cache=rng.randrange(300, 420, 20) * MB,
        adapter=rng.randrange(120, 220, 20) * MB,
        batch=batch,
        distinct=batch * rng.choice((3, 4, 5)) // 8,
        memory=rng.choice((2, 3, 4.8)) * TB,
    )


def _step(p: Draw, *, distinct: float) -> float:
    return adapter_batches.mixed_step_s(
        weights_bytes=p.weights,
        cache_bytes=p.batch * p.cache,
        adapter_bytes=p.adapter,
        distinct=distinct,
        memory_bytes_per_s=p.memory,
    )


def _count_adapters(p: Draw) -> float:
    """Request by request: its cache is read, and its adapter unless somebody before had the same."""
    read, seen = p.weights, set()
    for request in range(p.batch):
        read += p.cache
        if request % p.distinct not in seen:
            seen.add(request % p.distinct)
            read += p.adapter
    return float(read / p.memory)


ADAPTERS = Drill(
    key="capacity-adapter-batch",
    taught=TAUGHT,
    title="Every user brings an adapter",
    unit="s",
    target_s=110,
    draw=_draw_adapters,
    small=lambda rng: drawn(
        weights=rng.choice((1000, 1200)),
        cache=30,
        adapter=rng.choice((40, 50)),
        batch=8,
        distinct=rng.choice((3, 5)),
        memory=9,
    ),
    prompt=lambda p: (
        f"A base model of {p.weights / GB:g} GB serves a batch of {p.batch} requests, whose caches take"
        f" {p.cache / MB:g} MB each. The requests want {p.distinct} different LoRA adapters of {p.adapter / MB:g} MB,"
        " all of them on the GPU, applied without merging. Memory delivers"
        f" {p.memory / TB:g} TB/s and decides. How long does one decode step take?"
    ),
    derive=lambda p: Derivation(
        value=_step(p, distinct=p.distinct),
        formula="(weights + batch × cache + different adapters × adapter) / bandwidth",
        substitution=f"({p.weights} + {p.batch} × {p.cache} + {p.distinct} × {p.adapter}) / {p.memory}",
        source="Sheng et al., S-LoRA, 2023, arXiv:2311.03285",
    ),
    count=_count_adapters,
    slips=(
        Slip("one-each", lambda p: _step(p, distinct=p.batch))
        | "You read an adapter for every request. Those who share one share its reading.",
        Slip("base-only", lambda p: _step(p, distinct=0)) | "You read the base and the caches. Adapters are read, too.",
        Slip("merged", lambda p: (p.distinct * p.weights + p.batch * p.cache) / p.memory)
        | "You merged each adapter into a base of its own. Here the base is read once for all.",
        Slip("one-cache", lambda p: (p.weights + p.cache + p.distinct * p.adapter) / p.memory)
        | "You read the cache of one request. Each has its own.",
    ),
    function=AsFunction(
        takes=("weights", "cache", "adapter", "batch", "distinct", "memory"),
        limit={"distinct": 0},
        limit_case="a batch that wants the base alone",
    ),
)

# --- a prompt cache ------------------------------------------------------------------------------


def _hits(p: Draw, **changes: float) -> float:
    values = {"hit_share": p.percent / 100, "read_price": p.read / 100, "write_price": p.write / 100} | changes
    return float(p.cents / 100 * prices.cached_input_share(**values))


def _count_hits(p: Draw) -> float:
    """Bill a million tokens in hundreds: so many of each hundred hit."""
    cents = 0.0
    for place in range(100):
        cents += p.cents / 100 * (p.read if place < p.percent else p.write) / 100
    return cents / 100


HITS = Drill(
    key="capacity-prompt-cache",
    taught=TAUGHT,
    title="What a prompt cache makes of the price",
    unit="dollar",
    target_s=100,
    draw=lambda rng: drawn(
        cents=rng.randrange(60, 320, 20),
        percent=rng.choice((55, 60, 65, 70, 75)),
        read=10,
        write=rng.choice((150, 175, 200)),
    ),
    small=lambda rng: drawn(
        cents=rng.choice((100, 300)), percent=rng.choice((50, 60)), read=10, write=rng.choice((150, 200))
    ),
    prompt=lambda p: (
        f"A provider asks {p.cents / 100:.2f} dollars per million prompt tokens. With prompt caching, a token that is"
        f" in the cache costs {p.read} % of that, and one that is not is written to it and costs {p.write} %. Of your"
        f" prompt tokens {p.percent} % hit. What does a million prompt tokens cost you?"
    ),
    derive=lambda p: Derivation(
        value=_hits(p),
        formula="price × (hits × read + (1 − hits) × write)",
        substitution=(
            f"{p.cents} / 100 × ({p.percent} / 100 × {p.read} / 100 + (1 − {p.percent} / 100) × {p.write} / 100)"
        ),
        source="prices as stated; for why a hit is cheap see Zheng et al., SGLang, 2024, arXiv:2312.07104",
    ),
    count=_count_hits,
    prerequisites=("serving-prefix-savings",),
    slips=(
        Slip("plain-miss", lambda p: _hits(p, write_price=1))
        | "You paid the plain price for a miss. It is written to the cache, and that is billed.",
        Slip("free-hit", lambda p: _hits(p, read_price=0)) | "You got hits for nothing.",
        Slip("swapped", lambda p: _hits(p, hit_share=1 - p.percent / 100)) | "You took hits for misses.",
        Slip("misses-only", lambda p: p.cents / 100 * p.write / 100)
        | "You wrote every token. Most of them were there already.",
    ),
)

# --- busy enough to rent -------------------------------------------------------------------------


def _rent(p: Draw, *, gpus: float) -> float:
    return prices.break_even_busy_share(
        dollars_per_hour=gpus * p.cents / 100, tokens_per_s=p.rate, dollars_per_million=p.price_cents / 100
    )


def _count_rent(p: Draw) -> float:
    """Halve the interval of shares until sixty minutes of tokens, bought elsewhere, would cost the hour's rent."""

    def worth(share: float) -> float:
        return float(sum(p.rate * 60 * share * p.price_cents / 100 / MILLION for _minute in range(60)))

    return holds_up_to(lambda share: worth(share) < p.gpus * p.cents / 100, high=1)


RENT = Drill(
    key="capacity-busy-enough",
    taught=TAUGHT,
    title="Busy enough to rent",
    unit="",
    target_s=110,
    draw=lambda rng: drawn(
        gpus=rng.choice((2, 4)),
        cents=rng.randrange(190, 300, 10),
        rate=rng.randrange(6000, 9000, 200),
        price_cents=rng.randrange(60, 105, 5),
    ),
    small=lambda rng: drawn(
        gpus=2, cents=rng.choice((200, 300)), rate=rng.choice((6000, 8000)), price_cents=rng.choice((60, 90))
    ),
    prompt=lambda p: (
        f"A replica of {p.gpus} rented GPUs makes {p.rate:,} tokens per second while it has work. A GPU costs"
        f" {p.cents / 100:.2f} dollars an hour, busy or not. An interface sells the same tokens at"
        f" {p.price_cents / 100:.2f} dollars a million. Which share of the time must the replica be busy so that its"
        " tokens cost no more?"
    ),
    derive=lambda p: Derivation(
        value=_rent(p, gpus=p.gpus),
        formula="GPUs × price per hour / (tokens per second × 3600 × price per token)",
        substitution=f"{p.gpus} × {p.cents} / 100 / ({p.rate} × 3600 × {p.price_cents} / 100 / 1000000)",
        source=(
            "break-even of a fixed and a proportional cost; see Pope et al., 2022, arXiv:2211.05102, figure 1 (cost in"
            " chip-seconds per token)"
        ),
    ),
    count=_count_rent,
    prerequisites=("serving-price-per-million",),
    slips=(
        Slip("one-gpu", lambda p: _rent(p, gpus=1)) | "You paid for one GPU. The replica has more.",
        Slip("per-day", lambda p: _rent(p, gpus=p.gpus) / 24)
        | "You spread the rent of an hour over a day. Each hour has its own.",
        Slip("inverted", lambda p: 1 / _rent(p, gpus=p.gpus))
        | "You divided the other way round. The dearer the interface, the less busy you have to be.",
        Slip("cents", lambda p: 100 * _rent(p, gpus=p.gpus)) | "You mixed dollars and cents.",
    ),
)

DRILLS = (HOPS, STREAMED, ADAPTERS, HITS, RENT)
