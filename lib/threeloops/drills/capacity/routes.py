"""Drills on which copy, and which pool, gets a request."""

import itertools
import random

from threeloops.drills.engine.drill import Derivation, Draw, Drill, Slip, Taught, drawn
from threeloops.drills.engine.searches import holds_up_to
from threeloops.product_loop.experts import pool_ratio
from threeloops.product_loop.operating import prefix_routes
from threeloops.units import thousand

TAUGHT = Taught("product", "Capacity and cost")

SOURCE_ROUTES = (
    "by definition, 2026; why prefixes decide: Ray Serve LLM, PrefixCacheAffinityRouter, documentation, 2026"
)
SOURCE_POOLS = (
    "by definition, 2026: the smaller pool decides; two pools as in DeepSeek-AI, open-infra-index, day 6, 2025"
)

# --- a conversation that is routed at random -----------------------------------------------------


def _cached(p: Draw) -> float:
    return prefix_routes.random_cached_turns(turns=p.turns, copies=p.copies)


def _derive_random(p: Draw) -> Derivation:
    miss = f"(1 − 1 / {p.copies})"
    return Derivation(
        value=(p.turns - _cached(p)) * p.turn_tokens,
        formula="tokens of a turn × (1 − q) × (1 − (1 − q)^turns) / q, with q = 1 / copies",
        substitution=f"{p.turn_tokens} × {miss} × (1 − {miss}**{p.turns}) × {p.copies}",
        source=SOURCE_ROUTES,
    )


def _count_random(p: Draw) -> float:
    """Every way in which the turns can have gone, seen from the copy that is chosen now."""
    again = ways = 0
    for visits in itertools.product(range(p.copies), repeat=p.turns):
        known = max((turn + 1 for turn, copy in enumerate(visits) if copy == 0), default=0)
        again += p.turns - known
        ways += 1
    return float(again * p.turn_tokens / ways)


RANDOM = Drill(
    key="route-at-random",
    taught=TAUGHT,
    title="A conversation that changes copies",
    unit="token",
    target_s=150,
    draw=lambda rng: drawn(
        turns=rng.randrange(4, 15), copies=rng.randrange(3, 13), turn_tokens=rng.randrange(310, 1900, 10)
    ),
    small=lambda rng: drawn(
        turns=rng.randrange(2, 7), copies=rng.randrange(2, 5), turn_tokens=rng.randrange(310, 1900, 10)
    ),
    prompt=lambda p: (
        f"{p.copies} copies of a model keep everything that they have read and written. A load balancer sends each"
        " turn of a conversation to one of them at random, with the whole conversation as its prompt."
        f" {p.turns} turns of {p.turn_tokens} tokens each (question and answer) lie behind; now another turn comes."
        " How many of those earlier tokens must the copy that is chosen read again, on average?"
    ),
    derive=_derive_random,
    count=_count_random,
    slips=(
        Slip("seen-or-not", lambda p: p.turns * p.turn_tokens * (1 - 1 / p.copies) ** p.turns)
        | "You asked whether the copy ever saw this conversation. It matters how much of it was there then.",
        Slip("its-own-turns", lambda p: p.turns * p.turn_tokens * (1 - 1 / p.copies))
        | "You let a copy know only its own turns. With each it read the whole conversation up to there.",
        Slip("cached", lambda p: _cached(p) * p.turn_tokens)
        | "That is what the copy has already. How much is missing?",
        Slip("everything", lambda p: float(p.turns * p.turn_tokens))
        | "You read everything again. Some turns went to this copy, on average.",
        Slip("one-turn", lambda p: p.turn_tokens * (1 - 1 / p.copies))
        | "You read at most one turn again. The last visit may be several turns ago.",
    ),
)

# --- a queue or a prefix -------------------------------------------------------------------------


def _draw_queue(rng: random.Random) -> Draw:
    return drawn(
        prompt=rng.randrange(9000, 60000, 100), percent=rng.randrange(55, 97), waiting=rng.randrange(310, 1300, 10)
    )


