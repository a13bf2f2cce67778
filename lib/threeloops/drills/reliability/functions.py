"""What the set on reliability asks to be written as a function, each with a limit case."""

from threeloops.drills.engine.bank import DRILLS
from threeloops.drills.engine.functions import FunctionDrill
from threeloops.drills.engine.limit_cases import with_numbers

FUNCTIONS: tuple[FunctionDrill, ...] = (
    FunctionDrill(
        drill=DRILLS["failure-rare-stalls"],
        takes=("ranks", "every", "step_s", "stall_s"),
        limit=with_numbers("failure-rare-stalls", ranks=1),
        limit_case="a single rank",
    ),
    FunctionDrill(
        drill=DRILLS["failure-slowest-rank"],
        takes=("ranks", "base_s", "delay_s"),
        limit=with_numbers("failure-slowest-rank", ranks=1),
        limit_case="a single rank, which waits for no other",
    ),
    FunctionDrill(
        drill=DRILLS["failure-two-levels"],
        takes=("percent", "memory_s", "memory_restart_s", "disk_s", "disk_restart_s", "detect_s"),
        limit=with_numbers("failure-two-levels", percent=100),
        limit_case="copies in memory that survive every failure",
    ),
)
