"""What the set on measurements asks to be written as a function, each with a limit case."""

from threeloops.drills.engine.bank import DRILLS
from threeloops.drills.engine.functions import FunctionDrill
from threeloops.drills.engine.limit_cases import with_numbers

FUNCTIONS: tuple[FunctionDrill, ...] = (
    FunctionDrill(
        drill=DRILLS["measured-bubble-seconds"],
        takes=("pp", "chunks", "dp", "batch", "micro_batch", "step_s"),
        limit=with_numbers("measured-bubble-seconds", dp=1),
        limit_case="a single data-parallel copy",
    ),
    FunctionDrill(
        drill=DRILLS["measured-executed-rate"],
        takes=("parameters", "batch", "sequence", "gpus", "step_s"),
        limit=with_numbers("measured-executed-rate", gpus=1),
        limit_case="a single GPU",
    ),
    FunctionDrill(
        drill=DRILLS["measured-output-per-gpu"],
        takes=("requests", "answer", "ttft_s", "tpot_s", "tp"),
        limit=with_numbers("measured-output-per-gpu", answer=1),
        limit_case="answers of a single token, which comes with TTFT",
    ),
)
