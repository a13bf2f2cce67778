"""A GPU to write kernels for, thread by thread as in CUDA: a kernel is a generator that yields what it asks of the
machine, and the machine counts sectors, turns of banks, barriers and races.

    value = yield t.load(x, i)          yield t.store(y, i, value)        yield t.add(bins, i, 1)    atomicAdd
    tile = t.shared("tile", 32 * 32)    yield t.barrier()                 __syncthreads()
    other = yield t.shuffle(value, t.lane ^ 1)                            __shfl_sync: that lane's value

`t.thread`, `t.threads`, `t.block`, `t.blocks` are threadIdx.x, blockDim.x, blockIdx.x, gridDim.x; `t.lane` and
`t.warp` say where the thread is in its block. What 32 threads of a warp ask on the same line is one request.

>>> def double(t, n, x):
...     i = t.block * t.threads + t.thread
...     if i < n:
...         value = yield t.load(x, i)
...         yield t.store(x, i, 2 * value)
>>> ran = run(double, blocks=2, threads=64, n=100, x=list(range(100)))
>>> ran.arrays["x"][99], ran.counts["load_sectors"], ran.counts["most_sectors"]
(198, 13, 4)

Assumes:  numbers of 4 bytes; arrays begin at multiples of 256 bytes; no caches. Lanes of a warp that part are run
          from the earliest line on, and go together again where they meet. Warps run one after the other from barrier
          to barrier; a race is counted, not played. Shared memory begins as NaN.
Source:   NVIDIA, CUDA C++ Best Practices Guide 12.9, 10.2.1 (32-byte transactions) and 10.2.3.1 (32 banks)
"""

import math
from collections import Counter
from collections.abc import Callable
from types import GeneratorType
from typing import Any, TypeAlias

LANES, BANKS, SECTOR_BYTES, WORD_BYTES, ALIGNMENT = 32, 32, 32, 4, 256
MOST_THREADS, MOST_SHARED_WORDS = 1024, 48 * 256
SEVERAL = -1
AGAINST = {"load": ("store", "add"), "store": ("load", "store", "add"), "add": ("load", "store")}
SUMS = ("races", "barriers", "loads", "stores", "atomics", "load_sectors", "store_sectors", "shared_requests", "turns")
MOST = ("most_sectors", "most_turns")


class RefusedError(Exception):
    """What the machine cannot do, in a sentence."""


class Array:
    """Numbers in global memory, or in the shared memory of a block."""

    def __init__(self, name: str, numbers: list[Any], first_byte: int | None = None) -> None:
        self.name, self.numbers, self.first_byte = name, numbers, first_byte
        self.settled()

    def settled(self) -> None:
        """All threads have met: who touched what before is no longer asked."""
        self.touched: dict[str, dict[int, int]] = {"load": {}, "store": {}, "add": {}}

    def races(self, kind: str, places: set[int], warp: int) -> int:
        """Words that another warp touched since the last barrier, one of the two writing; and remember these."""
        own, found = self.touched[kind], 0
        others = [touched for other in AGAINST[kind] if (touched := self.touched[other])]
        for place in places:
            for touched in others:
                if touched.get(place, warp) != warp:
                    found += 1
                    break
            own[place] = warp if own.get(place, warp) == warp else SEVERAL
        return found


class Thread:
    """One thread: where it is, and what it can ask."""

    def __init__(self, thread: int, threads: int, block: int, blocks: int, shared: dict[str, Array]) -> None:
        self.thread, self.threads, self.block, self.blocks = thread, threads, block, blocks
        self.warp, self.lane = divmod(thread, LANES)
        self.asked = 0
        self._shared = shared

    def shared(self, name: str, words: int) -> Array:
        """The block's array of that name: all threads get the same one."""
        held = self._shared.setdefault(name, Array(name, [math.nan] * words))
        if sum(len(array.numbers) for array in self._shared.values()) > MOST_SHARED_WORDS:
            raise RefusedError(f"the block's shared arrays hold more than {MOST_SHARED_WORDS} words")
        return held

    def _ask(self, *words: object) -> tuple[object, ...]:
        self.asked += 1
        return words

    def load(self, array: Array, index: int) -> Any:
        return self._ask("load", array, index, None)

    def store(self, array: Array, index: int, value: float) -> Any:
        return self._ask("store", array, index, value)

    def add(self, array: Array, index: int, value: float) -> Any:
        """Add to a number of an array in one piece, whatever other threads do: atomicAdd. It gives the old value."""
        return self._ask("add", array, index, value)

    def shuffle(self, value: float, lane: int) -> Any:
        """Hand in a value, and get that of another lane of the warp."""
        return self._ask("shuffle", None, lane, value)

    def barrier(self) -> Any:
        return self._ask("barrier", None, 0, None)


