"""Networks that share one GPU, moved along in short slices of time: blocks of kernels on SMs, bytes on one memory bus.

A network is a stream: its kernels run one after the other. Blocks are handed to free SMs by a rule, each runs to its
end, and all that run draw on the bus. Knows no formula for how long anything waits or takes.

>>> load = Network(name="load", kernels=(Kernel(blocks=8, work_slices=5),) * 3)
>>> urgent = Network(name="urgent", kernels=(Kernel(blocks=1, work_slices=2),), launched=3, priority=1)
>>> for rule in ("streams", "priority"):
...     print(rule, run([load, urgent], sms=4, rule=rule)["urgent"])
streams Span(began=10, ended=12)
priority Span(began=5, ended=7)
>>> run([load, urgent], sms=4, rule="own", own={"load": 2, "urgent": 2})["urgent"]
Span(began=3, ended=5)
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from threeloops import checks
from threeloops.simulate.driving.shared_bus import NEARLY, Placed, equal_shares

SHARING = ("streams", "priority", "own", "turns")
CHIP = ""  # the one pool of SMs where nobody has its own


@dataclass(frozen=True, slots=True, kw_only=True)
class Kernel:
    """So many blocks of equal work; a block takes an SM for itself."""

    blocks: int
    work_slices: int  # of one block on its SM, if no byte is waited for
    moved_bytes: float = 0.0  # of one block


@dataclass(frozen=True, slots=True, kw_only=True)
class Network:
    """Kernels that are launched at once and run one after the other. A higher priority is served first."""

    name: str
    kernels: tuple[Kernel, ...]
    launched: int = 0  # slice
    priority: int = 0
    part: str = ""  # whose SMs and turns it uses, if several launches share them; its name if left empty

    @property
    def owner(self) -> str:
        return self.part or self.name


def network_of(stage: Placed, *, sms: int, slice_s: float) -> Network:
    """A stage on a GPU as one kernel whose blocks take an SM a slice each.

    >>> from types import SimpleNamespace
    >>> stage = SimpleNamespace(name="camera", engine="gpu", ops=800.0, moved_bytes=50.0, peak_ops_per_s=4_000.0)
    >>> network_of(stage, sms=4, slice_s=0.01).kernels
    (Kernel(blocks=80, work_slices=1, moved_bytes=0.625),)
    """
    blocks = round(stage.ops / (stage.peak_ops_per_s / sms * slice_s))
    checks.count(blocks=blocks)
    kernel = Kernel(blocks=blocks, work_slices=1, moved_bytes=stage.moved_bytes / blocks)
    return Network(name=stage.name, kernels=(kernel,))


@dataclass(frozen=True, slots=True)
class Span:
    """In which slice a network's first block began, and after how many its last one was done."""

    began: int
    ended: int


@dataclass(slots=True)
class _Block:
    network: Network
    work: float
    moved_bytes: float


@dataclass(slots=True)
class _State:
    """What one network has done so far."""

    network: Network
    place: int = 0  # of the kernel that it is in
    asked: int = 0  # when that kernel could begin
    waiting: int = 0  # blocks of it that have not begun
    running: list[_Block] = field(default_factory=list)
    began: int | None = None
    ended: int | None = None

    def __post_init__(self) -> None:
        self.asked, self.waiting = self.network.launched, self.network.kernels[0].blocks

    def block(self) -> _Block:
        kernel = self.network.kernels[self.place]
        self.waiting -= 1
        return _Block(self.network, kernel.work_slices, kernel.moved_bytes)

    def drop(self, done: Sequence[_Block], now: int) -> None:
        """Blocks that are done leave; with the last of a kernel the next one can begin, or the network is done."""
        self.running = [one for one in self.running if not any(one is other for other in done)]
        if self.running or self.waiting:
            return
        self.place, self.asked = self.place + 1, now
        if self.place == len(self.network.kernels):
            self.ended = now
        else:
            self.waiting = self.network.kernels[self.place].blocks


