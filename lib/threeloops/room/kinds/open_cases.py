"""Two open cases: a perception stack with a deadline, and a language model for a fleet. Their figures are invented."""

import random

from threeloops.drills.engine import catalogued
from threeloops.drills.engine.bank import DRILLS
from threeloops.drills.engine.drill import Draw, drawn
from threeloops.drills.kv_cache.contexts import real_shape
from threeloops.models.parameters import model_parameters
from threeloops.room.kinds.open_case import TOPIC, Case, idea, told_apart
from threeloops.room.kinds.table import Cell, Table, Word
from threeloops.units import fmt_bytes, fmt_percent, ms

YES_NO = ("yes", "no")


def _same(p: Draw) -> Draw:
    return p


def _value(key: str, p: Draw) -> float:
    return DRILLS[key].derive(p).value


# --- a perception stack --------------------------------------------------------------------------

FASTER = 1.8  # INT8 over FP16 for this network, as its team measured it
PERCEPTION_CELLS = (
    Cell(name="Bytes per second from the cameras", drill=DRILLS["latency-camera-bandwidth"], numbers=_same),
    Cell(name="Times that the network must become faster", drill=DRILLS["latency-speedup-needed"], numbers=_same),
    Cell(
        name="Longest way from an event to the end of a command",
        drill=DRILLS["deadlines-chain"],
        numbers=lambda p: drawn(periods_ms=p.periods_ms, responses_ms=p.responses_ms),
    ),
    Cell(
        name="Stopping distance at that reaction",
        drill=DRILLS["latency-stopping-distance"],
        numbers=lambda p: drawn(
            kmh=p.kmh,
            braking=p.braking,
            reaction_ms=_value("deadlines-chain", p) / ms + p.brakes_ms,
        ),
    ),
    Cell(name="Late results in a drive", drill=DRILLS["deadlines-misses"], numbers=_same),
)


def _draw_perception(rng: random.Random) -> Draw:
    while True:
        others = rng.randrange(8, 13)
        p = drawn(
            cameras=rng.choice((6, 7, 8)),
            width=1920,
            height=1280,
            bits=rng.choice((12, 14)),
            rate=30,
            deadline=33,
            others=others,
            model=rng.choice((28, 30, 32, 34, 46, 48, 50, 52)),
            periods_ms=(33, rng.choice((50, 60, 100)), 10),
            responses_ms=(rng.randrange(26, 33), rng.randrange(20, 45), rng.choice((2, 3))),
            brakes_ms=300,
            kmh=rng.choice((90, 100, 110, 120)),
            braking=rng.choice((5.0, 6.0)),
            chains=1,
            minutes=rng.choice((30, 45, 90)),
            per_ten_thousand=rng.choice((3, 5, 12)),
        )
        p.chains = p.cameras
        needed = _value("latency-speedup-needed", p)
        if not 0.93 < needed / FASTER < 1.07 and told_apart(PERCEPTION_CELLS, p):
            return p


PERCEPTION = Case(
    table=Table(
        key="case-perception-stack",
        title="Design a perception stack for a 33 ms deadline",
        topic=TOPIC,
        loop="driving",
        section="The story closed",
        target_s=300,
        draw=_draw_perception,
        prompt=lambda p: (
            f"Design the perception stack of a car on one Jetson AGX Orin. {p.cameras} cameras of {p.width} ×"
            f" {p.height} pixels, {p.bits} bits raw and packed, {p.rate} frames per second. A result is due"
            f" {p.deadline} ms after each picture; everything but the network takes {p.others} ms, the network"
            f" {p.model} ms in FP16, one after the other, and INT8 makes it {FASTER} times as fast. Once it fits, the"
            " stages run on clocks that are not aligned, and each reads the newest value when it starts: perception"
            f" every {p.periods_ms[0]} ms, up to {p.responses_ms[0]} ms; planning every {p.periods_ms[1]} ms, up to"
            f" {p.responses_ms[1]} ms; control every {p.periods_ms[2]} ms, up to {p.responses_ms[2]} ms. The brakes"
            f" bite {p.brakes_ms} ms after a command and slow the car by {p.braking} m/s²; it drives at {p.kmh} km/h."
            f" Each camera's chain is late in {p.per_ten_thousand} of 10,000 frames; a drive takes {p.minutes}"
            " minutes."
        ),
        cells=(
            *PERCEPTION_CELLS,
            Word(
                name="Does INT8 alone meet the deadline",
                words=YES_NO,
                right=lambda p: YES_NO[_value("latency-speedup-needed", p) > FASTER],
                because="Compare what INT8 gives with what the deadline asks of the network.",
            ),
        ),
        source="Davare et al., Design Automation Conference, 2007, doi:10.1145/1278480.1278553; figures invented",
        prerequisites=("latency-speedup-needed", "deadlines-chain"),
    ),
    rubric=(
        "a budget stage by stage whose sum leaves a reserve, and says whose share the reserve is",
        "latency apart from rate: what is pipelined, and what each hand-over adds to the age of a result",
        "a p99 or a worst case for every stage, never a mean, measured with the neighbours on and the chip warm",
        "what happens to a late frame: dropped or degraded, who notices, and how long that takes beside the FTTI",
        "accuracy in INT8 by condition, with the layers that stay in 16 bits, before the speed is counted",
        "the one measurement that would change the design, and what is not known yet",
    ),
)

