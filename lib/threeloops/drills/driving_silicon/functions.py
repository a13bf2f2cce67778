"""What the sets on chips for cars and on networks that share one ask to be written as a function, each with a limit
case.
"""

import random

from threeloops.drills.engine.bank import DRILLS
from threeloops.drills.engine.drill import Draw
from threeloops.drills.engine.functions import FunctionDrill
from threeloops.drills.engine.limit_cases import changed, with_numbers


def _memory_idle(rng: random.Random) -> Draw:
    p = DRILLS["soc-shared-memory"].draw(rng)
    return changed(p, gpu_mb=3, dla_mb=2)


FUNCTIONS: tuple[FunctionDrill, ...] = (
    FunctionDrill(
        drill=DRILLS["soc-dense-gpu"],
        takes=("total", "dla"),
        limit=with_numbers("soc-dense-gpu", dla=0),
        limit_case="a chip without DLAs",
    ),
    FunctionDrill(
        drill=DRILLS["soc-latency-floor"],
        takes=("gops", "weights", "values", "peak", "bandwidth"),
        limit=with_numbers("soc-latency-floor", values=0, weights=1),
        limit_case="a network whose activations never leave the chip",
    ),
    FunctionDrill(
        drill=DRILLS["soc-shared-memory"],
        takes=("gpu_ms", "gpu_mb", "dla_ms", "dla_mb", "bandwidth"),
        limit=_memory_idle,
        limit_case="two engines that hardly touch the memory",
    ),
    FunctionDrill(
        drill=DRILLS["soc-side-by-side"],
        takes=("camera_gops", "camera_mb", "words_gops", "words_mb", "peak", "bandwidth"),
        limit=with_numbers("soc-side-by-side", camera_mb=1, words_mb=1),
        limit_case="two networks that hardly touch the memory",
    ),
    FunctionDrill(
        drill=DRILLS["soc-own-sms"],
        takes=("gops", "megabytes", "peak", "bandwidth", "sms"),
        limit=with_numbers("soc-own-sms", megabytes=1),
        limit_case="a network that waits for arithmetic, and needs all SMs",
    ),
)
