"""Drills on what the sensors send: bytes, lanes, cables, the memory bus, moments, points, cubes and messages."""

from threeloops.drills.engine.drill import Drill
from threeloops.drills.sensor_bandwidth import cameras, carrying, lidar, messages, moments, radar, rare, storing

DRILLS: tuple[Drill, ...] = (
    *cameras.DRILLS,
    *carrying.DRILLS,
    *storing.DRILLS,
    *rare.DRILLS,
    *moments.DRILLS,
    *lidar.DRILLS,
    *radar.DRILLS,
    *messages.DRILLS,
)
