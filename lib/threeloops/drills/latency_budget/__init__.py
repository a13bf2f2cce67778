"""Drills on a vehicle's deadline: metres, milliseconds, ages, what a chain computes and what a repair saves."""

from threeloops.drills.engine.drill import Drill
from threeloops.drills.latency_budget import age, chain, closing, encoders, resolution, savings, stages_flops, vehicle

DRILLS: tuple[Drill, ...] = (
    *vehicle.DRILLS,
    *chain.DRILLS,
    *age.DRILLS,
    *closing.DRILLS,
    *stages_flops.DRILLS,
    *savings.DRILLS,
    *resolution.DRILLS,
    *encoders.DRILLS,
)
