"""Drills on profiles: reading a timeline, and what looking at it costs."""

from threeloops.drills.engine.drill import Drill
from threeloops.drills.profiling import costs, readings

DRILLS: tuple[Drill, ...] = (
    *readings.DRILLS,
    *costs.DRILLS,
)
