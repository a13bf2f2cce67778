"""Drills on sharded training: what is kept, sent, updated and offloaded."""

from threeloops.drills.engine.drill import Drill
from threeloops.drills.zero_fsdp import offload, shards, traffic, updates

DRILLS: tuple[Drill, ...] = (
    *shards.DRILLS,
    *traffic.DRILLS,
    *offload.DRILLS,
    *updates.DRILLS,
)
