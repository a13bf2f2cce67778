"""The small tasks to write as code under the clock, by key."""

from threeloops.drills.coding import kernel_tasks, serving_tasks, training_tasks
from threeloops.drills.engine.code_task import CodeTask

TASKS: dict[str, CodeTask] = {
    one.key: one for one in (*kernel_tasks.TASKS, *training_tasks.TASKS, *serving_tasks.TASKS)
}
