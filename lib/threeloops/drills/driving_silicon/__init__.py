"""Drills on chips for cars: what a brochure's total contains, what it is worth, what shares the memory, and what
falls back from a DLA.
"""

from threeloops.drills.driving_silicon import fallbacks, placements, sharing, totals
from threeloops.drills.engine.drill import Drill

DRILLS: tuple[Drill, ...] = (*totals.DRILLS, *placements.DRILLS, *sharing.DRILLS, *fallbacks.DRILLS)
