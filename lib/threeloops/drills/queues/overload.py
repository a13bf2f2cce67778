"""Drills on too much load, and on measuring it: late servers, shedding, clients who wait, requests nobody sent."""

import random
from fractions import Fraction

from threeloops.drills.engine.drill import AsFunction, Derivation, Draw, Drill, Slip, Taught, drawn
from threeloops.product_loop import backlogs, queueing
from threeloops.units import ms

TAUGHT = Taught("product", "Queues")

# --- servers that come late ----------------------------------------------------------------------


def _draw_late(rng: random.Random) -> Draw:
    before = rng.randrange(20, 41, 2)
    arrive = before + rng.choice((8, 11, 14))
    return drawn(
        before=before, arrive=arrive, after=arrive + rng.choice((9, 13, 17)), late_s=rng.randrange(50, 130, 10)
    )


def _backlog(p: Draw) -> float:
    return backlogs.cold_start_backlog(requests_per_s=p.arrive, served_per_s=p.before, late_s=p.late_s)


def _count_late(p: Draw) -> float:
    """Let seconds pass: first the line grows, then it shrinks; of the last second only what is needed."""
    line = sum(p.arrive - p.before for _second in range(p.late_s))
    passed = Fraction(0)
    while line > 0:
        shrinks = p.after - p.arrive
        passed += min(Fraction(1), Fraction(line, shrinks))
        line -= shrinks
    return float(passed)


LATE = Drill(
    key="queue-late-servers",
    taught=TAUGHT,
    title="When the new servers are ready",
    unit="s",
    target_s=120,
    draw=_draw_late,
    small=lambda rng: drawn(before=rng.choice((5, 6)), arrive=9, after=rng.choice((11, 13)), late_s=rng.choice((7, 9))),
    prompt=lambda p: (
        f"A service handles {p.before} requests per second. Suddenly {p.arrive} arrive per second, and it stays like"
        f" that. The autoscaler's servers are ready {p.late_s} s later; from then on {p.after} per second are handled."
        " No request is turned away. How long, counted from the moment at which the new servers are ready, until the"
        " queue is gone?"
    ),
    derive=lambda p: Derivation(
        value=backlogs.drain_s(backlog=_backlog(p), requests_per_s=p.arrive, served_per_s=p.after),
        formula="(arrivals − handled before) × delay / (handled after − arrivals)",
        substitution=f"({p.arrive} − {p.before}) × {p.late_s} / ({p.after} − {p.arrive})",
        source="conservation of requests; see Little, Operations Research 9(3), 1961, doi:10.1287/opre.9.3.383",
    ),
    count=_count_late,
    slips=(
        Slip("nobody-comes", lambda p: _backlog(p) / p.after)
        | "You worked off the backlog as if no request came any more. Others keep arriving.",
        Slip("all-arrivals", lambda p: p.arrive * p.late_s / (p.after - p.arrive))
        | "You let every request wait that came. The old servers handled most of them.",
        Slip("new-servers-only", lambda p: _backlog(p) / (p.after - p.before))
        | "You gave the backlog all that the new servers can do. A part of that goes to those who arrive.",
        Slip("with-delay", lambda p: _backlog(p) / (p.after - p.arrive) + p.late_s)
        | "You counted from the jump. The question counts from when the servers are ready.",
    ),
)

# --- shedding ------------------------------------------------------------------------------------


def _draw_shed(rng: random.Random) -> Draw:
    servers = rng.choice((5, 6, 7, 9))
    service_ms = rng.randrange(120, 400, 20)
    return drawn(
        servers=servers,
        service_ms=service_ms,
        arrive=round(servers / (service_ms * ms) * rng.randrange(126, 150, 2) / 100),
    )


def _handled(p: Draw) -> float:
    return float(p.servers / (p.service_ms * ms))


def _count_shed(p: Draw) -> float:
    """A full line, ten seconds: in each, as many get in as have been handled; the others are sent away."""
    away = came = 0
    for _second in range(10):
        leave = sum(round(1 / (p.service_ms * ms)) for _server in range(p.servers))
        came += p.arrive
        away += p.arrive - leave
    return away / came


SHED = Drill(
    key="queue-shed-share",
    taught=TAUGHT,
    title="How many are turned away",
    unit="",
    target_s=75,
    draw=_draw_shed,
    small=lambda rng: drawn(servers=rng.choice((2, 3)), service_ms=500, arrive=rng.choice((9, 11))),
    prompt=lambda p: (
        f"{p.servers} servers share a queue; each takes {p.service_ms} ms for a request. For a long while"
        f" {p.arrive} requests arrive per second, more than they can handle. The queue is bounded and always full; who"
        " finds it full is turned away. What share of the requests is that?"
    ),
    derive=lambda p: Derivation(
        value=queueing.turned_away_share(requests_per_s=p.arrive, service_s=p.service_ms * ms, servers=p.servers),
        formula="1 − servers / service time / arrivals, and 0 where the servers keep up",
        substitution=f"max(0, 1 − {p.servers} × 1000 / {p.service_ms} / {p.arrive})",
        source="conservation of requests; see Little, Operations Research 9(3), 1961, doi:10.1287/opre.9.3.383",
    ),
    count=_count_shed,
    slips=(
        Slip("served", lambda p: _handled(p) / p.arrive) | "That is the share that is served.",
        Slip("over-capacity", lambda p: p.arrive / _handled(p) - 1)
        | "You divided by what is handled. The share is one of those who come.",
        Slip("one-server", lambda p: 1 - _handled(p) / p.servers / p.arrive)
        | "You let one server work. There are more.",
        Slip("odds", lambda p: p.arrive / _handled(p))
        | "That is the load. It says how many come for each that is handled.",
    ),
    function=AsFunction(
        takes=("servers", "service_ms", "arrive"),
        limit=lambda p: {"arrive": round(p.arrive / 3)},
        limit_case="servers that keep up",
    ),
)

