"""The drills that also ask for a function: what each family says in its functions.py."""

from threeloops.drills.all_reduce import functions as all_reduce
from threeloops.drills.amdahl import functions as amdahl
from threeloops.drills.attention_io import functions as attention_io
from threeloops.drills.batching import functions as batching
from threeloops.drills.capacity import functions as capacity
from threeloops.drills.coding import functions as coding
from threeloops.drills.compression import functions as compression
from threeloops.drills.deadlines import functions as deadlines
from threeloops.drills.decode_speed import functions as decode_speed
from threeloops.drills.driving_silicon import functions as driving_silicon
from threeloops.drills.engine.functions import FunctionDrill
from threeloops.drills.gpu_kernels import functions as gpu_kernels
from threeloops.drills.kv_cache import functions as kv_cache
from threeloops.drills.latency_budget import functions as latency_budget
from threeloops.drills.number_formats import functions as number_formats
from threeloops.drills.parallel_layout import functions as parallel_layout
from threeloops.drills.pipeline import functions as pipeline
from threeloops.drills.queues import functions as queues
from threeloops.drills.reliability import functions as reliability
from threeloops.drills.roofline import functions as roofline
from threeloops.drills.sensor_bandwidth import functions as sensor_bandwidth
from threeloops.drills.speculative import functions as speculative
from threeloops.drills.step_time import functions as step_time
from threeloops.drills.training_memory import functions as training_memory
from threeloops.drills.zero_fsdp import functions as zero_fsdp

FUNCTIONS: dict[str, FunctionDrill] = {
    one.key: one
    for family in (
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
        gpu_kernels,
        kv_cache,
        latency_budget,
        number_formats,
        parallel_layout,
        pipeline,
        queues,
        reliability,
        roofline,
        sensor_bandwidth,
        speculative,
        step_time,
        training_memory,
        zero_fsdp,
    )
    for one in family.FUNCTIONS
}
