"""Drills on copies that come and versions that go: cold starts, when to order, canaries."""

import math
import random

from threeloops.drills.engine.drill import Derivation, Draw, Drill, Slip, Taught, changed, drawn
from threeloops.drills.engine.searches import holds_up_to
from threeloops.product_loop.operating import canaries, scaling_out
from threeloops.units import GB, minute, thousand

TAUGHT = Taught("product", "Capacity and cost")

SOURCE_COPIES = "by definition, 2026: bytes over the rate that is left for each, and a load that grows steadily"
SOURCE_CHANCE = "by definition, 2026: the probability that none of n requests fails"

# --- a cold start --------------------------------------------------------------------------------


def _draw_cold(rng: random.Random) -> Draw:
    return drawn(
        weights_gb=rng.choice((141, 235, 405, 671, 810)),
        gbit_per_s=rng.choice((40, 50, 80, 100)),
        starting=rng.choice((3, 4, 5, 13, 14, 15, 17, 18)),
        other_s=rng.randrange(37, 140),
    )


def _cold(p: Draw, *, starting: int, other_s: float, bits: float = 8) -> float:
    return scaling_out.cold_start_s(
        weights_bytes=p.weights_gb * GB, store_bytes_per_s=p.gbit_per_s * GB / bits, starting=starting, other_s=other_s
    )


def _count_cold(p: Draw) -> float:
    """A gigabyte after another leaves the store, for each copy in turn, until all have theirs."""
    sent_s = 0.0
    for _gigabyte in range(p.weights_gb):
        for _copy in range(p.starting):
            sent_s += 8 / p.gbit_per_s
    return float(p.other_s + sent_s)


COLD = Drill(
    key="scale-cold-start",
    taught=TAUGHT,
    title="Copies that start cold",
    unit="s",
    target_s=90,
    draw=_draw_cold,
    small=lambda rng: changed(_draw_cold(rng), weights_gb=rng.randrange(3, 9), starting=rng.randrange(2, 5)),
    prompt=lambda p: (
        f"A peak comes, and {p.starting} more copies of a model are ordered at once. Each reads {p.weights_gb} GB of"
        f" weights from one store, whose link of {p.gbit_per_s} Gbit/s they share evenly and fill. Machine, container,"
        f" compiling and graphs take {p.other_s} s more, for all copies side by side. After how long do they answer?"
    ),
    derive=lambda p: Derivation(
        value=_cold(p, starting=p.starting, other_s=p.other_s),
        formula="everything else + copies × bytes of weights / (bits per second of the store / 8)",
        substitution=f"{p.other_s} + {p.starting} × {p.weights_gb}e9 / ({p.gbit_per_s}e9 / 8)",
        source=SOURCE_COPIES,
    ),
    count=_count_cold,
    slips=(
        Slip("link-not-shared", lambda p: _cold(p, starting=1, other_s=p.other_s))
        | "You gave every copy the whole link. They read at the same time, from one store.",
        Slip("bits-as-bytes", lambda p: _cold(p, starting=p.starting, other_s=p.other_s, bits=1))
        | "You took the link's bits for bytes.",
        Slip("weights-only", lambda p: _cold(p, starting=p.starting, other_s=0))
        | "You read the weights alone. A copy that has them does not answer yet.",
        Slip("one-after-the-other", lambda p: p.starting * _cold(p, starting=1, other_s=p.other_s))
        | "You let one copy start after the other. Only the link makes them wait for each other.",
    ),
)

# --- when to order -------------------------------------------------------------------------------


def _draw_order(rng: random.Random) -> Draw:
    return drawn(
        copies=rng.randrange(4, 11),
        each_per_s=rng.randrange(31, 69) / 10,
        growth_per_minute=rng.randrange(31, 69) / 10,
        cold_s=rng.randrange(155, 300, 5),
    )


def _order(p: Draw, *, cold_s: float, growth: float, copies: int) -> float:
    return float(copies * p.each_per_s - growth / minute * cold_s)


def _count_order(p: Draw) -> float:
    """Back from the moment when the copies are full, in tenths of a second, to the order."""
    load = p.copies * p.each_per_s
    for _ in range(p.cold_s * 10):
        load -= p.growth_per_minute / 600
    return float(load / (p.copies * p.each_per_s))


