"""Drills on what traffic does to a batch: long answers among short ones, and a step that grows with its batch."""

import itertools
import math
import random

from threeloops.drills.engine import catalogued
from threeloops.drills.engine.drill import AsFunction, Derivation, Draw, Drill, Slip, Taught, drawn
from threeloops.drills.kv_cache.contexts import attention, bare_model, real_shape
from threeloops.models import parameters
from threeloops.product_loop import batching
from threeloops.simulate.product_loop import cache_walk
from threeloops.units import billion, ms, us

TAUGHT = Taught("product", "Batching")
ORCA = "Yu et al., Orca, OSDI 2022, section 3 (a batch ends with its longest request)"
LITTLE = "Little, Operations Research 9(3), 1961, doi:10.1287/opre.9.3.383"

# --- the gain ------------------------------------------------------------------------------------


def _mean(p: Draw) -> float:
    return float(p.short + p.share * (p.long - p.short))


def _gain(p: Draw) -> float:
    return batching.continuous_gain(short_tokens=p.short, long_tokens=p.long, long_share=p.share, slots=p.slots)


def _count_gain(p: Draw) -> float:
    """List every batch of short and long answers, with its chance and its steps."""
    steps = tokens = 0.0
    for batch in itertools.product((False, True), repeat=p.slots):
        chance = math.prod(p.share if long else 1 - p.share for long in batch)
        answers = [p.long if long else p.short for long in batch]
        steps += chance * max(answers)
        tokens += chance * sum(answers)
    return float(steps / (tokens / p.slots))


GAIN = Drill(
    key="batching-gain",
    taught=TAUGHT,
    title="One long answer is enough",
    unit="",
    target_s=110,
    apart=1.06,
    draw=lambda rng: drawn(
        short=rng.randrange(80, 150, 10),
        long=rng.randrange(700, 1300, 50),
        share=rng.choice((0.05, 0.06, 0.08, 0.1, 0.12)),
        slots=rng.choice((6, 7, 9, 10, 12)),
    ),
    small=lambda rng: drawn(
        short=rng.randrange(3, 7), long=rng.randrange(20, 40), share=rng.choice((0.1, 0.25)), slots=rng.choice((3, 5))
    ),
    prompt=lambda p: (
        f"Of the answers of a service, {100 * p.share:g} % have {p.long:,} tokens and the others {p.short}, in no"
        f" order. It serves them in static batches of {p.slots}, each held until its longest answer is done; a step"
        " takes the same time with any batch, and the queue is never empty. How many times the tokens per second would"
        " continuous batching make on as many slots?"
    ),
    derive=lambda p: Derivation(
        value=_gain(p),
        formula="(long − (long − short) × (1 − share)^slots) / (short + share × (long − short))",
        substitution=(
            f"({p.long} − ({p.long} − {p.short}) × (1 − {p.share}) ** {p.slots}) / ({p.short} + {p.share} × ({p.long} −"
            f" {p.short}))"
        ),
        source=ORCA,
    ),
    count=_count_gain,
    prerequisites=("serving-static-waste",),
    slips=(
        Slip("always-a-long-one", lambda p: p.long / _mean(p))
        | "You put a long answer into every batch. With so few slots, some batches have none.",
        Slip("long-by-short", lambda p: p.long / p.short)
        | "You compared a long answer with a short one. Most slots are compared with a mixture.",
        Slip("one-slot", lambda p: (p.long - (p.long - p.short) * (1 - p.share)) / p.short)
        | "That is the mean answer against a short one. A batch lasts as long as its longest.",
        Slip("short-batches-forgotten", lambda p: p.long * (1 - (1 - p.share) ** p.slots) / _mean(p))
        | "You let a batch of short answers take no time at all.",
        Slip("inverse", lambda p: 1 / _gain(p))
        | "That is what static batches keep of continuous batching's rate. The gain is asked for.",
    ),
    function=AsFunction(
        takes=("short", "long", "share", "slots"),
        limit={"slots": 1},
        limit_case="a single slot, in which no request waits for another's answer",
    ),
)

# --- how full a batch gets -----------------------------------------------------------------------


def _running(p: Draw) -> float:
    return batching.running_requests(
        requests_per_s=p.rate, output_tokens=p.tokens, base_s=p.base_ms * ms, per_request_s=p.each_us * us
    )


def _draw_running(rng: random.Random) -> Draw:
    return drawn(
        rate=rng.randrange(4, 12),
        tokens=rng.randrange(150, 330, 10),
        base_ms=rng.randrange(6, 14),
        each_us=rng.randrange(100, 260, 10),
    )


def _stable(p: Draw) -> bool:
    """Between a quarter and seven tenths of every second go into the requests' own shares of a step."""
    return bool(0.25 < p.rate * p.tokens * p.each_us * us < 0.7)


def _count_running(p: Draw) -> float:
    """Take the step of a batch, see how many tokens are asked for meanwhile, take the step of that many, and so on."""
    batch, before = 0.0, -1.0
    while abs(batch - before) > 1e-13 * batch:
        step_s = p.base_ms * ms + batch * p.each_us * us
        batch, before = p.rate * step_s * p.tokens, batch
    return batch