def _cached_tokens(p: Draw) -> int:
    return int(p.prompt * p.percent // 100)


def _count_queue(p: Draw) -> float:
    """A request more in the queue, until what is read before the answer is more than the whole prompt elsewhere."""
    requests = 0
    while requests * p.waiting + p.prompt - _cached_tokens(p) <= p.prompt:
        requests += 1
    return float(requests)


QUEUE = Drill(
    key="route-queue-or-prefix",
    taught=TAUGHT,
    title="The copy that knows it is busy",
    unit="",
    whole="up",
    target_s=90,
    draw=_draw_queue,
    small=_draw_queue,
    wanted=lambda p: _cached_tokens(p) % p.waiting > 0 and _cached_tokens(p) > 8 * p.waiting,
    prompt=lambda p: (
        f"A prompt of {p.prompt:,} tokens comes, and one copy has {p.percent} % of it in its cache. Requests wait"
        f" there, each with {p.waiting} prompt tokens that are not cached. Another copy is idle and has nothing of"
        " this prompt. Both read prompts one after the other, at the same rate. From how many waiting requests on"
        " does the idle copy give the first token sooner?"
    ),
    derive=lambda p: Derivation(
        value=float(prefix_routes.queue_to_leave(cached_tokens=_cached_tokens(p), waiting_tokens=p.waiting)),
        formula="floor(cached tokens / tokens of a waiting request) + 1",
        substitution=f"floor({p.prompt} × {p.percent} / 100 / {p.waiting}) + 1",
        source=SOURCE_ROUTES,
    ),
    count=_count_queue,
    slips=(
        Slip("whole-prompt", lambda p: float(p.prompt // p.waiting + 1))
        | "You compared the queue with the whole prompt. The copy that knows it still reads the rest.",
        Slip("the-rest", lambda p: float((p.prompt - _cached_tokens(p)) // p.waiting + 1))
        | "You compared the queue with what is not cached. Both copies read that.",
        Slip("any-queue", lambda p: 1.0)
        | "You left at the first request that waits. The prefix is worth more than that.",
        Slip("tokens", lambda p: float(_cached_tokens(p)))
        | "That is how many tokens may wait. How many requests are they?",
    ),
)

# --- two pools when answers grow -----------------------------------------------------------------


def _draw_pools(rng: random.Random) -> Draw:
    return drawn(
        readers=rng.randrange(5, 15),
        writers=rng.randrange(4, 15),
        read_rate=rng.randrange(31, 80) * thousand,
        write_rate=rng.randrange(31, 90) * 100.0,
        prompt=rng.randrange(900, 2600, 50),
        answer=rng.randrange(250, 900, 10),
        longer=rng.choice((1.5, 2, 2.5, 3)),
    )


def _held(p: Draw, answer: float) -> tuple[float, float]:
    return p.readers * p.read_rate / p.prompt, p.writers * p.write_rate / answer


def _served(p: Draw, answer: float) -> float:
    rates = pool_ratio.NodeRates(prefill_tokens_per_s=p.read_rate, decode_tokens_per_s=p.write_rate)
    one = pool_ratio.nodes_needed(rates, input_tokens_per_s=p.prompt, output_tokens_per_s=answer)
    return pool_ratio.split_capacity(pool_ratio.PoolNodes(prefill=p.readers, decode=p.writers), needed=one)


def _count_pools(p: Draw) -> float:
    """Between none and many requests per second: halved until one pool has no GPU left."""

    def fits(load: float) -> bool:
        reading, writing = load * p.prompt / p.read_rate, load * p.answer * p.longer / p.write_rate
        return bool(reading <= p.readers and writing <= p.writers)

    return holds_up_to(fits, high=100_000)


POOLS = Drill(
    key="route-two-pools",
    taught=TAUGHT,
    title="Two pools, and answers that grow",
    unit="",
    target_s=120,
    draw=_draw_pools,
    small=_draw_pools,
    wanted=lambda p: _served(p, p.answer * p.longer) > 20 and _held(p, p.answer * p.longer)[1] < _held(p, p.answer)[0],
    prompt=lambda p: (
        f"A service has {p.readers} GPUs that read prompts, {p.read_rate:,.0f} tokens/s each, and {p.writers} that"
        f" decode, {p.write_rate:,.0f} tokens/s each. Prompts have {p.prompt} tokens; answers had {p.answer} until a"
        f" new model began to reason and made them {p.longer:g} times as long. How many requests per second do the"
        " pools serve now at most?"
    ),
    derive=lambda p: Derivation(
        value=_served(p, p.answer * p.longer),
        formula="min(readers × rate / prompt, writers × rate / (answer × factor))",
        substitution=(
            f"min({p.readers} × {p.read_rate} / {p.prompt}, {p.writers} × {p.write_rate} / ({p.answer} × {p.longer}))"
        ),
        source=SOURCE_POOLS,
    ),
    count=_count_pools,
    slips=(
        Slip("readers", lambda p: _held(p, p.answer * p.longer)[0])
        | "That is what the readers could take. The other pool runs out first.",
        Slip("before", lambda p: _held(p, p.answer)[1])
        | "That is what the decoding pool served before. Its answers are longer now.",
        Slip("added", lambda p: sum(_held(p, p.answer * p.longer)))
        | "You added the pools. Every request needs both of them.",
        Slip(
            "pooled", lambda p: (p.readers * p.read_rate + p.writers * p.write_rate) / (p.prompt + p.answer * p.longer)
        )
        | "You took both pools as one. GPUs that read do not decode here.",
    ),
)

DRILLS = (RANDOM, QUEUE, POOLS)
