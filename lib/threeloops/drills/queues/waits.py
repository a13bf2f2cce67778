"""Drills on queues: how many are inside, how long they wait for a single server, and how many may come."""

import random
from collections.abc import Callable

from threeloops.drills.engine.drill import Derivation, Draw, Drill, Slip, Taught, drawn
from threeloops.drills.engine.searches import holds_up_to
from threeloops.product_loop import queueing, serving
from threeloops.simulate.product_loop import queue
from threeloops.units import ms

TAUGHT = Taught("product", "Queues")
KLEINROCK = "Kleinrock, Queueing Systems, volume 1, 1975"

# --- Little's law --------------------------------------------------------------------------------


def _stay(p: Draw) -> float:
    return serving.request_s(ttft_s=p.ttft, itl_s=p.itl_ms * ms, output_tokens=p.tokens)


def _count_little(p: Draw) -> float:
    """Requests come evenly; look at one moment, long after the first, and count who has come and not yet gone."""
    stay_ms, gap_ms = round(p.ttft / ms) + (p.tokens - 1) * p.itl_ms, 60_000 // p.per_minute
    moment = 100 * stay_ms + 1
    return float(sum(come <= moment < come + stay_ms for come in range(0, 2 * moment, gap_ms)))


LITTLE = Drill(
    key="serving-in-flight",
    taught=TAUGHT,
    title="How many are inside",
    unit="",
    target_s=90,
    draw=lambda rng: drawn(
        per_minute=rng.randrange(320, 940, 20),
        ttft=rng.choice((0.8, 0.9, 1.1, 1.3)),
        itl_ms=rng.randrange(22, 39),
        tokens=rng.randrange(180, 330, 10),
    ),
    small=lambda rng: drawn(
        per_minute=rng.choice((60, 120)), ttft=rng.choice((1.0, 2.0)), itl_ms=500, tokens=rng.choice((7, 9))
    ),
    prompt=lambda p: (
        f"{p.per_minute} requests arrive per minute and as many are finished. On average a request waits {p.ttft:g} s"
        f" for its first token and then gets {p.tokens} tokens in all, {p.itl_ms} ms apart. How many requests are being"
        " served at a time, on average?"
    ),
    derive=lambda p: Derivation(
        value=queueing.littles_law(requests_per_s=p.per_minute / 60, seconds=_stay(p)),
        formula="arrivals per second × (TTFT + (tokens − 1) × ITL)",
        substitution=f"{p.per_minute} / 60 × ({p.ttft} + ({p.tokens} − 1) × {p.itl_ms} / 1000)",
        source="Little, Operations Research 9(3), 1961, doi:10.1287/opre.9.3.383",
    ),
    count=_count_little,
    prerequisites=("serving-request-time",),
    slips=(
        Slip("per-minute", lambda p: p.per_minute * _stay(p)) | "You multiplied a rate per minute by seconds.",
        Slip("no-ttft", lambda p: p.per_minute / 60 * (p.tokens - 1) * p.itl_ms * ms)
        | "You let requests in with their first token. They are inside from the start.",
        Slip("prompt-only", lambda p: p.per_minute / 60 * p.ttft)
        | "You let requests go with their first token. They stay until the last.",
        Slip("divided", lambda p: p.per_minute / 60 / _stay(p))
        | "You divided by the time. Who stays longer is met more often.",
        Slip("arrivals", lambda p: p.per_minute / 60) | "That is how many come in a second. How long does each stay?",
    ),
)

# --- one server ----------------------------------------------------------------------------------


def _draw_single(rng: random.Random) -> Draw:
    """A load of 70 to 83 %."""
    service_ms = rng.randrange(150, 420, 10)
    return drawn(service_ms=service_ms, per_minute=round(60_000 / service_ms * rng.randrange(70, 84) / 100))


def _small_single(rng: random.Random) -> Draw:
    return drawn(service_ms=rng.choice((200, 250, 300)), per_minute=rng.choice((120, 140)))


def _load(p: Draw) -> float:
    return float(p.per_minute / 60 * p.service_ms * ms)


def _wait(p: Draw, of_load: Callable[[float], float]) -> float:
    """Service times so many."""
    return float(p.service_ms * ms * of_load(_load(p)))


def _substituted(p: Draw) -> tuple[str, str]:
    """The service time and the load as one writes them down."""
    return f"{p.service_ms} / 1000", f"{p.per_minute} / 60 × {p.service_ms} / 1000"


def _derive_mm1(p: Draw) -> Derivation:
    service, load = _substituted(p)
    return Derivation(
        value=queueing.mm1_wait_s(requests_per_s=p.per_minute / 60, service_s=p.service_ms * ms),
        formula="service time × load / (1 − load), load = arrivals per second × service time",
        substitution=f"{service} × ({load}) / (1 − {load})",
        source=f"{KLEINROCK}, section 3.2 (M/M/1)",
    )


