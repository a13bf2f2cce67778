"""Drills on tenants: token buckets, fair shares, clients that try again."""

import random

from threeloops.drills.engine.drill import Derivation, Draw, Drill, Slip, Taught, changed, drawn
from threeloops.product_loop.operating import tenants
from threeloops.units import minute, thousand

TAUGHT = Taught("product", "Queues")

SOURCE_BUCKET = "by definition, 2026: what a bucket holds, and what comes in"
SOURCE_FAIR = "by definition, 2026: max-min fairness"
SOURCE_RETRIES = (
    "Ulrich, Addressing Cascading Failures, in Site Reliability Engineering, Google, 2016, chapter 22 (retries as load)"
)

# --- what a bucket lets through ------------------------------------------------------------------


def _draw_bucket(rng: random.Random) -> Draw:
    return drawn(
        depth=rng.randrange(20, 400, 5) * thousand,
        per_minute=rng.randrange(30, 900, 10) * thousand,
        window_s=rng.randrange(15, 170, 5),
        tenants=rng.randrange(3, 20),
    )


def _through(p: Draw, *, depth: float, refill: float) -> float:
    return float(p.tenants * tenants.bucket_most(depth=depth, refill_per_s=refill, window_s=p.window_s))


def _count_bucket(p: Draw) -> float:
    """Every tenant takes whatever its bucket holds, second by second."""
    taken = 0
    for _tenant in range(p.tenants):
        held = p.depth
        for _second in range(p.window_s):
            taken, held = taken + held, p.per_minute // 60
        taken += held
    return float(taken)


BUCKET = Drill(
    key="tenant-burst",
    taught=TAUGHT,
    title="What the limits let through",
    unit="token",
    target_s=80,
    draw=_draw_bucket,
    small=lambda rng: changed(
        _draw_bucket(rng),
        depth=rng.randrange(20, 90),
        per_minute=60 * rng.randrange(2, 9),
        window_s=rng.randrange(4, 20),
    ),
    prompt=lambda p: (
        f"Each of {p.tenants} tenants has a token bucket: it holds {p.depth:,} tokens of the model and is refilled"
        f" with {p.per_minute:,} tokens per minute, steadily. All buckets are full when every tenant begins to send as"
        f" much as it may. How many tokens are let in within the next {p.window_s} s?"
    ),
    derive=lambda p: Derivation(
        value=_through(p, depth=p.depth, refill=p.per_minute / minute),
        formula="tenants × (depth of a bucket + tokens per minute / 60 × seconds)",
        substitution=f"{p.tenants} × ({p.depth} + {p.per_minute} / 60 × {p.window_s})",
        source=SOURCE_BUCKET,
    ),
    count=_count_bucket,
    slips=(
        Slip("refill-only", lambda p: p.tenants * p.per_minute / minute * p.window_s)
        | "You let in what comes into the buckets. They were full before.",
        Slip("depth-only", lambda p: float(p.tenants * p.depth))
        | "You emptied the buckets once. They are refilled meanwhile.",
        Slip("per-minute", lambda p: _through(p, depth=p.depth, refill=p.per_minute))
        | "You took tokens per minute for tokens per second.",
        Slip("one-tenant", lambda p: _through(p, depth=p.depth, refill=p.per_minute / minute) / p.tenants)
        | "That is one tenant. Nothing keeps them from coming together.",
    ),
)

# --- how long a request waits for its bucket -----------------------------------------------------


def _draw_wait(rng: random.Random) -> Draw:
    return drawn(
        per_minute=rng.randrange(30, 300, 10) * thousand,
        left_percent=rng.randrange(4, 25),
        depth=rng.randrange(80, 130, 5) * thousand,
        prompt=rng.randrange(31, 72) * thousand,
        answer=rng.randrange(21, 80) * 100,
    )


def _left(p: Draw) -> float:
    return float(p.depth * p.left_percent / 100.0)


def _derive_wait(p: Draw) -> Derivation:
    return Derivation(
        value=tenants.bucket_wait_s(wanted=p.prompt + p.answer, left=_left(p), refill_per_s=p.per_minute / minute),
        formula="(prompt + most that the answer may have − tokens in the bucket) / (tokens per minute / 60)",
        substitution=f"({p.prompt} + {p.answer} − {p.depth} × {p.left_percent} / 100) / ({p.per_minute} / 60)",
        source=SOURCE_BUCKET,
    )


def _count_wait(p: Draw) -> float:
    """A token into the bucket after another, until the request can pay."""
    held, waited = _left(p), 0
    while held < p.prompt + p.answer:
        held += 1
        waited += 1
    return float((waited - (held - p.prompt - p.answer)) * minute / p.per_minute)


WAIT = Drill(
    key="tenant-wait",
    taught=TAUGHT,
    title="Retry after how many seconds?",
    unit="s",
    target_s=90,
    draw=_draw_wait,
    small=_draw_wait,
    wanted=lambda p: _left(p) < 0.7 * p.prompt and p.prompt + p.answer < p.depth,
    prompt=lambda p: (
        f"A tenant may use {p.per_minute:,} tokens per minute, kept in a token bucket of {p.depth:,} that is refilled"
        f" steadily; {p.left_percent} % of it are left. A request comes with a prompt of {p.prompt:,} tokens and"
        f" max_tokens {p.answer:,}; it is charged for both and let in once the bucket holds that much. After how long?"
    ),
    derive=_derive_wait,
    count=_count_wait,
    slips=(
        Slip("bucket-ignored", lambda p: (p.prompt + p.answer) / p.per_minute * minute)
        | "You waited for all of its tokens. Some are in the bucket.",
        Slip("prompt-only", lambda p: (p.prompt - _left(p)) / p.per_minute * minute)
        | "You charged the prompt alone. The answer may be as long as max_tokens, and is charged for that.",
        Slip("until-full", lambda p: (p.depth - _left(p)) / p.per_minute * minute)
        | "You waited until the bucket was full. It need only hold this request.",
        Slip("minutes", lambda p: _derive_wait(p).value / minute) | "Those are minutes. A client is told seconds.",
    ),
)

