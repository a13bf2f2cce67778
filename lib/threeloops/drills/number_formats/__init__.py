"""Drills on number formats: their ends and gaps, sums and scales, blocks of them."""

from threeloops.drills.engine.drill import Drill
from threeloops.drills.number_formats import blocks, checkpoints, clipping, ends, gaps, scales, sums

DRILLS: tuple[Drill, ...] = (
    *ends.DRILLS,
    *gaps.DRILLS,
    *sums.DRILLS,
    *scales.DRILLS,
    *blocks.DRILLS,
    *checkpoints.DRILLS,
    *clipping.DRILLS,
)
