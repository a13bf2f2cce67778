"""A training job on a clock: workers prepare batches, a CPU asks for kernels, a device runs them, a network adds
gradients. Out comes a trace.

The CPU asks and goes on; the device works through what it was asked for, in order. Everything that one waits for
another about is played, event by event. Nothing here knows which of them will be the slow one.

>>> job = Job(
...     layers=2,
...     products=2,
...     product_s=2e-3,
...     vectors=1,
...     vector_s=1e-3,
...     launch_s=1e-3,
...     batch_s=1e-3,
...     workers=1,
...     buckets=1,
...     noise=0.0,
... )
>>> played = play(job, steps=3, seed=0)
>>> round(played.step_s(skip=1), 6)
0.032
"""

import heapq
import random
from dataclasses import dataclass, field

from threeloops.inner_loop import trace as names
from threeloops.inner_loop.trace import Interval, Reading, Trace

OPTIMISER_KERNELS = 4
READINGS = 400  # of each counter, evenly spaced over the whole run
PREFETCH = 2  # batches that each worker keeps ready, as torch's DataLoader does by default


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """One training job. Seconds are those of a quiet machine; `noise` is the spread of every single one."""

    layers: int
    products: int  # matrix products per layer, forward; backward has twice as many
    product_s: float
    vectors: int  # other kernels per layer, forward
    vector_s: float
    launch_s: float  # CPU time to ask for one kernel
    batch_s: float  # one worker, one batch
    workers: int
    ahead: int = 1000  # kernels that may have been asked for and not begun; a driver's queue holds about as many
    copy_s: float = 0.1e-3
    syncs: int = 0  # per step, spread over its kernels
    sync_return_s: float = 20e-6  # until the CPU's code goes on after the device is done
    network_s: float = 0.0  # all gradients of a step, added over all ranks
    buckets: int = 4
    overlap: bool = True  # a bucket leaves as soon as its gradients are there
    graph: bool = False  # all kernels of a step asked for at once
    fused: bool = False  # the vector kernels of a layer made one, which takes as long as one
    product_bus: float = 0.35  # share of the memory bus that a product uses; its share of the tensor cores follows
    product_units: float = 0.75
    vector_bus: float = 0.9
    state_bytes: float = 6e9
    layer_bytes: float = 0.6e9  # activations of a layer, from its forward to its backward pass
    leak_bytes: float = 0.0  # per step, never given back
    noise: float = 0.03


@dataclass(frozen=True, slots=True, kw_only=True)
class Played:
    """The trace of a job, and when each of its steps was done on the device."""

    trace: Trace
    finished_s: tuple[float, ...]

    def step_s(self, *, skip: int) -> float:
        """Mean seconds from step to step after the first `skip`, while queues were filling."""
        return (self.finished_s[-1] - self.finished_s[skip]) / (len(self.finished_s) - 1 - skip)

    def window(self, first: int, last: int) -> Trace:
        """The trace from the end of step `first` to the end of step `last`."""
        return self.trace.between(self.finished_s[first], self.finished_s[last])


