"""Drills on the slow ones: p99 of one server, the load that a p99 allows, long requests among short ones."""

import math
import random

from threeloops.drills.engine.drill import AsFunction, Derivation, Draw, Drill, Slip, Taught, drawn
from threeloops.drills.engine.searches import holds_up_to
from threeloops.product_loop import queueing
from threeloops.simulate.product_loop import queue
from threeloops.units import ms

TAUGHT = Taught("product", "Queues")
KLEINROCK = "Kleinrock, Queueing Systems, volume 1, 1975"
LN2 = 0.69314718056  # log2 times this is the natural logarithm

# --- p99 -----------------------------------------------------------------------------------------


def _draw_p99(rng: random.Random) -> Draw:
    service_ms = rng.randrange(40, 260, 10)
    return drawn(service_ms=service_ms, percent=rng.choice((60, 65, 70, 75, 80)))


def _free(p: Draw) -> float:
    return float(1 - p.percent / 100)


P99 = Drill(
    key="queue-p99",
    taught=TAUGHT,
    title="The slowest percent",
    unit="s",
    target_s=90,
    draw=_draw_p99,
    small=lambda rng: drawn(service_ms=rng.choice((100, 150)), percent=rng.choice((50, 60, 65))),
    prompt=lambda p: (
        f"One server answers one request at a time: Poisson arrivals, exponential service times of {p.service_ms} ms on"
        f" average, busy {p.percent} % of the time. Which time from arrival to answer does one request in a hundred"
        " exceed (p99)?"
    ),
    derive=lambda p: Derivation(
        value=queueing.mm1_time_quantile_s(
            requests_per_s=p.percent / 100 / (p.service_ms * ms), service_s=p.service_ms * ms, share=0.99
        ),
        formula="service time / (1 − utilisation) × ln 100: the time in the system is exponential",
        substitution=f"{p.service_ms} / 1000 / (1 − {p.percent} / 100) × log2(100) × {LN2}",
        source=f"{KLEINROCK} (M/M/1)",
    ),
    count=lambda p: queue.time_quantile_s(
        requests_per_s=p.percent / 100 / (p.service_ms * ms), service_s=p.service_ms * ms, share=0.99
    ),
    prerequisites=("serving-single-server-wait",),
    slips=(
        Slip("mean", lambda p: p.service_ms * ms / _free(p))
        | "That is the mean time. One in a hundred takes longer by far.",
        Slip("p90", lambda p: p.service_ms * ms / _free(p) * math.log(10))
        | "That is p90: one request in ten exceeds it.",
        Slip("service-only", lambda p: p.service_ms * ms * math.log(100))
        | "That is p99 of the service. No request stood in line.",
        Slip("times-100", lambda p: p.service_ms * ms / _free(p) * 100)
        | "You took a hundred times the mean. One in a hundred is rarer than that suggests, but not so slow.",
        Slip("wait-only", lambda p: p.service_ms * ms * p.percent / 100 / _free(p) * math.log(100))
        | "You stretched the mean wait. The time to the answer has a service in it, too.",
    ),
)

# --- backwards -----------------------------------------------------------------------------------


def _draw_allowed(rng: random.Random) -> Draw:
    service_ms = rng.randrange(40, 260, 10)
    return drawn(service_ms=service_ms, p99_ms=service_ms * rng.choice((9, 10, 11, 12, 13)))


def _rate(p: Draw, busy: float) -> float:
    return float(busy / (p.service_ms * ms))


def _count_allowed(p: Draw) -> float:
    """Halve the interval of rates until the counted p99 is the promised one."""
    service_s = p.service_ms * ms

    def kept(rate: float) -> bool:
        return bool(queue.time_quantile_s(requests_per_s=rate, service_s=service_s, share=0.99) < p.p99_ms * ms)

    return holds_up_to(kept, high=1 / service_s, halvings=45)


ALLOWED = Drill(
    key="queue-rate-for-a-p99",
    taught=TAUGHT,
    title="What a p99 allows",
    unit="",
    target_s=120,
    draw=_draw_allowed,
    small=lambda rng: drawn(service_ms=rng.choice((100, 150)), p99_ms=rng.choice((1200, 1400))),
    prompt=lambda p: (
        f"One server works on one request at a time, {p.service_ms} ms on average, service times exponential, arrivals"
        f" Poisson. The promise is a p99 of {p.p99_ms:,} ms from arrival to answer. How many requests per second may"
        " arrive?"
    ),
    derive=lambda p: Derivation(
        value=_rate(p, queueing.most_load_for_quantile(service_s=p.service_ms * ms, share=0.99, seconds=p.p99_ms * ms)),
        formula="(1 − service time × ln 100 / p99) / service time",
        substitution=(f"(1 − {p.service_ms} × log2(100) × {LN2} / {p.p99_ms}) / ({p.service_ms} / 1000)"),
        source=f"{KLEINROCK} (M/M/1)",
    ),
    count=_count_allowed,
    prerequisites=("queue-p99",),
    slips=(
        Slip("full", lambda p: _rate(p, 1))
        | "That keeps the server busy all the time, and the queue grows without end.",
        Slip("mean", lambda p: _rate(p, 1 - p.service_ms / p.p99_ms))
        | "You let the mean keep the promise. It was made for the slowest percent.",
        Slip("p90", lambda p: _rate(p, 1 - math.log(10) * p.service_ms / p.p99_ms))
        | "With that rate nine in ten keep the promise, not 99 in a hundred.",
        Slip("share-not-rate", lambda p: 1 - math.log(100) * p.service_ms / p.p99_ms)
        | "That is the utilisation. How many requests a second make it?",
    ),
    function=AsFunction(
        takes=("service_ms", "p99_ms"),
        limit=lambda p: {"p99_ms": 3 * p.service_ms},
        limit_case="a promise that even an empty server cannot keep",
    ),
)

