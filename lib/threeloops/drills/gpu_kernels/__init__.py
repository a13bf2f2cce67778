"""Drills on a GPU and its kernels: anatomy, latency, requests, launches, matrix products.

anatomy         peaks from parts, memories near and far
launches, times, latency        a grid; its time; waiting in company
requests, work  what warps ask of memory; traffic and branches inside a kernel
halos           tiles that overlap
gemm_shapes, gemm_reuse, gemm_loads     matrix products
reductions, pipelines           kernels as they are written
systolic        a TPU's matrix unit, and memory in its tiles
functions       what the set asks to be written
"""

from threeloops.drills.engine.drill import Drill
from threeloops.drills.gpu_kernels import (
    anatomy,
    gemm_loads,
    gemm_reuse,
    gemm_shapes,
    halos,
    latency,
    launches,
    pipelines,
    reductions,
    requests,
    systolic,
    times,
    work,
)

DRILLS: tuple[Drill, ...] = (
    *anatomy.DRILLS,
    *latency.DRILLS,
    *requests.DRILLS,
    *work.DRILLS,
    *launches.DRILLS,
    *times.DRILLS,
    *halos.DRILLS,
    *gemm_shapes.DRILLS,
    *gemm_reuse.DRILLS,
    *gemm_loads.DRILLS,
    *reductions.DRILLS,
    *pipelines.DRILLS,
    *systolic.DRILLS,
)