@dataclass(slots=True)
class _Clock:
    """Where everybody stands while the job is played."""

    job: Job
    rng: random.Random
    cpu_s: float = 0.0  # the CPU is free from here on
    device_s: float = 0.0
    copier_s: float = 0.0
    network_s: float = 0.0
    starts: list[float] = field(default_factory=list)  # of kernels, in the order of asking
    intervals: list[Interval] = field(default_factory=list)
    # start, end, bus share, unit share
    running: list[tuple[float, float, float, float]] = field(default_factory=list)
    memory: list[tuple[float, float]] = field(default_factory=list)  # from when on, bytes

    def took(self, seconds: float) -> float:
        return seconds * self.rng.lognormvariate(0, self.job.noise) if self.job.noise else seconds

    def note(self, row: str, name: str, start: float, end: float) -> None:
        if end > start:
            self.intervals.append(Interval(row=row, name=name, start_s=start, end_s=end))

    def launch(self, name: str, seconds: float, *, after: float = 0.0, asked: bool = True) -> float:
        """Ask for a kernel and let the device run it as soon as it can; returns when it ends."""
        ahead = self.job.ahead
        if len(self.starts) >= ahead and self.starts[-ahead] > self.cpu_s:
            self.note(names.HOST, names.QUEUE_FULL, self.cpu_s, self.starts[-ahead])
            self.cpu_s = self.starts[-ahead]
        if asked:
            begin, self.cpu_s = self.cpu_s, self.cpu_s + self.took(self.job.launch_s)
            self.note(names.HOST, "launch", begin, self.cpu_s)
        start = max(self.cpu_s, self.device_s, after)
        self.device_s = start + self.took(seconds)
        self.starts.append(start)
        self.note(names.COMPUTE, name, start, self.device_s)
        shares = (self.job.product_bus, self.job.product_units) if name == "matmul" else (self.job.vector_bus, 0.0)
        self.running.append((start, self.device_s, *shares))
        return self.device_s

    def sync(self) -> None:
        """The CPU waits until the device has done everything asked for so far."""
        begin, self.cpu_s = self.cpu_s, max(self.cpu_s, self.device_s) + self.took(self.job.sync_return_s)
        self.note(names.HOST, names.SYNC, begin, self.cpu_s)


class _Loader:
    """Workers that prepare batches ahead of time, as far ahead as they may."""

    def __init__(self, clock: _Clock) -> None:
        job = clock.job
        # Workers begin one after another, spread over a batch's time; left to themselves they would drift there.
        self._clock, self._free, self._taken = (
            clock,
            [n * job.batch_s / job.workers for n in range(job.workers)],
            [0.0] * (job.workers * PREFETCH),
        )

    def next_s(self) -> float:
        """When the next batch is ready: begun when a worker and the batch's place in the queue are free."""
        begin = max(heapq.heappop(self._free), self._taken[0])
        ready = begin + self._clock.took(self._clock.job.batch_s)
        heapq.heappush(self._free, ready)
        self._clock.note(names.LOADER, "prepare batch", begin, ready)
        return ready

    def took(self, at_s: float) -> None:
        """The CPU took a batch: a place in the queue is free from now on."""
        self._taken = [*self._taken[1:], at_s]

    def finish(self) -> None:
        """Prepare what there is room for, though nobody will take it: workers do not know that the run is over."""
        for _ in range(len(self._taken)):
            self.next_s()
            self._taken = self._taken[1:]


def play(job: Job, *, steps: int, seed: int) -> Played:
    """Play `steps` training steps of a job; the seed draws the noise."""
    if steps < 3 or min(job.layers, job.products, job.workers, job.buckets, job.ahead) < 1 or job.buckets > job.layers:
        raise ValueError(
            "steps must be at least 3; layers, products, workers, buckets and ahead at least 1; and buckets no more"
            " than layers"
        )
    clock = _Clock(job=job, rng=random.Random(seed))
    loader, finished, leaked = _Loader(clock), [], 0.0
    for step in range(steps):
        begin = clock.cpu_s
        _step(clock, loader, job.state_bytes + leaked)
        leaked += job.leak_bytes
        finished.append(clock.device_s)
        clock.note(names.STEP, f"step {step + 1}", finished[-2] if step else begin, finished[-1])
    loader.finish()
    return Played(
        trace=Trace(intervals=tuple(clock.intervals), readings=tuple(_readings(clock, finished[-1]))),
        finished_s=tuple(finished),
    )


