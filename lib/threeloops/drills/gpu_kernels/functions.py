"""What the set on gpu kernels asks to be written as a function, each with a limit case."""

import random

from threeloops.drills.engine.bank import DRILLS
from threeloops.drills.engine.drill import Draw
from threeloops.drills.engine.functions import FunctionDrill
from threeloops.drills.engine.limit_cases import changed, with_numbers


def _whole_waves(rng: random.Random) -> Draw:
    p = DRILLS["gpu-waves"].draw(rng)
    return changed(p, blocks=3 * p.sms * p.resident)


def _even_tiles(rng: random.Random) -> Draw:
    p = DRILLS["gemm-quantised-share"].draw(rng)
    return changed(p, m=p.tile_m, n=2 * p.tile_n * p.sms)


FUNCTIONS: tuple[FunctionDrill, ...] = (
    FunctionDrill(
        drill=DRILLS["gpu-strided-read"],
        takes=("stride", "warps"),
        limit=with_numbers("gpu-strided-read", stride=11),
        limit_case="a stride so long that every lane has a sector of its own",
    ),
    FunctionDrill(
        drill=DRILLS["gpu-waves"],
        takes=("sms", "resident", "blocks", "block_us"),
        limit=_whole_waves,
        limit_case="a grid that fills its last wave exactly",
    ),
    FunctionDrill(
        drill=DRILLS["gemm-quantised-share"],
        takes=("m", "n", "tile_m", "tile_n", "sms"),
        limit=_even_tiles,
        limit_case="tiles and waves that come out even",
    ),
)
