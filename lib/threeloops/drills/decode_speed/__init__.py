"""Drills on the two phases of an answer: the prompt in one go, then a token at a time."""

from threeloops.drills.decode_speed import configs, engines, guided, splits, steps, times
from threeloops.drills.engine.drill import Drill

DRILLS: tuple[Drill, ...] = (
    *times.DRILLS,
    *steps.DRILLS,
    *engines.DRILLS,
    *configs.DRILLS,
    *guided.DRILLS,
    *splits.DRILLS,
)
