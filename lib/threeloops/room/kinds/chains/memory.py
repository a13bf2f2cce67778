"""Follow-ups on memory: a cache and the card to hold it, model states and the stage to shard them by."""

import random

from threeloops.drills.engine import catalogued
from threeloops.drills.engine.drill import Draw, changed, drawn
from threeloops.drills.engine.phrasing import to_the_byte
from threeloops.drills.kv_cache.contexts import real_shape
from threeloops.models.parameter_buckets import ParameterBuckets
from threeloops.models.parameters import model_parameters
from threeloops.room.kinds.chains.chain import Chain, Decision, Step
from threeloops.room.kinds.chains.change import value_of
from threeloops.room.letters import Option
from threeloops.training_loop.memory.rank_states import model_states
from threeloops.units import billion, fmt_bytes, fmt_percent


def _gb(value: float) -> str:
    return fmt_bytes(value, base=10)


# --- a cache, and the card to hold it -----------------------------------------------------------

BY_MEMORY = ("l40s", "h100-sxm5", "h200-sxm", "b200-hgx")


def _card(p: Draw, key: str) -> Draw:
    return changed(p, card=catalogued.part(key).name, memory_bytes=catalogued.part(key)["usable_bytes"])


def _draw_cache(rng: random.Random) -> Draw:
    key = rng.choice(("llama-3-8b", "mistral-7b"))
    p = drawn(
        **real_shape(key),
        bytes_per_element=2,
        weights_bytes=2 * model_parameters(catalogued.model(key)).total,
        tokens=8192,
        prompt=8192,
        generated=0,
        share=0.9,
    )
    p.requests = rng.choice((8, 16, 32))
    fits = [0, *(int(value_of("kv-largest-batch", _card(p, card))) for card in BY_MEMORY)]
    place = rng.randrange(len(BY_MEMORY))
    p.users = (fits[place] + fits[place + 1]) // 2 + 1
    return p


def _smallest_card(p: Draw) -> str:
    fitting = [key for key in BY_MEMORY if value_of("kv-largest-batch", _card(p, key)) >= p.users]
    return min(fitting, key=lambda key: catalogued.part(key)["usable_bytes"])


CACHE = Chain(
    key="cache",
    title="A cache",
    draw=_draw_cache,
    steps=(
        Step(
            drill="kv-whole-requests",
            numbers=lambda p: changed(p, kv_heads=p.query_heads),
            text=lambda p: (
                f"A model has {p.layers} layers with {p.query_heads} attention heads, {p.head_dim} wide; every head"
                f" caches keys and values of its own, in 16 bits. {p.requests} requests of {p.tokens:,} tokens are"
                " running. How large is their cache?"
            ),
        ),
        Step(
            drill="kv-whole-requests",
            numbers=lambda p: p,
            text=lambda p: (
                f"Now with GQA: {p.kv_heads} KV heads for the same {p.query_heads} query heads. ({p.layers} layers,"
                f" {p.head_dim} wide, 16 bits, {p.requests} requests of {p.tokens:,} tokens.) How large is the cache"
                " now?"
            ),
        ),
        Step(
            drill="kv-largest-batch",
            numbers=lambda p: _card(p, "h100-sxm5"),
            text=lambda p: (
                f"The weights take {to_the_byte(p.weights_bytes)}. On an H100 the driver reports"
                f" {to_the_byte(_card(p, 'h100-sxm5').memory_bytes)}, and the engine may use {fmt_percent(p.share)}."
                f" How many whole requests of {p.tokens:,} tokens fit? ({p.layers} layers, {p.kv_heads} KV heads,"
                f" {p.head_dim} wide, 16 bits.)"
            ),
        ),
    ),
    decision=Decision(
        drill="kv-largest-batch",
        text=lambda p: (
            f"{p.users} such requests are to run at once, on one card. So which is the smallest that you would buy?"
        ),
        options=lambda p: tuple(
            Option(key=key, text=f"{catalogued.part(key).name}, {_gb(_card(p, key).memory_bytes)} usable")
            for key in BY_MEMORY
        ),
        right=_smallest_card,
        because=lambda p: (
            "They hold "
            + ", ".join(
                f"{catalogued.part(key).name}: {value_of('kv-largest-batch', _card(p, key)):.0f}" for key in BY_MEMORY
            )
            + "."
        ),
    ),
)

# --- model states, and the stage to shard them by ------------------------------------------------

STAGES = {0: "no sharding", 1: "ZeRO stage 1", 2: "ZeRO stage 2", 3: "ZeRO stage 3"}


def _draw_states(rng: random.Random) -> Draw:
    billions = rng.choice((2, 7, 8, 13, 14, 30, 70))
    return drawn(
        parameters=billions * billion,
        name=f"A model of {billions} billion",
        memory_bytes=catalogued.part("h100-sxm5")["usable_bytes"],
    )


def _states(p: Draw, stage: int) -> float:
    buckets = ParameterBuckets.plain(p.parameters)
    return model_states(parameters=buckets, recipe="zero-paper", zero_stage=stage, dp=64, tp=1, pp=1).total_bytes


STATES = Chain(
    key="states",
    title="A training run",
    draw=_draw_states,
    steps=(
        Step(
            drill="memory-model-states",
            numbers=lambda p: changed(p, dp=1),
            text=lambda p: (
                f"{p.name} parameters trains with fp16 weights and gradients and fp32 Adam with a master copy. How many"
                " bytes of model states is that, on one GPU?"
            ),
        ),
        Step(
            drill="memory-zero-2",
            numbers=lambda p: changed(p, dp=8),
            text=lambda p: (
                f"Now on 8 GPUs with ZeRO stage 2: gradients and update are sharded ({p.parameters / billion:g} billion"
                " parameters). How much per GPU?"
            ),
        ),
        Step(
            drill="memory-zero-2",
            numbers=lambda p: changed(p, dp=64),
            text=lambda p: (
                f"Now at 64 GPUs, stage 2 still ({p.parameters / billion:g} billion parameters). How much per GPU?"
            ),
        ),
    ),
    decision=Decision(
        drill="memory-zero-2",
        text=lambda p: (
            f"Activations need half of each H100 ({_gb(p.memory_bytes)} usable), the states of"
            f" {p.parameters / billion:g} billion parameters may have the other. Each stage costs more waiting than the"
            " one before. So what do you run on the 64 GPUs?"
        ),
        options=lambda p: tuple(Option(key=str(stage), text=text) for stage, text in STAGES.items()),
        right=lambda p: str(next(stage for stage in STAGES if _states(p, stage) <= p.memory_bytes / 2)),
        because=lambda p: (
            "Per GPU: "
            + ", ".join(f"{text} {_gb(_states(p, stage))}" for stage, text in STAGES.items())
            + f"; half is {_gb(p.memory_bytes / 2)}."
        ),
    ),
)
