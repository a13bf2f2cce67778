"""A queue with servers: once as single customers who come and wait, once as a count of heads that goes up and
down.
"""

import heapq
import math
import random
from collections.abc import Callable


def waits(
    *,
    customers: int,
    servers: int,
    gap: Callable[[random.Random], float],
    service: Callable[[random.Random], float],
    seed: int,
) -> list[float]:
    """How long each customer waits for one of the servers, first come first served. Gaps and services are drawn as
    told.
    """
    rng = random.Random(seed)
    free_at = [0.0] * servers
    heapq.heapify(free_at)
    now, waited = 0.0, []
    for _ in range(customers):
        now += gap(rng)
        begins = max(now, heapq.heappop(free_at))
        waited.append(begins - now)
        heapq.heappush(free_at, begins + service(rng))
    return waited


def turned_away(
    *,
    customers: int,
    servers: int,
    gap: Callable[[random.Random], float],
    service: Callable[[random.Random], float],
    seed: int,
) -> list[bool]:
    """Whether each customer finds every server taken and goes away again. Gaps and services are drawn as told."""
    rng = random.Random(seed)
    now, until, gone = 0.0, list[float](), list[bool]()
    for _ in range(customers):
        now += gap(rng)
        until = [moment for moment in until if moment > now]
        gone.append(len(until) == servers)
        if not gone[-1]:
            until.append(now + service(rng))
    return gone


def heads(*, requests_per_s: float, service_s: float, servers: int, most: int = 4000) -> list[float]:
    """How much of the time 0, 1, 2, … customers are there, when both gaps and services are memoryless.

    Whoever goes from n to n + 1 must come back, so the flow up equals the flow down: shares follow one after the
    other, and add up to 1.

    >>> [round(share, 3) for share in heads(requests_per_s=0.5, service_s=1.0, servers=1)[:3]]
    [0.5, 0.25, 0.125]
    """
    shares = [1.0]
    for there in range(1, most):
        shares.append(shares[-1] * requests_per_s / (min(there, servers) / service_s))
        if shares[-1] < 1e-18 * max(shares):
            break
    total = sum(shares)
    return [share / total for share in shares]


def mean_wait_of_constant_service_s(*, requests_per_s: float, service_s: float) -> float:
    """The wait before one server that takes equally long for everyone.

    >>> round(mean_wait_of_constant_service_s(requests_per_s=0.5, service_s=1.0), 3)
    0.5
    """
    return mean_wait_of_mixed_services_s(requests_per_s=requests_per_s, kinds=[(1.0, service_s)])


def mean_wait_of_mixed_services_s(*, requests_per_s: float, kinds: list[tuple[float, float]]) -> float:
    """The wait before one server and several kinds of customers, each (share, seconds): heads are counted as each
    customer leaves.

    Whoever sees the count go above n must see it come back, one at a time: down happens when nobody arrives during a
    service.

    >>> round(mean_wait_of_mixed_services_s(requests_per_s=0.5, kinds=[(1.0, 1.0)]), 3)
    0.5
    """
    arrive = [0.0] * 60  # how likely 0, 1, 2, … arrive during one service
    for share, service_s in kinds:
        chance = math.exp(-requests_per_s * service_s)
        for number in range(len(arrive)):
            arrive[number] += share * chance
            chance *= requests_per_s * service_s / (number + 1)
    more = [math.fsum(arrive[number + 1 :]) for number in range(len(arrive))]
    left = [1.0]
    while left[-1] > 1e-17 and len(left) < 2000:
        there = len(left) - 1
        up = left[0] * _at(more, there) + math.fsum(
            left[now] * _at(more, there - now + 1) for now in range(max(1, there - 60), there + 1)
        )
        left.append(up / arrive[0])
    total = math.fsum(left)
    inside_s = math.fsum(there * share for there, share in enumerate(left)) / total / requests_per_s
    return inside_s - math.fsum(share * service_s for share, service_s in kinds)


def time_quantile_s(*, requests_per_s: float, service_s: float, share: float) -> float:
    """The time within which such a share leaves one memoryless server: whoever finds n there waits for n + 1 services,
    and the moment at which those are over is found by halving.

    >>> round(time_quantile_s(requests_per_s=0.5, service_s=1.0, share=0.5), 3)
    1.386
    """
    there = heads(requests_per_s=requests_per_s, service_s=service_s, servers=1)

    def still_inside(seconds: float) -> float:
        services, fewer, chance = 0.0, 0.0, math.exp(-seconds / service_s)
        for number, found in enumerate(there):  # fewer than number + 1 services over in so many seconds
            fewer += chance
            chance *= seconds / service_s / (number + 1)
            services += found * fewer
        return services

    low, high = 0.0, 300 * service_s
    while still_inside(high / 2) < 1 - share:
        high /= 2
    for _ in range(80):
        middle = (low + high) / 2
        low, high = (middle, high) if still_inside(middle) > 1 - share else (low, middle)
    return (low + high) / 2


def _at(shares: list[float], place: int) -> float:
    return shares[place] if place < len(shares) else 0.0


def mean_wait_s(*, requests_per_s: float, service_s: float, servers: int) -> float:
    """Add up who stands in the queue at each count of heads, and share it among the arrivals.

    >>> round(mean_wait_s(requests_per_s=0.5, service_s=1.0, servers=1), 3)
    1.0
    """
    queued = sum(
        max(0, there - servers) * share
        for there, share in enumerate(heads(requests_per_s=requests_per_s, service_s=service_s, servers=servers))
    )
    return queued / requests_per_s


def waiting_share(*, requests_per_s: float, service_s: float, servers: int) -> float:
    """How often an arrival finds every server taken.

    >>> round(waiting_share(requests_per_s=0.5, service_s=1.0, servers=2), 3)
    0.1
    """
    return sum(
        share
        for there, share in enumerate(heads(requests_per_s=requests_per_s, service_s=service_s, servers=servers))
        if there >= servers
    )
