"""Drills on several servers with one queue: how often somebody has to wait, and what sharing the queue is worth."""

import random
from typing import Any

from threeloops.drills.engine.drill import Derivation, Draw, Drill, Slip, Taught, drawn
from threeloops.product_loop import queueing
from threeloops.simulate.product_loop import queue
from threeloops.units import ms

TAUGHT = Taught("product", "Queues")
ERLANG = "Kleinrock, Queueing Systems, volume 1, 1975, section 3.5 (M/M/c, Erlang C)"


def _draw_pool(rng: random.Random, servers: int) -> Draw:
    """A load of 67 to 79 % of so many servers."""
    service_ms = rng.randrange(600, 1400, 50)
    return drawn(
        servers=servers,
        service_ms=service_ms,
        per_minute=round(servers * 60_000 / service_ms * rng.randrange(67, 80) / 100),
    )


def _load(p: Draw) -> float:
    return float(p.per_minute / 60 * p.service_ms * ms / p.servers)


def _arguments(p: Draw) -> dict[str, Any]:
    return {"requests_per_s": p.per_minute / 60, "service_s": p.service_ms * ms, "servers": p.servers}


# --- how often ----------------------------------------------------------------------------------


def _terms(p: Draw) -> list[float]:
    """A^k / k! for k up to the number of servers."""
    terms = [1.0]
    for servers in range(1, p.servers + 1):
        terms.append(terms[-1] * _load(p) * p.servers / servers)
    return terms


def _derive_share(p: Draw) -> Derivation:
    offered, terms = p.per_minute / 60 * p.service_ms * ms, ["1"]
    for servers in range(1, p.servers + 1):
        factors = " × ".join(f"{offered:.11g} / {number}" for number in range(1, servers + 1))
        terms.append(factors)
    full = f"{terms[-1]} / (1 − {offered:.11g} / {p.servers})"
    return Derivation(
        value=queueing.erlang_c(**_arguments(p)),
        formula=(
            "A^c/c! / (1 − load) / (sum of A^k/k! for k < c + A^c/c! / (1 − load)), A = arrivals × service time, load ="
            " A / c"
        ),
        substitution=f"{full} / ({' + '.join(terms[:-1])} + {full})",
        source=ERLANG,
    )


SHARE = Drill(
    key="serving-waiting-share",
    taught=TAUGHT,
    title="All of them busy",
    unit="",
    target_s=240,
    draw=lambda rng: _draw_pool(rng, rng.choice((2, 3))),
    small=lambda rng: _draw_pool(rng, rng.choice((2, 3))),
    prompt=lambda p: (
        f"{'Two' if p.servers == 2 else 'Three'} equal servers work off one queue. {p.per_minute} requests arrive per"
        f" minute, at random, and service times are exponential with a mean of {p.service_ms} ms. What share of the"
        " requests finds every server busy and has to wait?"
    ),
    derive=_derive_share,
    count=lambda p: queue.waiting_share(**_arguments(p)),
    prerequisites=("serving-single-server-wait",),
    slips=(
        Slip("load", _load) | "That is how busy one server is. A request waits only if all of them are.",
        Slip("independent", lambda p: _load(p) ** p.servers)
        | "You let the servers be busy independently. A queue keeps all of them busy together.",
        Slip("nobody-waits", lambda p: _terms(p)[-1] / sum(_terms(p)))
        | "You sent away every request that found all busy (Erlang B). Here they stay, and keep the servers busy"
        " for the next.",
        Slip("queue-length", lambda p: queueing.erlang_c(**_arguments(p)) * _load(p) / (1 - _load(p)))
        | "That is how many wait on average, not how often a request has to.",
    ),
)

# --- one queue for two ---------------------------------------------------------------------------


def _derive_pooled(p: Draw) -> Derivation:
    load = f"({p.per_minute} / 60 × {p.service_ms} / 1000 / 2)"
    return Derivation(
        value=queueing.mmc_wait_s(**_arguments(p)),
        formula=(
            "service time × load² / (1 − load²): Erlang C of two servers is 2 load² / (1 + load), and the wait C ×"
            " service time / (2 (1 − load))"
        ),
        substitution=f"{p.service_ms} / 1000 × {load}² / (1 − {load}²)",
        source=ERLANG,
    )


POOLED = Drill(
    key="serving-shared-queue-wait",
    taught=TAUGHT,
    title="One queue for two",
    unit="s",
    target_s=150,
    draw=lambda rng: _draw_pool(rng, 2),
    small=lambda rng: _draw_pool(rng, 2),
    prompt=lambda p: (
        f"Two replicas take their requests from one shared queue. {p.per_minute} requests arrive per minute in all, at"
        f" random; each replica works on one at a time, with exponential service times of {p.service_ms} ms on average."
        " How long does a request wait on average before its service begins?"
    ),
    derive=_derive_pooled,
    count=lambda p: queue.mean_wait_s(**_arguments(p)),
    prerequisites=("serving-waiting-share",),
    slips=(
        Slip("two-queues", lambda p: p.service_ms * ms * _load(p) / (1 - _load(p)))
        | "You gave each replica a queue of its own. There a request may wait although the other replica is free.",
        Slip("one-fast-server", lambda p: p.service_ms * ms / 2 * _load(p) / (1 - _load(p)))
        | "You replaced the two by one that is twice as fast. It would need half the time for a request, these do"
        " not.",
        Slip("everybody-waits", lambda p: p.service_ms * ms / 2 / (1 - _load(p)))
        | "You let every request wait. Some find a replica free.",
        Slip("with-service", lambda p: p.service_ms * ms / (1 - _load(p) ** 2))
        | "That is the time until a request is done. The question ends when its service begins.",
    ),
)

DRILLS = (SHARE, POOLED)
