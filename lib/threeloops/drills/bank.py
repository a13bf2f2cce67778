"""Every drill, by key and by family."""

from threeloops import checks
from threeloops.drills import (
    all_reduce,
    all_reduce_latency,
    all_reduce_nodes,
    all_reduce_readings,
    attention_blocks,
    attention_io,
    fused_kernels,
    gpu_kernels,
    gpu_launches,
    gpu_requests,
    gpu_times,
    kv_cache,
    kv_details,
    kv_paging,
    kv_serving,
    kv_sharing,
    number_blocks,
    number_formats,
    number_gaps,
    number_scales,
    number_sums,
    roofline,
    roofline_decode,
    roofline_flops,
    roofline_times,
    roofline_training,
    training_activations,
    training_experts,
    training_fit,
    training_memory,
    training_sharding,
    training_stages,
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
    "attention_io": (*attention_io.DRILLS, *attention_blocks.DRILLS, *fused_kernels.DRILLS),
    "gpu_kernels": (*gpu_requests.DRILLS, *gpu_kernels.DRILLS, *gpu_launches.DRILLS, *gpu_times.DRILLS),
    "kv_cache": (*kv_cache.DRILLS, *kv_details.DRILLS, *kv_sharing.DRILLS, *kv_paging.DRILLS, *kv_serving.DRILLS),
    "number_formats": (*number_formats.DRILLS, *number_gaps.DRILLS, *number_sums.DRILLS, *number_scales.DRILLS, *number_blocks.DRILLS),
    "roofline": (*roofline.DRILLS, *roofline_times.DRILLS, *roofline_decode.DRILLS, *roofline_flops.DRILLS, *roofline_training.DRILLS),
    "training_memory": (
        *training_memory.DRILLS,
        *training_fit.DRILLS,
        *training_sharding.DRILLS,
        *training_experts.DRILLS,
        *training_activations.DRILLS,
        *training_stages.DRILLS,
    ),
}
DRILLS: dict[str, Drill] = {drill.key: drill for drills in FAMILIES.values() for drill in drills}


def drill(key: str) -> Drill:
    """The drill of that key; an unknown key is refused with the nearest ones."""
    checks.one_of(DRILLS, drill=key)
    return DRILLS[key]
