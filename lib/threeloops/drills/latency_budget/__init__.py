"""Drills on a vehicle's deadline: metres, milliseconds and tails."""

from threeloops.drills.engine.drill import Drill
from threeloops.drills.latency_budget import chain, encoders, savings, stages_flops, vehicle
"""Drills on a vehicle's deadline: metres, milliseconds, ages, cameras and tails."""

from threeloops.drills.engine.drill import Drill
from threeloops.drills.latency_budget import age, chain, closing, vehicle

DRILLS: tuple[Drill, ...] = (
    *vehicle.DRILLS,
    *chain.DRILLS,
    *stages_flops.DRILLS,
    *savings.DRILLS,
    *encoders.DRILLS,
    *age.DRILLS,
    *closing.DRILLS,
)
