"""Drills on drafts: what a check yields, what it costs, when it stops paying."""

from threeloops.drills.engine.drill import Drill
from threeloops.drills.speculative import drafts, overlaps

DRILLS: tuple[Drill, ...] = (*drafts.DRILLS, *overlaps.DRILLS)
