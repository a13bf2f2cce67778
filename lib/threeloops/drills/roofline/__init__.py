"""Drills on the roofline: intensity, times, decode, training, and roofs beyond the first two."""

from threeloops.drills.engine.drill import Drill
from threeloops.drills.roofline import decode, flops, intensity, levels, times, training

DRILLS: tuple[Drill, ...] = (
    *intensity.DRILLS,
    *times.DRILLS,
    *decode.DRILLS,
    *flops.DRILLS,
    *training.DRILLS,
    *levels.DRILLS,
)
