"""What the set on step time asks to be written as a function, each with a limit case."""

import random

from threeloops.drills.engine.bank import DRILLS
from threeloops.drills.engine.drill import Draw
from threeloops.drills.engine.functions import FunctionDrill
from threeloops.drills.engine.limit_cases import changed, with_numbers


def _equal_micro_batches(rng: random.Random) -> Draw:
    p = DRILLS["stack-token-weight"].draw(rng)
    return changed(p, tokens=[p.tokens[0]] * len(p.tokens))


def _nobody_writes_longer(rng: random.Random) -> Draw:
    p = DRILLS["stack-rollout-share"].draw(rng)
    return changed(p, longest=p.usual)


FUNCTIONS: tuple[FunctionDrill, ...] = (
    FunctionDrill(
        drill=DRILLS["step-overlapped-buckets"],
        takes=("forward_ms", "backward_ms", "update_ms", "buckets", "bucket_ms"),
        limit=with_numbers("step-overlapped-buckets", buckets=1),
        limit_case="a single bucket, which is complete when the backward pass is",
    ),
    FunctionDrill(
        drill=DRILLS["stack-token-weight"],
        takes=("tokens",),
        limit=_equal_micro_batches,
        limit_case="micro-batches of equal length",
    ),
    FunctionDrill(
        drill=DRILLS["stack-rollout-share"],
        takes=("responses", "usual", "longest", "weights_ms", "response_us", "reward_s", "update_s"),
        limit=_nobody_writes_longer,
        limit_case="responses that are all of one length",
    ),
)
