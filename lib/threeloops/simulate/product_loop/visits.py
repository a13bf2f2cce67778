"""Visits: requests that come to a few servers one by one; servers may pause, be added late, or turn requests away.

No formula here: a clock, a line, and whoever is free takes the first of it.
"""

import heapq
import math
import random
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Visit:
    """One request: when it came, when its service began, when it was done; or that it was turned away."""

    came_s: float
    began_s: float
    done_s: float
    turned_away: bool = False

    @property
    def time_s(self) -> float:
        """Wait and service."""
        return self.done_s - self.came_s


def play(
    came_s: Sequence[float],
    services_s: Sequence[float],
    *,
    servers: int,
    added_s: Sequence[float] = (),
    most_waiting: int | None = None,
    pauses_s: Sequence[tuple[float, float]] = (),
) -> list[Visit]:
    """Every request's visit, in order of arrival.

    added_s: moments from which one more server works. most_waiting: with so many in line, the next one is turned away
    at once. pauses_s: (from, until) in which no service begins; one that runs already is finished that much later.
    """
    free = [0.0] * servers + list(added_s)
    heapq.heapify(free)
    line: deque[float] = deque()  # when those who wait will begin
    visits = []
    for came, service in zip(came_s, services_s, strict=True):
        while line and line[0] <= came:
            line.popleft()
        if most_waiting is not None and free[0] > came and len(line) >= most_waiting:
            visits.append(Visit(came, came, came, turned_away=True))
            continue
        visit = _served(came, heapq.heappop(free), service, pauses_s)
        heapq.heappush(free, visit.done_s)
        if visit.began_s > came:
            line.append(visit.began_s)
        visits.append(visit)
    return visits


def shared(came_s: Sequence[float], services_s: Sequence[float]) -> list[Visit]:
    """Every request's visit to one server that works for all at once (processor sharing), in order of arrival.

    Nobody waits for service to begin; of n inside, each gets an nth of the server's speed.
    """
    inside: list[tuple[float, int]] = []  # what each must have had of the server when it is done, and who it is
    now = had = 0.0  # had: by whoever has been inside from the beginning
    done = [0.0] * len(came_s)
    for number, came in enumerate([*came_s, math.inf]):
        while inside and (ends := now + (inside[0][0] - had) * len(inside)) <= came:
            now, (had, who) = ends, heapq.heappop(inside)
            done[who] = now
        if number < len(came_s):
            had += (came - now) / len(inside) if inside else 0.0
            now = came
            heapq.heappush(inside, (had + services_s[number], number))
    return [Visit(came, came, end) for came, end in zip(came_s, done, strict=True)]


def _served(came: float, free: float, service: float, pauses_s: Sequence[tuple[float, float]]) -> Visit:
    """A visit to a server that is free from then on."""
    began = max(came, free)
    for start, end in pauses_s:
        if start <= began < end:
            began = end
    done = began + service
    for start, end in pauses_s:
        if began <= start < done:
            done += end - start
    return Visit(came, began, done)


def closed(
    *, clients: int, services_s: Sequence[float], every_s: float, pauses_s: Sequence[tuple[float, float]] = ()
) -> list[tuple[float, Visit]]:
    """Clients that ask one server, wait for the answer, and ask again: (when the client had meant to ask, visit).

    every_s: each client means to ask once in so long; when its answer is late it asks right after it.
    """
    ready = [(every_s * client / clients, client) for client in range(clients)]
    meant = [moment for moment, _client in ready]
    free, seen = 0.0, []
    for service in services_s:
        asks, client = heapq.heappop(ready)
        visit = _served(asks, free, service, pauses_s)
        free = visit.done_s
        seen.append((meant[client], visit))
        meant[client] += every_s
        heapq.heappush(ready, (max(free, meant[client]), client))
    return seen


def arrivals(*, rates_per_s: Sequence[tuple[float, float]], seed: int, gap_cv: float = 1.0) -> list[float]:
    """Moments of arrival under rates that change: (seconds that it lasts, requests/s), one after the other.

    Gaps are Gamma with that ratio of standard deviation to mean: 1 is Poisson, more comes in bursts.
    """
    rng, shape = random.Random(seed), 1 / gap_cv**2
    moments, begins = [], 0.0
    for lasts, rate in rates_per_s:
        now = begins + rng.gammavariate(shape, 1 / (shape * rate))
        while now < begins + lasts:
            moments.append(now)
            now += rng.gammavariate(shape, 1 / (shape * rate))
        begins += lasts
    return moments


def exponential(count: int, *, mean_s: float, seed: int) -> list[float]:
    """So many service times without memory.

    >>> len(exponential(3, mean_s=2.0, seed=1))
    3
    """
    rng = random.Random(seed)
    return [rng.expovariate(1 / mean_s) for _ in range(count)]


def waiting_over_time(visits: Sequence[Visit], *, every_s: float) -> list[tuple[float, float]]:
    """(moment, how many wait) at even moments from the first arrival to the last."""
    points, now, last = [], 0.0, max(visit.came_s for visit in visits)
    while now <= last:
        points.append((now, float(sum(visit.came_s <= now < visit.began_s for visit in visits))))
        now += every_s
    return points


def quantile(times_s: Sequence[float], share: float) -> float:
    """The time that such a share of them does not exceed: the nearest rank.

    >>> quantile([5.0, 1.0, 3.0, 9.0], 0.5)
    3.0
    """
    ordered = sorted(times_s)
    return ordered[max(0, math.ceil(share * len(ordered) - 1e-9) - 1)]
