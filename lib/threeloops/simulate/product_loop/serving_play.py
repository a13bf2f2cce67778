"""Playing requests through one server, without numpy: what the drills' counts and `serving_run` share.

>>> from threeloops.simulate.product_loop.serving_policies import continuous_batching
>>> from threeloops.simulate.product_loop.serving_steps import AffineStep
>>> server = Server(step_s=AffineStep(base_s=1.0), policy=continuous_batching(slots=1))
>>> [one.finished_s for one in played([Request(0.0, 1, 3), Request(1.0, 1, 2)], server=server)]
[3.0, 5.0]
"""

import math
from collections.abc import Iterable

from threeloops.simulate.product_loop.serving_requests import Moments, Request
from threeloops.simulate.product_loop.serving_server import Server


def in_order(requests: Iterable[Request]) -> tuple[list[Moments], list[Moments]]:
    """(as given, by arrival); whoever arrives at the same moment keeps the given order."""
    given = [Moments(place, request) for place, request in enumerate(requests)]
    if not given:
        raise ValueError("requests is empty; a run needs one")
    return given, sorted(given, key=lambda moments: moments.request.arrival_s)


def played(requests: Iterable[Request], *, server: Server) -> list[Moments]:
    """Every request's moments, in the order given, once the server has served them all."""
    given, arriving = in_order(requests)
    for moments in arriving:
        server.advance(moments.request.arrival_s)
        server.add(moments)
    server.advance(math.inf)
    return given
