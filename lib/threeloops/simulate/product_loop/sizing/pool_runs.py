"""Pool runs: two pools under a rate, or with users, each of whom asks again as soon as the answer has come; request by
request.

>>> copy = DecodeCopy(decode_s=(0.0, 0.010, 0.011, 0.012), max_num_seqs=3)
>>> alone = with_pool_users([(0.2, 101)], users=1, servers=1, copies=[copy], handover_s=0.1, rounds=2, seed=1)
>>> f"{alone.ttft_s[0]:.1f} s to the first token, {alone.tpot_s[0] * 1e3:.0f} ms to each other, on average"
'0.2 s to the first token, 11 ms to each other, on average'

Source: Zhong et al., DistServe, 2024, arXiv:2401.09670, section 3 (what the two pools do)
"""

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from heapq import heapify, heappop, heappush, heapreplace
from itertools import accumulate

from threeloops import checks
from threeloops.simulate.product_loop.serving_requests import Request
from threeloops.simulate.product_loop.serving_run import run
from threeloops.simulate.product_loop.sizing.draws import Draws, arrivals_s, quantiles
from threeloops.simulate.product_loop.sizing.prefill_runs import each_read, enough_requests
from threeloops.simulate.product_loop.sizing.replica_runs import WARMING, Replica, ReplicaRun, Seconds

HANDED, STEPPED = 0, 1  # events of one moment: caches come before the step that begins then
SHARES = (0.5, 0.99)


@dataclass(frozen=True, slots=True, kw_only=True)
class DecodeCopy:
    """An engine that only decodes."""

    decode_s: Sequence[float]  # of a step, by the number of requests in it
    max_num_seqs: int


@dataclass(slots=True)
class _Asked:
    """One request on its way."""

    place: int  # in the order in which requests are asked
    steps: int  # of its answer, the first token's included
    asked_s: float
    first_s: float = 0.0
    latest_s: float = 0.0  # its latest token


class _Decoding:
    """A copy at work: who waits for a seat, and who ends at which of its steps."""

    def __init__(self, copy: DecodeCopy) -> None:
        self.copy, self.steps, self.busy = copy, 0, False
        self.waiting: list[_Asked] = []
        self.ends: list[tuple[int, int, _Asked]] = []  # a heap
        self.joined: list[_Asked] = []  # in the step that is being taken for the first time

    @property
    def in_flight(self) -> int:
        return len(self.waiting) + len(self.ends)

    def begin(self) -> float:
        """Seat whoever has room, and begin a step: its seconds; 0 where nobody is there."""
        while self.waiting and len(self.ends) < self.copy.max_num_seqs:
            one = self.waiting.pop(0)
            self.joined.append(one)
            heappush(self.ends, (self.steps + one.steps - 1, one.place, one))
        self.busy = bool(self.ends)
        return self.copy.decode_s[len(self.ends)] if self.busy else 0.0


def with_pool_users(
    sizes: Sequence[tuple[float, int]],
    *,
    users: int,
    servers: int,
    copies: Sequence[DecodeCopy],
    handover_s: float,
    rounds: int,
    seed: int,
) -> ReplicaRun:
    """What so many users see of servers that read prompts, one at a time each, and of copies that decode.

    Shapes:   sizes: seconds that a prompt takes to read, and steps of its answer from the first token on, of equally
              likely requests
    Assumes:  the server that is free first reads whoever came first; a cache goes to the copy with the fewest requests;
              nobody's handover waits for another's; the first round, which all begin at once, is not counted
    """
    checks.count(users=users, servers=servers, copies=len(copies), rounds=rounds)
    playing = _Run(sizes, servers, copies, handover_s, (users, users * (rounds + 1)), seed)
    for _ in range(users):
        playing.ask(0.0)
    while playing.open:
        playing.next_event()
    return playing.seen()


def at_pool_rate(
    sizes: Sequence[tuple[float, int]],
    *,
    requests_per_s: float,
    servers: int,
    copies: int,
    copy: Replica,
    handover_s: float,
    requests: int,
    seed: int,
) -> tuple[Seconds, ...]:
    """First token and mean gap of each of so many requests of one copy that decodes, at a rate of all copies.

    Formula:  first token: wait + reading; mean gap: (handover + wait for a seat + steps) / tokens after the first
    Shapes:   sizes: as with_pool_users
    Assumes:  prefill_runs' servers; a copy is handed what they have read one by one, at random (Poisson); a mean gap
              counts the handover and the wait for a seat; the first quarter, which finds a pool still empty, is not
              counted, of either
    """
    checks.count(copies=copies)
    reading_s, steps = zip(*sizes, strict=True)
    enough = enough_requests(reading_s, requests_per_s, servers=servers)
    firsts = each_read(reading_s, servers=servers, requests_per_s=requests_per_s, requests=enough, seed=seed)
    arrivals, draws = arrivals_s(requests_per_s=requests_per_s / copies, requests=requests, seed=seed), Draws(seed + 1)
    read = [firsts[draws.below(len(firsts))] for _ in arrivals]
    handed = [Request(at, 1, steps[place] - 1) for at, (_, place) in zip(arrivals, read, strict=True)]
    done = run(handed, step_s=copy.step, policy=copy.policy).moments[int(WARMING * requests) :]
    gaps_s = ((one.request_s + handover_s) / one.request.output_tokens for one in done)
    return tuple(zip((first_s for first_s, _ in read[-len(done) :]), gaps_s, strict=True))


