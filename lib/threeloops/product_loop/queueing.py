"""Queues: how long requests wait because they arrive when they like and take as long as they need.

Little's law holds for every system; Erlang's B is for requests that are turned away when no server is free, his C for
requests that wait.

>>> one, two = mm1_wait_s(requests_per_s=0.5, service_s=1), mm1_wait_s(requests_per_s=0.9, service_s=1)
>>> one, round(two, 9)  # from half load to nine tenths: nine times the wait
(1.0, 9.0)
"""

import math

from threeloops import checks
from threeloops.foundations import waiting


def littles_law(*, requests_per_s: float, seconds: float) -> float:
    """Requests inside the system, on average: Little's law.

    Formula:  arrival rate * time in the system
    Assumes:  the system is stable: as many leave as arrive. Nothing else: no distribution, no order of service
    Source:   Little, Operations Research 9(3), 1961, doi:10.1287/opre.9.3.383
    Counted:  simulate.product_loop.serving_run.run

    >>> littles_law(requests_per_s=12, seconds=3.5)
    42.0
    """
    checks.non_negative(requests_per_s=requests_per_s, seconds=seconds)
    return requests_per_s * seconds


def closed_loop_per_s(*, clients: int, answer_s: float, think_s: float) -> float:
    """Requests per second of clients who wait for their answer, think, and send the next request.

    Formula:  clients / (answer time + thinking time): Little's law, where every client is always inside
    Assumes:  means over a long run; the answer time is the one with all clients at work, waiting included
    Source:   Little, Operations Research 9(3), 1961, doi:10.1287/opre.9.3.383
    Counted:  tests.product_loop.test_waiting_times.test_clients_who_wait_send_as_fast_as_they_come_round

    >>> closed_loop_per_s(clients=30, answer_s=0.5, think_s=2)
    12.0
    """
    checks.count(clients=clients)
    checks.positive(answer_s=answer_s)
    checks.non_negative(think_s=think_s)
    return clients / (answer_s + think_s)


def load(*, requests_per_s: float, service_s: float, servers: int) -> float:
    """The share of time that each server is busy.

    Formula:  arrivals/s * service time / servers
    Raises:   ValueError from 1 on: the queue grows without end, and no mean exists
    Source:   by definition
    Counted:  drills.queues.waits.MM1

    >>> load(requests_per_s=6, service_s=0.5, servers=4)
    0.75
    """
    checks.positive(requests_per_s=requests_per_s, service_s=service_s)
    checks.count(servers=servers)
    share = requests_per_s * service_s / servers
    if share >= 1:
        raise ValueError(
            f"a load of {share:.3g} is more than {servers} servers can work off; the queue would grow without end. Add"
            " servers or take less"
        )
    return share


def mm1_wait_s(*, requests_per_s: float, service_s: float) -> float:
    """Mean seconds in the queue of a single server, before service begins.

    Formula:  service time * load / (1 - load)
    Assumes:  Poisson arrivals, exponential service times, first come first served, nobody leaves (M/M/1)
    Source:   Kleinrock, Queueing Systems, volume 1, 1975, section 3.2
    Counted:  drills.queues.waits.MM1
    """
    share = load(requests_per_s=requests_per_s, service_s=service_s, servers=1)
    return service_s * share / (1 - share)


def most_arrivals_for_wait(*, service_s: float, wait_s: float) -> float:
    """Requests per second that may come to a single server so that their mean wait is no longer than that.

    Formula:  load / service time, load = wait / (wait + service time): mm1_wait_s solved for the load
    Assumes:  as mm1_wait_s
    Source:   Kleinrock, Queueing Systems, volume 1, 1975, section 3.2 (M/M/1)
    Counted:  simulate.product_loop.queue.mean_wait_s

    >>> most_arrivals_for_wait(service_s=0.25, wait_s=0.75)
    3.0
    """
    checks.positive(service_s=service_s, wait_s=wait_s)
    return wait_s / (wait_s + service_s) / service_s


def mg1_wait_s(*, requests_per_s: float, service_s: float, service_cv: float) -> float:
    """Mean seconds in the queue of a single server whose service times vary more or less than exponentially.

    Formula:  service time * load / (1 - load) * (1 + cv^2) / 2, cv = standard deviation / mean
    Assumes:  Poisson arrivals, independent service times (M/G/1); cv = 1 is the exponential, 0 the constant
    Source:   Kleinrock, Queueing Systems, volume 1, 1975, section 5.6 (Pollaczek-Khinchine)
    Counted:  simulate.product_loop.queue.waits

    >>> mg1_wait_s(requests_per_s=0.5, service_s=1, service_cv=0)  # constant service halves the wait
    0.5
    """
    checks.non_negative(service_cv=service_cv)
    return mm1_wait_s(requests_per_s=requests_per_s, service_s=service_s) * (1 + service_cv**2) / 2


