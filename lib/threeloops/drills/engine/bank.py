"""Every drill, by key and by family."""

from threeloops import checks
from threeloops.drills import (
    all_reduce,
    amdahl,
    attention_io,
    batching,
    capacity,
    coding,
    compression,
    deadlines,
    decode_speed,
    driving_silicon,
    foundations,
    gpu_kernels,
    joint_models,
    kv_cache,
    latency_budget,
    number_formats,
    overheads,
    parallel_layout,
    pipeline,
    profiling,
    queues,
    reliability,
    roofline,
    sensor_bandwidth,
    speculative,
    step_time,
    training_memory,
    zero_fsdp,
)
from threeloops.drills.engine.drill import Drill
from threeloops.drills.engine.held import fair

_DEFINED: dict[str, tuple[Drill, ...]] = {
    "all_reduce": all_reduce.DRILLS,
    "amdahl": amdahl.DRILLS,
    "attention_io": attention_io.DRILLS,
    "batching": batching.DRILLS,
    "capacity": capacity.DRILLS,
    "coding": coding.DRILLS,
    "compression": compression.DRILLS,
    "deadlines": deadlines.DRILLS,
    "decode_speed": decode_speed.DRILLS,
    "driving_silicon": driving_silicon.DRILLS,
    "foundations": foundations.DRILLS,
    "gpu_kernels": gpu_kernels.DRILLS,
    "joint_models": joint_models.DRILLS,
    "kv_cache": kv_cache.DRILLS,
    "latency_budget": latency_budget.DRILLS,
    "number_formats": number_formats.DRILLS,
    "overheads": overheads.DRILLS,
    "parallel_layout": parallel_layout.DRILLS,
    "pipeline": pipeline.DRILLS,
    "profiling": profiling.DRILLS,
    "queues": queues.DRILLS,
    "reliability": reliability.DRILLS,
    "roofline": roofline.DRILLS,
    "sensor_bandwidth": sensor_bandwidth.DRILLS,
    "speculative": speculative.DRILLS,
    "step_time": step_time.DRILLS,
    "training_memory": training_memory.DRILLS,
    "zero_fsdp": zero_fsdp.DRILLS,
}
FAMILIES = {family: tuple(map(fair, drills)) for family, drills in _DEFINED.items()}
DRILLS: dict[str, Drill] = {drill.key: drill for drills in FAMILIES.values() for drill in drills}


def drill(key: str) -> Drill:
    """The drill of that key; an unknown key is refused with the nearest ones."""
    checks.one_of(DRILLS, drill=key)
    return DRILLS[key]
