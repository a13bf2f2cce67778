"""Prefill runs: servers that only read prompts, one at a time each, and how long requests wait for their first token.

>>> half, late = first_tokens_s([0.1], servers=2, requests_per_s=10.0, requests=4000, seed=1)
>>> f"{half:.2f} s in the median, {late:.2f} s for one in a hundred"
'0.10 s in the median, 0.27 s for one in a hundred'
"""

import functools
import math
from collections.abc import Sequence
from heapq import heapreplace
from itertools import count

from threeloops import checks
from threeloops.simulate.product_loop.sizing.draws import Draws, arrivals_s, quantiles
from threeloops.simulate.product_loop.sizing.replica_runs import CONFIRMING, WARMING, Seconds

READ_BY_EACH = 16  # prompts that each server reads at least, so that a large pool is not seen half empty
# A queue near its limit grows for long: its memory is about 4 / idle² requests, where idle is the share of its time in
# which a server has nothing to read. A run takes 8 times as many, and no run is longer than the second number: a pool
# that is idle for less than 1 % of its time is not said to keep a promise.
SETTLING, LONGEST = 32, 320_000


def first_tokens_s(
    reading_s: Sequence[float], *, servers: int, requests_per_s: float, requests: int, seed: int
) -> Seconds:
    """Median and 99th percentile of wait and reading: whoever comes first is read first, by the server that is free
    first.

    Shapes:   reading_s: what a server takes for a prompt, of equally likely ones
    Assumes:  Poisson arrivals; the first quarter, which finds the servers still empty, is not counted
    """
    seen = each_read(reading_s, servers=servers, requests_per_s=requests_per_s, requests=requests, seed=seed)
    half, late = quantiles([took_s for took_s, _ in seen], [0.5, 0.99])
    return half, late


def each_read(
    reading_s: Sequence[float], *, servers: int, requests_per_s: float, requests: int, seed: int
) -> list[tuple[float, int]]:
    """Of every counted request of first_tokens_s its wait and reading, and which of the equally likely ones it is."""
    checks.count(servers=servers, requests=requests)
    draws, free, took = Draws(seed), [0.0] * servers, []
    for now in arrivals_s(requests_per_s=requests_per_s, requests=requests, seed=seed):
        place = draws.below(len(reading_s))
        ends = max(now, free[0]) + reading_s[place]
        heapreplace(free, ends)
        took.append((ends - now, place))
    return took[int(WARMING * requests) :]


def enough_requests(reading_s: Sequence[float], requests_per_s: float, *, servers: int) -> int:
    """Requests that a run needs whose 99th percentile is shown: no fewer than for a few servers, as many for each one
    that is kept busy, and so many that the queue has settled.

    Formula:  SETTLING / (1 - requests_per_s × mean reading / servers)², LONGEST at most; runs must grow with
              1 / (1 - utilisation)², Whitt, Planning Queueing Simulations, Management Science 35, 1989
    Shapes:   reading_s: seconds of each prompt
    """
    busy = requests_per_s * math.fsum(reading_s) / len(reading_s)
    idle = max(1 - busy / servers, math.sqrt(SETTLING / LONGEST))
    return max(4 * CONFIRMING, math.ceil(READ_BY_EACH * busy), math.ceil(SETTLING / idle**2))


@functools.cache  # the pool is the same, whatever decodes
def fewest_servers(
    reading_s: tuple[float, ...], *, requests_per_s: float, promised_s: float, together: int, seed: int
) -> tuple[int, Seconds]:
    """The fewest servers, `together` at a time, with which 99 % of first tokens come as promised.

    Assumes:  as first_tokens_s; servers are idle for 1 % of their time or more, since with less no run is long enough
              to show how far their queue grows
    Raises:   ValueError where a prompt takes longer than promised before any waits
    """
    mean_s = math.fsum(reading_s) / len(reading_s)
    if max(reading_s) > promised_s:
        raise ValueError(
            f"a prompt takes up to {max(reading_s):.3g} s to read, and the first token is promised within"
            f" {promised_s:g} s: take a larger --prefill-tp, --hit, or promise more"
        )
    busiest = 1 - math.sqrt(SETTLING / LONGEST)
    for groups in count(max(1, math.ceil(requests_per_s * mean_s / busiest / together))):
        servers = groups * together
        requests = enough_requests(reading_s, requests_per_s, servers=servers)
        seen = first_tokens_s(reading_s, servers=servers, requests_per_s=requests_per_s, requests=requests, seed=seed)
        if seen[1] <= promised_s:
            break
    return servers, seen
