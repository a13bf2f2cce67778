"""Drills on what a rank of a cut layer holds: whether it had to be cut, what stays whole, and what is added up once
too often.
"""

import random

from threeloops.drills.engine import catalogued
from threeloops.drills.engine.drill import Derivation, Draw, Drill, Slip, Taught, drawn
from threeloops.drills.parallel_layout.tensor_exchange import SOURCE_MEGATRON
from threeloops.drills.training_memory.activations import BUILT, gpt_layer
from threeloops.models.model_flops import layer_matmul_parameters
from threeloops.training_loop.memory import activations
from threeloops.training_loop.parallelism import tensor_parallel
from threeloops.units import fmt_bytes

TAUGHT = Taught("training", "Tensor and sequence parallelism")

SOURCE_SEQUENCE = "Korthikanti et al., 2022, arXiv:2205.05198, sections 4.2.1 and 4.2.2, equations 2 and 4"
SOURCE_WIDTHS = (
    "Brown et al., GPT-3, 2020, arXiv:2005.14165, section 2.1 (the shape of a layer); the GPU's usable memory as its"
    " driver reports it"
)

# --- did it have to be cut? ----------------------------------------------------------------------

GPUS = ("h100-sxm5", "h200-sxm", "a100-sxm4-80gb")


def _draw_layers(rng: random.Random) -> Draw:
    part = catalogued.part(rng.choice(GPUS))
    return drawn(
        hidden=256 * rng.randrange(18, 49), usable=int(part["usable_bytes"]), gpu=part.name, bytes_per_element=2
    )


def _count_layers(p: Draw) -> float:
    """Put matrix after matrix on the GPU until the next layer does not fit."""
    free, layers = p.usable, 0
    shapes = [(p.hidden, p.hidden)] * 4 + [(p.hidden, 4 * p.hidden), (4 * p.hidden, p.hidden)]
    while True:
        for rows, columns in shapes:
            free -= sum(columns * p.bytes_per_element for _ in range(rows))
        if free < 0:
            return float(layers)
        layers += 1


