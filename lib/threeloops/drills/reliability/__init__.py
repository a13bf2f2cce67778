"""Drills on runs that fail: how often, what each stop costs, and how often to save."""

from threeloops.drills.engine.drill import Drill
from threeloops.drills.reliability import failures, hangs, losses, ranks, recoveries, saves

DRILLS: tuple[Drill, ...] = (
    *failures.DRILLS,
    *saves.DRILLS,
    *losses.DRILLS,
    *recoveries.DRILLS,
    *ranks.DRILLS,
    *hangs.DRILLS,
)
