"""What the set on queues asks to be written as a function, each with a limit case."""

import random

from threeloops.drills.engine.bank import DRILLS
from threeloops.drills.engine.drill import Draw
from threeloops.drills.engine.functions import FunctionDrill
from threeloops.drills.engine.limit_cases import changed, with_numbers


def _impatient(rng: random.Random) -> Draw:
    p = DRILLS["queue-rate-for-a-p99"].draw(rng)
    return changed(p, p99_ms=3 * p.service_ms)


def _enough_servers(rng: random.Random) -> Draw:
    p = DRILLS["queue-shed-share"].draw(rng)
    return changed(p, arrive=round(p.arrive / 3))


FUNCTIONS: tuple[FunctionDrill, ...] = (
    FunctionDrill(
        drill=DRILLS["queue-rate-for-a-p99"],
        takes=("service_ms", "p99_ms"),
        limit=_impatient,
        limit_case="a promise that even an empty server cannot keep",
    ),
    FunctionDrill(
        drill=DRILLS["queue-long-among-short"],
        takes=("short_ms", "long_ms", "percent", "per_minute"),
        limit=with_numbers("queue-long-among-short", percent=0),
        limit_case="no long requests at all",
    ),
    FunctionDrill(
        drill=DRILLS["queue-shed-share"],
        takes=("servers", "service_ms", "arrive"),
        limit=_enough_servers,
        limit_case="servers that keep up",
    ),
)
