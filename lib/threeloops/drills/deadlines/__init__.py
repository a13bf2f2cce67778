"""Drills on deadlines: what fits on a processor, how long a task waits, how old data gets, and what a tail allows."""

from threeloops.drills.deadlines import ages, launches, tails, waits
from threeloops.drills.engine.drill import Drill

DRILLS: tuple[Drill, ...] = (*waits.DRILLS, *launches.DRILLS, *ages.DRILLS, *tails.DRILLS)
