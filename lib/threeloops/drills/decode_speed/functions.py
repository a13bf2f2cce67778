"""What the set on decode speed asks to be written as a function, each with a limit case."""

from threeloops.drills.engine.bank import DRILLS
from threeloops.drills.engine.functions import FunctionDrill
from threeloops.drills.engine.limit_cases import with_numbers

FUNCTIONS: tuple[FunctionDrill, ...] = (
    FunctionDrill(
        drill=DRILLS["serving-tokens-before-deadline"],
        takes=("deadline_ms", "ttft_ms", "itl_ms"),
        limit=with_numbers("serving-tokens-before-deadline", deadline_ms=900, ttft_ms=900),
        limit_case="a deadline at which the first token just comes",
    ),
    FunctionDrill(
        drill=DRILLS["decode-tensor-parallel-step"],
        takes=("billions", "layers", "tp", "bandwidth", "cache", "latency_us"),
        limit=with_numbers("decode-tensor-parallel-step", tp=1),
        limit_case="a single GPU, which has no other GPU's part to add",
    ),
    FunctionDrill(
        drill=DRILLS["decode-experts-read"],
        takes=("experts", "top_k", "batch", "layers", "expert_mb"),
        limit=with_numbers("decode-experts-read", batch=1),
        limit_case="a single request",
    ),
)
