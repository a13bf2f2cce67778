"""Drills on capacity and cost: how many replicas, what a million tokens costs, and when a machine of one's own
pays.
"""

import random

from threeloops.drills.engine.drill import Derivation, Draw, Drill, Slip, Taught, drawn
from threeloops.product_loop import prices, serving

TAUGHT = Taught("product", "Capacity and cost")
HOURS, MILLION = 24, 1e6
REQUESTS = 1000  # of a bill

# --- replicas ------------------------------------------------------------------------------------


def _replicas(p: Draw, **changes: float) -> float:
    values = {"requests_per_s": p.rate, "seconds": p.seconds, "slots": p.slots, "headroom": p.headroom} | changes
    return float(serving.replicas(**values))


def _count_replicas(p: Draw) -> float:
    """Seat everybody who is inside; open another replica when the seats that may be taken are."""
    free, opened = 0, 0
    for _request in range(round(p.rate * p.seconds)):
        if free == 0:
            opened += 1
            free = sum(1 for slot in range(p.slots) if slot < round(p.slots * (1 - p.headroom)))
        free -= 1
    return float(opened)


REPLICAS = Drill(
    key="serving-replicas",
    taught=TAUGHT,
    title="How many copies to rent",
    unit="",
    whole="up",
    target_s=90,
    draw=lambda rng: drawn(
        rate=rng.randrange(170, 420, 10),
        seconds=rng.choice((5.5, 6.5, 7.5, 8.5)),
        slots=rng.choice((36, 40, 48)),
        headroom=rng.choice((0.3, 0.35, 0.4)),
    ),
    small=lambda rng: drawn(
        rate=rng.choice((9, 11)),
        seconds=rng.choice((8.0, 9.0)),
        slots=rng.choice((10, 20)),
        headroom=rng.choice((0.3, 0.4)),
    ),
    prompt=lambda p: (
        f"At peak {p.rate} requests arrive per second, and each is inside for {p.seconds:g} s. A replica has {p.slots}"
        f" slots, of which {100 * p.headroom:g} % shall stay free for bursts. How many whole replicas do you need?"
    ),
    derive=lambda p: Derivation(
        value=_replicas(p),
        formula="⌈requests per second × seconds / (slots × (1 − headroom))⌉",
        substitution=f"ceil({p.rate} × {p.seconds} / ({p.slots} × (1 − {p.headroom})) − 0.000001)",
        source="Little, Operations Research 9(3), 1961, doi:10.1287/opre.9.3.383 (requests inside = rate × time)",
    ),
    count=_count_replicas,
    prerequisites=("serving-in-flight",),
    slips=(
        Slip("no-headroom", lambda p: _replicas(p, headroom=0)) | "You filled every slot. Some were to stay free.",
        Slip("headroom-added", lambda p: p.rate * p.seconds / p.slots * (1 + p.headroom))
        | "You added the headroom on top. It is a share of the slots, not of the load.",
        Slip("no-time", lambda p: p.rate / (p.slots * (1 - p.headroom)))
        | "You seated those who come in one second. They stay for longer.",
        Slip("wrong-share", lambda p: p.rate * p.seconds / (p.slots * p.headroom))
        | "You used the slots that shall stay free.",
    ),
)

# --- dollars per million tokens ------------------------------------------------------------------


def _price(p: Draw, **changes: float) -> float:
    return serving.dollars_per_million_tokens(
        **({"dollars_per_hour": p.gpus * p.cents / 100, "tokens_per_s": p.rate, "busy_share": p.busy} | changes)
    )


def _count_price(p: Draw) -> float:
    """Let an hour pass second by second, idle ones at its end, and share the rent among the tokens made."""
    tokens = sum(p.rate for second in range(3600) if second < round(3600 * p.busy))
    return float(p.gpus * p.cents / 100 / tokens * MILLION)


