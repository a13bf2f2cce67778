"""The memory of a training run, from memory: states and activations, on one GPU and with the states sharded."""

import random

from threeloops.drills.engine import catalogued
from threeloops.drills.engine.drill import AsFunction, Derivation, Draw, Drill, Slip, Taught, drawn
from threeloops.drills.engine.searches import wanted
from threeloops.models.architecture import Attention, DenseMlp, Layer
from threeloops.models.parameter_buckets import ParameterBuckets
from threeloops.models.parameters import model_parameters
from threeloops.simulate.training_loop.sharding import Bytes, Grid, Parameter, stored_bytes
from threeloops.training_loop.memory import activations
from threeloops.training_loop.memory.rank_states import model_states

TAUGHT = Taught("driving", "The reference sheet")
SOURCE = (
    "Rajbhandari et al., ZeRO, 2019, arXiv:1910.02054, section 3.1 (states); Korthikanti et al., 2022,"
    " arXiv:2205.05198, section 4 (34 bytes a value with the attention core run again)"
)
RECIPE = (
    "It trains with Adam in mixed precision: weights and gradients in 16 bits, a master copy and both moments in 32."
    " Its layers are a plain transformer's (GELU, four times as wide inside, dropout with masks of one byte) and run"
    " the attention core again in the backward pass."
)
PLAIN = ("gpt2-medium", "gpt2-large", "gpt2-xl", "opt-13b")
MIXED: Bytes = (2, 2, 4 + 4 + 4)  # weight, gradient, and for the update: a copy of the weight, two moments


def _states(p: Draw) -> float:
    return model_states(
        parameters=ParameterBuckets.plain(p.parameters), recipe="zero-paper", zero_stage=3, dp=p.gpus, tp=1, pp=1
    ).total_bytes


def _kept(p: Draw) -> float:
    """Activations of one GPU's batch."""
    layer = Layer(
        attention=Attention(num_heads=1, num_kv_heads=1, head_dim=p.hidden),
        mlp=DenseMlp(intermediate=4 * p.hidden, gated=False, activation="gelu"),
        norm="layernorm",
        num_norms=2,
    )
    one = activations.per_layer(
        layer,
        hidden=p.hidden,
        sequence=p.sequence,
        micro_batch=p.batch,
        bytes_per_element=2,
        kernels="korthikanti",
        dropout=True,
        recompute="selective",
    )
    return float(p.layers * one.total_bytes)


def _count(p: Draw) -> float:
    """Every value's bytes placed by hand, and layers that really run."""
    import numpy as np

    from threeloops.simulate.training_loop.block_tape import Blocks

    blocks = Blocks(layers=p.layers, heads=1, hidden=p.hidden, dtype=np.float16)
    kept = blocks.peak_bytes(
        blocks.inputs(batch=p.batch, sequence=p.sequence), tp=1, sequence_parallel=False, recompute="selective"
    )
    every = [Parameter(name="all", size=p.parameters, kind="split", stage=0)]
    grid = Grid(dp=p.gpus, tp=1, pp=1)
    stored = stored_bytes(every, grid, zero_stage=3, matrix_bytes=MIXED, other_bytes=MIXED)[0, 0]
    return float(stored.weights + stored.gradients + stored.optimiser + kept)


def _small(rng: random.Random, gpus: int) -> Draw:
    return drawn(
        name="drawn",
        parameters=gpus * rng.choice((300, 500)),
        layers=rng.choice((2, 3)),
        hidden=rng.choice((6, 12)),
        heads=3,
        sequence=rng.choice((5, 7)),
        batch=3,
        gpus=gpus,
    )


# --- one GPU -------------------------------------------------------------------------------------


def _heads(key: str) -> int:
    attention = catalogued.model(key).groups[0][0].attention
    assert isinstance(attention, Attention)
    return attention.num_heads


def _draw_bill(rng: random.Random) -> Draw:
    """A catalogued model, and a batch whose activations weigh a third to four fifths of its states."""
    key = rng.choice(PLAIN)
    model = catalogued.model(key)

    def draw() -> Draw:
        return drawn(
            name=catalogued.model_name(key),
            parameters=model_parameters(model).total,
            layers=model.num_layers,
            hidden=model.hidden,
            heads=_heads(key),
            sequence=rng.randrange(600, 1025, 25),
            batch=rng.choice((3, 5, 6, 7, 9, 10, 12, 14, 18)),
            gpus=1,
        )

    return wanted(draw, lambda p: 0.35 < _kept(p) / _states(p) < 0.48 or 0.6 < _kept(p) / _states(p) < 0.8)


