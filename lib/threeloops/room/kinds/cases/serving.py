"""A case of serving: a 70B for ten thousand people, with a promise on the first token. The load and the prices are
invented; model and cards are the catalogue's.
"""

import math
import random

from threeloops.drills.engine import catalogued
from threeloops.drills.engine.drill import Draw, changed, drawn
from threeloops.drills.engine.phrasing import to_the_byte
from threeloops.drills.kv_cache.contexts import real_shape
from threeloops.models.parameters import model_parameters
from threeloops.room.kinds.cases.case import Case, design, requirements
from threeloops.room.kinds.chains.chain import Step
from threeloops.room.kinds.chains.change import Best, Change, shown, value_of
from threeloops.units import billion, fmt_bytes, fmt_percent, fmt_seconds, fmt_si, ms

H200 = "h200-sxm"


def _gb(value: float) -> str:
    return fmt_bytes(value, base=10)


# --- a 70B for ten thousand people ---------------------------------------------------------------

TP = 4
PROMISED_S = 0.5  # p99 of the first token


def _draw_seventy(rng: random.Random) -> Draw:
    card, shape = catalogued.part("h100-sxm5"), real_shape("llama-3-70b")
    parameters = model_parameters(catalogued.model("llama-3-70b")).total
    rate, every_s = rng.choice(((20, 500), (25, 400), (40, 250), (50, 200)))  # ten thousand people, however often
    p = drawn(
        **shape,
        bytes_per_element=2,
        parameters=parameters,
        weights_bytes=2 * parameters,
        billions=round(parameters / billion, 1),
        card=card.name,
        memory_bytes=TP * card["usable_bytes"],
        share=0.9,
        tokens=rng.choice((4000, 5000, 6000, 7500)),
        prompt=rng.choice((1500, 2200, 3000)),
        rate=rate,
        every_s=every_s,
        users=rate * every_s,
        load=drawn(
            per_minute=60 * rate,
            ttft=PROMISED_S,
            itl_ms=rng.choice((28, 32, 36)),
            tokens=rng.choice((120, 160, 220)),
        ),
        headroom=rng.choice((0.3, 0.4)),
        peak=TP * card.peak_flops_per_s("bf16"),
        bandwidth=card["memory_bytes_per_s"],
        utilisation=rng.choice((0.4, 0.5)),
        latency_us=rng.choice((10, 15, 20)),
        narrow=rng.choice((4, 8)),
        filled=rng.choice((0.6, 0.7, 0.85)),
        cents=rng.choice((220, 260, 310)),
        busy=rng.choice((0.35, 0.45, 0.6)),
        burst=rng.choice((1.3, 1.5)),
        late_s=rng.choice((90, 150, 240)),
    )
    p.seconds = round(value_of("serving-in-flight", p.load) / rate, 1)
    p.slots = int(p.filled * value_of("kv-largest-batch", p)) // 8 * 8
    p.tokens_rate = round(p.rate * p.load.tokens / _seventy_needed(p) / 10) * 10
    return p


def _seventy_busy(p: Draw) -> float:
    """Seconds of a replica's time that one request takes: its prefill, and its share of the steps it is in."""
    prefill = value_of("serving-prefill", changed(p, tokens=p.prompt))
    return float(prefill + p.load.tokens * value_of("decode-tensor-parallel-step", _seventy_step(p)) / p.slots)


def _seventy_needed(p: Draw) -> int:
    """Replicas that have the slots and the time, both with the headroom."""
    by_slots = int(value_of("serving-replicas", _seventy_replicas(p)))
    return max(by_slots, math.ceil(float(p.rate / (1 - p.headroom)) * _seventy_busy(p)))


def _seventy_replicas(p: Draw) -> Draw:
    return drawn(rate=p.rate, seconds=p.seconds, slots=p.slots, headroom=p.headroom)


def _seventy_step(p: Draw) -> Draw:
    cache = p.slots * p.tokens * value_of("kv-bytes-per-token", p)
    return changed(p, tp=TP, cache=round(cache / 1e8) * 1e8)