PRICE = Drill(
    key="serving-price-per-million",
    taught=TAUGHT,
    title="What a million tokens costs",
    unit="dollar",
    target_s=90,
    draw=lambda rng: drawn(
        cents=rng.randrange(190, 420, 10),
        gpus=rng.choice((2, 4)),
        rate=rng.randrange(2100, 4800, 100),
        busy=rng.choice((0.3, 0.35, 0.4, 0.55, 0.6, 0.65)),
    ),
    small=lambda rng: drawn(
        cents=rng.choice((200, 300)), gpus=rng.choice((2, 3)), rate=rng.choice((5, 7)), busy=rng.choice((0.25, 0.6))
    ),
    prompt=lambda p: (
        f"A replica of {p.gpus} GPUs makes {p.rate:,} tokens per second while it has work, which is {100 * p.busy:g} %"
        f" of the time. A GPU costs {p.cents / 100:.2f} dollars an hour, busy or not. What does a million tokens cost?"
    ),
    derive=lambda p: Derivation(
        value=_price(p),
        formula="GPUs × price per hour / (tokens per second × 3600 × busy share) × 1,000,000",
        substitution=f"{p.gpus} × {p.cents} / 100 / ({p.rate} × 3600 × {p.busy}) × 1000000",
        source=(
            "arithmetic of rented machines; see Pope et al., 2022, arXiv:2211.05102, figure 1 (cost in chip-seconds per"
            " token)"
        ),
    ),
    count=_count_price,
    slips=(
        Slip("always-busy", lambda p: _price(p, busy_share=1))
        | "You let it work around the clock. The idle hours are paid for, too.",
        Slip("share-multiplied", lambda p: _price(p, busy_share=1) * p.busy)
        | "You paid for the busy time only. The rent is due for all of it.",
        Slip("one-gpu", lambda p: _price(p) / p.gpus) | "You paid for one GPU. The replica has more.",
        Slip("per-minute", lambda p: 60 * _price(p)) | "You gave the hour 60 seconds.",
    ),
)

# --- rent or buy by the token --------------------------------------------------------------------


def _small_own(rng: random.Random) -> Draw:
    # dollars per token, for once
    return drawn(
        gpus=rng.choice((2, 3)), cents=rng.choice((200, 300)), price_cents=100 * MILLION * rng.choice((2, 3, 4))
    )


def _own(p: Draw, **changes: float) -> float:
    return serving.break_even_tokens_per_day(
        **({"dollars_per_hour": p.gpus * p.cents / 100, "dollars_per_million": p.price_cents / 100} | changes)
    )


def _count_own(p: Draw) -> float:
    """Pay token by token until the bill has reached the rent of a day."""
    rent = sum(p.cents for _gpu in range(p.gpus) for _hour in range(HOURS))
    bill, tokens = 0.0, 0
    while bill < rent:
        bill, tokens = bill + p.price_cents / MILLION, tokens + 1
    return float(tokens)


OWN = Drill(
    key="serving-rent-or-api",
    taught=TAUGHT,
    title="From how many tokens on",
    unit="token",
    target_s=90,
    draw=lambda rng: drawn(
        gpus=rng.choice((2, 4, 8)), cents=rng.randrange(190, 420, 10), price_cents=rng.randrange(35, 95, 5)
    ),
    small=_small_own,
    prompt=lambda p: (
        f"A provider asks {p.price_cents / 100:.2f} dollars for a million tokens. The same model runs on {p.gpus}"
        f" rented GPUs at {p.cents / 100:.2f} dollars an hour each, day and night, and they can make more than enough."
        " From how many tokens a day on is renting cheaper?"
    ),
    derive=lambda p: Derivation(
        value=_own(p),
        formula="GPUs × price per hour × 24 / price per million × 1,000,000",
        substitution=f"{p.gpus} × {p.cents} × 24 / {p.price_cents} × 1000000",
        source=(
            "break-even of a fixed and a proportional cost; see Pope et al., 2022, arXiv:2211.05102, figure 1 (cost in"
            " chip-seconds per token)"
        ),
    ),
    count=_count_own,
    prerequisites=("serving-price-per-million",),
    slips=(
        Slip("one-hour", lambda p: _own(p) / HOURS) | "That is the rent of one hour. Tokens are counted per day.",
        Slip("one-gpu", lambda p: _own(p) / p.gpus) | "You rented one GPU. The model needs more.",
        Slip("inverted", lambda p: p.price_cents / (p.gpus * p.cents * HOURS) * MILLION)
        | "You divided the other way round. The dearer the provider, the sooner renting pays.",
        Slip("working-day", lambda p: _own(p) / 3) | "You rented for a working day. The machines run day and night.",
    ),
)