BILL = Drill(
    key="coding-training-bill",
    taught=TAUGHT,
    title="The bill of a training run",
    unit="B",
    capacity=True,
    target_s=120,
    draw=_draw_bill,
    small=lambda rng: _small(rng, 1),
    prompt=lambda p: (
        f"{p.name} has {p.parameters:,} parameters in {p.layers} layers, {p.hidden:,} wide. {RECIPE} It sees {p.batch}"
        f" sequences of {p.sequence:,} tokens at a time on one GPU. How many bytes are states and layers' activations"
        " together, embedding and head activations aside?"
    ),
    derive=lambda p: Derivation(
        value=_states(p) + _kept(p),
        formula="parameters × (2 + 2 + 4 + 4 + 4) + layers × 34 × sequence × batch × hidden",
        substitution=f"{p.parameters:,} × 16 + {p.layers} × 34 × {p.sequence} × {p.batch} × {p.hidden}",
        source=SOURCE,
    ),
    count=_count,
    prerequisites=("memory-model-states",),
    slips=(
        Slip("states-only", _states) | "You left out what the layers keep for their backward pass.",
        Slip("no-master", lambda p: 12 * p.parameters + _kept(p))
        | "You left out one copy in 32 bits. The update works on a master copy and on two moments.",
        Slip("scores-kept", lambda p: _states(p) + _kept(p) * (1 + 5 * p.heads * p.sequence / p.hidden / 34))
        | "You kept the rows of scores. The attention core is run again, so that they need not be kept.",
        Slip("weights-only", lambda p: 2 * p.parameters + _kept(p))
        | "You counted the weights. Training also holds gradients, a master copy and two moments.",
        Slip("no-gradients", lambda p: 14 * p.parameters + _kept(p))
        | "You left the gradients out. They are there when the update begins.",
    ),
)

# --- sharded -------------------------------------------------------------------------------------


def _balanced(p: Draw) -> bool:
    """Activations and the share of the states weigh about alike on each GPU."""
    return 0.7 < _kept(p) / _states(p) < 1.1


SHARDED = Drill(
    key="coding-sharded-bill",
    taught=TAUGHT,
    title="What sharding divides",
    unit="B",
    capacity=True,
    target_s=150,
    wanted=_balanced,
    draw=lambda rng: drawn(
        parameters=rng.randrange(60, 140) * 100_000_000,
        layers=rng.choice((30, 34, 36, 38, 42)),
        hidden=rng.choice((4096, 4608, 5120, 5632)),
        sequence=rng.randrange(1000, 2001, 100),
        batch=rng.choice((3, 5, 6, 7)),
        gpus=rng.choice((4, 5, 6)),
    ),
    small=lambda rng: _small(rng, rng.choice((4, 5))),
    prompt=lambda p: (
        f"A model has {p.parameters:,} parameters in {p.layers} layers, {p.hidden:,} wide. {RECIPE} {p.gpus} GPUs"
        f" shard all states evenly (ZeRO-3, FSDP), and each of them trains on {p.batch} sequences of"
        f" {p.sequence:,} tokens. How many bytes of states and layers' activations does one GPU hold? Leave out the"
        " layer whose weights are gathered just now, and embedding and head activations."
    ),
    derive=lambda p: Derivation(
        value=_states(p) + _kept(p),
        formula="parameters × (2 + 2 + 4 + 4 + 4) / GPUs + layers × 34 × sequence × batch × hidden",
        substitution=f"{p.parameters:,} × 16 / {p.gpus} + {p.layers} × 34 × {p.sequence} × {p.batch} × {p.hidden}",
        source=SOURCE,
    ),
    count=_count,
    prerequisites=("coding-training-bill",),
    slips=(
        Slip("all-divided", lambda p: _states(p) + _kept(p) / p.gpus)
        | "You divided the activations, too. Each GPU has a batch of its own, and keeps all of it.",
        Slip("nothing-divided", lambda p: p.gpus * _states(p) + _kept(p))
        | "You gave every GPU all of the states. Here they are dealt out.",
        Slip("update-only", lambda p: 4 * p.parameters + 12 * p.parameters / p.gpus + _kept(p))
        | "You dealt out what the update needs, and left weights and gradients whole on every GPU.",
        Slip("states-only", _states) | "You left out what the layers keep for their backward pass.",
        Slip("no-master", lambda p: 12 * p.parameters / p.gpus + _kept(p))
        | "You left out one copy in 32 bits. The update works on a master copy and on two moments.",
    ),
    function=AsFunction(
        takes=("parameters", "layers", "hidden", "sequence", "batch", "gpus"),
        limit={"gpus": 1},
        limit_case="one GPU, with no other to shard over",
    ),
)

DRILLS = (BILL, SHARDED)
