"""A drill on what fits: the largest micro-batch beside the model states."""

import random
from itertools import count

from threeloops.drills.engine import catalogued
from threeloops.drills.engine.drill import Derivation, Draw, Drill, Slip, Taught, drawn
from threeloops.drills.engine.phrasing import billions
from threeloops.drills.engine.searches import wanted
from threeloops.drills.training_memory.states import MIXED, SOURCE_ZERO, rank_bytes
from threeloops.models.architecture import Attention, DenseMlp, Layer, Model
from threeloops.models.parameters import model_parameters
from threeloops.simulate.training_loop.sharding import Grid, Parameter
from threeloops.training_loop.memory import fit
from threeloops.training_loop.memory.fit import Training
from threeloops.units import fmt_bytes

TAUGHT = Taught("training", "Training memory")

SOURCE_FIT = (
    f"{SOURCE_ZERO}; Korthikanti et al., 2022, arXiv:2205.05198, section 4 (activations); capacity as the driver"
    " reports it, read in 2026"
)


def _setup(model: Model, dp: int) -> Training:
    """Data parallelism with ZeRO stage 1, fused kernels, the loss's gradient in place, nothing recomputed."""
    return Training(
        model=model,
        recipe="zero-paper",
        zero_stage=1,
        dp=dp,
        tp=1,
        pp=1,
        sequence_parallel=False,
        schedule="1f1b",
        micro_batches=1,
        bytes_per_element=2,
        kernels="fused",
        dropout=False,
        recompute="none",
        cross_entropy="in-place",
    )


def _fit_draw(model: Model, *, name: str, part: str, dp: int, tokens: int, usable_bytes: float) -> Draw:
    """A set-up, and what the prompt says about it: parameters, and the activations of one sequence."""
    setup, parameters = _setup(model, dp), model_parameters(model).total
    one = fit.rank_memory(setup, stage=0, micro_batch=1, sequence=tokens).activations_bytes
    return drawn(
        name=name,
        part=part,
        setup=setup,
        dp=dp,
        tokens=tokens,
        usable_bytes=usable_bytes,
        parameters=parameters,
        sequence_bytes=one,
    )


def _draw_fit(rng: random.Random) -> Draw:
    key, (part_key, dp) = (
        rng.choice(("llama-3-8b", "mistral-7b", "qwen2.5-7b")),
        rng.choice((("h100-sxm5", 10), ("h100-sxm5", 12), ("a100-sxm4-80gb", 12))),
    )
    part = catalogued.part(part_key)

    def draw() -> Draw:
        return _fit_draw(
            catalogued.model(key),
            name=catalogued.model_name(key),
            part=part.name,
            dp=dp,
            tokens=rng.randrange(100, 1025, 25),
            usable_bytes=part.capacity_bytes(),
        )

    def clear(p: Draw) -> bool:
        """A rounded figure from the prompt does not tip the balance, and no number in it is the answer by chance."""
        fits = _sequences(p, 4 + 12 / p.dp)
        return 0.25 < fits % 1 < 0.75 and int(fits) not in (3, 7, 8, dp, 16, 32, 80)

    return wanted(draw, clear)


def _small_fit(rng: random.Random) -> Draw:
    layer = Layer(
        attention=Attention(num_heads=4, num_kv_heads=2, head_dim=4),
        mlp=DenseMlp(intermediate=24, gated=True, activation="silu"),
        norm="rmsnorm",
        num_norms=2,
    )
    model = Model(
        name="drawn", hidden=12, vocab=48, groups=((layer, rng.choice((2, 3))),), tied_head=False, max_context=99
    )
    p = _fit_draw(model, name="drawn", part="drawn", dp=3, tokens=rng.choice((6, 8)), usable_bytes=1)
    p.usable_bytes = 8 * p.parameters + rng.choice((13, 17)) * p.sequence_bytes + p.sequence_bytes // 2
    return p


def _sequences(p: Draw, states_bytes_per_parameter: float) -> float:
    """How many sequences the rest of the memory holds."""
    return float((p.usable_bytes - states_bytes_per_parameter * p.parameters) / p.sequence_bytes)


def _count_fit(p: Draw) -> float:
    """Place the states value by value, then add one sequence after another until the next one has no room."""
    states = rank_bytes(
        [Parameter(name="all", size=p.parameters, kind="split", stage=0)],
        Grid(dp=p.dp, tp=1, pp=1),
        zero_stage=1,
        per_value=MIXED,
    )
    for sequences in count():
        if states + sum(p.sequence_bytes for _ in range(sequences + 1)) > p.usable_bytes:
            return float(sequences)
    raise AssertionError("memory is finite")


FIT = Drill(
    key="memory-largest-micro-batch",
    taught=TAUGHT,
    title="What fits beside the states",
    unit="",
    whole="down",
    target_s=180,
    draw=_draw_fit,
    small=_small_fit,
    prompt=lambda p: (
        f"{p.name} ({billions(p.parameters)} parameters) trains on {p.dp} GPUs, data-parallel with ZeRO stage 1, fp16"
        f" weights and gradients, fp32 Adam with a master copy. On each {p.part} the driver reports"
        f" {fmt_bytes(p.usable_bytes, base=10)}; keep no reserve. A sequence of {p.tokens} tokens keeps"
        f" {fmt_bytes(p.sequence_bytes, base=10)} of activations until its backward pass; its"
        " cross-entropy turns the logits into their gradient in place. What is the largest"
        " micro-batch, in whole sequences?"
    ),
    derive=lambda p: Derivation(
        value=fit.largest_micro_batch(p.setup, sequence=p.tokens, usable_bytes=p.usable_bytes),
        formula="(capacity − parameters × (4 + 12 / data-parallel ranks)) / activations of one sequence, rounded down",
        substitution=f"floor(({p.usable_bytes:.0f} − {p.parameters} × (4 + 12 / {p.dp})) / {p.sequence_bytes:.0f})",
        source=SOURCE_FIT,
    ),
    count=_count_fit,
    prerequisites=("memory-zero-1",),
    slips=(
        Slip("states-forgotten", lambda p: _sequences(p, 0) // 1)
        | "You gave the whole card to activations. The model lives there too, with all that its training"
        " remembers.",
        Slip("everything-sharded", lambda p: _sequences(p, 16 / p.dp) // 1)
        | "You sharded all states. At stage 1 weights and gradients stand on every GPU.",
        Slip("gradients-sharded", lambda p: _sequences(p, 2 + 14 / p.dp) // 1)
        | "You sharded the gradients too. That is the next stage.",
        Slip("optimiser-forgotten", lambda p: _sequences(p, 4) // 1)
        | "You left the optimiser out. A share of it lies on every GPU.",
    ),
)

DRILLS = (FIT,)
