"""Drills on what surrounds kernels: launches, workers, an allocator."""

from threeloops.drills.engine.drill import Drill
from threeloops.drills.overheads import host, launches

DRILLS: tuple[Drill, ...] = (
    *launches.DRILLS,
    *host.DRILLS,
)
