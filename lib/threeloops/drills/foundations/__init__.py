"""Drills on what comes before a GPU: functions, small networks, energy."""

from threeloops.drills.engine.drill import Drill
from threeloops.drills.foundations import functions, networks

DRILLS: tuple[Drill, ...] = (
    *functions.DRILLS,
    *networks.DRILLS,
)
