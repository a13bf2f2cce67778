"""Drills on pipelines: their bubbles, what shrinks them, and what they cost."""

from threeloops.drills.engine.drill import Drill
from threeloops.drills.pipeline import bubbles, costs, remedies

DRILLS: tuple[Drill, ...] = (
    *bubbles.DRILLS,
    *remedies.DRILLS,
    *costs.DRILLS,
)
