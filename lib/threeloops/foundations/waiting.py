"""Waiting: requests that come when they like, and a number of places to serve them. What holds for telephone lines,
servers and spare nodes alike.

>>> round(blocked_share(offered_load=8.108, servers=15), 4)  # fifteen telephone lines lose one call in a hundred
0.01

Source: Kleinrock, Queueing Systems, volume 1, 1975, section 3.6
"""

from threeloops import checks


def blocked_share(*, offered_load: float, servers: int) -> float:
    """Erlang's B: the share of arrivals that find every server taken, where nobody waits.

    Formula:  A^c/c! / (sum of A^k/k! for k <= c), A = offered load, c = servers; by recursion B(c) = A * B(c - 1) /
              (c + A * B(c - 1)), B(0) = 1
    Units:    offered_load in servers: arrivals per second times mean seconds of service
    Assumes:  Poisson arrivals; service times of any distribution with that mean; who finds no free server is lost
              (M/G/c/c)
    Raises:   ValueError unless offered_load > 0 and servers >= 0
    Source:   Erlang, 1917; Kleinrock, Queueing Systems, volume 1, 1975, section 3.6
    Counted:  tests.foundations.test_waiting.test_the_recursion_is_the_sum

    >>> blocked_share(offered_load=1, servers=1), blocked_share(offered_load=1, servers=2)
    (0.5, 0.2)
    """
    checks.positive(offered_load=offered_load)
    checks.count(at_least=0, servers=servers)
    blocked = 1.0
    for places in range(1, servers + 1):
        blocked = offered_load * blocked / (places + offered_load * blocked)
    return blocked
