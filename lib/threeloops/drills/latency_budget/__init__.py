"""Drills on a vehicle's deadline: metres, milliseconds and tails."""

from threeloops.drills.engine.drill import Drill
from threeloops.drills.latency_budget import chain, encoders, savings, stages_flops, vehicle

DRILLS: tuple[Drill, ...] = (
    *vehicle.DRILLS,
    *chain.DRILLS,
    *stages_flops.DRILLS,
    *savings.DRILLS,
    *encoders.DRILLS,
)