def _whole_layers(p: Draw) -> float:
    layer = gpt_layer(drawn(hidden=p.hidden, heads=1))  # any number of heads has matrices of the same size
    return float(p.usable // (layer_matmul_parameters(layer, hidden=p.hidden) * p.bytes_per_element))


def _layers(p: Draw, squares: float) -> float:
    """Whole layers, each of that many h × h matrices."""
    return float(p.usable // (squares * p.hidden**2 * p.bytes_per_element))


LAYERS = Drill(
    key="tensor-layers-on-one-gpu",
    taught=TAUGHT,
    title="A matrix that does not fit?",
    unit="",
    whole="down",
    target_s=75,
    draw=_draw_layers,
    small=lambda rng: drawn(
        hidden=rng.choice((3, 4)), usable=rng.randrange(30_000, 60_000), gpu="a small GPU", bytes_per_element=2
    ),
    prompt=lambda p: (
        f'"Weight matrices {p.hidden} wide do not fit a GPU", says a colleague. A layer has four square ones of that'
        " width in its attention, and an MLP of two more that are four times as long. All weights take 16 bits; biases"
        f" and norms are negligible. {p.gpu} has {fmt_bytes(p.usable, base=2)} of usable memory, to the byte"
        f" {p.usable:,}. Holding weights and nothing else, how many whole layers fit?"
    ),
    derive=lambda p: Derivation(
        value=_whole_layers(p),
        formula="usable bytes / (12 × hidden² × bytes per weight), rounded down",
        substitution=f"floor({p.usable:,} / (12 × {p.hidden}² × {p.bytes_per_element}))",
        source=SOURCE_WIDTHS,
    ),
    count=_count_layers,
    slips=(
        Slip("one-matrix", lambda p: _layers(p, 1))
        | "That is how many square matrices fit. A layer is worth more than one of them.",
        Slip("attention-only", lambda p: _layers(p, 4))
        | "You counted attention. The MLP's two matrices are four times as long.",
        Slip("mlp-only", lambda p: _layers(p, 8))
        | "You counted the MLP. Queries, keys, values and the output have matrices, too.",
        Slip("six-squares", lambda p: _layers(p, 6))
        | "You took all six matrices for square ones. Two of them are longer.",
        Slip("full-precision", lambda p: _layers(p, 24)) | "You gave each weight twice the bytes that it takes.",
        Slip("training-state", lambda p: _layers(p, 96))
        | "You added gradients and optimiser state. The question is about weights alone.",
    ),
)

# --- what sequence parallelism takes off ---------------------------------------------------------


def _draw_saved(rng: random.Random) -> Draw:
    hidden, heads = rng.choice(((6144, 48), (8192, 64), (12288, 96), (10240, 80)))
    return drawn(
        hidden=hidden,
        heads=heads,
        tokens=512 * rng.choice((4, 6, 8, 10, 12)),
        batch=rng.choice((1, 2, 3)),
        tp=rng.choice((4, 8)),
    )


def _kept(p: Draw, *, sequence_parallel: bool) -> int:
    sizes = {"hidden": p.hidden, "sequence": p.tokens, "micro_batch": p.batch, "bytes_per_element": 2, "tp": p.tp}
    return activations.per_layer(
        gpt_layer(p), kernels="korthikanti", dropout=True, sequence_parallel=sequence_parallel, **sizes
    ).total_bytes


def _count_saved(p: Draw) -> float:
    """The same from blocks that really run, on every rank."""
    import numpy as np  # which a reader's own drills do not need

    from threeloops.simulate.training_loop.block_tape import Blocks

    blocks = Blocks(layers=1, heads=p.heads, hidden=p.hidden, dtype=np.float16)
    inputs = blocks.inputs(batch=p.batch, sequence=p.tokens)
    whole, cut = (
        blocks.peak_bytes(inputs, tp=p.tp, sequence_parallel=flag, recompute="none") for flag in (False, True)
    )
    return float(whole - cut)


def _gone(p: Draw, factor: float) -> float:
    """What that many bytes per value of the stream come to when all but one rank's part of them is gone."""
    return float(factor * p.tokens * p.batch * p.hidden * (1 - 1 / p.tp))


SAVED = Drill(
    key="tensor-sequence-savings",
    taught=TAUGHT,
    title="What stood whole on every rank",
    unit="B",
    capacity=True,
    target_s=150,
    draw=_draw_saved,
    small=lambda rng: drawn(
        hidden=16, heads=4, tokens=rng.choice((4, 8)), batch=rng.choice((1, 2)), tp=rng.choice((2, 4))
    ),
    prompt=lambda p: (
        f"{BUILT} A model {p.hidden} wide runs on {p.batch} × {p.tokens:,} tokens with tensor parallelism over {p.tp}"
        " GPUs. Then sequence parallelism is switched on: norms, dropout and the inputs of column-parallel matrices"
        " are kept for a GPU's own tokens only. How many bytes does each GPU keep less, for one layer?"
    ),
    derive=lambda p: Derivation(
        value=_kept(p, sequence_parallel=False) - _kept(p, sequence_parallel=True),
        formula="10 bytes (two norm inputs, two matmul inputs, two masks) × tokens × hidden × (1 − 1/n)",
        substitution=f"10 × {p.batch} × {p.tokens:,} × {p.hidden} × (1 − 1/{p.tp})",
        source=SOURCE_SEQUENCE,
    ),
    count=_count_saved,
    prerequisites=("memory-activations",),
    slips=(
        Slip("nothing-left", lambda p: _gone(p, 10) / (1 - 1 / p.tp))
        | "You let it vanish. Each GPU keeps its own tokens' part.",
        Slip("what-is-left", lambda p: _gone(p, 10) / (p.tp - 1)) | "That is what each GPU still keeps of it.",
        Slip("everything", lambda p: _gone(p, 34))
        | "You divided the whole layer. What lies between the two matrices was cut by tensor parallelism already.",
        Slip("inputs-forgotten", lambda p: _gone(p, 6))
        | "You counted norms and masks. The column-parallel matrices keep what they read, and that stood whole on"
        " every GPU, too.",
        Slip("norms-only", lambda p: _gone(p, 4))
        | "You counted the inputs of the two norms. What the matrices read, and where dropout struck, is kept as"
        " well.",
        Slip("masks-forgotten", lambda p: _gone(p, 8)) | "You left the dropout masks out.",
    ),
)

# --- added once too often ------------------------------------------------------------------------


def _draw_bias(rng: random.Random) -> Draw:
    tp, bias = rng.choice((3, 4, 6, 8)), rng.randrange(11, 95) / 100
    partial = tuple(rng.randrange(-150, 260) / 100 for _ in range(tp))
    return drawn(tp=tp, bias=bias, partial=partial, seen=round(sum(partial) + tp * bias, 2))


def _positive(p: Draw) -> bool:
    """No result is negative, nor close to nothing."""
    return min(BIAS.results(p).values()) > 0.05


BIAS: Drill = Drill(
    key="tensor-bias-on-every-rank",
    taught=TAUGHT,
    title="Once too often, and once more",
    unit="",
    target_s=60,
    apart=1.06,
    wanted=_positive,
    draw=_draw_bias,
    small=_draw_bias,
    prompt=lambda p: (
        f"A row-parallel layer is cut over {p.tp} GPUs. Each adds the bias to its partial result, and then the partial"
        f" results are all-reduced. For one token, an output element comes out as {p.seen:.2f}; its bias is"
        f" {p.bias:.2f}. What would the uncut layer have given?"
    ),
    derive=lambda p: Derivation(
        value=tensor_parallel.row_parallel_output(all_reduced=p.seen, bias=p.bias, tp=p.tp),
        formula="what came out − (n − 1) × bias",
        substitution=f"{p.seen:.2f} − ({p.tp} − 1) × {p.bias:.2f}",
        source=SOURCE_MEGATRON,
    ),
    count=lambda p: sum(p.partial) + p.bias,
    slips=(
        Slip("all-taken-off", lambda p: p.seen - p.tp * p.bias)
        | "You took off every bias. The uncut layer adds it, too.",
        Slip("one-taken-off", lambda p: p.seen - p.bias) | "You took off a single one. How many ranks added it?",
        Slip("mean", lambda p: p.seen / p.tp)
        | "You took the mean over the ranks. What they hold are parts of one sum.",
        Slip("bias-shared", lambda p: p.seen - p.bias * (p.tp - 1) / p.tp)
        | "You thought that each rank added its share of the bias. Each added the whole.",
        Slip("added", lambda p: p.seen + (p.tp - 1) * p.bias)
        | "You went the wrong way: there is too much in the sum, not too little.",
    ),
)

DRILLS = (LAYERS, SAVED, BIAS)