# --- fair shares ---------------------------------------------------------------------------------


def _draw_fair(rng: random.Random) -> Draw:
    return drawn(
        capacity=rng.randrange(40, 120) * thousand,
        small=rng.randrange(15, 80) * 100,
        middle=rng.randrange(80, 200) * 100,
        large=rng.randrange(300, 900) * 100,
        many=rng.randrange(2, 5),
    )


def _demands(p: Draw) -> list[float]:
    return [p.small, p.small, p.middle, *[p.large] * p.many]


def _count_fair(p: Draw) -> float:
    """A quarter of an equal share of what is left to each that still wants some, over and over."""
    demands, left = _demands(p), float(p.capacity)
    given = [0.0] * len(demands)
    for _ in range(4000):
        wanting = [place for place, demand in enumerate(demands) if demand - given[place] > 1e-9]
        each = left / len(wanting) / 4
        for place in wanting:
            more = min(each, demands[place] - given[place])
            given[place] += more
            left -= more
        if left < 1e-7:
            break
    return given[-1]


FAIR = Drill(
    key="tenant-fair-share",
    taught=TAUGHT,
    title="What modest tenants leave",
    unit="token/s",
    target_s=100,
    draw=_draw_fair,
    small=_draw_fair,
    wanted=lambda p: (
        p.middle < (p.capacity - 2 * p.small - p.middle) / p.many < 0.9 * p.large
        and p.middle < (p.capacity - 2 * p.small) / (p.many + 1)
    ),
    prompt=lambda p: (
        f"A pool makes {p.capacity:,} tokens/s and is shared by max-min fairness: no tenant gets more than it asks"
        f" for, and what is left over is divided evenly. Two tenants ask for {p.small:,} tokens/s each, one for"
        f" {p.middle:,}, and {p.many} for {p.large:,} each. What does one of those {p.many} get?"
    ),
    derive=lambda p: Derivation(
        value=tenants.fair_shares(capacity=p.capacity, demands=_demands(p))[-1],
        formula="(capacity − what the modest ask for) / the others, who each get more than any of those",
        substitution=f"({p.capacity} − 2 × {p.small} − {p.middle}) / {p.many}",
        source=SOURCE_FAIR,
    ),
    count=_count_fair,
    slips=(
        Slip("evenly", lambda p: p.capacity / (p.many + 3))
        | "You divided the pool evenly. What modest tenants leave is shared by the others.",
        Slip("by-demand", lambda p: p.capacity * p.large / sum(_demands(p)))
        | "You shared in proportion to what was asked for. A tenant that asks for more would get more.",
        Slip("as-asked", lambda p: float(p.large)) | "You gave them what they asked for. There is not enough.",
        Slip("only-the-smallest", lambda p: (p.capacity - 2 * p.small) / (p.many + 1))
        | "You stopped after the smallest demands. One more asks for less than an equal share.",
    ),
)

# --- retries -------------------------------------------------------------------------------------


def _draw_retries(rng: random.Random) -> Draw:
    return drawn(rate=rng.randrange(120, 990, 10), percent=rng.randrange(48, 90), retries=rng.randrange(2, 5))


def _derive_retries(p: Draw) -> Derivation:
    share = f"({p.percent} / 100)"
    return Derivation(
        value=p.rate * tenants.attempts_per_request(failing=p.percent / 100.0, retries=p.retries),
        formula="rate × (1 − failing^(retries + 1)) / (1 − failing)",
        substitution=f"{p.rate} × (1 − {share}**({p.retries} + 1)) / (1 − {share})",
        source=SOURCE_RETRIES,
    )


def _count_retries(p: Draw) -> float:
    """The clients that are still trying, round after round."""
    trying, attempts = float(p.rate), 0.0
    for _round in range(p.retries + 1):
        attempts += trying
        trying *= p.percent / 100.0
    return attempts


RETRIES = Drill(
    key="tenant-retry-load",
    taught=TAUGHT,
    title="Clients that try again",
    unit="",
    target_s=90,
    draw=_draw_retries,
    small=lambda rng: _draw_retries(rng),
    prompt=lambda p: (
        f"A service gets {p.rate} new requests/s. It is overloaded, and {p.percent} % of all attempts fail, each"
        f" independently. A client whose attempt fails tries again at once, at most {p.retries} times. How many"
        " attempts reach the service per second?"
    ),
    derive=_derive_retries,
    count=_count_retries,
    slips=(
        Slip("all-retries", lambda p: float(p.rate * (p.retries + 1)))
        | "You let every request use all of its retries. Those that succeed before do not try again.",
        Slip("one-retry", lambda p: p.rate * (1 + p.percent / 100.0))
        | "You let what fails try once more. A second attempt can fail, too.",
        Slip("without-end", lambda p: p.rate / (1 - p.percent / 100.0))
        | "You let clients try until they succeed. They give up.",
        Slip("retries-only", lambda p: _derive_retries(p).value - p.rate)
        | "Those are the retries. The first attempts come, too.",
        Slip("failing-each-time", lambda p: p.rate * (1 + p.retries * p.percent / 100.0))
        | "You sent the same share again at every retry. Fewer are left each time.",
    ),
)

DRILLS = (BUCKET, WAIT, FAIR, RETRIES)