ORDER = Drill(
    key="scale-order-at",
    taught=TAUGHT,
    title="When to order the next copy",
    unit="",
    target_s=100,
    draw=_draw_order,
    small=_draw_order,
    wanted=lambda p: (
        0.2 < _order(p, cold_s=p.cold_s, growth=p.growth_per_minute, copies=p.copies) / (p.copies * p.each_per_s) < 0.93
    ),
    prompt=lambda p: (
        f"{p.copies} copies of a model serve {p.each_per_s} requests/s each before their promises break. Every morning"
        f" the load grows by {p.growth_per_minute} requests/s per minute. A copy that is ordered answers after"
        f" {p.cold_s} s. At which load, as a share of what these copies can serve, must the autoscaler order, so"
        " that none is overloaded until the next copy answers?"
    ),
    derive=lambda p: Derivation(
        value=scaling_out.load_to_order_at(
            capacity_per_s=p.copies * p.each_per_s,
            growth_per_s2=p.growth_per_minute / minute,
            cold_start_s=p.cold_s,
        )
        / (p.copies * p.each_per_s),
        formula="(copies × requests/s of each − growth per minute / 60 × cold start) / (copies × requests/s)",
        substitution=(
            f"({p.copies} × {p.each_per_s} − {p.growth_per_minute} / 60 × {p.cold_s}) / ({p.copies} × {p.each_per_s})"
        ),
        source=SOURCE_COPIES,
    ),
    count=_count_order,
    slips=(
        Slip("growth-per-second", lambda p: p.growth_per_minute * p.cold_s / minute / (p.copies * p.each_per_s))
        | "That is what comes in the meantime. How much room must there be, and so how much load?",
        Slip("one-copy", lambda p: abs(1 - p.growth_per_minute / minute * p.cold_s / p.each_per_s))
        | "You compared the growth with one copy. All of them take it.",
        Slip(
            "next-copy-counted",
            lambda p: (
                _order(p, cold_s=p.cold_s, growth=p.growth_per_minute, copies=p.copies + 1)
                / ((p.copies + 1) * p.each_per_s)
            ),
        )
        | "You counted the copy that is ordered. It does not answer until it has started.",
        Slip(
            "half-the-growth",
            lambda p: (
                _order(p, cold_s=p.cold_s / 2, growth=p.growth_per_minute, copies=p.copies) / (p.copies * p.each_per_s)
            ),
        )
        | "You took the growth in the middle of the start. The load is highest at its end.",
    ),
)

# --- how long a canary is watched ----------------------------------------------------------------


def _draw_canary(rng: random.Random) -> Draw:
    return drawn(
        rate=rng.randrange(23, 190),
        percent=rng.choice((1, 2, 5)),
        per_thousand=rng.randrange(2, 30),
        chance=rng.choice((90, 95, 99)),
    )


def _requests(p: Draw) -> float:
    return canaries.canary_requests(fault_share=p.per_thousand / thousand, chance=p.chance / 100.0)


def _count_canary(p: Draw) -> float:
    """Between no request and many: halved until no fault at all is as unlikely as wanted."""
    unseen = 1 - p.per_thousand / thousand
    requests = holds_up_to(lambda number: unseen**number > 1 - p.chance / 100, high=20_000)
    return float(requests / (p.rate * p.percent / 100))


