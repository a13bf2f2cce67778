"""Every drill, by key and by family."""

from threeloops import checks
from threeloops.drills import (
    all_reduce,
    all_reduce_latency,
    all_reduce_nodes,
    all_reduce_readings,
    kv_cache,
    kv_details,
    kv_paging,
    kv_serving,
    kv_sharing,
    training_traffic,
)
from threeloops.drills.drill import Drill

FAMILIES: dict[str, tuple[Drill, ...]] = {
    "all_reduce": (
        *all_reduce.DRILLS,
        *all_reduce_readings.DRILLS,
        *all_reduce_latency.DRILLS,
        *all_reduce_nodes.DRILLS,
        *training_traffic.DRILLS,
    ),
    "kv_cache": (*kv_cache.DRILLS, *kv_details.DRILLS, *kv_sharing.DRILLS, *kv_paging.DRILLS, *kv_serving.DRILLS),
}
DRILLS: dict[str, Drill] = {drill.key: drill for drills in FAMILIES.values() for drill in drills}


def drill(key: str) -> Drill:
    """The drill of that key; an unknown key is refused with the nearest ones."""
    checks.one_of(DRILLS, drill=key)
    return DRILLS[key]
