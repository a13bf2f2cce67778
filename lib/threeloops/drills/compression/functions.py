"""What the set on compression asks to be written as a function, each with a limit case."""

from threeloops.drills.engine.bank import DRILLS
from threeloops.drills.engine.functions import FunctionDrill
from threeloops.drills.engine.limit_cases import with_numbers

FUNCTIONS: tuple[FunctionDrill, ...] = (
    FunctionDrill(
        drill=DRILLS["compression-zero-point"],
        takes=("lowest", "highest", "bits"),
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
