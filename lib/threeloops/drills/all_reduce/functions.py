"""What the set on all reduce asks to be written as a function, each with a limit case."""

from threeloops.drills.engine.bank import DRILLS
from threeloops.drills.engine.functions import FunctionDrill
from threeloops.drills.engine.limit_cases import with_numbers

FUNCTIONS: tuple[FunctionDrill, ...] = (
    FunctionDrill(
        drill=DRILLS["ring-small-message"],
        takes=("ranks", "size", "alpha", "rate"),
        limit=with_numbers("ring-small-message", ranks=1),
        limit_case="a single GPU, which has no other GPU's gradients to add",
    ),
    FunctionDrill(
        drill=DRILLS["two-level-all-reduce"],
        takes=("size", "nodes", "per_node", "inside", "between"),
        limit=with_numbers("two-level-all-reduce", nodes=1),
        limit_case="a single node",
    ),
    FunctionDrill(
        drill=DRILLS["busbw"],
        takes=("ranks", "size", "seconds"),
        limit=with_numbers("busbw", ranks=2),
        limit_case="two ranks",
    ),
)
