"""Drill on mixed precision and memory: which share a switch from FP32 to 16 bits saves, and where."""

import random
import struct

from threeloops.drills.engine.drill import Derivation, Draw, Drill, Slip, Taught, drawn
from threeloops.models.parameter_buckets import ParameterBuckets
from threeloops.training_loop.memory.rank_states import model_states

TAUGHT = Taught("training", "Mixed precision")

SOURCE = (
    "Rajbhandari et al., 2019, arXiv:1910.02054, section 3.1 (2 + 2 + 12 bytes); Micikevicius et al., 2018,"
    " arXiv:1710.03740, section 3.1"
)


def _states(p: Draw, recipe: str) -> float:
    """Model states in GB."""
    parameters = ParameterBuckets.plain(p.billions)
    return model_states(parameters=parameters, recipe=recipe, zero_stage=0, dp=1, tp=1, pp=1).total_bytes


def _saved(p: Draw, *, forgotten: float = 0, activations: float = 0.5) -> float:
    """With so many bytes per parameter forgotten after the switch."""
    before = _states(p, "fp32") + p.gigabytes
    after = _states(p, "zero-paper") - forgotten * p.billions + activations * p.gigabytes
    return float(1 - after / before)


def _draw(rng: random.Random) -> Draw:
    billions = rng.choice((3, 5, 6, 7, 9, 11, 13, 14))
    return drawn(billions=billions, gigabytes=round(billions * rng.uniform(4, 30)))


def _count(p: Draw) -> float:
    """A toy of the same ratios, every copy of every number written down in its format: a parameter per billion, and
    two activations for every 8 GB.
    """
    wide, narrow = struct.pack("f", 0.5), struct.pack("e", 0.5)
    before = after = b""
    for _ in range(8 * p.billions):
        before += wide + wide + wide + wide  # weight, gradient, two moments
        after += narrow + narrow + wide + wide + wide  # and the master copy
    for _ in range(2 * p.gigabytes):
        before += wide
        after += narrow
    return 1 - len(after) / len(before)


SAVING = Drill(
    key="precision-saving",
    taught=TAUGHT,
    title="What mixed precision saves, and where",
    unit="",
    target_s=90,
    apart=1.06,
    draw=_draw,
    small=_draw,
    prompt=lambda p: (
        f"A model of {p.billions} billion parameters trains in FP32 with Adam; its activations take {p.gigabytes} GB."
        " It is switched to bf16 weights and gradients, with FP32 master weights and FP32 moments in the optimiser,"
        " and every activation takes half of its bytes. Which share of the memory of the FP32 run (weights, gradients,"
        " optimiser, activations; 1 GB = 10^9 bytes) does the switch save?"
    ),
    derive=lambda p: Derivation(
        value=_saved(p),
        formula=(
            "1 − (16 × parameters + activations / 2) / (16 × parameters + activations); 2 + 2 + 4 + 8 bytes per"
            " parameter as 4 + 4 + 8 before"
        ),
        substitution=f"1 - (16 × {p.billions} + {p.gigabytes} / 2) / (16 × {p.billions} + {p.gigabytes})",
        source=SOURCE,
    ),
    count=_count,
    slips=(
        Slip("no-fp32-copy", lambda p: _saved(p, forgotten=4))
        | "You left one of the FP32 copies out. What does the optimiser add its updates to?",
        Slip("half-of-all", lambda p: 0.5)
        | "You halved everything. List the copies of a weight before and after, and add their bytes.",
        Slip("activations-gone", lambda p: _saved(p, activations=0.0))
        | "You saved the activations whole. They get shorter, they do not vanish.",
        Slip("of-the-shorter-run", lambda p: _saved(p) / (1 - _saved(p)))
        | "You divided by the memory after the switch. The question is a share of the FP32 run.",
        Slip("what-remains", lambda p: 1 - _saved(p)) | "That is the share that is still needed.",
    ),
)

DRILLS = (SAVING,)