RUNNING = Drill(
    key="batching-running",
    taught=TAUGHT,
    title="The batch that its own step makes",
    unit="",
    target_s=120,
    apart=1.06,
    wanted=_stable,
    draw=_draw_running,
    small=_draw_running,
    prompt=lambda p: (
        f"A decode step takes {p.base_ms} ms and {p.each_us} µs more for each request in it. {p.rate} requests arrive"
        f" per second, each wants {p.tokens} tokens, there are slots enough, and prompts cost next to nothing. How many"
        " requests are being decoded on average?"
    ),
    derive=lambda p: Derivation(
        value=_running(p),
        formula="tokens/s × step of an empty batch / (1 − tokens/s × time per request), tokens/s = requests/s × tokens",
        substitution=(
            f"{p.rate} × {p.tokens} × {p.base_ms} / 1000 / (1 − {p.rate} × {p.tokens} × {p.each_us} / 1000000)"
        ),
        source=LITTLE,
    ),
    count=_count_running,
    slips=(
        Slip("empty-step", lambda p: p.rate * p.tokens * p.base_ms * ms)
        | "You took the step of an empty batch. Every request in it makes the step longer.",
        Slip("shorter", lambda p: p.rate * p.tokens * p.base_ms * ms / (1 + p.rate * p.tokens * p.each_us * us))
        | "Your step gets shorter with every request in it. It gets longer.",
        Slip("no-tokens", lambda p: p.rate * p.base_ms * ms / (1 - p.rate * p.each_us * us))
        | "You let every request stay for one step. It stays for one per token.",
        Slip("growth-added", lambda p: p.rate * p.tokens * p.base_ms * ms * (1 + p.rate * p.tokens * p.each_us * us))
        | "You let the batch lengthen its step once. The longer step fills the batch further, and so on.",
    ),
)

# --- more slots for a real model -----------------------------------------------------------------

REAL = ("llama-3-8b", "qwen2.5-7b", "qwen3-32b")


def _cache(p: Draw, *, vectors: int = 2, heads: int | None = None) -> float:
    """Bytes that one request's context leaves in a cache of 16 bits."""
    return float(vectors * p.layers * (heads or p.kv_heads) * p.head_dim * 2 * p.tokens)


def _more(p: Draw, *, cache: float | None = None, bytes_per_parameter: int = 2) -> float:
    return batching.slots_gain(
        weights_bytes=bytes_per_parameter * p.billions * billion,
        cache_bytes_per_request=_cache(p) if cache is None else cache,
        slots=p.slots,
        more_slots=p.more,
    )


def _draw_more(rng: random.Random) -> Draw:
    key = rng.choice(REAL)
    slots = rng.randrange(7, 17)
    total = parameters.model_parameters(catalogued.model(key)).total
    return drawn(
        **real_shape(key),
        billions=round(total / billion, 2),
        tokens=rng.randrange(2000, 12_000, 500),
        slots=slots,
        more=slots * rng.choice((3, 4, 5)),
    )


def _small_more(rng: random.Random) -> Draw:
    shape = {"layers": rng.choice((3, 5)), "query_heads": 12, "kv_heads": 4, "head_dim": rng.choice((6, 10))}
    billions, slots = rng.choice((3e-6, 5e-6)), rng.choice((2, 3))
    return drawn(**shape, name="a small one", billions=billions, tokens=rng.randrange(3, 9), slots=slots, more=7)


def _count_more(p: Draw) -> float:
    """Read everything for one step, once with few and once with many, cache by cache; time goes with what is read."""
    rates = []
    for slots in (p.slots, p.more):
        read = sum(2 for _parameter in range(round(p.billions * billion)))
        for _request in range(slots):
            read += 2 * cache_walk.cached_elements(bare_model((attention(p), p.layers)), tokens=p.tokens)
        rates.append(slots / read)
    return float(rates[1] / rates[0])


MORE = Drill(
    key="batching-more-slots",
    taught=TAUGHT,
    title="What more slots gain",
    unit="",
    target_s=150,
    apart=1.06,
    draw=_draw_more,
    small=_small_more,
    prompt=lambda p: (
        f"{p.name} has {p.billions:g} billion parameters, {p.layers} layers, {p.query_heads} attention heads,"
        f" {p.kv_heads} key-value heads and head_dim {p.head_dim}. Weights and KV cache are in 16 bits, every running"
        f" request has a context of {p.tokens:,} tokens, and a decode step takes as long as reading all of it takes. A"
        f" server goes from {p.slots} slots to {p.more}, all of them taken. How many times as many tokens per second"
        " does it make?"
    ),
    derive=lambda p: Derivation(
        value=_more(p),
        formula="more / slots × (weights + slots × cache) / (weights + more × cache)",
        substitution=(
            f"{p.more} / {p.slots} × (2 × {p.billions:g}e9 + {p.slots} × {_cache(p):.0f}) / (2 × {p.billions:g}e9 +"
            f" {p.more} × {_cache(p):.0f})"
        ),
        source="Pope et al., 2022, arXiv:2211.05102, section 2.1 (weights once per step, caches once per request)",
    ),
    count=_count_more,
    prerequisites=("serving-batch-throughput",),
    slips=(
        Slip("slots-only", lambda p: p.more / p.slots)
        | "You let the step stay as it was. Every further request brings a cache that has to be read.",
        Slip("query-heads", lambda p: _more(p, cache=_cache(p, heads=p.query_heads)))
        | "You cached the attention heads, which ask. What is kept belongs to the key-value heads.",
        Slip("keys-or-values", lambda p: _more(p, cache=_cache(p, vectors=1)))
        | "You read keys or values. Attention needs both.",
        Slip("step-only", lambda p: p.more / p.slots / _more(p))
        | "That is how much longer a step gets, which each request notices. What all get together is asked for.",
    ),
)

DRILLS = (GAIN, RUNNING, MORE)
