"""Drills on a GPU and its kernels: anatomy, latency, requests, launches, matrix products."""

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
)