Kernel: TypeAlias = Callable[..., Any]  # a generator function


class Ran:
    """What a kernel left: its arrays, and what was counted."""

    def __init__(self, arrays: dict[str, list[Any]]) -> None:
        self.arrays = arrays
        self.counts: dict[str, int] = dict.fromkeys((*SUMS, *MOST), 0)
        self.reads: Counter[str] = Counter()  # loads of single threads, by array


def run(kernel: Kernel, *, blocks: int, threads: int, **arguments: Any) -> Ran:
    """Run a kernel on blocks of threads. Lists among the arguments become arrays in global memory; the caller's own
    are left as they are.

    Raises:   RefusedError: an index outside an array, a barrier that not all threads reach, a request without `yield`
    """
    if not 1 <= threads <= MOST_THREADS or blocks < 1:
        raise RefusedError(f"{blocks} blocks of {threads} threads: a block holds 1 to {MOST_THREADS}")
    first_byte, passed, ran = 0, dict[str, Any](), Ran({})
    for name, value in arguments.items():
        if isinstance(value, list):
            ran.arrays[name] = list(value)
            passed[name] = Array(name, ran.arrays[name], first_byte)
            first_byte += -(-len(value) * WORD_BYTES // ALIGNMENT) * ALIGNMENT
        else:
            passed[name] = value
    for block in range(blocks):
        shared: dict[str, Array] = {}
        own = [Thread(thread, threads, block, blocks, shared) for thread in range(threads)]
        _run_block(kernel, own, passed, shared, ran)
    return ran


class _Lane:
    """A thread on its way: what it asks now, and where in its code."""

    __slots__ = ("course", "place", "request", "thread", "yielded")

    def __init__(self, kernel: Kernel, thread: Thread, passed: dict[str, Any]) -> None:
        course = kernel(thread, **passed)
        if not isinstance(course, GeneratorType):
            raise RefusedError("the kernel yields nothing: write `value = yield t.load(...)`, `yield t.store(...)`")
        self.course: Any = course
        self.thread, self.yielded = thread, 0
        self.request: tuple[Any, ...] | None = None
        self.go_on(None)

    def go_on(self, value: object) -> None:
        """Up to the next thing that is asked, or to the end."""
        try:
            self.request = request = self.course.send(value)
        except StopIteration:
            self.request = request = None
        self.yielded += request is not None
        if self.yielded != self.thread.asked:
            raise RefusedError(
                "a request was made and not yielded, or yielded twice: write `yield` before t.load, t.store, t.add,"
                " t.shuffle and t.barrier"
            )
        if request is None:
            return
        if not isinstance(request, tuple):
            raise RefusedError("a thread yielded something that is no request of t")
        # where that is, through functions that it yields from
        course = self.course
        self.place: tuple[int, ...] = (course.gi_frame.f_lasti,)
        while isinstance(course := course.gi_yieldfrom, GeneratorType):
            inner: Any = course
            self.place += (inner.gi_frame.f_lasti,)


def _run_block(
    kernel: Kernel, threads: list[Thread], passed: dict[str, Any], shared: dict[str, Array], ran: Ran
) -> None:
    """Each warp up to its next barrier, until all threads have returned."""
    lanes = [_Lane(kernel, thread, passed) for thread in threads]
    warps = [lanes[first : first + LANES] for first in range(0, len(lanes), LANES)]
    while True:
        for number, warp in enumerate(warps):
            while running := [lane for lane in warp if lane.request is not None and lane.request[0] != "barrier"]:
                _step(running, number, ran)
        waiting = [lane for lane in lanes if lane.request is not None]
        if not waiting:
            return
        if len(waiting) < len(lanes):
            raise RefusedError(
                f"{len(waiting)} of a block's {len(lanes)} threads wait at a barrier; the others returned"
            )
        ran.counts["barriers"] += 1
        for array in shared.values():
            array.settled()
        for lane in waiting:
            lane.go_on(None)


def _step(running: list[_Lane], warp: int, ran: Ran) -> None:
    """One request of each kind and array: what the lanes ask that are furthest behind."""
    first = min(lane.place for lane in running)
    groups: dict[tuple[str, int], list[_Lane]] = {}
    for lane in running:
        if lane.place == first and lane.request:
            groups.setdefault((lane.request[0], id(lane.request[1])), []).append(lane)
    for (kind, _), lanes in groups.items():
        asked = [lane.request for lane in lanes]
        values = _shuffled(asked, lanes) if kind == "shuffle" else _served(kind, asked, warp, ran)
        for lane, value in zip(lanes, values, strict=True):
            lane.go_on(value)


def _shuffled(asked: Any, lanes: Any) -> list[Any]:
    held = {lane.thread.lane: request[3] for lane, request in zip(lanes, asked, strict=True)}
    for request in asked:
        if request[2] not in held:
            raise RefusedError(f"a shuffle asks for lane {request[2]!r}, which takes no part in it")
    return [held[request[2]] for request in asked]


def _served(kind: str, asked: Any, warp: int, ran: Ran) -> list[Any]:
    """Count a request of memory, and carry it out lane by lane."""
    array, counts = asked[0][1], ran.counts
    if not isinstance(array, Array):
        raise RefusedError(f"{kind} takes an array first, like t.{kind}(x, i)")
    places = [request[2] for request in asked]
    for place in places:
        if not isinstance(place, int) or not 0 <= place < len(array.numbers):
            raise RefusedError(
                f"index {str(place)[:20]} of {array.name}, which has {len(array.numbers)} elements; guard it with if"
            )
    if array.first_byte is None:
        turns = _turns(places, each=kind == "add")
        counts["shared_requests"] += 1
        counts["turns"] += turns
        counts["most_turns"] = max(counts["most_turns"], turns)
        counts["races"] += array.races(kind, set(places), warp)
    else:
        sectors = len({(array.first_byte + place * WORD_BYTES) // SECTOR_BYTES for place in places})
        counts["most_sectors"] = max(counts["most_sectors"], sectors)
        counts[{"load": "loads", "store": "stores", "add": "atomics"}[kind]] += 1
        counts["load_sectors" if kind == "load" else "store_sectors"] += sectors
        if kind == "load":
            ran.reads[array.name] += len(places)
    return _done(kind, array.numbers, asked)


def _turns(places: list[int], *, each: bool) -> int:
    """Of the busiest bank: a word a turn, which all who read it share; `each`: one lane a turn."""
    words = places if each else set(places)
    return max(Counter(word % BANKS for word in words).values())


def _done(kind: str, numbers: list[Any], asked: Any) -> list[Any]:
    """All loads of a request come before its stores; of two stores to one place the last stays."""
    if kind == "load":
        return [numbers[request[2]] for request in asked]
    old = []
    for _, _, place, value in asked:
        old.append(numbers[place])
        numbers[place] = numbers[place] + value if kind == "add" else value
    return old if kind == "add" else [None] * len(old)


def tried(kernel: Kernel, result: str) -> Callable[..., list[Any]]:
    """The kernel as a function of its arguments, as a judge asks for it: the array of that name afterwards, the counts
    in the order of SUMS and MOST, and the loads of single threads by array; or "refused", and why.

    >>> def one(t, x):
    ...     yield t.store(x, t.thread, 1.5)
    >>> tried(one, "x")(blocks=1, threads=2, x=[0, 0, 0])
    [[1.5, 1.5, 0], [0, 0, 0, 1, 0, 0, 1, 0, 0, 1, 0], []]
    >>> tried(one, "x")(blocks=1, threads=2, x=[0])
    ['refused', 'index 1 of x, which has 1 elements; guard it with if']
    """

    def called(**arguments: Any) -> list[Any]:
        try:
            ran = run(kernel, **arguments)
        except RefusedError as error:
            return ["refused", str(error)]
        numbers = [value if math.isfinite(value) else str(value) for value in ran.arrays[result]]
        return [numbers, list(ran.counts.values()), [[name, reads] for name, reads in ran.reads.items()]]

    return called
