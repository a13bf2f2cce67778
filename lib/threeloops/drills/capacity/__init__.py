"""Drills on how many GPUs a load takes, what a token costs on them, and what moves between them."""

from threeloops.drills.capacity import (
    agent_calls,
    bounds,
    configs,
    costs,
    experts,
    generated_images,
    moves,
    paging,
    routes,
    scaling,
)
from threeloops.drills.engine.drill import Drill

DRILLS: tuple[Drill, ...] = (
    *costs.DRILLS,
    *bounds.DRILLS,
    *moves.DRILLS,
    *paging.DRILLS,
    *configs.DRILLS,
    *experts.DRILLS,
    *scaling.DRILLS,
    *routes.DRILLS,
    *agent_calls.DRILLS,
    *generated_images.DRILLS,
)
