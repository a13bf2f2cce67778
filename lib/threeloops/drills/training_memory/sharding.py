"""Drills on states that are split in more than one way: ZeRO stage 3, ZeRO inside tensor and pipeline parallelism."""

import random

from threeloops.drills.engine import catalogued
from threeloops.drills.engine.drill import AsFunction, Derivation, Draw, Drill, Slip, Taught, drawn
from threeloops.drills.engine.phrasing import billions
from threeloops.drills.training_memory.states import MIXED, SOURCE_ZERO, rank_bytes
from threeloops.models.parameter_buckets import ParameterBuckets
from threeloops.models.parameters import model_parameters
from threeloops.simulate.training_loop.sharding import Grid, Parameter
from threeloops.training_loop.memory.rank_states import ModelStates, model_states

TAUGHT = Taught("training", "Training memory")

SOURCE_STAGE_3 = (
    "Rajbhandari et al., ZeRO, 2019, arXiv:1910.02054, section 5.3; Zhao et al., PyTorch FSDP, 2023, arXiv:2304.11277"
    " (layers gathered ahead)"
)
SOURCE_GRID = f"{SOURCE_ZERO}; Megatron Core User Guide, Distributed Optimizer, read in 2026"

# --- ZeRO stage 3 --------------------------------------------------------------------------------


def _draw_zero_3(rng: random.Random) -> Draw:
    key = rng.choice(("llama-2-70b", "llama-3-70b", "qwen2.5-72b"))
    model = catalogued.model(key)
    total, layers = model_parameters(model), model.num_layers
    ((layer, _),) = total.layers
    return drawn(
        name=catalogued.model_name(key),
        parameters=total.total,
        layers=layers,
        layer=layer.total,
        gathered=2,
        dp=rng.randrange(40, 164, 8),
    )


def _small_zero_3(rng: random.Random) -> Draw:
    dp, layers, layer = rng.choice((3, 5)), 4, 30
    return drawn(
        name="drawn", parameters=layers * layer + rng.choice((30, 60)), layers=layers, layer=layer, gathered=2, dp=dp
    )


def _derive_zero_3(p: Draw) -> Derivation:
    def states(parameters: int, zero_stage: int) -> ModelStates:
        return model_states(
            parameters=ParameterBuckets.plain(parameters),
            recipe="zero-paper",
            zero_stage=zero_stage,
            dp=p.dp,
            tp=1,
            pp=1,
        )

    return Derivation(
        value=states(p.parameters, 3).total_bytes + p.gathered * states(p.layer, 0).weights_bytes,
        formula="parameters × 16 / ranks + whole layers × parameters of a layer × 2",
        substitution=f"{p.parameters:,} × 16 / {p.dp} + {p.gathered} × {p.layer:,} × 2",
        source=SOURCE_STAGE_3,
    )


def _count_zero_3(p: Draw) -> float:
    """Deal all states out value by value; then fetch the weights of two layers whole, on ranks that keep nothing
    sharded of them.
    """
    layers = [Parameter(name=f"layer {number}", size=p.layer, kind="split", stage=0) for number in range(p.layers)]
    rest = Parameter(name="tables", size=p.parameters - p.layers * p.layer, kind="split", stage=0)
    grid = Grid(dp=p.dp, tp=1, pp=1)
    shards = rank_bytes([*layers, rest], grid, zero_stage=3, per_value=MIXED)
    return shards + rank_bytes(layers[: p.gathered], grid, zero_stage=0, per_value=(2, 0, 0))


ZERO_3 = Drill(
    key="memory-zero-3",
    taught=TAUGHT,
    title="Shards, and the layer at work",
    unit="B",
    capacity=True,
    target_s=150,
    draw=_draw_zero_3,
    small=_small_zero_3,
    prompt=lambda p: (
        f"{p.name} ({billions(p.parameters)} parameters, {billions(p.layer)} in each of its {p.layers} layers) trains"
        f" on {p.dp} GPUs with ZeRO stage 3, fp16 weights and gradients, fp32 Adam with a master copy. While one layer"
        f" computes, the weights of the next are already being gathered: on each GPU the fp16 weights of {p.gathered}"
        " whole layers stand beside the shards. How many bytes is that in all, per GPU?"
    ),
    derive=_derive_zero_3,
    count=_count_zero_3,
    prerequisites=("memory-zero-2",),
    slips=(
        Slip("shards-only", lambda p: 16 * p.parameters / p.dp)
        | "You counted the shards. A GPU cannot multiply by a shard: the layer at work is whole.",
        Slip("one-layer", lambda p: 16 * p.parameters / p.dp + 2 * p.layer)
        | "You gathered the layer at work. Look at what is fetched meanwhile.",
        Slip("states-gathered", lambda p: 16 * p.parameters / p.dp + p.gathered * 16 * p.layer)
        | "You gathered everything that belongs to a layer. To compute with it takes less than to train it.",
        Slip("weights-whole", lambda p: (2 + 14 / p.dp) * p.parameters)
        | "You left all weights on every GPU. That is the stage before.",
        Slip("weights-only", lambda p: 2 * p.parameters / p.dp + p.gathered * 2 * p.layer)
        | "You sharded weights and stopped. Gradients and the optimiser's state are on these GPUs as well.",
    ),
)

