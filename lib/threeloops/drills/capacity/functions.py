"""What the set on capacity asks to be written as a function, each with a limit case."""

import random

from threeloops.drills.engine.bank import DRILLS
from threeloops.drills.engine.drill import Draw
from threeloops.drills.engine.functions import FunctionDrill
from threeloops.drills.engine.limit_cases import changed, with_numbers


def _even_stream(rng: random.Random) -> Draw:
    p = DRILLS["capacity-streamed-weights"].draw(rng)
    return changed(p, link=rng.choice((10, 20, 25)), tflops=rng.choice((100, 200, 300)))


FUNCTIONS: tuple[FunctionDrill, ...] = (
    FunctionDrill(
        drill=DRILLS["capacity-full-slots"],
        takes=("rate", "output", "slots", "prefill_ms", "cache_ms", "weights_us"),
        limit=with_numbers("capacity-full-slots", slots=1),
        limit_case="GPUs with room for one request each",
    ),
    FunctionDrill(
        drill=DRILLS["capacity-streamed-weights"],
        takes=("bytes_per_parameter", "link", "tflops"),
        limit=_even_stream,
        limit_case="a number of tokens that comes out even",
    ),
    FunctionDrill(
        drill=DRILLS["capacity-adapter-batch"],
        takes=("weights", "cache", "adapter", "batch", "distinct", "memory"),
        limit=with_numbers("capacity-adapter-batch", distinct=0),
        limit_case="a batch that wants the base alone",
    ),
)
