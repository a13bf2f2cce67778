"""Drills on smaller models: quantised, pruned, factorised, distilled."""

from threeloops.drills.compression import grids, noise, pruning, weights
from threeloops.drills.engine.drill import Drill

DRILLS: tuple[Drill, ...] = (
    *weights.DRILLS,
    *grids.DRILLS,
    *pruning.DRILLS,
    *noise.DRILLS,
)
