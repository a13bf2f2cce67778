"""What the set on parallel layout asks to be written as a function, each with a limit case."""

from threeloops.drills.engine.bank import DRILLS
from threeloops.drills.engine.functions import FunctionDrill
from threeloops.drills.engine.limit_cases import with_numbers

FUNCTIONS: tuple[FunctionDrill, ...] = (
    FunctionDrill(
        drill=DRILLS["layout-largest-tensor-group"],
        takes=("parameters", "pp", "heads", "kv_heads", "domain"),
        limit=with_numbers("layout-largest-tensor-group", domain=1),
        limit_case="a GPU without fast links to any other",
    ),
    FunctionDrill(
        drill=DRILLS["layout-last-of-the-group"],
        takes=("rank", "tp", "cp", "dp", "pp"),
        limit=with_numbers("layout-last-of-the-group", dp=1, rank=7),
        limit_case="a single replica, whose ranks have no gradients of others to add",
    ),
    FunctionDrill(
        drill=DRILLS["layout-runner-up"],
        takes=("work_s", "few", "few_runs", "dear_s", "many", "many_runs", "cheap_s"),
        limit=with_numbers("layout-runner-up", few=1),
        limit_case="a first layout without a pipeline",
    ),
)
