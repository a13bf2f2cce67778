"""Drills on the KV cache: what a context costs, who shares it, and how many fit."""

from threeloops.drills.engine.drill import Drill
from threeloops.drills.kv_cache import blocks, contexts, details, paging, pictures, serving, sharing

DRILLS: tuple[Drill, ...] = (
    *contexts.DRILLS,
    *details.DRILLS,
    *sharing.DRILLS,
    *paging.DRILLS,
    *serving.DRILLS,
    *blocks.DRILLS,
    *pictures.DRILLS,
)
