"""What the set on sensor bandwidth asks to be written as a function, each with a limit case."""

from threeloops.drills.engine.bank import DRILLS
from threeloops.drills.engine.functions import FunctionDrill
from threeloops.drills.engine.limit_cases import with_numbers

FUNCTIONS: tuple[FunctionDrill, ...] = (
    FunctionDrill(
        drill=DRILLS["sensor-csi-lanes"],
        takes=("width", "height", "bits", "rate", "lane_mbit"),
        limit=with_numbers("sensor-csi-lanes", rate=1),
        limit_case="one picture a second, which a single lane carries",
    ),
    FunctionDrill(
        drill=DRILLS["sensor-lidar-bytes"],
        takes=("beams", "firings", "other", "firing_us"),
        limit=with_numbers("sensor-lidar-bytes", firings=1),
        limit_case="a packet for every firing",
    ),
    FunctionDrill(
        drill=DRILLS["sensor-time-stamp"],
        takes=("kmh", "range_m", "turn_deg", "error_ms"),
        limit=with_numbers("sensor-time-stamp", turn_deg=0),
        limit_case="a car that drives straight on",
    ),
)
