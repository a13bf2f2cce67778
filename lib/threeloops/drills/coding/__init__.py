"""Drills on the four things to write by hand: each is asked as a number first, then as code.

bill            memory of a training run, on one GPU and sharded
stacks          a stack of blocks that forgets and computes again: what it keeps, holds and computes
buckets         an all-reduce in one piece and in buckets
steps           what a decode step reads, and how long that takes
functions       the five functions that the set asks for
tasks           small tasks in code, asked in the interview room: kernel_tasks, training_tasks, serving_tasks,
                scratch_tasks; kernels for a small GPU: gpu_tasks, gpu_matrix_tasks; a schedule: bundle_tasks
"""

from threeloops.drills.coding import bill, buckets, stacks, steps
from threeloops.drills.engine.drill import Drill

DRILLS: tuple[Drill, ...] = (*bill.DRILLS, *stacks.DRILLS, *buckets.DRILLS, *steps.DRILLS)
