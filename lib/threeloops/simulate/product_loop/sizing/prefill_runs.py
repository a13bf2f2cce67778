"""Prefill runs: servers that only read prompts, one at a time each, and how long requests wait for their first token.

>>> half, late = first_tokens_s([0.1], servers=2, requests_per_s=10.0, requests=4000, seed=1)
>>> f"{half:.2f} s in the median, {late:.2f} s for one in a hundred"
'0.10 s in the median, 0.27 s for one in a hundred'
"""

import functools
import math
from collections.abc import Sequence
from heapq import heapreplace

from threeloops import checks
from threeloops.simulate.product_loop.sizing.draws import Draws, arrivals_s, quantiles
from threeloops.simulate.product_loop.sizing.replica_runs import CONFIRMING, WARMING, Seconds

READ_BY_EACH = 16  # prompts that each server reads at least, so that a large pool is not seen half empty


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


def enough_requests(reading_s: Sequence[float], requests_per_s: float) -> int:
    """Requests that a run needs whose 99th percentile is shown: as many for each server that is kept busy, and no
    fewer than for a few; reading_s: seconds of each prompt.
    """
    busy = requests_per_s * math.fsum(reading_s) / len(reading_s)
    return max(4 * CONFIRMING, math.ceil(READ_BY_EACH * busy))


@functools.cache  # the pool is the same, whatever decodes
def fewest_servers(
    reading_s: tuple[float, ...], *, requests_per_s: float, promised_s: float, together: int, seed: int
) -> tuple[int, Seconds]:
    """The fewest servers, `together` at a time, with which 99 % of first tokens come as promised.

    Raises:   ValueError where a prompt takes longer than promised before any waits
    """
    mean_s = math.fsum(reading_s) / len(reading_s)
    if max(reading_s) > promised_s:
        raise ValueError(
            f"a prompt takes up to {max(reading_s):.3g} s to read, and the first token is promised within"
            f" {promised_s:g} s: take a larger --prefill-tp, --hit, or promise more"
        )
    groups = max(1, math.ceil(requests_per_s * mean_s / together))
    requests = enough_requests(reading_s, requests_per_s)
    while True:
        servers = groups * together
        if servers > requests_per_s * mean_s:
            seen = first_tokens_s(
                reading_s, servers=servers, requests_per_s=requests_per_s, requests=requests, seed=seed
            )
            if seen[1] <= promised_s:
                return servers, seen
        groups += 1
