"""Drills on tenants: token buckets, fair shares, clients that try again."""

import random

from threeloops.drills.engine.drill import Derivation, Draw, Drill, Slip, Taught, drawn
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


def _small_bucket(rng: random.Random) -> Draw:
    p = _draw_bucket(rng)
    p.depth, p.per_minute, p.window_s = rng.randrange(20, 90), 60 * rng.randrange(2, 9), rng.randrange(4, 20)
    return p


def _through(p: Draw, *, depth: float, refill: float) -> float:
    return float(p.tenants * tenants.bucket_most(depth=depth, refill_per_s=refill, window_s=p.window_s))


def _derive_bucket(p: Draw) -> Derivation:
    return Derivation(
        value=_through(p, depth=p.depth, refill=p.per_minute / minute),
        formula="tenants × (depth of a bucket + tokens per minute / 60 × seconds)",
        substitution=f"{p.tenants} × ({p.depth} + {p.per_minute} / 60 × {p.window_s})",
        source=SOURCE_BUCKET,
    )


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
    small=_small_bucket,
    prompt=lambda p: (
        f"Each of {p.tenants} tenants has a token bucket: it holds {p.depth:,} tokens of the model and is refilled"
        f" with {p.per_minute:,} tokens per minute, steadily. All buckets are full when every tenant begins to send as"
        f" much as it may. How many tokens are let in within the next {p.window_s} s?"
    ),
    derive=_derive_bucket,
    count=_count_bucket,
    slips=(
        Slip(
            key="refill-only",
            wrong=lambda p: p.tenants * p.per_minute / minute * p.window_s,
            story="You let in what comes into the buckets. They were full before.",
        ),
        Slip(
            key="depth-only",
            wrong=lambda p: float(p.tenants * p.depth),
            story="You emptied the buckets once. They are refilled meanwhile.",
        ),
        Slip(
            key="per-minute",
            wrong=lambda p: _through(p, depth=p.depth, refill=p.per_minute),
            story="You took tokens per minute for tokens per second.",
        ),
        Slip(
            key="one-tenant",
            wrong=lambda p: _through(p, depth=p.depth, refill=p.per_minute / minute) / p.tenants,
            story="That is one tenant. Nothing keeps them from coming together.",
        ),
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
        Slip(
            key="bucket-ignored",
            wrong=lambda p: (p.prompt + p.answer) / p.per_minute * minute,
            story="You waited for all of its tokens. Some are in the bucket.",
        ),
        Slip(
            key="prompt-only",
            wrong=lambda p: (p.prompt - _left(p)) / p.per_minute * minute,
            story="You charged the prompt alone. The answer may be as long as max_tokens, and is charged for that.",
        ),
        Slip(
            key="until-full",
            wrong=lambda p: (p.depth - _left(p)) / p.per_minute * minute,
            story="You waited until the bucket was full. It need only hold this request.",
        ),
        Slip(
            key="minutes",
            wrong=lambda p: _derive_wait(p).value / minute,
            story="Those are minutes. A client is told seconds.",
        ),
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


def _derive_fair(p: Draw) -> Derivation:
    return Derivation(
        value=tenants.fair_shares(capacity=p.capacity, demands=_demands(p))[-1],
        formula="(capacity − what the modest ask for) / the others, who each get more than any of those",
        substitution=f"({p.capacity} − 2 × {p.small} − {p.middle}) / {p.many}",
        source=SOURCE_FAIR,
    )


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
    derive=_derive_fair,
    count=_count_fair,
    slips=(
        Slip(
            key="evenly",
            wrong=lambda p: p.capacity / (p.many + 3),
            story="You divided the pool evenly. What modest tenants leave is shared by the others.",
        ),
        Slip(
            key="by-demand",
            wrong=lambda p: p.capacity * p.large / sum(_demands(p)),
            story="You shared in proportion to what was asked for. A tenant that asks for more would get more.",
        ),
        Slip(
            key="as-asked",
            wrong=lambda p: float(p.large),
            story="You gave them what they asked for. There is not enough.",
        ),
        Slip(
            key="only-the-smallest",
            wrong=lambda p: (p.capacity - 2 * p.small) / (p.many + 1),
            story="You stopped after the smallest demands. One more asks for less than an equal share.",
        ),
    ),
)

# --- retries -------------------------------------------------------------------------------------


def _draw_retries(rng: random.Random) -> Draw:
    return drawn(rate=rng.randrange(120, 990, 10), percent=rng.randrange(48, 90), retries=rng.randrange(2, 5))


def _small_retries(rng: random.Random) -> Draw:
    return _draw_retries(rng)


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
    small=_small_retries,
    prompt=lambda p: (
        f"A service gets {p.rate} new requests/s. It is overloaded, and {p.percent} % of all attempts fail, each"
        f" independently. A client whose attempt fails tries again at once, at most {p.retries} times. How many"
        " attempts reach the service per second?"
    ),
    derive=_derive_retries,
    count=_count_retries,
    slips=(
        Slip(
            key="all-retries",
            wrong=lambda p: float(p.rate * (p.retries + 1)),
            story="You let every request use all of its retries. Those that succeed before do not try again.",
        ),
        Slip(
            key="one-retry",
            wrong=lambda p: p.rate * (1 + p.percent / 100.0),
            story="You let what fails try once more. A second attempt can fail, too.",
        ),
        Slip(
            key="without-end",
            wrong=lambda p: p.rate / (1 - p.percent / 100.0),
            story="You let clients try until they succeed. They give up.",
        ),
        Slip(
            key="retries-only",
            wrong=lambda p: _derive_retries(p).value - p.rate,
            story="Those are the retries. The first attempts come, too.",
        ),
        Slip(
            key="failing-each-time",
            wrong=lambda p: p.rate * (1 + p.retries * p.percent / 100.0),
            story="You sent the same share again at every retry. Fewer are left each time.",
        ),
    ),
)

DRILLS = (BUCKET, WAIT, FAIR, RETRIES)
