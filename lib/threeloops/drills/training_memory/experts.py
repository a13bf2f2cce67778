"""Drills on mixtures of experts in training: experts that nobody asks, and experts that fewer GPUs share."""

import random

from threeloops.drills.engine import catalogued
from threeloops.drills.engine.drill import AsFunction, Derivation, Draw, Drill, Slip, Taught, drawn
from threeloops.drills.engine.phrasing import billions
from threeloops.drills.training_memory.states import MIXED, SOURCE_ZERO, rank_bytes
from threeloops.models.architecture import MoeMlp
from threeloops.models.parameter_buckets import ParameterBuckets
from threeloops.models.parameters import mlp_parameters, model_parameters
from threeloops.simulate.training_loop.sharding import Grid, Parameter
from threeloops.training_loop.memory.rank_states import model_states

TAUGHT = Taught("training", "Training memory")

SOURCE_MIXTRAL = (
    "Jiang et al., Mixtral of Experts, 2024, arXiv:2401.04088 (experts take the place of the feed-forward block);"
    f" {SOURCE_ZERO}"
)
SOURCE_EXPERTS = (
    "Rajbhandari et al., DeepSpeed-MoE, 2022, arXiv:2201.05596 (experts and the rest have data-parallel groups of"
    " different sizes)"
)

# --- experts that nobody asks --------------------------------------------------------------------


def _draw_total(rng: random.Random) -> Draw:
    key, nominal = rng.choice((("mixtral-8x7b", 7_000_000_000), ("mixtral-8x22b", 22_000_000_000)))
    model = catalogued.model(key)
    ((layer, layers),) = model.groups
    assert isinstance(layer.mlp, MoeMlp)
    expert, total = mlp_parameters(layer.mlp.expert, hidden=model.hidden), model_parameters(model).total
    experts = {"experts": layer.mlp.num_experts, "top_k": layer.mlp.top_k, "expert": expert, "layers": layers}
    return drawn(
        name=catalogued.model_name(key),
        **experts,
        rest=total - layers * layer.mlp.num_experts * expert,
        nominal=nominal,
        dp=rng.randrange(32, 224, 8),
    )


def _small_total(rng: random.Random) -> Draw:
    dp = rng.choice((3, 5))
    return drawn(
        name="drawn", experts=5, top_k=2, expert=dp * rng.choice((2, 4)), layers=2, rest=dp * 7, nominal=dp * 6, dp=dp
    )


def _derive_total(p: Draw) -> Derivation:
    experts = ParameterBuckets(split_matrices=p.rest, expert_matrices=p.layers * p.experts * p.expert)
    return Derivation(
        value=model_states(
            parameters=experts, recipe="zero-paper", zero_stage=3, dp=p.dp, tp=1, pp=1, ep=1, expert_tp=1
        ).total_bytes,
        formula="16 × (layers × all experts × parameters of one + the rest) / ranks",
        substitution=f"16 × ({p.layers} × {p.experts} × {p.expert:,} + {p.rest:,}) / {p.dp}",
        source=SOURCE_MIXTRAL,
    )


def _count_total(p: Draw) -> float:
    names = [(layer, expert) for layer in range(p.layers) for expert in range(p.experts)]
    experts = [
        Parameter(name=f"layer {layer}, expert {expert}", size=p.expert, kind="expert", stage=0, expert=expert)
        for layer, expert in names
    ]
    rest = Parameter(name="the rest", size=p.rest, kind="split", stage=0)
    return rank_bytes([*experts, rest], Grid(dp=p.dp, tp=1, pp=1), zero_stage=3, per_value=MIXED)


def _share(p: Draw, parameters: float) -> float:
    return float(16 * parameters / p.dp)


TOTAL = Drill(
    key="memory-moe-total",
    taught=TAUGHT,
    title="Experts that no token chooses",
    unit="B",
    capacity=True,
    target_s=120,
    draw=_draw_total,
    small=_small_total,
    prompt=lambda p: (
        f"{p.name} has {p.layers} layers with {p.experts} experts of {billions(p.expert)} parameters each; {p.top_k} of"
        f" them work on any token. Everything else in the model comes to {billions(p.rest)} parameters. It trains on"
        f" {p.dp} GPUs with ZeRO stage 3, fp16 weights and gradients, and fp32 Adam with a master copy. How many bytes"
        " of model states does each GPU keep, gathered layers aside?"
    ),
    derive=_derive_total,
    count=_count_total,
    prerequisites=("memory-model-states",),
    slips=(
        Slip("active-only", lambda p: _share(p, p.layers * p.top_k * p.expert + p.rest))
        | "You stored the experts that one token visits. The next token visits others, and they have to be there.",
        Slip("by-its-name", lambda p: _share(p, p.experts * p.nominal))
        | "You took the name at its word. Experts replace the feed-forward block; attention and tables are not"
        " repeated with them.",
        Slip("one-expert", lambda p: _share(p, p.layers * p.expert + p.rest))
        | "You stored one expert per layer, as in a dense model.",
        Slip("one-layer", lambda p: _share(p, p.experts * p.expert + p.rest))
        | "You stored the experts of one layer. Every layer has its own.",
        Slip("weights-only", lambda p: 2 * (p.layers * p.experts * p.expert + p.rest) / p.dp)
        | "You kept the weights. Experts are trained too, with all that this takes.",
        Slip("nothing-sharded", lambda p: 16 * (p.layers * p.experts * p.expert + p.rest))
        | "You put everything on every GPU. At stage 3 nothing is kept twice.",
    ),
)

