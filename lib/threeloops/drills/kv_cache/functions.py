"""What the set on kv cache asks to be written as a function, each with a limit case."""

import random

from threeloops.drills.engine.bank import DRILLS
from threeloops.drills.engine.drill import Draw, drawn
from threeloops.drills.engine.functions import FunctionDrill
from threeloops.drills.engine.limit_cases import changed


def _full_blocks(rng: random.Random) -> Draw:
    p = DRILLS["kv-paged-blocks"].draw(rng)
    return changed(p, tokens=3 * p.block)


def _short_context(rng: random.Random) -> Draw:
    p = DRILLS["kv-sliding-window"].draw(rng)
    return changed(p, tokens=p.window // 3)


def _mixed_layers(rng: random.Random) -> Draw:
    """Any model with windows, not only the one that the question names."""
    kv_heads, full = rng.choice((3, 4, 6)), rng.choice((6, 7, 9))
    heads = {
        "kv_heads": kv_heads,
        "query_heads": kv_heads * rng.choice((5, 6, 7)),
        "head_dim": rng.choice((80, 96, 112)),
        "bytes_per_element": 2,
    }
    window = rng.choice((512, 1024, 2048))
    return drawn(
        windowed_layers=4 * full, full_layers=full, window=window, tokens=window * rng.choice((11, 13, 17)), **heads
    )


def _enough_heads(rng: random.Random) -> Draw:
    p = DRILLS["kv-more-gpus-than-heads"].draw(rng)
    return changed(p, tp=rng.choice((2, 4)))


def _any_heads(rng: random.Random) -> Draw:
    p = DRILLS["kv-more-gpus-than-heads"].draw(rng)
    kv_heads = rng.choice((2, 4))
    return changed(
        p,
        layers=rng.choice((22, 28, 46)),
        head_dim=rng.choice((80, 96, 112)),
        kv_heads=kv_heads,
        query_heads=48,
        tp=rng.choice((12, 16, 24)),
    )


FUNCTIONS: tuple[FunctionDrill, ...] = (
    FunctionDrill(
        drill=DRILLS["kv-paged-blocks"],
        takes=("block", "tokens", "per_token", "requests"),
        limit=_full_blocks,
        limit_case="a context that fills its last block exactly",
    ),
    FunctionDrill(
        drill=DRILLS["kv-sliding-window"],
        takes=(
            "windowed_layers",
            "full_layers",
            "window",
            "query_heads",
            "kv_heads",
            "head_dim",
            "bytes_per_element",
            "tokens",
        ),
        draw=_mixed_layers,
        limit=_short_context,
        limit_case="a context shorter than the window",
    ),
    FunctionDrill(
        drill=DRILLS["kv-more-gpus-than-heads"],
        takes=("tp", "layers", "query_heads", "kv_heads", "head_dim", "bytes_per_element", "requests", "tokens"),
        draw=_any_heads,
        limit=_enough_heads,
        limit_case="fewer GPUs than KV heads",
    ),
)
