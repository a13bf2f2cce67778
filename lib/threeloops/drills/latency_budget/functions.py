"""What the set on the latency budget asks to be written as a function, each with a limit case."""

from threeloops.drills.engine.bank import DRILLS
from threeloops.drills.engine.functions import FunctionDrill
from threeloops.drills.engine.limit_cases import with_numbers

FUNCTIONS: tuple[FunctionDrill, ...] = (
    FunctionDrill(
        drill=DRILLS["latency-busy-rate"],
        takes=("rate", "busy_ms"),
        limit=with_numbers("latency-busy-rate", busy_ms=7),
        limit_case="a chain that is faster than the camera",
    ),
    FunctionDrill(
        drill=DRILLS["latency-queued-age"],
        takes=("rate", "busy_ms", "frame"),
        limit=with_numbers("latency-queued-age", busy_ms=7),
        limit_case="a chain that is faster than the camera",
    ),
    FunctionDrill(
        drill=DRILLS["latency-stopping-distance"],
        takes=("kmh", "reaction_ms", "braking"),
        limit=with_numbers("latency-stopping-distance", reaction_ms=0),
        limit_case="brakes that bite at once",
    ),
)