def erlang_b(*, requests_per_s: float, service_s: float, servers: int) -> float:
    """The share of requests that are turned away because every server is busy and there is no queue.

    Formula:  A^c/c! / (sum of A^k/k! for k <= c), A = arrivals/s * service time, c = servers
    Assumes:  Poisson arrivals, any service times with that mean, nobody waits (M/G/c/c); so the load may be above 1
    Raises:   ValueError unless there is a server, and arrivals and service time are positive
    Source:   Erlang, 1917; Kleinrock, Queueing Systems, volume 1, 1975, section 3.6
    Counted:  simulate.product_loop.queue.turned_away

    >>> round(
    ...     erlang_b(requests_per_s=8, service_s=1, servers=10), 3
    ... )  # where all may wait, three times as many find ten servers busy: erlang_c
    0.122
    """
    checks.positive(requests_per_s=requests_per_s, service_s=service_s)
    checks.count(servers=servers)
    return waiting.blocked_share(offered_load=requests_per_s * service_s, servers=servers)


def turned_away_share(*, requests_per_s: float, service_s: float, servers: int) -> float:
    """The share of requests that a queue turns away which is bounded and always full; 0 where the servers keep up.

    Formula:  1 - servers / service time / arrivals/s, and at least 0
    Assumes:  a long overload, in which no server is ever idle: then neither the length of the queue nor the
              distributions matter. Without a queue it is erlang_b
    Source:   conservation of requests; see Little, Operations Research 9(3), 1961, doi:10.1287/opre.9.3.383
    Counted:  simulate.product_loop.visits.play

    >>> turned_away_share(requests_per_s=32, service_s=0.5, servers=12)
    0.25
    """
    checks.positive(requests_per_s=requests_per_s, service_s=service_s)
    checks.count(servers=servers)
    return max(0.0, 1 - servers / service_s / requests_per_s)


def erlang_c(*, requests_per_s: float, service_s: float, servers: int) -> float:
    """The share of requests that find all servers busy and have to wait.

    Formula:  B / (1 - load * (1 - B)), B = erlang_b: no factorial, so it holds for many thousand servers
    Assumes:  Poisson arrivals, exponential service times, one queue for all servers (M/M/c)
    Source:   Kleinrock, Queueing Systems, volume 1, 1975, section 3.5
    Counted:  simulate.product_loop.queue.waiting_share

    >>> round(erlang_c(requests_per_s=8, service_s=1, servers=10), 3)
    0.409
    """
    share = load(requests_per_s=requests_per_s, service_s=service_s, servers=servers)
    blocked = waiting.blocked_share(offered_load=requests_per_s * service_s, servers=servers)
    return blocked / (1 - share * (1 - blocked))


def mmc_wait_s(*, requests_per_s: float, service_s: float, servers: int) -> float:
    """Mean seconds in the one queue of several servers.

    Formula:  Erlang C * service time / (servers * (1 - load))
    Assumes:  as erlang_c
    Source:   Kleinrock, Queueing Systems, volume 1, 1975 (M/M/c)
    Counted:  simulate.product_loop.queue.mean_wait_s

    >>> round(mmc_wait_s(requests_per_s=0.9, service_s=1, servers=1), 6)  # one server: M/M/1
    9.0
    """
    share = load(requests_per_s=requests_per_s, service_s=service_s, servers=servers)
    return (
        erlang_c(requests_per_s=requests_per_s, service_s=service_s, servers=servers)
        * service_s
        / (servers * (1 - share))
    )


def mmc_late_share(*, requests_per_s: float, service_s: float, servers: int, wait_s: float) -> float:
    """The share of requests that wait longer than that in the one queue of several servers.

    Formula:  Erlang C * exp(-servers * (1 - load) * wait / service time)
    Assumes:  as erlang_c, first come first served
    Source:   Kleinrock, Queueing Systems, volume 1, 1975, section 3.5
    Counted:  simulate.product_loop.queue.waits

    >>> round(mmc_late_share(requests_per_s=8, service_s=1, servers=10, wait_s=1), 3)
    0.055
    """
    checks.non_negative(wait_s=wait_s)
    idle = 1 - load(requests_per_s=requests_per_s, service_s=service_s, servers=servers)
    waits = erlang_c(requests_per_s=requests_per_s, service_s=service_s, servers=servers)
    return waits * math.exp(-servers * idle * wait_s / service_s)