# --- a request with a cached beginning -----------------------------------------------------------


def _draw_bill(rng: random.Random) -> Draw:
    prompt = rng.randrange(3000, 6000, 200)
    return drawn(
        prompt=prompt,
        cached=prompt * rng.choice((6, 7)) // 10,
        output=rng.randrange(200, 340, 10),
        price_in=rng.choice((0.6, 0.8, 1.2)),
        times=rng.choice((4, 5)),
        left=0.1,
    )


def _bill(p: Draw, *, prompt: float, output: float) -> float:
    """Dollars for a thousand requests of so many tokens, counted at the prices of the prompt and of the answer."""
    return float(REQUESTS * (prompt * p.price_in + output * p.price_in * p.times) / MILLION)


def _count_bill(p: Draw) -> float:
    """Price every token of every request."""
    total = 0.0
    for _request in range(REQUESTS):
        for place in range(p.prompt):
            total += p.price_in * (p.left if place < p.cached else 1)
        total += sum(p.times * p.price_in for _token in range(p.output))
    return total / MILLION


BILL = Drill(
    key="serving-request-bill",
    taught=TAUGHT,
    title="What a thousand questions cost",
    unit="dollar",
    target_s=120,
    draw=_draw_bill,
    small=lambda rng: drawn(
        prompt=rng.choice((30, 40)),
        cached=rng.choice((20, 24)),
        output=rng.choice((5, 6)),
        price_in=rng.choice((2, 3)),
        times=4,
        left=0.1,
    ),
    prompt=lambda p: (
        f"A provider asks {p.price_in:g} dollars per million prompt tokens, {p.price_in * p.times:g} dollars per"
        f" million answer tokens, and for prompt tokens that it still has in its cache {100 * p.left:g} % of their"
        f" price. A request has a prompt of {p.prompt:,} tokens, of which {p.cached:,} are in the cache, and an answer"
        f" of {p.output}. What do one thousand such requests cost?"
    ),
    derive=lambda p: Derivation(
        value=REQUESTS
        * prices.request_dollars(
            prompt_tokens=p.prompt,
            cached_tokens=p.cached,
            output_tokens=p.output,
            prompt_dollars_per_million=p.price_in,
            output_dollars_per_million=p.price_in * p.times,
            read_price=p.left,
        ),
        formula="1000 × ((prompt − cached + 10 % of cached) × prompt price + answer × answer price) / 1,000,000",
        substitution=(
            f"1000 × (({p.prompt} − {p.cached} + {p.left} × {p.cached}) × {p.price_in} + {p.output} × {p.price_in} ×"
            f" {p.times}) / 1000000"
        ),
        source=(
            "prices as stated; for why an answer token costs more than one of the prompt see Pope et al., 2022,"
            " arXiv:2211.05102, section 2"
        ),
    ),
    count=_count_bill,
    prerequisites=("serving-prefix-savings",),
    slips=(
        Slip("no-cache", lambda p: _bill(p, prompt=p.prompt, output=p.output))
        | "You paid for the whole prompt. A part of it is still in the cache.",
        Slip("cached-free", lambda p: _bill(p, prompt=p.prompt - p.cached, output=p.output))
        | "You got what is in the cache for nothing. It has a price, if a small one.",
        Slip("one-price", lambda p: _bill(p, prompt=p.prompt - p.cached + p.left * p.cached, output=p.output / p.times))
        | "You paid the prompt's price for the answer.",
        Slip("answer-forgotten", lambda p: _bill(p, prompt=p.prompt - p.cached + p.left * p.cached, output=0))
        | "You paid for the prompts. The answers are billed, too.",
    ),
)

DRILLS = (REPLICAS, PRICE, OWN, BILL)
