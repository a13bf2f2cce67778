"""Engines on one memory bus, moved along in short slices of time: in each slice an engine does some work, and the bus
carries some bytes that the engines share.

Knows no formula for how long anything takes: it hands out slices until everything is done.

>>> jobs = [Job(engine="gpu", ops=40, moved_bytes=10, ops_per_slice=2)]
>>> frame_slices([jobs] * 3, bus_bytes_per_slice=1)
[20, 40, 60]
"""

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

Key = TypeVar("Key", bound=Hashable)
NEARLY = 1e-9  # of a slice's work: less is rounding


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """One stage: what it has to compute and to move, and how fast its engine computes."""

    engine: str
    ops: float
    moved_bytes: float
    ops_per_slice: float


class Placed(Protocol):
    """A stage on its engine, whoever describes it."""

    @property
    def name(self) -> str: ...
    @property
    def engine(self) -> str: ...
    @property
    def ops(self) -> float: ...
    @property
    def moved_bytes(self) -> float: ...
    @property
    def peak_ops_per_s(self) -> float: ...


def jobs_of(stages: Iterable[Placed], *, slice_s: float) -> list[Job]:
    """The stages of one frame, with their engines' rates per slice."""
    return [
        Job(
            engine=stage.engine,
            ops=stage.ops,
            moved_bytes=stage.moved_bytes,
            ops_per_slice=stage.peak_ops_per_s * slice_s,
        )
        for stage in stages
    ]


@dataclass(slots=True)
class _Running:
    frame: int
    ops: float
    moved_bytes: float


def frame_slices(
    chains: Sequence[Sequence[Job]],
    *,
    bus_bytes_per_slice: float,
    apart_slices: int = 0,
    most_slices: int = 2_000_000,
) -> list[int]:
    """In which slice each frame's last job ends; `chains` has the jobs of one frame after the other. A frame's jobs
    run in their order; an engine does one job at a time, the oldest frame's first; frame k may start after
    k * apart_slices.

    Raises:   RuntimeError if more slices pass than most_slices
    """
    next_place = [0] * len(chains)  # of each frame: the job that it waits for or is in
    running: dict[str, _Running] = {}
    ends = [0] * len(chains)
    now = 0
    while any(place < len(jobs) for place, jobs in zip(next_place, chains, strict=True)):
        if now >= most_slices:
            raise RuntimeError(f"not done after {most_slices} slices; take longer slices")
        _start_what_can(chains, next_place, running, started=now // apart_slices + 1 if apart_slices else len(chains))
        granted = equal_shares({engine: task.moved_bytes for engine, task in running.items()}, bus_bytes_per_slice)
        now += 1
        for engine, task in list(running.items()):
            rate = chains[task.frame][next_place[task.frame]].ops_per_slice
            task.ops -= rate
            task.moved_bytes -= granted[engine]
            if task.ops <= NEARLY * rate and task.moved_bytes <= NEARLY * bus_bytes_per_slice:
                next_place[task.frame] += 1
                ends[task.frame] = now
                del running[engine]
    return ends


def _start_what_can(
    chains: Sequence[Sequence[Job]], next_place: Sequence[int], running: dict[str, _Running], *, started: int
) -> None:
    busy = {task.frame for task in running.values()}
    for frame, place in enumerate(next_place[:started]):
        if frame not in busy and place < len(chains[frame]) and chains[frame][place].engine not in running:
            job = chains[frame][place]
            running[job.engine] = _Running(frame, job.ops, job.moved_bytes)


def equal_shares(wanted: Mapping[Key, float], bus_bytes: float) -> dict[Key, float]:
    """Bytes for each who wants some out of one slice: equal shares, and what one does not want goes to the others.

    >>> equal_shares({"gpu": 9, "dla": 1}, 6)
    {'gpu': 5.0, 'dla': 1.0}
    """
    if sum(wanted.values()) <= bus_bytes:
        return {one: float(size) for one, size in wanted.items()}
    granted = dict.fromkeys(wanted, 0.0)
    left = bus_bytes
    hungry = [one for one, size in wanted.items() if size > 0]
    while hungry and left > NEARLY * bus_bytes:
        share = left / len(hungry)
        for one in hungry:
            some = min(share, wanted[one] - granted[one])
            granted[one] += some
            left -= some
        hungry = [one for one in hungry if wanted[one] - granted[one] > NEARLY * bus_bytes]
    return granted
