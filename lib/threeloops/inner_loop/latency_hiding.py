"""Latency hiding: how much must be under way at once so that nobody waits.

Little's law says how many bytes are in flight when a memory delivers at a rate and each byte takes a time. The rest
follows: a warp that waits is no loss as long as another one is ready, so the question is how many warps, with how
many loads each, it takes.

>>> bytes_in_flight(memory_bytes_per_s=3.35e12, latency_s=350e-9)
1172500.0
>>> turn = Turn(loads=1, instructions=9, latency_cycles=400)
>>> round(issue_share(turn, warps=4), 3), warps_to_hide(turn)
(0.098, 41)

Source: Little, Operations Research 9(3), 1961, doi:10.1287/opre.9.3.383; Volkov, Understanding Latency Hiding on
        GPUs, UC Berkeley EECS-2016-143, 2016
"""

import math
from dataclasses import dataclass

from threeloops import checks


def bytes_in_flight(*, memory_bytes_per_s: float, latency_s: float) -> float:
    """Bytes that are asked for and not yet there, on average, while a memory delivers at this rate.

    Formula:  memory_bytes_per_s * latency_s
    Assumes:  a steady state; the latency is what a request really takes, waiting in queues included
    Source:   Little, 1961, doi:10.1287/opre.9.3.383
    Counted:  drills.gpu_kernels.latency.FLIGHT
    """
    checks.positive(memory_bytes_per_s=memory_bytes_per_s, latency_s=latency_s)
    return memory_bytes_per_s * latency_s


def reached_bytes_per_s(*, in_flight_bytes: float, latency_s: float, roof_bytes_per_s: float) -> float:
    """Bandwidth that so many bytes in flight can reach, at most what the memory has.

    Formula:  min(in_flight_bytes / latency_s, roof_bytes_per_s)
    Assumes:  the latency of a memory that is not yet crowded
    Counted:  simulate.inner_loop.warp_scheduler.play

    >>> reached_bytes_per_s(in_flight_bytes=500e3, latency_s=500e-9, roof_bytes_per_s=3.35e12)
    1000000000000.0
    """
    checks.positive(in_flight_bytes=in_flight_bytes, latency_s=latency_s, roof_bytes_per_s=roof_bytes_per_s)
    return min(in_flight_bytes / latency_s, roof_bytes_per_s)


def latency_s(*, cycles: float, clock_hz: float) -> float:
    """A latency given in cycles, in seconds.

    >>> latency_s(cycles=700, clock_hz=2e9)
    3.5e-07
    """
    checks.positive(cycles=cycles, clock_hz=clock_hz)
    return cycles / clock_hz


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """What a warp does over and over: some loads that do not depend on each other, a wait for the last of them, some
    instructions that need them.
    """

    loads: int
    instructions: int
    latency_cycles: int  # from the issue of a load to the first cycle in which its value can be used

    def __post_init__(self) -> None:
        checks.count(loads=self.loads, latency_cycles=self.latency_cycles)
        checks.count(at_least=0, instructions=self.instructions)

    @property
    def busy_cycles(self) -> int:
        """Cycles in which the warp has something issued: one per load and one per instruction."""
        return self.loads + self.instructions

    @property
    def alone_cycles(self) -> int:
        """Length of a turn of a warp that has its scheduler to itself: the last load leaves after loads - 1 cycles,
        comes back a latency later.
        """
        return self.loads - 1 + self.latency_cycles + self.instructions


def issue_share(turn: Turn, *, warps: int) -> float:
    """Share of the cycles in which a scheduler issues something, with so many resident warps to choose from.

    Formula:  min(1, warps * busy_cycles / alone_cycles)
    Assumes:  one issue per scheduler and cycle; instructions follow each other without a gap; a memory that is not
              crowded; a steady state, in which the warps are spread over the turn and do not all wait at once
    Source:   Volkov, 2016, EECS-2016-143 (throughput is concurrency over latency, until something saturates)
    Counted:  simulate.inner_loop.warp_scheduler.play
    """
    checks.count(warps=warps)
    return min(1.0, warps * turn.busy_cycles / turn.alone_cycles)


def warps_to_hide(turn: Turn) -> int:
    """Fewest resident warps per scheduler with which it issues in every cycle.

    Formula:  ceil(alone_cycles / busy_cycles)
    Counted:  simulate.inner_loop.warp_scheduler.play

    >>> warps_to_hide(Turn(loads=4, instructions=36, latency_cycles=400))  # four loads at once: a quarter of the warps
    11
    """
    return math.ceil(turn.alone_cycles / turn.busy_cycles)
