"""Drills on the memory of one rank in training: model states line by line, and what the first stages of ZeRO shard.

Data-parallel groups have 10 or 12 ranks and one drill keeps its gradients in fp32: with 16 ranks, or 16 bits
everywhere, a forgotten master copy and a mistaken unit would look alike.
"""

import random

from threeloops.drills.engine import catalogued
from threeloops.drills.engine.drill import Derivation, Draw, Drill, Slip, Taught, drawn
from threeloops.drills.engine.phrasing import billions
from threeloops.models.parameter_buckets import ParameterBuckets
from threeloops.models.parameters import model_parameters
from threeloops.simulate.training_loop.sharding import Bytes, Grid, Parameter, stored_bytes
from threeloops.training_loop.memory.rank_states import model_states

TAUGHT = Taught("training", "Training memory")

SOURCE_STATES = "Rajbhandari et al., ZeRO, 2019, arXiv:1910.02054, section 3.1"
SOURCE_ZERO = "Rajbhandari et al., ZeRO, 2019, arXiv:1910.02054, section 5"
SOURCE_MEGATRON = f"{SOURCE_ZERO}; Megatron Core User Guide, Distributed Optimizer (fp32 gradients), read in 2026"

MIXED: Bytes = (2, 2, 4 + 4 + 4)  # weight, gradient, and for the update: a copy of the weight, two moments
FP32_GRADIENTS: Bytes = (2, 4, 4 + 4 + 4)


def rank_bytes(parameters: list[Parameter], grid: Grid, *, zero_stage: int, per_value: Bytes) -> float:
    """What the first rank stores when every value is placed by hand."""
    stored = stored_bytes(parameters, grid, zero_stage=zero_stage, matrix_bytes=per_value, other_bytes=per_value)[0, 0]
    return stored.weights + stored.gradients + stored.optimiser


def total_bytes(p: Draw, *, recipe: str, zero_stage: int) -> float:
    """Model states of one rank without tensor or pipeline parallelism, by formula."""
    buckets = ParameterBuckets.plain(p.parameters)
    return model_states(parameters=buckets, recipe=recipe, zero_stage=zero_stage, dp=p.dp, tp=1, pp=1).total_bytes


# --- model states -------------------------------------------------------------------------------

SIZES = (
    *(
        "llama-2-7b",
        "llama-2-13b",
        "llama-2-70b",
        "llama-3-8b",
        "llama-3-70b",
        "llama-3-405b",
        "mistral-7b",
        "qwen2.5-7b",
        "qwen2.5-72b",
        "qwen3-32b",
    ),
    *(
        "opt-13b",
        "phi-3-mini",
        "gemma-2-9b",
        "gemma-2-27b",
        "gemma-3-27b",
        "gpt2-medium",
        "gpt2-large",
        "gpt2-xl",
        "gpt3-175b",
    ),
)


def _draw_states(rng: random.Random) -> Draw:
    key = rng.choice(SIZES)
    return drawn(name=catalogued.model_name(key), parameters=model_parameters(catalogued.model(key)).total, dp=1)


def _count_states(p: Draw) -> float:
    """Make one update step with every array that it takes, and weigh the arrays."""
    import numpy as np

    master = np.ones(p.parameters, dtype=np.float32)
    weights = master.astype(np.float16)
    gradients = weights * weights
    momentum = np.float32(0.1) * gradients.astype(np.float32)
    variance = np.float32(0.001) * gradients.astype(np.float32) ** 2
    master -= momentum / (np.sqrt(variance) + 1)
    weights[:] = master
    return float(sum(array.nbytes for array in (weights, gradients, master, momentum, variance)))


STATES = Drill(
    key="memory-model-states",
    taught=TAUGHT,
    title="What a parameter costs",
    unit="B",
    capacity=True,
    target_s=60,
    fewest=19,  # one answer per catalogued model
    draw=_draw_states,
    small=lambda rng: drawn(name="drawn", parameters=rng.choice((30, 50, 70)), dp=1),
    prompt=lambda p: (
        f"{p.name} ({billions(p.parameters)} parameters) trains with Adam in mixed precision, as in the ZeRO paper:"
        " forward and backward read fp16 weights and leave fp16 gradients, the update is done in fp32. Nothing is"
        " sharded. How many bytes do the model states take, activations aside?"
    ),
    derive=lambda p: Derivation(
        value=total_bytes(p, recipe="zero-paper", zero_stage=0),
        formula="parameters × (2 weight + 2 gradient + 4 master copy + 4 momentum + 4 variance)",
        substitution=f"{p.parameters:,} × (2 + 2 + 4 + 4 + 4)",
        source=SOURCE_STATES,
    ),
    count=_count_states,
    slips=(
        Slip("weights-only", lambda p: 2 * p.parameters)
        | "That is the model as it is served. Training keeps several more numbers for each of its weights.",
        Slip("optimiser-forgotten", lambda p: 4 * p.parameters)
        | "A weight and its gradient: that is what forward and backward pass need. The update needs more for each"
        " parameter, and that is most of the bill.",
        Slip("all-sixteen-bit", lambda p: 8 * p.parameters)
        | "You kept everything in 16 bits. The update would be rounded away: what it adds is far smaller than"
        " what it is added to.",
        Slip("one-copy-short", lambda p: 12 * p.parameters)
        | "One fp32 number per parameter is missing. Ask what small updates are added up in, and what Adam"
        " remembers about a gradient.",
        Slip("gradients-forgotten", lambda p: 14 * p.parameters)
        | "You left the gradients out. A checkpoint can do without them; the moment between backward pass and"
        " update cannot.",
        Slip("fp32-gradients", lambda p: 18 * p.parameters)
        | "You kept gradients in fp32. Some frameworks do; read again what this one leaves.",
        Slip("fp32-gradient-copy", lambda p: 20 * p.parameters)
        | "You gave the gradients two places, one in each precision. DeepSpeed does that; the recipe asked for"
        " does not.",
    ),
)

