"""What the set on number formats asks to be written as a function, each with a limit case."""

from threeloops.drills.engine.bank import DRILLS
from threeloops.drills.engine.functions import FunctionDrill
from threeloops.drills.engine.limit_cases import with_numbers

FUNCTIONS: tuple[FunctionDrill, ...] = (
    FunctionDrill(
        drill=DRILLS["format-largest"],
        takes=("exponent_bits", "mantissa_bits"),
        limit=with_numbers("format-largest", exponent_bits=2),
        limit_case="the fewest exponent bits that leave room for infinity",
    ),
    FunctionDrill(
        drill=DRILLS["format-gap"],
        takes=("value", "exponent_bits", "mantissa_bits"),
        limit=with_numbers("format-gap", exponent_bits=5, mantissa_bits=10, value=2**-17 * 1.375, power=-17),
        limit_case="a value below the smallest normal number",
    ),
    FunctionDrill(
        drill=DRILLS["format-sum-chain"],
        takes=("parts", "each"),
        limit=with_numbers("format-sum-chain", parts=1),
        limit_case="one thread for all the terms",
    ),
)