CANARY = Drill(
    key="scale-canary-time",
    taught=TAUGHT,
    title="How long to watch a canary",
    unit="s",
    target_s=120,
    draw=_draw_canary,
    small=_draw_canary,
    prompt=lambda p: (
        f"A service has {p.rate} requests/s. A new version gets {p.percent} % of them; the rest stay with the old one."
        f" If the new version breaks {p.per_thousand} requests in 1,000, each independently, how long must it run"
        f" until at least one broken request has been seen with a probability of {p.chance} %?"
    ),
    derive=lambda p: Derivation(
        value=_requests(p) / (p.rate * p.percent / 100.0),
        formula="log2(1 − chance) / log2(1 − share of faults) / (rate × share of the canary)",
        substitution=(
            f"log2(1 − {p.chance} / 100) / log2(1 − {p.per_thousand} / 1000) / ({p.rate} × {p.percent} / 100)"
        ),
        source=SOURCE_CHANCE,
    ),
    count=_count_canary,
    slips=(
        Slip("first-expected", lambda p: thousand / p.per_thousand / (p.rate * p.percent / 100.0))
        | "You waited for one broken request on average. In a third of all cases none has come by then.",
        Slip("all-requests", lambda p: _requests(p) / p.rate)
        | "You sent every request to the new version. It gets a share of them.",
        Slip(
            "chance-over-share", lambda p: p.chance / 100.0 / (p.per_thousand / thousand) / (p.rate * p.percent / 100.0)
        )
        | "You added up the chances of single requests. Chances of at least once do not add.",
        Slip(
            "chance-of-none",
            lambda p: (
                math.log(p.chance / 100.0) / math.log(1 - p.per_thousand / thousand) / (p.rate * p.percent / 100.0)
            ),
        )
        | "You asked when no fault has been seen with that probability.",
    ),
)

# --- what a bad version breaks -------------------------------------------------------------------


def _draw_hurt(rng: random.Random) -> Draw:
    return drawn(
        rate=rng.randrange(120, 990, 10),
        percent=rng.choice((2, 3, 5, 10)),
        faulty_percent=rng.randrange(3, 40),
        windows=rng.randrange(2, 6),
        window_s=rng.choice((30, 60, 120)),
        back_s=rng.randrange(15, 95, 5),
    )


def _hurt(p: Draw, *, share: float = 1.0, faulty: float = 1.0, back_s: float = -1) -> float:
    return canaries.requests_hurt(
        rate_per_s=p.rate,
        canary_share=p.percent / 100.0 if share == 1.0 else 1.0,
        fault_share=p.faulty_percent / 100.0 if faulty == 1.0 else 1.0,
        noticed_s=p.windows * p.window_s,
        back_s=p.back_s if back_s < 0 else back_s,
    )


def _count_hurt(p: Draw) -> float:
    """Second by second, until requests go elsewhere again."""
    hurt = 0.0
    for _window in range(p.windows):
        for _second in range(p.window_s):
            hurt += p.rate * p.percent / 100.0 * (p.faulty_percent / 100.0)
    for _second in range(p.back_s):
        hurt += p.rate * p.percent / 100.0 * (p.faulty_percent / 100.0)
    return hurt


HURT = Drill(
    key="scale-canary-harm",
    taught=TAUGHT,
    title="What a bad canary breaks",
    unit="",
    target_s=75,
    draw=_draw_hurt,
    small=_draw_hurt,
    prompt=lambda p: (
        f"A service has {p.rate} requests/s, of which a canary gets {p.percent} %. The new version breaks"
        f" {p.faulty_percent} % of what it gets; the old one breaks none. The alarm looks at windows of {p.window_s} s"
        f" and rings after {p.windows} bad ones in a row; then it takes {p.back_s} s until all requests go to the old"
        " version again. How many requests are broken?"
    ),
    derive=lambda p: Derivation(
        value=_hurt(p),
        formula="rate × share of the canary × share of faults × (windows × length of a window + rollback)",
        substitution=(
            f"{p.rate} × {p.percent} / 100 × {p.faulty_percent} / 100 × ({p.windows} × {p.window_s} + {p.back_s})"
        ),
        source=SOURCE_COPIES,
    ),
    count=_count_hurt,
    slips=(
        Slip("all-requests", lambda p: _hurt(p, share=0))
        | "You gave the new version every request. A canary gets a share.",
        Slip("all-broken", lambda p: _hurt(p, faulty=0))
        | "You broke everything that the canary got. It breaks a part.",
        Slip("rollback-at-once", lambda p: _hurt(p, back_s=0))
        | "You stopped at the alarm. Requests still go there until they are sent elsewhere.",
        Slip("one-window", lambda p: _hurt(p) * (p.window_s + p.back_s) / (p.windows * p.window_s + p.back_s))
        | "You rang after one bad window. It takes several in a row.",
    ),
)

DRILLS = (COLD, ORDER, CANARY, HURT)