# --- ZeRO stage 1 --------------------------------------------------------------------------------


def _draw_zero(rng: random.Random) -> Draw:
    return drawn(parameters=rng.randrange(2_600_000_000, 9_200_000_000, 200_000_000), dp=rng.choice((10, 12)))


def _small_zero(rng: random.Random) -> Draw:
    dp = rng.choice((3, 5))
    return drawn(parameters=dp * rng.choice((4, 6)), dp=dp)


def _placed(p: Draw) -> tuple[list[Parameter], Grid]:
    """All parameters as one tensor, on a machine with data parallelism alone."""
    return [Parameter(name="all", size=p.parameters, kind="split", stage=0)], Grid(dp=p.dp, tp=1, pp=1)


ZERO_1 = Drill(
    key="memory-zero-1",
    taught=TAUGHT,
    title="A distributed optimiser",
    unit="B",
    capacity=True,
    target_s=90,
    draw=_draw_zero,
    small=_small_zero,
    prompt=lambda p: (
        f"A model of {billions(p.parameters)} parameters trains on {p.dp} GPUs, data-parallel, with bf16 weights,"
        " gradients added up in fp32, and fp32 Adam with a master copy. The optimiser is distributed over the GPUs"
        " (ZeRO stage 1). How many bytes of model states does each GPU hold?"
    ),
    derive=lambda p: Derivation(
        value=total_bytes(p, recipe="megatron", zero_stage=1),
        formula="parameters × (2 weight + 4 gradient + 12 for the update / data-parallel ranks)",
        substitution=f"{p.parameters:,} × (2 + 4 + 12 / {p.dp})",
        source=SOURCE_MEGATRON,
    ),
    count=lambda p: rank_bytes(*_placed(p), zero_stage=1, per_value=FP32_GRADIENTS),
    prerequisites=("memory-model-states",),
    slips=(
        Slip("everything-sharded", lambda p: 18 * p.parameters / p.dp)
        | "You divided everything by the GPUs. At stage 1 each of them still computes with all weights and leaves"
        " all gradients.",
        Slip("gradients-sharded", lambda p: (2 + 16 / p.dp) * p.parameters)
        | "You sharded the gradients as well. That is the next stage.",
        Slip("nothing-sharded", lambda p: 18 * p.parameters)
        | "That is plain data parallelism, where each GPU keeps a whole optimiser.",
        Slip("sixteen-bit-gradients", lambda p: (4 + 12 / p.dp) * p.parameters)
        | "You kept gradients in 16 bits. Read again what they are added up in.",
        Slip("optimiser-forgotten", lambda p: 6 * p.parameters)
        | "You forgot the optimiser. It is spread thin, but a part of it is still here.",
        Slip("one-copy-short", lambda p: (6 + 8 / p.dp) * p.parameters)
        | "One fp32 number per parameter is missing from the optimiser: the master copy, or one of Adam's"
        " moments.",
    ),
)

# --- ZeRO stage 2 --------------------------------------------------------------------------------


ZERO_2 = Drill(
    key="memory-zero-2",
    taught=TAUGHT,
    title="Gradients that go home",
    unit="B",
    capacity=True,
    target_s=90,
    draw=_draw_zero,
    small=_small_zero,
    prompt=lambda p: (
        f"A model of {billions(p.parameters)} parameters trains on {p.dp} GPUs, data-parallel, with fp16 weights and"
        " gradients and fp32 Adam with a master copy. With ZeRO stage 2, each gradient goes to the GPU that will use"
        " it and is dropped elsewhere. How many bytes of model states does each GPU hold?"
    ),
    derive=lambda p: Derivation(
        value=total_bytes(p, recipe="zero-paper", zero_stage=2),
        formula="parameters × (2 weight + (2 gradient + 12 for the update) / data-parallel ranks)",
        substitution=f"{p.parameters:,} × (2 + (2 + 12) / {p.dp})",
        source=SOURCE_ZERO,
    ),
    count=lambda p: rank_bytes(*_placed(p), zero_stage=2, per_value=MIXED),
    prerequisites=("memory-model-states", "memory-zero-1"),
    slips=(
        Slip("weights-sharded", lambda p: 16 * p.parameters / p.dp)
        | "You sharded the weights as well. That is the next stage; here every GPU has them all at hand.",
        Slip("optimiser-only", lambda p: (4 + 12 / p.dp) * p.parameters)
        | "You left every gradient on every GPU. That is the stage before.",
        Slip("nothing-sharded", lambda p: 16 * p.parameters)
        | "That is plain data parallelism, where each GPU keeps everything.",
        Slip("one-copy-short", lambda p: (2 + 10 / p.dp) * p.parameters)
        | "One fp32 number per parameter is missing from the optimiser: the master copy, or one of Adam's"
        " moments.",
        Slip("weights-forgotten", lambda p: 14 / p.dp * p.parameters)
        | "You counted what is sharded. What is not sharded stands on every GPU in full.",
    ),
)

DRILLS = (STATES, ZERO_1, ZERO_2)