# --- clients who wait ----------------------------------------------------------------------------


def _count_closed(p: Draw) -> float:
    """Every client on a clock of milliseconds, for a thousand rounds of its own."""
    rounds, answers = 1000, 0
    for _client in range(p.clients):
        now = 0
        for _round in range(rounds):
            now += p.answer_ms
            answers += 1
            now += p.think_ms
    return float(answers / (now * ms))


CLOSED = Drill(
    key="queue-closed-loop-rate",
    taught=TAUGHT,
    title="Clients who wait",
    unit="",
    target_s=75,
    draw=lambda rng: drawn(
        clients=rng.randrange(30, 90, 5),
        answer_ms=rng.randrange(600, 1900, 100),
        think_ms=rng.randrange(2500, 6500, 500),
    ),
    small=lambda rng: drawn(
        clients=rng.choice((3, 5)), answer_ms=rng.choice((700, 900)), think_ms=rng.choice((1100, 2100))
    ),
    prompt=lambda p: (
        f"A load test runs {p.clients} clients. Each sends a request, gets its answer after {p.answer_ms:,} ms on"
        f" average, thinks for {p.think_ms:,} ms, and sends the next. How many requests per second does the server get?"
    ),
    derive=lambda p: Derivation(
        value=queueing.closed_loop_per_s(clients=p.clients, answer_s=p.answer_ms * ms, think_s=p.think_ms * ms),
        formula="clients / (answer time + thinking time): Little's law for all clients",
        substitution=f"{p.clients} / (({p.answer_ms} + {p.think_ms}) / 1000)",
        source="Little, Operations Research 9(3), 1961, doi:10.1287/opre.9.3.383",
    ),
    count=_count_closed,
    prerequisites=("serving-in-flight",),
    slips=(
        Slip("no-thinking", lambda p: p.clients / (p.answer_ms * ms))
        | "You let the clients send at once. They think first.",
        Slip("no-waiting", lambda p: p.clients / (p.think_ms * ms))
        | "You let the clients send on while they wait. A closed loop does not.",
        Slip("one-client", lambda p: 1 / ((p.answer_ms + p.think_ms) * ms)) | "That is the rate of one client.",
        Slip("multiplied", lambda p: p.clients * (p.answer_ms + p.think_ms) * ms)
        | "You multiplied clients by the time of a round. A client that takes longer asks less often.",
    ),
)

# --- requests that nobody sent -------------------------------------------------------------------


def _count_hidden(p: Draw) -> float:
    """Requests that come evenly, one by one; who comes in the pause is answered at its end."""
    late = 0
    for number in range(p.rate * p.pause_s):
        came_s = (number + Fraction(1, 2)) / p.rate
        late += p.pause_s - came_s > Fraction(p.slow_ms, 1000)
    return float(late)


HIDDEN = Drill(
    key="queue-omitted-requests",
    taught=TAUGHT,
    title="What the report leaves out",
    unit="",
    target_s=100,
    draw=lambda rng: drawn(
        rate=rng.randrange(40, 240, 10), pause_s=rng.choice((3, 4, 5)), slow_ms=rng.choice((350, 850, 1150)), clients=8
    ),
    small=lambda rng: drawn(
        rate=rng.choice((4, 8)), pause_s=rng.choice((3, 4)), slow_ms=rng.choice((500, 750)), clients=2
    ),
    prompt=lambda p: (
        f"{p.rate} users per second send a request each, evenly, whatever the server does. It answers at once, except"
        f" that it stops for {p.pause_s} s and then answers all who came meanwhile, at once. (A load test with"
        f" {p.clients} clients that wait for their answers reported {p.clients} slow requests.) How many requests of"
        f" users took longer than {p.slow_ms:,} ms?"
    ),
    derive=lambda p: Derivation(
        value=backlogs.late_after_pause(requests_per_s=p.rate, pause_s=p.pause_s, limit_s=p.slow_ms * ms),
        formula="users per second × (pause − limit): who came later than that waited for less",
        substitution=f"{p.rate} × ({p.pause_s} − {p.slow_ms} / 1000)",
        source="Tene, wrk2, README, 2012 onwards (coordinated omission)",
    ),
    count=_count_hidden,
    slips=(
        Slip("closed-loop", lambda p: float(p.clients))
        | "That is what clients see who wait for their answers. Users do not wait for one another.",
        Slip("whole-pause", lambda p: float(p.rate * p.pause_s))
        | "You counted every request that came in the pause. The last of them waited for a moment only.",
        Slip("quick-ones", lambda p: p.rate * p.slow_ms * ms)
        | "Those came so late in the pause that they waited for less than the limit.",
        Slip("added", lambda p: p.rate * (p.pause_s + p.slow_ms * ms))
        | "You made the pause longer by the limit. Who comes shortly before its end waits for less.",
    ),
)

DRILLS = (LATE, SHED, CLOSED, HIDDEN)
