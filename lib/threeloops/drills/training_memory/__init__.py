"""Drills on the memory of a training rank: states, activations, experts, stages, recomputation."""

from threeloops.drills.engine.drill import Drill
from threeloops.drills.step_time import stack_tuning, stack_updates
from threeloops.drills.training_memory import (
    activations,
    experts,
    fit,
    precision,
    recomputation,
    sharding,
    stages,
    states,
)

DRILLS: tuple[Drill, ...] = (
    *states.DRILLS,
    *precision.DRILLS,
    *fit.DRILLS,
    *sharding.DRILLS,
    *experts.DRILLS,
    *activations.DRILLS,
    *stages.DRILLS,
    *recomputation.DRILLS,
    *stack_updates.MEMORY_DRILLS,
    *stack_tuning.MEMORY_DRILLS,
)