def _step(clock: _Clock, loader: _Loader, floor_bytes: float) -> None:
    job = clock.job
    ready = loader.next_s()
    clock.note(names.HOST, names.BATCH_WAIT, clock.cpu_s, ready)
    clock.cpu_s = max(clock.cpu_s, ready)
    loader.took(clock.cpu_s)
    start = max(clock.cpu_s, clock.copier_s)
    clock.copier_s = start + clock.took(job.copy_s)
    clock.note(names.COPY, "copy batch", start, clock.copier_s)

    kernels, last_section = _kernels(job), 2 * job.layers - 1
    at_sync = {len(kernels) * (n + 1) // job.syncs for n in range(job.syncs)}
    # The gradients of a bucket are there when backward has passed the last of its layers.
    buckets = (
        {last_section - job.layers * n // job.buckets for n in range(job.buckets)} if job.overlap else {last_section}
    )
    held, sent, after = floor_bytes, 0.0, clock.copier_s
    for place, (section, name, seconds, last) in enumerate(kernels):
        after = max(after, sent) if section > last_section else after
        # A captured graph ends where the CPU wants to read a value: what follows is asked for anew.
        end = clock.launch(name, seconds, after=after, asked=not job.graph or place == 0 or place in at_sync)
        if last and section <= last_section:
            held += job.layer_bytes if section < job.layers else -job.layer_bytes
            clock.memory.append((end, held))
            if job.network_s and section in buckets:
                sent = _reduce(clock, end)
        if place + 1 in at_sync:
            clock.sync()


def _kernels(job: Job) -> list[tuple[int, str, float, bool]]:
    """(section, name, seconds, last of its section) of a step's kernels: layers forward, layers backward,
    optimiser.
    """
    vectors = 1 if job.fused and job.vectors else job.vectors
    layer = [("matmul", job.product_s)] * job.products + [("vector", job.vector_s)] * vectors
    backward = [("matmul", job.product_s)] * (2 * job.products) + [("vector", job.vector_s)] * vectors
    sections = (
        [layer] * job.layers
        + [backward] * job.layers
        + [[("optimiser", job.vector_s)] * (1 if job.fused else OPTIMISER_KERNELS)]
    )
    return [
        (place, name, seconds, n == len(section) - 1)
        for place, section in enumerate(sections)
        for n, (name, seconds) in enumerate(section)
    ]


def _reduce(clock: _Clock, ready: float) -> float:
    """Add one bucket of gradients over the ranks, or all of them; returns when the last is done."""
    buckets = 1 if clock.job.overlap else clock.job.buckets
    for _ in range(buckets):
        start = max(ready, clock.network_s)
        clock.network_s = start + clock.took(clock.job.network_s / clock.job.buckets)
        clock.note(names.COMMUNICATION, "all-reduce", start, clock.network_s)
    return clock.network_s


def _readings(clock: _Clock, end: float) -> list[Reading]:
    """What a sampler would have written down: shares as the mean over each period, memory as it stood at its end."""
    period = end / READINGS
    shares = {names.TENSOR_CORES: [0.0] * READINGS, names.MEMORY_BUS: [0.0] * READINGS}
    for start, stop, bus, units in clock.running:
        for n in range(int(start / period), min(int(stop / period), READINGS - 1) + 1):
            inside = max(0.0, min(stop, (n + 1) * period) - max(start, n * period)) / period
            shares[names.MEMORY_BUS][n] += inside * bus
            shares[names.TENSOR_CORES][n] += inside * units
    found = [
        Reading(counter=counter, at_s=(n + 0.5) * period, value=value)
        for counter, values in shares.items()
        for n, value in enumerate(values)
    ]
    change, held, reserved = 0, clock.job.state_bytes, clock.job.state_bytes
    for n in range(READINGS):
        while change < len(clock.memory) and clock.memory[change][0] <= (n + 0.5) * period:
            held = clock.memory[change][1]
            reserved = max(reserved, held)  # a caching allocator asks for more and gives nothing back
            change += 1
        found += [
            Reading(counter=counter, at_s=(n + 0.5) * period, value=value)
            for counter, value in ((names.ALLOCATED, held), (names.RESERVED, reserved))
        ]
    return found