def mm1_time_quantile_s(*, requests_per_s: float, service_s: float, share: float) -> float:
    """The time in the system, wait and service, within which such a share of requests is done: 0.99 for p99.

    Formula:  mean time * ln(1 / (1 - share)), mean time = service / (1 - load): the time is itself exponential
    Assumes:  as mm1_wait_s; exact, not an approximation
    Source:   Kleinrock, Queueing Systems, volume 1, 1975 (the time in an M/M/1 system is exponential)
    Counted:  simulate.product_loop.visits.play

    >>> round(mm1_time_quantile_s(requests_per_s=0.8, service_s=1, share=0.99), 2)  # mean 5, p99 4.6 times that
    23.03
    """
    checks.fraction(share=share)
    if share == 1:
        raise ValueError("share=1 asks for the slowest request of all, which has no bound; give 0.99 or 0.999")
    busy = load(requests_per_s=requests_per_s, service_s=service_s, servers=1)
    return service_s / (1 - busy) * -math.log1p(-share)


def most_load_for_quantile(*, service_s: float, share: float, seconds: float) -> float:
    """How busy one server may be so that such a share of requests is done within so many seconds.

    Formula:  1 - service * ln(1 / (1 - share)) / seconds, and 0 where even an empty server is too slow
    Assumes:  as mm1_time_quantile_s
    Source:   Kleinrock, Queueing Systems, volume 1, 1975 (as in mm1_time_quantile_s, solved for the load)
    Counted:  drills.queues.tails.ALLOWED

    >>> round(most_load_for_quantile(service_s=0.1, share=0.99, seconds=1), 3)
    0.539
    """
    checks.positive(service_s=service_s, seconds=seconds)
    checks.fraction(share=share)
    return max(0.0, 1 + service_s * math.log1p(-share) / seconds)


def mgc_wait_s(*, requests_per_s: float, service_s: float, servers: int, service_cv: float) -> float:
    """Mean wait before several servers whose service times vary more or less than exponentially: an approximation.

    Formula:  M/M/c wait * (1 + cv^2) / 2
    Assumes:  as mmc_wait_s; exact for one server and for exponential service. Else it is off by so many per cent, at
              loads of 50, 70 and 90 %, against the exact wait:
              cv 0.71 (Erlang, two stages), 4 servers: -5 -2 -1; 16 servers: -12 -6 -2
              cv 2 (hyperexponential, balanced), 4 servers: +30 +14 +4; 16 servers: +84 +44 +11
              Two moments do not settle it: another distribution with a cv of 2 is off by another share
    Source:   Lee and Longton, Operational Research Quarterly 10(1), 1959 (queues of airline passengers)
    Counted:  simulate.product_loop.queue.waits
    """
    checks.non_negative(service_cv=service_cv)
    exponential = mmc_wait_s(requests_per_s=requests_per_s, service_s=service_s, servers=servers)
    return exponential * (1 + service_cv**2) / 2


def kingman_wait_s(*, requests_per_s: float, service_s: float, gap_cv: float, service_cv: float) -> float:
    """Mean wait before one server when arrivals come in bursts: an approximation that is good at high load.

    Formula:  service * load / (1 - load) * (gap cv^2 + service cv^2) / 2
    Units:    gap_cv: standard deviation over mean of the gaps between arrivals; Poisson has 1, bursts have more
    Assumes:  independent gaps (G/G/1), heavy traffic; exact for Poisson arrivals, not for all gaps with a cv of 1
    Source:   Kingman, Mathematical Proceedings of the Cambridge Philosophical Society 57(4), 1961,
              doi:10.1017/S0305004100036094
    Counted:  simulate.product_loop.visits.play

    >>> kingman_wait_s(requests_per_s=0.5, service_s=1, gap_cv=3, service_cv=1)  # five times the Poisson wait
    5.0
    """
    checks.non_negative(gap_cv=gap_cv, service_cv=service_cv)
    return mm1_wait_s(requests_per_s=requests_per_s, service_s=service_s) * (gap_cv**2 + service_cv**2) / 2
