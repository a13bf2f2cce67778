"""Queues: how long requests wait because they arrive when they like and take as long as they need.

>>> one, two = mm1_wait_s(arrivals_per_s=0.5, service_s=1), mm1_wait_s(arrivals_per_s=0.9, service_s=1)
>>> one, round(two, 9)  # from half load to nine tenths: nine times the wait
(1.0, 9.0)
"""

import math

from threeloops import checks


def load(*, arrivals_per_s: float, service_s: float, servers: int) -> float:
    """The share of time that each server is busy.

    Formula:  arrivals/s * service time / servers
    Raises:   ValueError from 1 on: the queue grows without end, and no mean exists

    >>> load(arrivals_per_s=6, service_s=0.5, servers=4)
    0.75
    """
    checks.positive(arrivals_per_s=arrivals_per_s, service_s=service_s)
    checks.count(servers=servers)
    share = arrivals_per_s * service_s / servers
    if share >= 1:
        raise ValueError(f"a load of {share:.3g} is more than {servers} servers can work off; the queue would grow without end. Add servers or take less")
    return share


def mm1_wait_s(*, arrivals_per_s: float, service_s: float) -> float:
    """Mean seconds in the queue of a single server, before service begins.

    Formula:  service time * load / (1 - load)
    Assumes:  Poisson arrivals, exponential service times, first come first served, nobody leaves (M/M/1)
    Source:   Kleinrock, Queueing Systems, volume 1, 1975, section 3.2
    """
    share = load(arrivals_per_s=arrivals_per_s, service_s=service_s, servers=1)
    return service_s * share / (1 - share)


def mg1_wait_s(*, arrivals_per_s: float, service_s: float, service_cv: float) -> float:
    """Mean seconds in the queue of a single server whose service times vary more or less than exponentially.

    Formula:  service time * load / (1 - load) * (1 + cv^2) / 2, cv = standard deviation / mean
    Assumes:  Poisson arrivals, independent service times (M/G/1); cv = 1 is the exponential, 0 the constant
    Source:   Kleinrock, Queueing Systems, volume 1, 1975, section 5.6 (Pollaczek-Khinchine)

    >>> mg1_wait_s(arrivals_per_s=0.5, service_s=1, service_cv=0)  # constant service halves the wait
    0.5
    """
    checks.non_negative(service_cv=service_cv)
    return mm1_wait_s(arrivals_per_s=arrivals_per_s, service_s=service_s) * (1 + service_cv**2) / 2


def erlang_c(*, arrivals_per_s: float, service_s: float, servers: int) -> float:
    """The share of requests that find all servers busy and have to wait.

    Formula:  A^c/c! / (1 - load) / (sum of A^k/k! for k < c + A^c/c! / (1 - load)), A = arrivals/s * service time, c = servers
    Assumes:  Poisson arrivals, exponential service times, one queue for all servers (M/M/c)
    Source:   Kleinrock, Queueing Systems, volume 1, 1975, section 3.5

    >>> round(erlang_c(arrivals_per_s=8, service_s=1, servers=10), 3)
    0.409
    """
    share = load(arrivals_per_s=arrivals_per_s, service_s=service_s, servers=servers)
    offered = arrivals_per_s * service_s
    all_busy = math.exp(servers * math.log(offered) - math.lgamma(servers + 1)) / (1 - share)
    some_free = math.fsum(math.exp(k * math.log(offered) - math.lgamma(k + 1)) for k in range(servers))
    return all_busy / (some_free + all_busy)


def mmc_wait_s(*, arrivals_per_s: float, service_s: float, servers: int) -> float:
    """Mean seconds in the one queue of several servers.

    Formula:  Erlang C * service time / (servers * (1 - load))
    Assumes:  as erlang_c

    >>> round(mmc_wait_s(arrivals_per_s=0.9, service_s=1, servers=1), 6)  # one server: M/M/1
    9.0
    """
    share = load(arrivals_per_s=arrivals_per_s, service_s=service_s, servers=servers)
    return erlang_c(arrivals_per_s=arrivals_per_s, service_s=service_s, servers=servers) * service_s / (servers * (1 - share))
