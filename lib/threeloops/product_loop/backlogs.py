"""Backlogs: what waits after a time in which a server was late, slow or paused, and how long it takes to be rid of it.

>>> left = cold_start_backlog(requests_per_s=30, served_per_s=20, late_s=90)
>>> left, drain_s(backlog=left, requests_per_s=30, served_per_s=40)
(900, 90.0)
"""

from threeloops import checks


def cold_start_backlog(*, requests_per_s: float, served_per_s: float, late_s: float) -> float:
    """Requests that wait when the added servers begin at last.

    Formula:  (arrivals/s - served/s) * seconds until they begin, and 0 where the old servers keep up
    Assumes:  steady rates, an empty queue at the start; late_s counts from the jump: noticing, starting, loading
    Source:   by definition: what comes and is not served waits
    Counted:  simulate.product_loop.visits.waiting_over_time

    >>> cold_start_backlog(requests_per_s=30, served_per_s=20, late_s=90)
    900
    """
    checks.non_negative(requests_per_s=requests_per_s, served_per_s=served_per_s, late_s=late_s)
    return max(0, (requests_per_s - served_per_s) * late_s)


def drain_s(*, backlog: float, requests_per_s: float, served_per_s: float) -> float:
    """Seconds until a backlog is worked off while others keep arriving.

    Formula:  backlog / (served/s - arrivals/s)
    Raises:   ValueError unless more are served than arrive
    Source:   by definition: the backlog shrinks by what is served beyond what comes
    Counted:  simulate.product_loop.visits.waiting_over_time

    >>> drain_s(backlog=900, requests_per_s=30, served_per_s=40)
    90.0
    """
    checks.non_negative(backlog=backlog, requests_per_s=requests_per_s, served_per_s=served_per_s)
    if served_per_s <= requests_per_s:
        raise ValueError(
            f"served_per_s={served_per_s} is no more than requests_per_s={requests_per_s}; the backlog never ends"
        )
    return backlog / (served_per_s - requests_per_s)


def late_after_pause(*, requests_per_s: float, pause_s: float, limit_s: float) -> float:
    """Requests that take longer than a limit because the server stops for a while and then answers all at once.

    Formula:  arrivals/s * (pause - limit), and at least 0: who comes later in the pause waits for less
    Assumes:  even arrivals of users who do not wait for one another; outside the pause an answer takes no time
    Source:   Tene, wrk2, README, 2012 onwards (coordinated omission)
    Counted:  simulate.product_loop.visits.play

    >>> late_after_pause(requests_per_s=50, pause_s=2, limit_s=0.5)
    75.0
    """
    checks.non_negative(requests_per_s=requests_per_s, pause_s=pause_s, limit_s=limit_s)
    return max(0.0, requests_per_s * (pause_s - limit_s))
