"""The small tasks to write as code under the clock, by key."""

from threeloops.drills.coding import (
    bundle_tasks,
    gpu_matrix_tasks,
    gpu_tasks,
    kernel_tasks,
    scratch_tasks,
    serving_tasks,
    training_tasks,
)
from threeloops.drills.engine.code_task import CodeTask

TASKS: dict[str, CodeTask] = {
    one.key: one
    for one in (
        *kernel_tasks.TASKS,
        *gpu_tasks.TASKS,
        *gpu_matrix_tasks.TASKS,
        *bundle_tasks.TASKS,
        *training_tasks.TASKS,
        *serving_tasks.TASKS,
        *scratch_tasks.TASKS,
    )
}
