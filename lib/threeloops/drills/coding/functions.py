"""What the set on coding asks to be written as a function, each with a limit case."""

import random
from collections.abc import Callable

from threeloops.drills.engine.bank import DRILLS
from threeloops.drills.engine.drill import Draw
from threeloops.drills.engine.functions import FunctionDrill
from threeloops.drills.engine.limit_cases import changed, with_numbers
from threeloops.units import TB


def _one_segment(key: str) -> Callable[[random.Random], Draw]:
    """A segment as long as the stack."""

    def limit(rng: random.Random) -> Draw:
        p = DRILLS[key].draw(rng)
        return changed(p, every=p.layers)

    return limit


FUNCTIONS: tuple[FunctionDrill, ...] = (
    FunctionDrill(
        drill=DRILLS["coding-sharded-bill"],
        takes=("parameters", "layers", "hidden", "sequence", "batch", "gpus"),
        limit=with_numbers("coding-sharded-bill", gpus=1),
        limit_case="one GPU, with no other to shard over",
    ),
    FunctionDrill(
        drill=DRILLS["coding-segments-peak"],
        takes=("layers", "every", "block_bytes", "input_bytes"),
        limit=_one_segment("coding-segments-peak"),
        limit_case="one segment as long as the stack: everything is there at once",
    ),
    FunctionDrill(
        drill=DRILLS["coding-step-flops"],
        takes=("layers", "every", "forward_flops"),
        limit=_one_segment("coding-step-flops"),
        limit_case="one segment as long as the stack, which is the last one and left alone",
    ),
    FunctionDrill(
        drill=DRILLS["coding-bucketed-all-reduce"],
        takes=("parameters", "bytes_per_gradient", "ranks", "bucket_bytes", "alpha", "rate"),
        limit=with_numbers("coding-bucketed-all-reduce", bucket_bytes=round(TB)),
        limit_case="a bucket larger than all gradients",
    ),
    FunctionDrill(
        drill=DRILLS["coding-decode-step"],
        takes=(
            "weights",
            "batch",
            "windowed",
            "full",
            "window",
            "kv_heads",
            "head_dim",
            "tokens",
            "bandwidth",
        ),
        limit=with_numbers("coding-decode-step", tokens=700),
        limit_case="a context shorter than the window",
    ),
)
