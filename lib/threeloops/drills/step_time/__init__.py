"""Drills on a training step: its parts, progress in days, and the optimisation stack."""

from threeloops.drills.engine.drill import Drill
from threeloops.drills.step_time import parts, progress, stack_steps, stack_tuning, stack_updates

DRILLS: tuple[Drill, ...] = (
    *parts.DRILLS,
    *progress.DRILLS,
    *stack_steps.DRILLS,
    *stack_updates.DRILLS,
    *stack_tuning.DRILLS,
)
