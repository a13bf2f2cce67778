"""Several servers: a number that follows the load, and prompts read in one pool whose caches are sent to another.

>>> from threeloops.simulate.product_loop.serving_policies import continuous_batching
>>> from threeloops.simulate.product_loop.serving_steps import AffineStep
>>> requests = [Request(second, 500, 40) for second in range(60)]
>>> one = Pool(step_s=AffineStep(base_s=0.1), policy=continuous_batching(slots=2))
>>> few = scaled(requests, pool=one, scaling=Scaling(least=1, most=4, target=2, start_s=5.0, stop_after_s=10.0))
>>> few.most_servers, round(few.run.ttft_s.max())
(4, 3)
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from threeloops import checks
from threeloops.simulate.product_loop.serving_play import in_order
from threeloops.simulate.product_loop.serving_policies import KVBlocks, Policy
from threeloops.simulate.product_loop.serving_requests import Moments, Request
from threeloops.simulate.product_loop.serving_requests import Sequence as Waiting
from threeloops.simulate.product_loop.serving_run import Run
from threeloops.simulate.product_loop.serving_server import Server
from threeloops.simulate.product_loop.serving_steps import StepModel


@dataclass(frozen=True, slots=True, kw_only=True)
class Pool:
    """Servers of one kind."""

    step_s: StepModel
    policy: Policy
    blocks: KVBlocks | None = None
    servers: int = 1

    def server(self, *, begin_s: float = 0.0) -> Server:
        """A new one."""
        return Server(step_s=self.step_s, policy=self.policy, blocks=self.blocks, begin_s=begin_s)


@dataclass(frozen=True, slots=True, kw_only=True)
class Scaling:
    """How the number of servers follows the load. At every arrival: one more server for every `target` requests in
    flight, up to `most`; each is paid from its order and serves after start_s. A server that has been idle for
    stop_after_s ends, down to `least`.
    """

    least: int
    most: int
    target: int
    start_s: float
    stop_after_s: float

    def __post_init__(self) -> None:
        checks.count(least=self.least, most=self.most, target=self.target)
        checks.non_negative(start_s=self.start_s, stop_after_s=self.stop_after_s)
        if self.most < self.least:
            raise ValueError(f"most={self.most} must be at least least={self.least}")


@dataclass(frozen=True, slots=True, kw_only=True)
class ScaledRun:
    """A run, and what it took to serve it."""

    run: Run
    server_s: float  # paid seconds of servers, the starting ones included
    most_servers: int
    orders_s: list[float] = field(default_factory=list)  # when a server was ordered


def route(servers: list[Server]) -> Server:
    """The server with the fewest requests in flight; among equals the first. Whoever ends with the step that is being
    taken counts as gone.
    """
    return min(servers, key=lambda server: server.in_flight)


def run_pool(arriving: Sequence[Moments], *, pool: Pool, read: bool = False) -> list[Server]:
    """Serve requests, in order of arrival, on a fixed number of servers, each to the one with the fewest in flight."""
    servers = [pool.server() for _ in range(pool.servers)]
    for moments in arriving:
        for server in servers:
            server.advance(moments.request.arrival_s)
        route(servers).add(moments, read=read)
    for server in servers:
        server.advance(math.inf)
    return servers


def pooled(requests: Sequence[Request], *, pool: Pool) -> Run:
    """A fixed number of equal servers, each with a queue of its own."""
    given, arriving = in_order(requests)
    return _together(given, run_pool(arriving, pool=pool))


def split(requests: Sequence[Request], *, prefill: Pool, decode: Pool, transfer_s: Callable[[Request], float]) -> Run:
    """Disaggregated: one pool reads prompts and makes first tokens, the cache is sent, another pool decodes the rest.

    Assumes:  transfers do not wait for one another, nor does a prefill server for the decode pool; what the prefill
              pool turns away is gone, and the decode pool turns nobody away
    Source:   Zhong et al., DistServe, 2024, arXiv:2401.09670; Patel et al., Splitwise, 2023, arXiv:2311.18677
    """
    if decode.policy.shed_at is not None:
        raise ValueError("the decode pool turns nobody away; leave shed_at out of its policy")
    given, arriving = in_order(requests)
    firsts = [Moments(one.place, _only_first(one.request)) for one in arriving]
    servers = run_pool(firsts, pool=prefill)
    handed = []
    for whole, first in zip(arriving, firsts, strict=True):
        _carry(whole, first)
        if not first.shed and whole.request.output_tokens > 1:
            handed.append(Moments(whole.place, _sent(whole, transfer_s)))
    handed.sort(key=lambda moments: moments.request.arrival_s)
    servers += run_pool(handed, pool=decode, read=True)
    for rest in handed:
        given[rest.place].finished_s = rest.finished_s
        given[rest.place].released_s = rest.released_s
        given[rest.place].preempted += rest.preempted
    return _together(given, servers)


def _only_first(request: Request) -> Request:
    return Request(request.arrival_s, request.prompt_tokens, 1, request.prefix, request.shared_tokens, request.priority)


def _sent(whole: Moments, transfer_s: Callable[[Request], float]) -> Request:
    request = whole.request
    there_s = whole.first_token_s + transfer_s(request)
    return Request(there_s, request.prompt_tokens, request.output_tokens, priority=request.priority)


def _carry(whole: Moments, first: Moments) -> None:
    """What the prefill pool did for a request."""
    whole.admitted_s, whole.first_token_s, whole.finished_s = first.admitted_s, first.first_token_s, first.finished_s
    whole.released_s, whole.slot, whole.shed = first.released_s, first.slot, first.shed
    whole.preempted, whole.reused_tokens = first.preempted, first.reused_tokens


def scaled(requests: Sequence[Request], *, pool: Pool, scaling: Scaling) -> ScaledRun:
    """Servers that are ordered when load comes and end when they are idle.

    Assumes:  a request goes to the first ready server with fewer than `target` in flight, else to the one with the
              fewest; when a new server is ready, whoever waits for a first slot is routed anew
    """
    given, arriving = in_order(requests)
    fleet = _Fleet(pool, scaling)
    for moments in arriving:
        fleet.until(moments.request.arrival_s)
        fleet.add(moments)
    fleet.until(math.inf)
    run = _together(given, fleet.everyone)
    return ScaledRun(
        run=run,
        server_s=fleet.paid_until(run.end_s),
        most_servers=fleet.most,
        orders_s=fleet.orders_s,
    )


class _Fleet:
    def __init__(self, pool: Pool, scaling: Scaling) -> None:
        self.pool, self.scaling = pool, scaling
        self.servers = [pool.server() for _ in range(scaling.least)]
        self.everyone = list(self.servers)  # the ended ones, too
        self.ordered = dict.fromkeys(self.servers, 0.0)
        self.starting: list[tuple[float, Server]] = []  # in order of when they are ready
        self.paid_s, self.most, self.orders_s = 0.0, scaling.least, list[float]()

    def until(self, moment: float) -> None:
        while self.starting and self.starting[0][0] <= moment:
            ready_s, server = self.starting.pop(0)
            self._advance(ready_s)
            self.servers.append(server)
            self._route_anew(ready_s)
        self._advance(moment)

    def add(self, moments: Moments) -> None:
        now = moments.request.arrival_s
        self._stop_idle(now)
        self._open().add(moments)
        self._order(now)

    def paid_until(self, end_s: float) -> float:
        self._stop_idle(end_s)
        return self.paid_s + sum(end_s - order_s for order_s in self.ordered.values())

    def _advance(self, moment: float) -> None:
        for server in self.servers:
            server.advance(moment)

    def _open(self) -> Server:
        return next((server for server in self.servers if server.in_flight < self.scaling.target), route(self.servers))

    def _route_anew(self, now: float) -> None:
        waiting: list[Waiting] = [sequence for server in self.servers for sequence in server.withdraw()]
        for sequence in sorted(waiting, key=lambda one: one.moments.place):
            self._open().queue(sequence, at=now)

    def _order(self, now: float) -> None:
        in_flight = sum(server.in_flight for server in self.servers)
        wanted = min(self.scaling.most, -(-in_flight // self.scaling.target))
        while len(self.servers) + len(self.starting) < wanted:
            server = self.pool.server(begin_s=now + self.scaling.start_s)
            self.starting.append((now + self.scaling.start_s, server))
            self.everyone.append(server)
            self.ordered[server] = now
            self.orders_s.append(now)
        self.most = max(self.most, len(self.servers) + len(self.starting))

    def _stop_idle(self, now: float) -> None:
        for server in reversed(self.servers[:]):
            end_s = server.now + self.scaling.stop_after_s
            if len(self.servers) > self.scaling.least and not server.in_flight and end_s <= now:
                self.servers.remove(server)
                self.paid_s += end_s - self.ordered.pop(server)


def _together(given: list[Moments], servers: list[Server]) -> Run:
    return Run(
        moments=given,
        steps=sum(server.steps for server in servers),
        busy_s=sum(server.busy_s for server in servers),
        end_s=max(server.now for server in servers if server.steps),
    )