MM1 = Drill(
    key="serving-single-server-wait",
    taught=TAUGHT,
    title="Not full, and still a queue",
    unit="s",
    target_s=90,
    draw=_draw_single,
    small=_small_single,
    prompt=lambda p: (
        f"{p.per_minute} requests arrive per minute, at random, at a server that works on one at a time. Service times"
        f" are exponential with a mean of {p.service_ms} ms. How long does a request wait on average before its service"
        " begins?"
    ),
    derive=_derive_mm1,
    count=lambda p: queue.mean_wait_s(requests_per_s=p.per_minute / 60, service_s=p.service_ms * ms, servers=1),
    slips=(
        Slip("with-service", lambda p: _wait(p, lambda load: 1 / (1 - load)))
        | "That is the time until a request is done. The question ends when its service begins.",
        Slip("no-queue", lambda p: _wait(p, lambda load: load * (1 - load)))
        | "You multiplied by the share that is free. A fuller server means a longer wait.",
        Slip("constant", lambda p: _wait(p, lambda load: load / (1 - load) / 2))
        | "You let all services take equally long. These are exponential.",
        Slip("load-twice", lambda p: _wait(p, lambda load: load**2 / (1 - load)))
        | "You multiplied by the load once too often: that is the length of the queue, times a service.",
        Slip("heads", lambda p: _wait(p, lambda load: 1 / (1 - load) ** 2))
        | "You divided by the free share twice. Once makes the time in the system.",
    ),
)

# --- services that take equally long -------------------------------------------------------------


def _derive_constant(p: Draw) -> Derivation:
    service, load = _substituted(p)
    return Derivation(
        value=queueing.mg1_wait_s(requests_per_s=p.per_minute / 60, service_s=p.service_ms * ms, service_cv=0),
        formula="service time × load / (1 − load) × (1 + cv²) / 2, cv = 0",
        substitution=f"{service} × ({load}) / (1 − {load}) × (1 + 0²) / 2",
        source=f"{KLEINROCK}, section 5.6 (M/G/1, Pollaczek-Khinchine)",
    )


CONSTANT = Drill(
    key="serving-constant-service-wait",
    taught=TAUGHT,
    title="When every answer takes equally long",
    unit="s",
    target_s=100,
    draw=_draw_single,
    small=_small_single,
    prompt=lambda p: (
        f"A vision model works on one picture at a time and takes {p.service_ms} ms for each, always the same."
        f" {p.per_minute} pictures arrive per minute, at random moments. How long does a picture wait on average before"
        " the model takes it?"
    ),
    derive=_derive_constant,
    count=lambda p: queue.mean_wait_of_constant_service_s(
        requests_per_s=p.per_minute / 60, service_s=p.service_ms * ms
    ),
    prerequisites=("serving-single-server-wait",),
    slips=(
        Slip("exponential", lambda p: _wait(p, lambda load: load / (1 - load)))
        | "You let service times vary. Here they are all the same.",
        Slip("with-service", lambda p: _wait(p, lambda load: load / (1 - load) / 2 + 1))
        | "You added the picture's own service. The question ends when it begins.",
        Slip("half-everything", lambda p: _wait(p, lambda load: 1 / (1 - load) / 2))
        | "You halved the time in the system. What is halved is the wait.",
        Slip("residual", lambda p: _wait(p, lambda load: load / 2))
        | "You waited for the picture in work. Others may stand before you.",
        Slip("evenly", lambda p: _wait(p, lambda load: load / (1 - load) / 4))
        | "You halved twice. Random arrivals queue even where services are all alike.",
    ),
)

# --- backwards -----------------------------------------------------------------------------------


def _draw_rate(rng: random.Random) -> Draw:
    service_ms = rng.randrange(150, 420, 10)
    return drawn(service_ms=service_ms, wait_ms=round(service_ms * rng.randrange(18, 26) / 100) * 10)


def _rate(p: Draw, share: float) -> float:
    """Requests per second that keep the server busy for such a share."""
    return float(share / (p.service_ms * ms))


def _count_rate(p: Draw) -> float:
    """Halve the interval of rates until the counted wait is the promised one."""
    service_s = p.service_ms * ms

    def kept(rate: float) -> bool:
        return bool(queue.mean_wait_s(requests_per_s=rate, service_s=service_s, servers=1) < p.wait_ms * ms)

    return holds_up_to(kept, high=1 / service_s, halvings=50)


RATE = Drill(
    key="serving-rate-for-a-wait",
    taught=TAUGHT,
    title="How many may come",
    unit="",
    target_s=120,
    draw=_draw_rate,
    small=lambda rng: drawn(service_ms=rng.choice((200, 300)), wait_ms=rng.choice((400, 500))),
    prompt=lambda p: (
        f"A server works on one request at a time; service times are exponential with a mean of {p.service_ms} ms, and"
        f" requests arrive at random. On average a request shall not wait longer than {p.wait_ms} ms before service"
        " begins. How many requests per second may arrive?"
    ),
    derive=lambda p: Derivation(
        value=queueing.most_arrivals_for_wait(service_s=p.service_ms * ms, wait_s=p.wait_ms * ms),
        formula=(
            "load / service time, load = wait / (wait + service time): service time × load / (1 − load) = wait, solved"
            " for the load"
        ),
        substitution=f"{p.wait_ms} / ({p.wait_ms} + {p.service_ms}) / ({p.service_ms} / 1000)",
        source=f"{KLEINROCK}, section 3.2 (M/M/1)",
    ),
    count=_count_rate,
    prerequisites=("serving-single-server-wait",),
    slips=(
        Slip("full", lambda p: _rate(p, 1))
        | "That keeps the server busy all the time, and the queue grows without end.",
        Slip("with-service", lambda p: _rate(p, 1 - p.service_ms / p.wait_ms))
        | "You counted the service into the wait. The promise ends when service begins.",
        Slip("reciprocal", lambda p: 1 / ((p.wait_ms + p.service_ms) * ms))
        | "You let the next request come when the last is done. How many are inside at a time?",
        Slip("constant", lambda p: _rate(p, 2 * p.wait_ms / (2 * p.wait_ms + p.service_ms)))
        | "You let all services take equally long. These are exponential, and leave room for fewer.",
    ),
)

DRILLS = (LITTLE, MM1, CONSTANT, RATE)