# --- ZeRO inside tensor and pipeline parallelism -------------------------------------------------


def _draw_grid(rng: random.Random) -> Draw:
    tp, pp, dp = rng.choice(((3, 2, 12), (2, 3, 12), (5, 2, 10), (2, 5, 10), (6, 5, 10), (5, 6, 12)))
    return drawn(parameters=rng.randrange(21_000_000_000, 49_000_000_000, 2_000_000_000), tp=tp, pp=pp, dp=dp)


def _small_grid(rng: random.Random) -> Draw:
    tp, pp = rng.choice(((3, 2), (2, 3)))
    return drawn(parameters=rng.choice((360, 720)), tp=tp, pp=pp, dp=rng.choice((5, 4)))


def _derive_grid(p: Draw) -> Derivation:
    buckets = ParameterBuckets.plain(p.parameters)
    return Derivation(
        value=model_states(
            parameters=buckets, recipe="zero-paper", zero_stage=1, dp=p.dp, tp=p.tp, pp=p.pp
        ).total_bytes,
        formula="parameters / (tp × pp) × (2 + 2 + 12 / dp)",
        substitution=f"{p.parameters:,} / ({p.tp} × {p.pp}) × (2 + 2 + 12 / {p.dp})",
        source=SOURCE_GRID,
    )


def _count_grid(p: Draw) -> float:
    stages = [
        Parameter(name=f"stage {stage}", size=p.parameters // p.pp, kind="split", stage=stage) for stage in range(p.pp)
    ]
    return rank_bytes(stages, Grid(dp=p.dp, tp=p.tp, pp=p.pp), zero_stage=1, per_value=MIXED)


GRID = Drill(
    key="memory-zero-in-a-grid",
    taught=TAUGHT,
    title="Who shares with whom",
    unit="B",
    capacity=True,
    target_s=120,
    draw=_draw_grid,
    small=_small_grid,
    prompt=lambda p: (
        f"A model of {billions(p.parameters)} parameters trains on {p.tp * p.pp * p.dp} GPUs: tensor parallelism"
        f" {p.tp}, pipeline parallelism {p.pp}, data parallelism {p.dp}, all stages equal. Weights and gradients are"
        " fp16, Adam is fp32 with a master copy, and ZeRO stage 1 shards the optimiser over data-parallel ranks. How"
        " many bytes of model states does each GPU hold?"
    ),
    derive=_derive_grid,
    count=_count_grid,
    prerequisites=("memory-zero-1",),
    slips=(
        Slip("all-gpus-share", lambda p: p.parameters / (p.tp * p.pp) * (4 + 12 / (p.tp * p.pp * p.dp)))
        | "You sharded the optimiser over all GPUs. A GPU can share only with those that hold the same slice of"
        " the model.",
        Slip("weights-split-only", lambda p: p.parameters * (2 / (p.tp * p.pp) + 2 + 12 / p.dp))
        | "You split the weights alone. A GPU that does not hold a weight keeps no gradient and no optimiser"
        " state for it.",
        Slip("pipeline-ignored", lambda p: p.parameters / p.tp * (4 + 12 / p.dp))
        | "You put all pipeline stages on every GPU.",
        Slip("tensor-ignored", lambda p: p.parameters / p.pp * (4 + 12 / p.dp))
        | "You left every matrix whole. Tensor parallelism cuts it.",
        Slip("gradients-sharded", lambda p: p.parameters / (p.tp * p.pp) * (2 + 14 / p.dp))
        | "You sharded the gradients over the data-parallel ranks as well. That is the next stage.",
        Slip("nothing-sharded", lambda p: 16 * p.parameters / (p.tp * p.pp))
        | "You gave every data-parallel rank a whole optimiser for its slice.",
    ),
    function=AsFunction(
        takes=("parameters", "tp", "pp", "dp"),
        limit={"dp": 1},
        limit_case="one data-parallel rank, with no other to shard over",
    ),
)

DRILLS = (ZERO_3, GRID)
