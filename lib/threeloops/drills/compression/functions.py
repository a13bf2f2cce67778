"""What the set on compression asks to be written as a function, each with a limit case."""

import random

from threeloops.drills.engine.bank import DRILLS
from threeloops.drills.engine.drill import Draw
from threeloops.drills.engine.functions import FunctionDrill
from threeloops.drills.engine.limit_cases import with_numbers
from threeloops.drills.engine.searches import wanted


def _between_no_codes(rng: random.Random) -> Draw:
    """A range whose zero is nearer to one code: where two are equally near, a float's last digit decides."""

    def decided(p: Draw) -> bool:
        return bool(2 * round(-p.lowest / (p.highest - p.lowest) * (2**p.bits - 1), 6) % 2 != 1)

    return wanted(lambda: DRILLS["compression-zero-point"].draw(rng), decided)


FUNCTIONS: tuple[FunctionDrill, ...] = (
    FunctionDrill(
        drill=DRILLS["compression-zero-point"],
        takes=("lowest", "highest", "bits"),
        draw=_between_no_codes,
        limit=with_numbers("compression-zero-point", lowest=0.0),
        limit_case="values that are never negative",
    ),
    FunctionDrill(
        drill=DRILLS["compression-mean-error"],
        takes=("bits", "largest"),
        limit=with_numbers("compression-mean-error", bits=2),
        limit_case="two bits",
    ),
    FunctionDrill(
        drill=DRILLS["compression-compensation"],
        takes=("exact", "rounded", "second", "own", "together", "other"),
        limit=with_numbers("compression-compensation", together=0),
        limit_case="inputs that have nothing to do with each other",
    ),
)