class _Run:
    def __init__(
        self,
        sizes: Sequence[tuple[float, int]],
        servers: int,
        copies: Sequence[DecodeCopy],
        handover_s: float,
        counted: tuple[int, int],
        seed: int,
    ) -> None:
        self.sizes, self.handover_s = sizes, handover_s
        self.first, self.last = counted  # of the requests that are counted
        self.draws, self.asked, self.open = Draws(seed), 0, self.last - self.first
        self.free = [0.0] * servers
        heapify(self.free)
        self.copies = [_Decoding(copy) for copy in copies]
        self.events: list[tuple[float, int, int, _Asked | _Decoding]] = []
        self.gaps: list[tuple[float, int]] = []  # seconds, and how many requests saw them
        self.done: list[tuple[float, float]] = []  # TTFT and mean gap of every counted request
        self.begin_s = self.end_s = 0.0
        self.made = self.stayed_s = 0.0

    @property
    def counting(self) -> bool:
        return self.first < self.asked <= self.last

    def ask(self, now: float) -> None:
        """A user asks: the prompt is read as soon as a server is free."""
        place, self.asked = self.asked, self.asked + 1
        self.begin_s = now if place == self.first else self.begin_s
        self.end_s = now if place == self.last else self.end_s
        reads_s, steps = self.sizes[self.draws.below(len(self.sizes))]
        one = _Asked(place, steps, now)
        one.first_s = one.latest_s = max(now, self.free[0]) + reads_s
        heapreplace(self.free, one.first_s)
        heappush(self.events, (one.first_s + self.handover_s, HANDED, place, one))

    def next_event(self) -> None:
        now, _, _, what = heappop(self.events)
        if isinstance(what, _Asked):
            copy = min(self.copies, key=lambda one: one.in_flight)
            copy.waiting.append(what)
        else:
            copy = what
            self._stepped(copy, now)
        if not copy.busy or what is copy:
            seconds = copy.begin()
            if copy.busy:
                heappush(self.events, (now + seconds, STEPPED, self.copies.index(copy), copy))

    def _stepped(self, copy: _Decoding, now: float) -> None:
        """A step has ended: everyone in it has a token more, and some have their last."""
        inside, seconds = len(copy.ends), copy.copy.decode_s[len(copy.ends)]
        copy.steps += 1
        if self.counting:
            self.made += inside
            self.stayed_s += inside * seconds
            self.gaps.append((seconds, inside - len(copy.joined)))
            self.gaps += [(now - one.latest_s, 1) for one in copy.joined]
        copy.joined.clear()
        while copy.ends and copy.ends[0][0] <= copy.steps:
            one = heappop(copy.ends)[2]
            self._ended(one, now)
            self.ask(now)

    def _ended(self, one: _Asked, now: float) -> None:
        if self.first <= one.place < self.last:
            self.done.append((one.first_s - one.asked_s, (now - one.first_s) / (one.steps - 1)))
            self.open -= 1

    def seen(self) -> ReplicaRun:
        """What the counted requests saw; each also had its first token from the other pool."""
        firsts, means = zip(*self.done, strict=True)
        seconds = self.end_s - self.begin_s
        return ReplicaRun(
            ttft_s=_two(quantiles(firsts, SHARES)),
            itl_s=_two(_weighted(self.gaps)),
            tpot_s=_two(quantiles(means, SHARES)),
            tokens_per_s=(self.made + self.last - self.first) / seconds,
            inside=self.stayed_s / seconds,
            each_s=tuple(self.done),
        )


def _weighted(gaps: Sequence[tuple[float, int]]) -> list[float]:
    """Quantiles of gaps, each of which so many requests saw."""
    ordered = sorted(gaps)
    reached = list(accumulate(times for _, times in ordered))
    return [ordered[bisect_left(reached, share * reached[-1])][0] for share in SHARES]


def _two(both: Sequence[float]) -> Seconds:
    half, late = both
    return half, late
