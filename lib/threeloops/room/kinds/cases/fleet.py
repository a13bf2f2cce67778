"""A case of serving on small cards: the language model of a fleet. Its load and prices are invented."""

import random

from threeloops.drills.engine import catalogued
from threeloops.drills.engine.drill import Draw, changed, drawn
from threeloops.drills.kv_cache.contexts import real_shape
from threeloops.models.parameters import model_parameters
from threeloops.room.kinds.cases.case import Case, design, requirements
from threeloops.room.kinds.chains.chain import Step
from threeloops.room.kinds.chains.change import Best, Change, shown, value_of
from threeloops.units import fmt_bytes, fmt_percent, ms

TURN = 40  # tokens of a question: with the rest cached, prefill is little beside the steps


def _draw_fleet(rng: random.Random) -> Draw:
    key, card = rng.choice((("llama-3-8b", "h100-sxm5"), ("qwen2.5-7b", "l40s"), ("llama-3-8b", "l40s")))
    rate = rng.choice((12, 22, 35))
    p = drawn(
        **real_shape(key),
        bytes_per_element=2,
        weights_bytes=2 * model_parameters(catalogued.model(key)).total,
        card=catalogued.part(card).name,
        memory_bytes=catalogued.part(card)["usable_bytes"],
        share=0.9,
        tokens=rng.choice((6000, 8000, 11_000)),
        shorter=rng.choice((0.4, 0.6, 0.75)),
        rate=rate,
        load=drawn(
            per_minute=60 * rate,
            ttft=rng.choice((0.4, 0.8)),
            itl_ms=rng.choice((26, 35, 42) if card == "h100-sxm5" else (50, 58, 66)),
            tokens=rng.choice((150, 200, 300)),
        ),
        headroom=rng.choice((0.3, 0.4)),
        cents=rng.choice((150, 220, 400)),
        busy=rng.choice((0.35, 0.45, 0.65)),
        crowd=rng.choice((1.3, 1.6)),
    )
    p.seconds = round(value_of("serving-in-flight", p.load) / rate, 1)
    p.slots = max(int(0.75 * value_of("kv-largest-batch", p)) // 2 * 2, 2)
    p.tokens_rate = round(p.slots / p.load.itl_ms * 100) * 10
    p.servers = int(value_of("serving-replicas", _fleet_replicas(p)))
    return p


def _fleet_replicas(p: Draw) -> Draw:
    return drawn(rate=p.rate, seconds=p.seconds, slots=p.slots, headroom=p.headroom)


def _fleet_shed(p: Draw) -> Draw:
    service_ms = round(p.seconds / ms / p.slots)
    return drawn(servers=p.servers, service_ms=service_ms, arrive=round(p.crowd * p.servers / (service_ms * ms)))


FLEET = Case(
    key="case-fleet-model",
    title="Serve the language model of a fleet",
    loop="product",
    section="Batching",
    draw=_draw_fleet,
    requirements=requirements(
        lambda p: f"Our cars shall talk to their passengers, by {p.name} on a server. Build it.",
        (
            "which answers may leave the car at all, and what the car does without a network",
            lambda p: "nothing that the drive needs; without a network the car says so",
        ),
        (
            "how many requests arrive in the busy hour, and how they bunch",
            lambda p: f"{p.load.per_minute:,} a minute; after a match {p.crowd:g} times what there is room for",
        ),
        (
            "two promises: the first token, and the time between tokens, each at a percentile",
            lambda p: f"{p.load.ttft:g} s and {p.load.itl_ms} ms, at the mean today; p99 is to be proposed",
        ),
        (
            "how long a conversation grows, and how long an answer is",
            lambda p: (
                f"up to {p.tokens:,} tokens, cached but for the {TURN} of each question; {p.load.tokens} an answer"
            ),
        ),
        (
            "which cards, at what price, and how much of the day they have work",
            lambda p: f"{p.card}, {p.cents / 100:.2f} dollars an hour, work for {fmt_percent(p.busy)} of the time",
        ),
    ),
    estimates=(
        Step(drill="kv-largest-batch", numbers=lambda p: p),
        Step(drill="serving-in-flight", numbers=lambda p: p.load),
        Step(drill="serving-replicas", numbers=_fleet_replicas),
    ),
    design=design(
        lambda p: f"Now the design: {p.name} on {p.card}, {p.rate} requests a second in the busy hour. Go on.",
        (
            "which answers may leave the car at all, and what the car does without a network",
            "two promises, time to first token and time between tokens, each at a percentile and for a stated load",
            "memory before speed: weights, cache per request, and what is left for bursts",
            "batching and its price: which promise a larger batch breaks first",
            "what is bought when: replicas, shorter prompts and shared prefixes, narrow weights, another card",
            "what happens beyond the peak: a queue with a limit, refusals, a smaller model",
        ),
        lambda p: (
            f"The weights take {fmt_bytes(p.weights_bytes, base=10)} of a card; the rest holds"
            f" {shown('kv-largest-batch', p)} conversations of {p.tokens:,} tokens, of which {p.slots} slots are used."
            f" {shown('serving-in-flight', p.load)} requests are inside at a time, so with {fmt_percent(p.headroom)}"
            f" free for bursts it takes {shown('serving-replicas', _fleet_replicas(p))} replicas of one card. Each has"
            " a queue with a limit; who finds it full hears so at once. The car keeps what it needs to drive, and a few"
            " phrases, on board."
        ),
    ),
    trade_off=Best(
        drill="kv-largest-batch",
        now=lambda p: p,
        more=True,
        text=lambda p: (
            f"More conversations shall share a card. {p.name} takes {fmt_bytes(p.weights_bytes, base=10)} in 16 bits,"
            f" its cache {fmt_bytes(value_of('kv-bytes-per-token', p), base=10)} a token and {p.tokens:,} tokens a"
            f" conversation; of {fmt_bytes(p.memory_bytes, base=10)} the engine may use {fmt_percent(p.share)}. Which"
            " single change makes room for most?"
        ),
        changes=(
            Change(
                key="weights",
                text=lambda p: "weights in 8 bits",
                numbers=lambda p: changed(p, weights_bytes=p.weights_bytes // 2),
            ),
            Change(
                key="cache",
                text=lambda p: "the cache in 8 bits",
                numbers=lambda p: changed(p, bytes_per_element=1),
            ),
            Change(
                key="context",
                text=lambda p: f"conversations summed up at {round(p.tokens * p.shorter):,} tokens",
                numbers=lambda p: changed(p, tokens=round(p.tokens * p.shorter)),
            ),
        ),
    ),
    price=(
        "a cache in 8 bits needs an evaluation on long conversations, where errors add up",
        "a summary of a conversation loses some of it, and costs another request",
        "narrow weights make every step shorter too: the reading is what decode waits for",
    ),
    follow_ups=(
        Step(
            drill="serving-price-per-million",
            numbers=lambda p: drawn(cents=p.cents, gpus=1, rate=p.tokens_rate, busy=p.busy),
            text=lambda p: (
                f"A replica is one card for {p.cents / 100:.2f} dollars an hour, busy or not. It makes"
                f" {p.tokens_rate:,} tokens per second while it has work, which is {fmt_percent(p.busy)} of the time."
                " What does a million tokens cost?"
            ),
        ),
        Step(
            drill="queue-shed-share",
            numbers=_fleet_shed,
            text=lambda p: (
                f"After a match, with the {p.servers} replicas that the slots asked for, each done with a request every"
                f" {_fleet_shed(p).service_ms} ms, its slots taken together. For a long while"
                f" {_fleet_shed(p).arrive} requests arrive per second, more"
                " than they can handle; the queue is full, and who finds it full is turned away. What share of the"
                " requests is that?"
            ),
        ),
    ),
)
