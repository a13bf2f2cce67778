"""Drills on scaling: what a faster part, an overlap or more processors do for the whole."""

from threeloops.drills.amdahl import law, overlap, processors, repairs, weights
from threeloops.drills.engine.drill import Drill

DRILLS: tuple[Drill, ...] = (
    *law.DRILLS,
    *repairs.DRILLS,
    *overlap.DRILLS,
    *processors.DRILLS,
    *weights.DRILLS,
)