# --- expert parallelism --------------------------------------------------------------------------


def _draw_experts(rng: random.Random) -> Draw:
    dp, ep = rng.choice(((10, 5), (12, 4), (12, 3), (12, 6)))
    sizes = {
        "dense": rng.choice((11_000_000_000, 12_000_000_000)),
        "experts": rng.randrange(24_000_000_000, 31_000_000_000, 1_000_000_000),
    }
    return drawn(**sizes, per_layer=5 * ep, dp=dp, ep=ep)


def _small_experts(rng: random.Random) -> Draw:
    dp, ep = rng.choice(((6, 3), (6, 2)))
    return drawn(dense=rng.choice((24, 36)), experts=2 * ep * rng.choice((12, 18)), per_layer=2 * ep, dp=dp, ep=ep)


def _derive_experts(p: Draw) -> Derivation:
    buckets = ParameterBuckets(split_matrices=p.dense, expert_matrices=p.experts)
    return Derivation(
        value=model_states(
            parameters=buckets, recipe="zero-paper", zero_stage=1, dp=p.dp, tp=1, pp=1, ep=p.ep, expert_tp=1
        ).total_bytes,
        formula="dense × (4 + 12 / dp) + experts / ep × (4 + 12 / (dp / ep))",
        substitution=f"{p.dense:,} × (4 + 12 / {p.dp}) + {p.experts:,} / {p.ep} × (4 + 12 / ({p.dp} / {p.ep}))",
        source=SOURCE_EXPERTS,
    )


def _count_experts(p: Draw) -> float:
    size = p.experts // p.per_layer
    experts = [
        Parameter(name=f"expert {number}", size=size, kind="expert", stage=0, expert=number)
        for number in range(p.per_layer)
    ]
    dense = Parameter(name="dense", size=p.dense, kind="split", stage=0)
    return rank_bytes([dense, *experts], Grid(dp=p.dp, tp=1, pp=1, ep=p.ep), zero_stage=1, per_value=MIXED)


EXPERTS = Drill(
    key="memory-expert-parallel",
    taught=TAUGHT,
    title="A smaller circle of copies",
    unit="B",
    capacity=True,
    target_s=180,
    draw=_draw_experts,
    small=_small_experts,
    prompt=lambda p: (
        f"A model has {billions(p.dense)} dense parameters and {billions(p.experts)} in experts, {p.per_layer} experts"
        f" per layer. It trains on {p.dp} GPUs. The dense part is data-parallel over all of them; the experts are dealt"
        f" out within groups of {p.ep} GPUs (expert parallelism {p.ep}), each expert whole. Weights and gradients are"
        " fp16, Adam is fp32 with a master copy, and ZeRO stage 1 shards the optimiser over the GPUs that hold the"
        " same parameters. How many bytes of model states does each GPU hold?"
    ),
    derive=_derive_experts,
    count=_count_experts,
    prerequisites=("memory-zero-1", "memory-moe-total"),
    slips=(
        Slip("all-gpus-share", lambda p: p.dense * (4 + 12 / p.dp) + p.experts / p.ep * (4 + 12 / p.dp))
        | "You sharded the experts' optimiser over all GPUs. Count how many GPUs hold a given expert.",
        Slip("experts-everywhere", lambda p: (p.dense + p.experts) * (4 + 12 / p.dp))
        | "You put all experts on every GPU. Expert parallelism deals them out.",
        Slip("dense-dealt-out", lambda p: (p.dense + p.experts) / p.ep * (4 + 12 * p.ep / p.dp))
        | "You dealt the dense part out as well. Every token needs it, so every GPU has it.",
        Slip("dense-forgotten", lambda p: p.experts / p.ep * (4 + 12 * p.ep / p.dp))
        | "You counted the experts. Attention, tables and routers are on this GPU too.",
        Slip("nothing-sharded", lambda p: 16 * (p.dense + p.experts / p.ep))
        | "You gave each GPU a whole optimiser for what it holds. Others hold the same and share the work.",
    ),
    function=AsFunction(
        takes=("dense", "experts", "dp", "ep"),
        limit=lambda p: {"ep": p.dp},
        limit_case="experts dealt out over all GPUs, so that each is held once",
    ),
)

DRILLS = (TOTAL, EXPERTS)
