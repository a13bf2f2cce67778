"""Copies on their way while tiles are multiplied: stages of shared memory, asynchronous copies, and what stays exposed.

>>> stages_to_hide(latency_s=900, compute_s=400)
4
>>> staged_loop_s(tiles=10, stages=2, latency_s=900, compute_s=400)
6900
"""

import math

from threeloops import checks


def stages_to_hide(*, latency_s: float, compute_s: float) -> int:
    """The fewest stages with which no tile waits for its copy, once the first has come.

    Formula:  1 + ceil(latency / compute)
    Units:    latency_s from asking for a tile until it lies in shared memory; compute_s to multiply one tile
    Assumes:  the copy into a stage is asked for as soon as its tile is done; copies do not slow each other down
    Source:   by definition: one tile is multiplied, and those behind it come while it is
    Counted:  drills.gpu_kernels.pipelines.STAGES
    """
    checks.positive(latency_s=latency_s, compute_s=compute_s)
    return 1 + math.ceil(latency_s / compute_s)


def staged_loop_s(*, tiles: int, stages: int, latency_s: float, compute_s: float) -> float:
    """Time of a loop over tiles whose copies run ahead by as many stages as there are.

    Formula:  latency + tiles * compute where (stages - 1) * compute covers the latency, else
              rounds * (latency + compute) + latency + (tiles - rounds * stages) * compute, with
              rounds = (tiles - 1) // stages
    Units:    as in stages_to_hide
    Assumes:  as in stages_to_hide
    Source:   by definition
    Counted:  drills.gpu_kernels.pipelines.LOOP
    """
    checks.count(tiles=tiles, stages=stages)
    checks.positive(latency_s=latency_s, compute_s=compute_s)
    if latency_s <= (stages - 1) * compute_s:
        return latency_s + tiles * compute_s
    rounds = (tiles - 1) // stages
    return rounds * (latency_s + compute_s) + latency_s + (tiles - rounds * stages) * compute_s
