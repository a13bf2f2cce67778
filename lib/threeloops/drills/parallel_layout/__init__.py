"""Drills on layouts: who belongs to which group, what a cut layer sends, how experts and long sequences are dealt
out.
"""

from threeloops.drills.engine.drill import Drill
from threeloops.drills.parallel_layout import (
    choices,
    cluster_limits,
    context_rings,
    expert_loads,
    groups,
    tensor_exchange,
    tensor_shares,
)

DRILLS: tuple[Drill, ...] = (
    *groups.DRILLS,
    *choices.DRILLS,
    *tensor_exchange.DRILLS,
    *tensor_shares.DRILLS,
    *expert_loads.DRILLS,
    *context_rings.DRILLS,
    *cluster_limits.DRILLS,
)
