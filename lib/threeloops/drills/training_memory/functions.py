"""What the set on training memory asks to be written as a function, each with a limit case."""

import random

from threeloops.drills.engine.bank import DRILLS
from threeloops.drills.engine.drill import Draw
from threeloops.drills.engine.functions import FunctionDrill
from threeloops.drills.engine.limit_cases import changed, with_numbers


def _every_gpu_other_experts(rng: random.Random) -> Draw:
    p = DRILLS["memory-expert-parallel"].draw(rng)
    return changed(p, ep=p.dp)


FUNCTIONS: tuple[FunctionDrill, ...] = (
    FunctionDrill(
        drill=DRILLS["memory-zero-in-a-grid"],
        takes=("parameters", "tp", "pp", "dp"),
        limit=with_numbers("memory-zero-in-a-grid", dp=1),
        limit_case="one data-parallel rank, with no other to shard over",
    ),
    FunctionDrill(
        drill=DRILLS["memory-expert-parallel"],
        takes=("dense", "experts", "dp", "ep"),
        limit=_every_gpu_other_experts,
        limit_case="experts dealt out over all GPUs, so that each is held once",
    ),
    FunctionDrill(
        drill=DRILLS["memory-in-flight"],
        takes=("pp", "stage", "micro_batches", "layers", "layer_bytes"),
        limit=with_numbers("memory-in-flight", stage=0, micro_batches=3),
        limit_case="fewer micro-batches than stages",
    ),
)