def _seventy_burst(p: Draw) -> Draw:
    return drawn(before=p.rate, arrive=round(p.rate * p.burst), after=2 * p.rate, late_s=p.late_s)


SEVENTY = Case(
    key="case-serve-70b",
    title="Serve a 70B to ten thousand people",
    loop="product",
    section="Capacity and cost",
    draw=_draw_seventy,
    requirements=requirements(
        lambda p: f"Our {p.users:,} employees shall have {p.name} as an assistant, and it should feel instant.",
        (
            "how many requests a second, in the busiest hour and not on average",
            lambda p: f"{p.users:,} people at their desks, each asks every {p.every_s} s: {p.rate} requests per second",
        ),
        (
            "what “instant” means: which percentile of the time to the first token, and which gap between tokens",
            lambda p: f"p99 of the first token within {PROMISED_S / ms:.0f} ms, then {p.load.itl_ms} ms between tokens",
        ),
        (
            "how long prompts and answers are, mean and longest",
            lambda p: f"prompts of {p.prompt:,} tokens, answers of {p.load.tokens}, contexts up to {p.tokens:,}",
        ),
        (
            "which hardware there is, and what it costs an hour",
            lambda p: f"nodes with {p.card}, {p.cents / 100:.2f} dollars an hour each; {TP} of them make a replica",
        ),
        (
            "which precision keeps the quality, and who measures that",
            lambda p: "16 bits today; fewer only after our own evaluation",
        ),
        (
            "what happens beyond the peak, and whether a late answer is worse than none",
            lambda p: f"bursts of {p.burst:g} times the rate after lunch; rather wait than be refused",
        ),
    ),
    estimates=(
        Step(drill="serving-in-flight", numbers=lambda p: p.load),
        Step(
            drill="kv-largest-batch",
            numbers=lambda p: p,
            text=lambda p: (
                f"A replica is {TP} {p.card}, tensor-parallel. Their drivers report {to_the_byte(p.memory_bytes)}"
                f" together, of which the engine may use {fmt_percent(p.share)}. {p.name}'s weights take"
                f" {to_the_byte(p.weights_bytes)} in 16 bits; it has {p.layers} layers with {p.query_heads} query heads"
                f" and {p.kv_heads} KV heads, {p.head_dim} wide, and the cache is in 16 bits too. How many whole"
                f" requests of {p.tokens:,} tokens fit on a replica?"
            ),
        ),
        Step(
            drill="serving-replicas",
            numbers=_seventy_replicas,
            text=lambda p: (
                "A first bound, by slots alone: how long the cards need for the work itself comes later. At peak"
                f" {p.rate} requests arrive per second, and each is inside for {p.seconds:g} s. A replica has {p.slots}"
                f" slots, of which {fmt_percent(p.headroom)} shall stay free for bursts. How many replicas do the slots"
                " ask for?"
            ),
        ),
        Step(
            drill="serving-prefill",
            numbers=lambda p: changed(p, tokens=p.prompt),
            text=lambda p: (
                f"The floor of the first token: a prompt of {p.prompt:,} tokens is read by {p.billions:g} billion dense"
                f" parameters. The {TP} cards of a replica have {fmt_si(p.peak, 'FLOP/s')} together and matmuls reach"
                f" {fmt_percent(p.utilisation)} of that. Attention's own matmuls aside, how long does it take?"
            ),
        ),
    ),
    design=design(
        lambda p: (
            f"Now the design: {p.name} for {p.rate} requests a second, p99 of the first token within"
            f" {PROMISED_S / ms:.0f} ms. What stands in the rack, what does the server do, and what is promised?"
        ),
        (
            "memory first: weights, cache per request, and what is left decides how many share a replica",
            "the number of replicas from requests in flight and from prefill and decode time, with headroom",
            "the first token's budget: queue, prefill, network, and what is left of it at p99",
            "continuous batching with chunked prefill, so that no long prompt stops the other requests' tokens",
            "a router that knows queue lengths and shared prefixes, not round robin",
            "what is measured in production: p99 of both promises, queue, cache use, and the alarm on each",
        ),
        lambda p: (
            f"{shown('serving-in-flight', p.load)} requests are inside at a time. A replica of {TP} cards holds"
            f" {shown('kv-largest-batch', p)} contexts of {p.tokens:,} tokens; with {p.slots} slots, of which"
            f" {fmt_percent(p.headroom)} stay free, slots alone would ask for"
            f" {shown('serving-replicas', _seventy_replicas(p))} replicas. But a request also takes"
            f" {fmt_seconds(_seventy_busy(p))} of a replica's time (its prefill, and its share of"
            f" {p.load.tokens} decode steps), {p.rate} of them a second {p.rate * _seventy_busy(p):.3g} replicas'"
            f" whole time: with the same share free, {_seventy_needed(p)} replicas."
            f" Prefill takes {shown('serving-prefill', changed(p, tokens=p.prompt))} of the {PROMISED_S / ms:.0f} ms,"
            " so the queue may take the rest and no more: prompts are read in chunks between decode steps, which at"
            f" full slots take {shown('decode-tensor-parallel-step', _seventy_step(p))} of the {p.load.itl_ms} ms"
            " promised. A router sends each request to the shortest queue that has its prefix; autoscaling follows the"
            " queue, not the GPU's utilisation."
        ),
    ),
    trade_off=Best(
        drill="decode-tensor-parallel-step",
        now=_seventy_step,
        text=lambda p: (
            f"The gap between tokens is too long. A step of a full replica ({TP} cards of"
            f" {fmt_si(p.bandwidth, 'B/s')}) reads {p.billions:g} billion weights in 16 bits and"
            f" {_gb(_seventy_step(p).cache)} of caches; each of {p.layers} layers ends twice in an all-reduce of"
            f" {p.latency_us} µs. Which single change shortens the step most?"
        ),
        changes=(
            Change(
                key="weights",
                text=lambda p: f"weights in {p.narrow} bits, scales not counted",
                numbers=lambda p: changed(_seventy_step(p), billions=p.billions * p.narrow / 16),
            ),
            Change(
                key="caches",
                text=lambda p: "caches in 8 bits",
                numbers=lambda p: changed(_seventy_step(p), cache=_seventy_step(p).cache / 2),
            ),
            Change(
                key="cards",
                text=lambda p: "the H200 instead of the H100",
                numbers=lambda p: changed(_seventy_step(p), bandwidth=catalogued.part(H200)["memory_bytes_per_s"]),
            ),
            Change(
                key="exchange",
                text=lambda p: "all-reduces that take half as long",
                numbers=lambda p: changed(_seventy_step(p), latency_us=p.latency_us / 2),
            ),
        ),
    ),
    price=(
        "narrow weights and caches cost quality somewhere: evaluate before, by task, and keep a way back",
        "what is freed can be spent on speed or on more requests, not on both",
        "a faster card helps both promises, at another price per hour and after a delivery time",
    ),
    follow_ups=(
        Step(
            drill="queue-late-servers",
            numbers=_seventy_burst,
            text=lambda p: (
                "Suppose it was built without the free share. After lunch"
                f" {_seventy_burst(p).arrive} requests arrive per second where the replicas handle"
                f" {_seventy_burst(p).before}. The autoscaler's new replicas are ready after {p.late_s} s; from then on"
                f" {_seventy_burst(p).after} per second are handled, and none is turned away. How long, counted from"
                " then, until the queue is gone?"
            ),
        ),
        Step(
            drill="serving-price-per-million",
            numbers=lambda p: drawn(cents=p.cents, gpus=TP, rate=p.tokens_rate, busy=p.busy),
            text=lambda p: (
                f"Of all hours of a month, nights included, a replica of {TP} GPUs has work in {fmt_percent(p.busy)},"
                f" and then makes {p.tokens_rate:,} tokens per second, as in the busiest hour. A GPU costs"
                f" {p.cents / 100:.2f} dollars an hour, busy or not. What does a million tokens cost?"
            ),
        ),
    ),
)