def run(
    networks: Sequence[Network],
    *,
    sms: int,
    rule: str,
    bus_bytes_per_slice: float = float("inf"),
    own: Mapping[str, int] | None = None,
    turn: int = 0,
    switch: int = 0,
    most_slices: int = 200_000,
) -> dict[str, Span]:
    """When each network begins and ends.

    rule: "streams", free SMs take blocks of the kernel that could begin first; "priority", of the highest priority,
    then likewise; "own", each network has SMs of its own and no others; "turns", one network at a time has the chip,
    for `turn` slices while others want it, and a change takes `switch` slices in which nobody computes.

    Raises:   ValueError for an unknown rule, for "own" without each network's SMs, for "turns" without a turn;
              RuntimeError if more slices pass than most_slices
    """
    checks.count(networks=len(networks), sms=sms)
    checks.one_of(SHARING, rule=rule)
    if rule == "own" and set(own or {}) != {one.owner for one in networks}:
        raise ValueError(f"own={own!r} must name each network and its SMs, as in {{'camera': 12, 'planner': 4}}")
    if rule == "turns":
        checks.count(turn=turn)
    states = {one.name: _State(one) for one in networks}
    pools = {one.name: one.owner if rule in ("own", "turns") else CHIP for one in networks}
    room = {name: (own or {}).get(name, sms) for name in pools.values()}
    holder, since, free_from, now = networks[0].owner, 0, 0, 0
    while any(state.ended is None for state in states.values()):
        if now >= most_slices:
            raise RuntimeError(f"not done after {most_slices} slices; take longer slices")
        active = [state for state in states.values() if state.ended is None and state.network.launched <= now]
        if rule == "turns":
            taker = _next_holder(active, holder, used=now - since >= turn)
            if taker != holder:
                holder, since, free_from = taker, now + switch, now + switch
            elif now - since >= turn:  # nobody else wants the chip: the next turn is the holder's, too
                since = now
            active = [one for one in active if one.network.owner == holder and now >= free_from]
        _begin(active, pools, room, by_priority=rule == "priority", now=now)
        _advance(active, bus_bytes_per_slice, now=now + 1)
        now += 1
    return {name: Span(state.began or 0, state.ended or 0) for name, state in states.items()}


def _next_holder(active: Sequence[_State], holder: str, *, used: bool) -> str:
    """Whose turn it is: the holder's while it has work and its turn is not used up, then the next one's in order."""
    names = list(dict.fromkeys(one.network.owner for one in active))
    if not names or (holder in names and (not used or len(names) == 1)):
        return holder
    if holder not in names:
        return names[0]
    return names[(names.index(holder) + 1) % len(names)]


def _begin(
    active: Sequence[_State], pools: Mapping[str, str], room: Mapping[str, int], *, by_priority: bool, now: int
) -> None:
    """Free SMs take waiting blocks."""
    taken = dict.fromkeys(room, 0)
    for state in active:
        taken[pools[state.network.name]] += len(state.running)
    for state in sorted(active, key=lambda one: (-one.network.priority * by_priority, one.asked)):
        pool = pools[state.network.name]
        while state.waiting and taken[pool] < room[pool]:
            state.running.append(state.block())
            taken[pool] += 1
            if state.began is None:
                state.began = now


def _advance(active: Sequence[_State], bus_bytes: float, *, now: int) -> None:
    """One slice of work for every block that runs, and the bus shared among those that still want bytes."""
    blocks = [block for state in active for block in state.running]
    granted = equal_shares({id(block): block.moved_bytes for block in blocks}, bus_bytes)
    for block in blocks:
        block.work -= 1
        block.moved_bytes -= granted[id(block)]
    for state in active:
        done = [one for one in state.running if one.work <= NEARLY and one.moved_bytes <= NEARLY * min(bus_bytes, 1e30)]
        state.drop(done, now)
