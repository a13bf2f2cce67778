"""Drills on requests that share a step: slots, chunks, prefixes, and the promises that they keep."""

from threeloops.drills.batching import batches, budgets, mixes, promises, repeated, retrieved
from threeloops.drills.engine.drill import Drill

DRILLS: tuple[Drill, ...] = (
    *batches.DRILLS,
    *promises.DRILLS,
    *mixes.DRILLS,
    *budgets.DRILLS,
    *repeated.DRILLS,
    *retrieved.DRILLS,
)
