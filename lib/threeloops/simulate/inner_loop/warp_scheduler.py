"""One scheduler of a multiprocessor and its resident warps, cycle by cycle: who issues, who waits, what is on its
way.

In every cycle the scheduler issues one instruction of one warp that is ready; a cycle in which nobody is ready is a
stall. A load enters the memory, which accepts one request every `cycles_per_request` cycles, and its value can be
used `latency_cycles` after it was accepted. Who is next when several are ready is the policy: "greedy" stays with a
warp until it must wait, then takes the oldest; "fair" takes the one that was served longest ago. Nothing here knows
how many warps are enough.

>>> played = play(warps=2, turns=3, loads=1, instructions=4, latency_cycles=20, policy="greedy")
>>> played.cycles, played.issued, played.stalls
(77, 30, 47)

Source: Lindholm et al., IEEE Micro 28(2), 2008, doi:10.1109/MM.2008.31 (a scheduler picks a ready warp each cycle);
        Rogers et al., MICRO 2012,
doi:10.1109/MICRO.2012.16 (greedy, then oldest)
"""

from dataclasses import dataclass, field

from threeloops import checks

POLICIES = ("greedy", "fair")


@dataclass(slots=True)
class _Warp:
    number: int
    turns_left: int
    to_load: int
    to_issue: int
    ready: int = 0  # first cycle in which it may issue again
    last_back: int = 0  # when the last value it waits for is there
    turn_starts: list[int] = field(default_factory=list)


@dataclass(frozen=True, slots=True, kw_only=True)
class Played:
    """What happened until the last warp was done."""

    cycles: int
    issue_cycles: tuple[int, ...]  # in which something was issued, ascending
    issuers: tuple[int, ...]  # of every such cycle: whose instruction it was, warps counted from 0
    # of every load: the cycle it was issued in, and the first in which its value was there
    requests: tuple[tuple[int, int], ...]
    turn_starts: tuple[int, ...]  # cycles in which the first warp began a turn

    @property
    def issued(self) -> int:
        return len(self.issue_cycles)

    @property
    def stalls(self) -> int:
        """Cycles in which no warp was ready."""
        return self.cycles - self.issued

    def issue_share(self, *, skip_turns: int) -> float:
        """Issued over all cycles, between the starts of two turns of the first warp: after the first `skip_turns`,
        before the last one.
        """
        start, end = self.turn_starts[skip_turns], self.turn_starts[-1]
        return sum(start <= cycle < end for cycle in self.issue_cycles) / (end - start)

    def in_flight(self, *, skip_turns: int) -> float:
        """Requests on their way, averaged over the same cycles."""
        start, end = self.turn_starts[skip_turns], self.turn_starts[-1]
        return sum(max(0, min(back, end) - max(sent, start)) for sent, back in self.requests) / (end - start)

    def requests_per_cycle(self, *, skip_turns: int) -> float:
        """Requests that came back per cycle, over the same cycles."""
        start, end = self.turn_starts[skip_turns], self.turn_starts[-1]
        return sum(start <= back < end for _, back in self.requests) / (end - start)

    @property
    def slowest_request_cycles(self) -> int:
        return max(back - sent for sent, back in self.requests)


def play(
    *,
    warps: int,
    turns: int,
    loads: int,
    instructions: int,
    latency_cycles: int,
    policy: str,
    cycles_per_request: int = 0,
) -> Played:
    """`warps` warps of one scheduler, each `turns` times: `loads` loads, a wait for all of them, `instructions`
    instructions.

    `cycles_per_request` is how long the memory is closed after it has accepted a request; 0 for a memory that takes
    whatever comes.
    """
    checks.count(warps=warps, turns=turns, loads=loads, latency_cycles=latency_cycles)
    checks.count(at_least=0, instructions=instructions, cycles_per_request=cycles_per_request)
    checks.one_of(POLICIES, policy=policy)
    queue = [_Warp(number=number, turns_left=turns, to_load=loads, to_issue=instructions) for number in range(warps)]
    first = queue[0]
    cycle, opens = 0, 0
    issue_cycles: list[int] = []
    issuers: list[int] = []
    requests: list[tuple[int, int]] = []
    last = first
    while queue:
        ready = [warp for warp in queue if warp.ready <= cycle]
        if ready:
            warp = last if policy == "greedy" and last in ready else ready[0]
            if warp.to_load:
                accepted = max(cycle, opens)
                opens = accepted + cycles_per_request
                requests.append((cycle, accepted + latency_cycles))
            _issue(warp, cycle, loads, instructions, back=requests[-1][1] if warp.to_load else 0)
            issue_cycles.append(cycle)
            issuers.append(warp.number)
            last = warp
            if policy == "fair" or not warp.turns_left:
                queue.remove(warp)
            if policy == "fair" and warp.turns_left:
                queue.append(warp)
        cycle += 1
    return Played(
        cycles=cycle,
        issue_cycles=tuple(issue_cycles),
        issuers=tuple(issuers),
        requests=tuple(requests),
        turn_starts=tuple(first.turn_starts),
    )


def _issue(warp: _Warp, cycle: int, loads: int, instructions: int, *, back: int) -> None:
    """One instruction of a warp: what it has left, and when it may go on. `back` is when its load returns."""
    if warp.to_load == loads:
        warp.turn_starts.append(cycle)
    warp.ready = cycle + 1
    if warp.to_load:
        warp.to_load -= 1
        warp.last_back = max(warp.last_back, back)
        if not warp.to_load:
            warp.ready = warp.last_back
    else:
        warp.to_issue -= 1
    if not warp.to_load and not warp.to_issue:
        warp.turns_left, warp.to_load, warp.to_issue = warp.turns_left - 1, loads, instructions
