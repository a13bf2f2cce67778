"""Drills on chips for cars: what a brochure's total contains, what it is worth, and what shares the memory."""

from threeloops.drills.driving_silicon import placements, sharing, totals
from threeloops.drills.engine.drill import Drill

DRILLS: tuple[Drill, ...] = (*totals.DRILLS, *placements.DRILLS, *sharing.DRILLS)