# --- a fleet's language model --------------------------------------------------------------------

FLEET_CELLS = (
    Cell(name="Requests that fit on one card", drill=DRILLS["kv-largest-batch"], numbers=_same),
    Cell(name="Requests being served at a time", drill=DRILLS["serving-in-flight"], numbers=lambda p: p.busy_hour),
    Cell(
        name="Replicas, one card each",
        drill=DRILLS["serving-replicas"],
        numbers=lambda p: drawn(rate=p.peak_rate, seconds=p.seconds, slots=p.slots, headroom=p.headroom),
    ),
    Cell(
        name="Price of a million output tokens",
        drill=DRILLS["serving-price-per-million"],
        numbers=lambda p: drawn(cents=p.cents, gpus=1, rate=p.tokens_rate, busy=p.busy),
    ),
)


def _draw_fleet(rng: random.Random) -> Draw:
    key, card = rng.choice((("llama-3-8b", "h100-sxm5"), ("qwen2.5-7b", "l40s"), ("llama-3-8b", "l40s")))
    while True:
        p = drawn(
            **real_shape(key),
            bytes_per_element=2,
            weights_bytes=2 * model_parameters(catalogued.model(key)).total,
            card=catalogued.part(card).name,
            memory_bytes=catalogued.part(card)["usable_bytes"],
            share=0.9,
            tokens=rng.choice((6000, 8000, 11_000)),
            busy_hour=drawn(
                per_minute=rng.choice((740, 1300, 2100)),
                ttft=rng.choice((0.4, 0.8)),
                itl_ms=rng.choice((20, 26, 35)),
                tokens=rng.choice((150, 200, 300)),
            ),
            slots=rng.choice((24, 32, 48)),
            headroom=rng.choice((0.3, 0.4)),
            peak_rate=rng.choice((120, 240, 380)),
            cents=rng.choice((150, 220, 400)),
            tokens_rate=rng.choice((1300, 2100, 3900)),
            busy=rng.choice((0.35, 0.45, 0.65)),
        )
        p.seconds = round(_value("serving-in-flight", p.busy_hour) * 60 / p.busy_hour.per_minute, 1)
        if told_apart(FLEET_CELLS, p) and not 0.9 < _value("kv-largest-batch", p) / p.slots < 1.1:
            return p


FLEET = Case(
    table=Table(
        key="case-fleet-model",
        title="Serve the language model of a fleet",
        topic=TOPIC,
        loop="product",
        section="Capacity and cost",
        target_s=300,
        draw=_draw_fleet,
        prompt=lambda p: (
            f"A fleet's cars ask {p.name}, in 16 bits, what they may say to their passengers. One replica is one"
            f" {p.card}; its driver reports {fmt_bytes(p.memory_bytes, base=10)}, of which the engine may use"
            f" {fmt_percent(p.share)}, and the weights take {fmt_bytes(p.weights_bytes, base=10)}. The model has"
            f" {p.layers} layers with {p.query_heads} query heads and {p.kv_heads} KV heads, {p.head_dim} wide; a"
            f" request grows to {p.tokens:,} tokens. In the busy hour {p.busy_hour.per_minute:,} requests arrive per"
            f" minute, wait {p.busy_hour.ttft:g} s for the first token and get {p.busy_hour.tokens} tokens in all,"
            f" {p.busy_hour.itl_ms} ms apart. At peak {p.peak_rate} arrive per second, each inside for"
            f" {p.seconds:g} s; a replica is run with {p.slots} slots, {fmt_percent(p.headroom)} of them free for"
            f" bursts. A card costs {p.cents / 100:.2f} dollars an hour, makes {p.tokens_rate:,} tokens per second"
            f" while it has work, and has work {fmt_percent(p.busy)} of the time."
        ),
        cells=(
            *FLEET_CELLS,
            Word(
                name="Does the cache of that many slots fit",
                words=YES_NO,
                right=lambda p: YES_NO[_value("kv-largest-batch", p) < p.slots],
                because="Compare the slots of a replica with the requests that fit on its card.",
            ),
        ),
        source="Kwon et al., 2023, arXiv:2309.06180, section 3; figures of the load invented",
        prerequisites=("kv-largest-batch", "serving-replicas"),
    ),
    rubric=(
        "which answers may leave the car at all, and what the car does without a network",
        "two promises, time to first token and time between tokens, each at a percentile and for a stated load",
        "memory before speed: weights, cache per request, and what is left for bursts",
        "batching and its price: which promise a larger batch breaks first",
        "what is bought when: replicas for the peak, shorter prompts and shared prefixes, narrow weights, another card",
        "what happens beyond the peak: a queue with a limit, refusals, a smaller model",
    ),
)
CASES = (PERCEPTION, FLEET)
IDEAS = tuple(map(idea, CASES))