# --- long ones among short ones ------------------------------------------------------------------


def _draw_mixed(rng: random.Random) -> Draw:
    short_ms, times, percent = rng.randrange(40, 90, 5), rng.choice((12, 15, 20)), rng.choice((5, 8, 10))
    mean_ms = short_ms * (1 + percent / 100 * (times - 1))
    return drawn(
        short_ms=short_ms,
        long_ms=short_ms * times,
        percent=percent,
        per_minute=round(60_000 / mean_ms * rng.randrange(55, 72) / 100),
    )


def _mean_s(p: Draw) -> float:
    return float((p.short_ms * (100 - p.percent) + p.long_ms * p.percent) / 100 * ms)


def _square_s2(p: Draw) -> float:
    return float((p.short_ms**2 * (100 - p.percent) + p.long_ms**2 * p.percent) / 100 * ms**2)


def _busy(p: Draw) -> float:
    return float(p.per_minute / 60 * _mean_s(p))


def _cv(p: Draw) -> float:
    # equal services leave a rounding error below zero
    return math.sqrt(max(0.0, _square_s2(p) / _mean_s(p) ** 2 - 1))


def _derive_mixed(p: Draw) -> Derivation:
    shares = f"{100 - p.percent} / 100", f"{p.percent} / 100"
    square = f"({shares[0]} × ({p.short_ms} / 1000)² + {shares[1]} × ({p.long_ms} / 1000)²)"
    mean = f"({shares[0]} × {p.short_ms} / 1000 + {shares[1]} × {p.long_ms} / 1000)"
    return Derivation(
        value=queueing.mg1_wait_s(requests_per_s=p.per_minute / 60, service_s=_mean_s(p), service_cv=_cv(p)),
        formula=(
            "arrivals × mean of the squared service time / (2 (1 − arrivals × mean service time)); that is service"
            " time × load / (1 − load) × (1 + cv²) / 2"
        ),
        substitution=f"{p.per_minute} / 60 × {square} / (2 × (1 − {p.per_minute} / 60 × {mean}))",
        source=f"{KLEINROCK}, section 5.6 (M/G/1, Pollaczek-Khinchine)",
    )


MIXED = Drill(
    key="queue-long-among-short",
    taught=TAUGHT,
    title="One long request in the way",
    unit="s",
    target_s=180,
    draw=_draw_mixed,
    small=lambda rng: drawn(short_ms=rng.choice((50, 60)), long_ms=rng.choice((500, 600)), percent=10, per_minute=300),
    prompt=lambda p: (
        f"{p.per_minute} requests arrive per minute, at random, at a server that works on one at a time. Of them"
        f" {100 - p.percent} % take {p.short_ms} ms and {p.percent} % take {p.long_ms:,} ms, in no order. How long"
        " does a request wait on average before its service begins?"
    ),
    derive=_derive_mixed,
    count=lambda p: queue.mean_wait_of_mixed_services_s(
        requests_per_s=p.per_minute / 60,
        kinds=[(1 - p.percent / 100, p.short_ms * ms), (p.percent / 100, p.long_ms * ms)],
    ),
    prerequisites=("serving-constant-service-wait",),
    slips=(
        Slip("equal", lambda p: _mean_s(p) * _busy(p) / (1 - _busy(p)) / 2)
        | "You gave every request the mean time. A long one holds up all who come behind it.",
        Slip("exponential", lambda p: _mean_s(p) * _busy(p) / (1 - _busy(p)))
        | "You let service times be exponential. These vary more.",
        Slip("not-halved", lambda p: _square_s2(p) * p.per_minute / 60 / (1 - _busy(p)))
        | "You waited for all of the request in service. On average half of it is over already.",
        Slip(
            "short-only",
            lambda p: (p.short_ms * ms) ** 2 * p.per_minute / 60 / 2 / (1 - p.per_minute / 60 * p.short_ms * ms),
        )
        | "You gave every request a short service. The long ones are few, but all others wait behind them.",
        Slip("with-service", lambda p: _square_s2(p) * p.per_minute / 60 / 2 / (1 - _busy(p)) + _mean_s(p))
        | "You added the request's own service. The question ends when it begins.",
    ),
    function=AsFunction(
        takes=("short_ms", "long_ms", "percent", "per_minute"),
        limit={"percent": 0},
        limit_case="no long requests at all",
    ),
)

DRILLS = (P99, ALLOWED, MIXED)
