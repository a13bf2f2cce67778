"""Drills on attention's traffic: what a fused kernel does not send away."""

from threeloops.drills.attention_io import blocks, configs, fusion, scores
from threeloops.drills.engine.drill import Drill

DRILLS: tuple[Drill, ...] = (
    *scores.DRILLS,
    *blocks.DRILLS,
    *fusion.DRILLS,
    *configs.DRILLS,
)
