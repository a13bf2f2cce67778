"""Drills on what comes before a GPU: functions, small networks, energy."""

from threeloops.drills.engine.drill import Drill
from threeloops.drills.foundations import linear_maps, networks

DRILLS: tuple[Drill, ...] = (
    *linear_maps.DRILLS,
    *networks.DRILLS,
)
