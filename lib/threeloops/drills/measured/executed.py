"""A drill on what the GPUs of a published step executed, beside what the model needed."""

import functools
import random
from itertools import product
from typing import TYPE_CHECKING

from threeloops.drills.engine.drill import AsFunction, Derivation, Draw, Drill, Slip, drawn
from threeloops.drills.engine.phrasing import billions
from threeloops.drills.measured.rows import gpu_name, printed_steps
from threeloops.drills.measured.steps import STACK, cited, multiplied, named
from threeloops.models.model_flops import six_n_d

if TYPE_CHECKING:
    from threeloops.training_loop.parallelism.published_steps import PublishedStep

# --- what the GPUs executed ------------------------------------------------------------------------


@functools.cache
def _recomputed() -> "tuple[PublishedStep, ...]":
    return tuple(row for row in printed_steps() if row.layout.recompute == "full" and row.dense)


def _draw_executed(rng: random.Random) -> Draw:
    row = rng.choice(_recomputed())
    return drawn(
        publisher=row.publisher,
        model=named(row),
        parameters=multiplied(row.model),
        sequence=row.job.sequence,
        batch=row.job.global_batch,
        gpu=gpu_name(row.part),
        gpus=row.cluster.num_gpus,
        step_s=float(f"{row.measured_s:.4g}"),
        row=cited(row),
    )


def _executed(p: Draw, passes: float = 4) -> float:
    """Of so many forward passes: one, two for the gradients, one more where it is run again."""
    once = six_n_d(num_parameters=p.parameters, tokens=p.batch * p.sequence) / 3
    return float(passes * once / (p.step_s * p.gpus))


def _count_executed(p: Draw) -> float:
    """Token by token and weight by weight: forward, forward again, and a gradient for the input and for the weight."""
    operations = 0
    for _, _, _ in product(range(p.batch), range(p.sequence), range(p.parameters)):
        operations += sum(2 for _ in ("forward", "again", "input gradient", "weight gradient"))
    return float(operations / float(p.step_s) / p.gpus)


EXECUTED = Drill(
    key="measured-executed-rate",
    taught=STACK,
    title="What the GPUs executed",
    unit="FLOP/s",
    target_s=110,
    draw=_draw_executed,
    small=lambda rng: drawn(
        parameters=rng.randrange(10, 40),
        sequence=rng.randrange(3, 9),
        batch=rng.randrange(3, 9),
        gpus=rng.randrange(2, 7),
        step_s=rng.randrange(11, 99) / 10,
        row="drawn in 2026",
    ),
    prompt=lambda p: (
        f"{p.publisher} ran {p.model}, {billions(p.parameters)} weights in its matrices, on {p.gpus} GPUs ({p.gpu}). A"
        f" step over {p.batch:,} sequences of {p.sequence:,} tokens took {p.step_s:.4g} s. Every layer's forward pass"
        " is run again in the backward pass to save memory. Neglect attention's own matmuls. How many FLOP/s did"
        " each GPU execute (hardware FLOPs), what was run twice included?"
    ),
    derive=lambda p: Derivation(
        value=_executed(p),
        formula="(6 + 2) × weights × sequences × tokens of one / (step × GPUs)",
        substitution=f"(6 + 2) × {p.parameters!r} × {p.batch} × {p.sequence} / ({p.step_s!r} × {p.gpus})",
        source=f"Korthikanti et al., 2022, arXiv:2205.05198, section 5 (hardware FLOPs); {p.row}",
    ),
    count=_count_executed,
    slips=(
        Slip("model-flops", lambda p: _executed(p, 3))
        | "Those are model FLOPs, which MFU counts. The GPUs ran the forward pass once more.",
        Slip("forward-only", lambda p: _executed(p, 1)) | "You counted one forward pass. A training step has more.",
        Slip("both-again", lambda p: _executed(p, 6))
        | "You ran the backward pass twice as well. Only the forward pass is repeated.",
        Slip("whole-cluster", lambda p: _executed(p) * p.gpus) | "That is what all GPUs execute together.",
        Slip("sequences-for-tokens", lambda p: _executed(p) / p.sequence)
        | "You counted sequences. The work goes by tokens.",
    ),
    function=AsFunction(
        takes=("parameters", "batch", "sequence", "gpus", "step_s"), limit={"gpus": 1}, limit_case="a single GPU"
    ),
)

DRILLS = (EXECUTED,)
