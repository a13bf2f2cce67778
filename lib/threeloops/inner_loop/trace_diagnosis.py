"""Trace diagnosis: from gauges to the first suspect, and to what is tried first against it.

>>> from threeloops.inner_loop.trace import Interval, Trace
>>> from threeloops.inner_loop.trace_gauges import gauges
>>> row = [Interval(row="GPU", name="kernel", start_s=a, end_s=a + 1) for a in range(0, 20, 2)]
>>> waits = [Interval(row="CPU", name="wait for batch", start_s=a + 1, end_s=a + 2) for a in range(0, 18, 2)]
>>> (found,) = findings(gauges(Trace(intervals=(*row, *waits))))
>>> found.illness, round(found.share, 2)
('starved loader', 0.47)
"""

from dataclasses import dataclass

from threeloops.inner_loop.trace_gauges import Gauges
from threeloops.units import MB, fmt_bytes, fmt_percent

BUSY = 0.8  # share of the time below which the device's idle time is the first thing to look at
BUS_FULL = 0.8  # of what the memory could move: practically all that kernels reach
UNITS_WAITING = 0.4  # tensor cores below this, beside a full bus
LEAK_BYTES_PER_STEP = 1 * MB  # a hundred thousand steps of this fill a card

BY_CAUSE = {
    "communication": "exposed communication",
    "copies": "exposed copies",
    "loader": "starved loader",
    "sync": "hidden syncs",
    "launches": "launch-bound",
    "other": "unexplained pauses",
}
FIRST_TRY = {
    "exposed communication": "send gradients in buckets while backward still runs; fewer bytes",
    "exposed copies": "pinned memory and non-blocking copies, one batch ahead",
    "starved loader": "more workers, cheaper decoding, batches prepared beforehand",
    "hidden syncs": "find what reads a value of the device (.item(), print, if); read it rarely, or keep it there",
    "launch-bound": "more work per kernel: larger batch, fused kernels, a captured graph",
    "unexplained pauses": "record more rows: operating system, other processes, other ranks",
    "memory-bound": "fewer bytes per operation: fuse, smaller formats, larger batch",
    "memory leak": "find who holds tensors, or their graphs, from step to step",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One suspect."""

    illness: str
    # of the time on the clock that it costs, or of the bus; 0 for a leak, which costs none until it ends the job
    share: float
    because: str

    @property
    def first_try(self) -> str:
        return FIRST_TRY[self.illness]


def findings(read: Gauges) -> tuple[Finding, ...]:
    """Suspects in the order in which to look at them; none for a device that is busy computing.

    Formula:  a leak if a step's lowest allocation grows by more than 1 MB a step; if the device is idle for more than
              a fifth of the time, whatever most of the idle time was spent on; else memory-bound if the bus is at
              least 0.8 full and the tensor cores are below 0.4
    Assumes:  thresholds are conventions: what they must do is to send the reader to the right row of the timeline
    Source:   NVIDIA, DCGM user guide, profiling metrics (SM activity of at least 0.8 is necessary, but not
              sufficient, for effective use of a GPU)
    Counted:  simulate.inner_loop.ill_jobs.trace
    """
    found = []
    growth = read.growth_bytes_per_step
    if growth is not None and growth > LEAK_BYTES_PER_STEP:
        found.append(
            Finding(
                illness="memory leak",
                share=0.0,
                because=f"every step keeps {fmt_bytes(growth, base=10)} more than the one before",
            )
        )
    if read.busy < BUSY:
        cause, share = max(read.causes.items(), key=lambda item: item[1])
        found.append(
            Finding(
                illness=BY_CAUSE[cause],
                share=share,
                because=f"{fmt_percent(share)} of the time, of {fmt_percent(read.idle)} idle",
            )
        )
    elif (
        read.memory_bus is not None
        and read.tensor_cores is not None
        and read.memory_bus >= BUS_FULL
        and read.tensor_cores < UNITS_WAITING
    ):
        because = f"memory bus {fmt_percent(read.memory_bus)}, tensor cores {fmt_percent(read.tensor_cores)}"
        found.append(Finding(illness="memory-bound", share=read.memory_bus, because=because))
    return tuple(found)
