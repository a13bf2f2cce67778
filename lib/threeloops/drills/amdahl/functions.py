"""What the set on amdahl asks to be written as a function, each with a limit case."""

from threeloops.drills.engine.bank import DRILLS
from threeloops.drills.engine.functions import FunctionDrill
from threeloops.drills.engine.limit_cases import with_numbers

FUNCTIONS: tuple[FunctionDrill, ...] = (
    FunctionDrill(
        drill=DRILLS["amdahl-loader-must-follow"],
        takes=("loader_ms", "passes_ms", "optimiser_ms", "passes_factor"),
        limit=with_numbers("amdahl-loader-must-follow", loader_ms=100),
        limit_case="a loader that is quick enough as it is",
    ),
    FunctionDrill(
        drill=DRILLS["amdahl-pace-setter"],
        takes=("loader_ms", "passes_ms", "optimiser_ms", "loader_factor", "passes_factor"),
        limit=with_numbers("amdahl-pace-setter", loader_factor=4),
        limit_case="a loader that gets ahead of the accelerator",
    ),
    FunctionDrill(
        drill=DRILLS["amdahl-fixed-batch"],
        takes=("compute_s", "gpus", "size", "rate"),
        limit=with_numbers("amdahl-fixed-batch", gpus=1),
        limit_case="a single GPU, which sends nothing",
    ),
)
