"""Drills on activations: what a block keeps for its backward pass, and what recomputing gives back, whole layers or
the middle of attention.
"""

import random

from threeloops.drills.engine import catalogued
from threeloops.drills.engine.drill import Derivation, Draw, Drill, Slip, Taught, drawn
from threeloops.models.architecture import Attention, DenseMlp, Layer
from threeloops.training_loop.memory import activations

TAUGHT = Taught("training", "Training memory")

SOURCE_BLOCK = "Korthikanti et al., 2022, arXiv:2205.05198, section 4.1, equation 1"
SOURCE_SELECTIVE = "Korthikanti et al., 2022, arXiv:2205.05198, sections 4.2.2 and 5, table 2"
SOURCE_FULL = (
    "Korthikanti et al., 2022, arXiv:2205.05198, section 5; Chen et al., 2016, arXiv:1604.06174 (recomputation)"
)

BUILT = (
    "Activations take 16 bits. Each layer has LayerNorm, explicit attention (not fused), an MLP four times as wide with"
    " GELU, and dropout behind the softmax and behind both halves, with masks of one byte per value."
)


def gpt_layer(p: Draw) -> Layer:
    """The block that these questions are about."""
    heads = Attention(num_heads=p.heads, num_kv_heads=p.heads, head_dim=p.hidden // p.heads)
    return Layer(
        attention=heads,
        mlp=DenseMlp(intermediate=4 * p.hidden, gated=False, activation="gelu"),
        norm="layernorm",
        num_norms=2,
    )


def _kept(p: Draw, *, tp: int = 1, recompute: str = "none") -> int:
    """Bytes that one block keeps on one rank."""
    return activations.per_layer(
        gpt_layer(p),
        hidden=p.hidden,
        sequence=p.tokens,
        micro_batch=p.batch,
        bytes_per_element=2,
        kernels="korthikanti",
        dropout=True,
        tp=tp,
        sequence_parallel=tp > 1,
        recompute=recompute,
    ).total_bytes


def _counted(p: Draw, *, layers: int, tp: int = 1, recompute: str = "none") -> float:
    """The same from blocks that really run."""
    import numpy as np

    from threeloops.simulate.training_loop.block_tape import Blocks

    blocks = Blocks(layers=layers, heads=p.heads, hidden=p.hidden, dtype=np.float16)
    inputs = blocks.inputs(batch=p.batch, sequence=p.tokens)
    return float(blocks.peak_bytes(inputs, tp=tp, sequence_parallel=tp > 1, recompute=recompute))


def _sbh(p: Draw, factor: float) -> float:
    """That many bytes for each value of the residual stream."""
    return float(p.tokens * p.batch * p.hidden * factor)


def _scores(p: Draw, factor: float = 5) -> float:
    """What the tensors of scores add, in bytes for each value of the residual stream."""
    return float(factor * p.heads * p.tokens / p.hidden)


# --- one step without tricks --------------------------------------------------------------------


def _draw_block(rng: random.Random) -> Draw:
    key = rng.choice(("gpt2-medium", "gpt2-large", "gpt2-xl"))
    model = catalogued.model(key)
    attention = model.groups[0][0].attention
    assert isinstance(attention, Attention)
    shape = {"layers": model.num_layers, "heads": attention.num_heads, "hidden": model.hidden}
    return drawn(
        name=catalogued.model_name(key),
        **shape,
        tokens=rng.choice((800, 850, 900, 950, 1000)),
        batch=rng.choice((4, 5, 6, 7)),
    )


BLOCK = Drill(
    key="memory-activations",
    taught=TAUGHT,
    title="What the backward pass is waiting for",
    unit="B",
    capacity=True,
    target_s=150,
    draw=_draw_block,
    small=lambda rng: drawn(
        name="drawn", layers=rng.choice((2, 3)), heads=3, hidden=rng.choice((6, 12)), tokens=rng.choice((5, 7)), batch=2
    ),
    prompt=lambda p: (
        f"{p.name} has {p.layers} layers, {p.hidden:,} wide, with {p.heads} heads. {BUILT} It trains on {p.batch}"
        f" sequences of {p.tokens:,} tokens at a time; nothing is recomputed or sharded. How many bytes of activations"
        " do all its layers keep for the backward pass, embedding and head aside?"
    ),
    derive=lambda p: Derivation(
        value=p.layers * _kept(p),
        formula="layers × (34 × tokens × batch × hidden + 5 × heads × tokens² × batch)",
        substitution=(
            f"{p.layers} × (34 × {p.tokens} × {p.batch} × {p.hidden} + 5 × {p.heads} × {p.tokens}² × {p.batch})"
        ),
        source=SOURCE_BLOCK,
    ),
    count=lambda p: _counted(p, layers=p.layers),
    slips=(
        Slip("scores-forgotten", lambda p: p.layers * _sbh(p, 34))
        | "You left out the tensors that hold every token against every token. Here attention is not fused, and"
        " they are the larger part.",
        Slip("heads-forgotten", lambda p: p.layers * _sbh(p, 34 + _scores(p) / p.heads))
        | "You kept one matrix of scores per sequence. Each head has its own.",
        Slip("softmax-only", lambda p: p.layers * _sbh(p, 34 + _scores(p, 2)))
        | "You kept the softmax and stopped. The dropout behind it needs its mask, and the next matmul needs"
        " what is left.",
        Slip("wide-masks", lambda p: p.layers * _sbh(p, 36 + _scores(p, 6)))
        | "You kept the dropout masks in 16 bits. Read again how wide they are.",
        Slip("one-layer", lambda p: _sbh(p, 34 + _scores(p)))
        | "That is one layer. All of them wait until the backward pass comes back.",
        Slip("one-sequence", lambda p: p.layers * _sbh(p, 34 + _scores(p)) / p.batch)
        | "That is one sequence of the batch.",
    ),
)

# --- selective recomputation with sequence parallelism -------------------------------------------


def _gpt3(tokens: int, batch: int, **more: object) -> Draw:
    model = catalogued.model("gpt3-175b")
    attention = model.groups[0][0].attention
    assert isinstance(attention, Attention)
    shape = {
        "name": catalogued.model_name("gpt3-175b"),
        "layers": model.num_layers,
        "heads": attention.num_heads,
        "hidden": model.hidden,
    }
    return drawn(**shape, tokens=tokens, batch=batch, **more)


SELECTIVE = Drill(
    key="memory-selective-recomputation",
    taught=TAUGHT,
    title="Run again what is large and cheap",
    unit="B",
    capacity=True,
    target_s=150,
    draw=lambda rng: _gpt3(rng.randrange(1536, 2017, 48), rng.choice((3, 4, 5, 6, 7)), tp=6),
    small=lambda rng: drawn(
        name="drawn",
        layers=1,
        heads=6,
        hidden=rng.choice((12, 18)),
        tokens=rng.choice((6, 9)),
        batch=rng.choice((2, 3)),
        tp=3,
    ),
    prompt=lambda p: (
        f"{p.name} is {p.hidden:,} wide, with {p.heads} heads. {BUILT} It trains with tensor parallelism {p.tp} and"
        f" sequence parallelism, on {p.batch} sequences of {p.tokens:,} tokens at a time; the scores, the softmax and"
        " its dropout are run again in the backward pass (selective recomputation). How many bytes of activations does"
        " each GPU keep for one layer?"
    ),
    derive=lambda p: Derivation(
        value=_kept(p, tp=p.tp, recompute="selective"),
        formula="34 × tokens × batch × hidden / tensor-parallel ranks",
        substitution=f"34 × {p.tokens} × {p.batch} × {p.hidden} / {p.tp}",
        source=SOURCE_SELECTIVE,
    ),
    count=lambda p: _counted(p, layers=1, tp=p.tp, recompute="selective"),
    prerequisites=("memory-activations",),
    slips=(
        Slip("nothing-recomputed", lambda p: _sbh(p, 34 + _scores(p)) / p.tp)
        | "You kept the scores. They are what this recomputation throws away.",
        Slip("everything-recomputed", lambda p: _sbh(p, 2) / p.tp)
        | "You kept the layer's input alone. That is full recomputation; the selective kind runs only the middle"
        " of attention again.",
        Slip("no-sequence-parallelism", lambda p: _sbh(p, 10 + 24 / p.tp))
        | "You left norms, dropouts and their inputs whole on every GPU. Sequence parallelism cuts those too.",
        Slip("not-split", lambda p: _sbh(p, 34)) | "You put the whole layer on every GPU.",
        Slip("one-sequence", lambda p: _sbh(p, 34) / p.tp / p.batch) | "That is one sequence of the batch.",
    ),
)

# --- full recomputation --------------------------------------------------------------------------


def _derive_full(p: Draw) -> Derivation:
    inputs, block = _kept(p, recompute="full"), _kept(p)
    return Derivation(
        value=p.layers * inputs + block - inputs,
        formula=(
            "tokens × batch × hidden × (2 × layers + 34 + 5 × heads × tokens / hidden − 2, the last layer's input being"
            " there already)"
        ),
        substitution=(
            f"{p.tokens} × {p.batch} × {p.hidden} × (2 × {p.layers} + 34 + 5 × {p.heads} × {p.tokens} / {p.hidden} − 2)"
        ),
        source=SOURCE_FULL,
    )


FULL = Drill(
    key="memory-full-recomputation",
    taught=TAUGHT,
    title="The layer that comes back",
    unit="B",
    capacity=True,
    target_s=180,
    draw=lambda rng: _gpt3(rng.randrange(1300, 1950, 50), rng.choice((4, 5, 6, 7))),
    small=lambda rng: drawn(
        name="drawn", layers=rng.choice((5, 7)), heads=3, hidden=rng.choice((6, 12)), tokens=rng.choice((5, 7)), batch=2
    ),
    prompt=lambda p: (
        f"{p.name} has {p.layers} layers, {p.hidden:,} wide, with {p.heads} heads. {BUILT} It trains on {p.batch}"
        f" sequences of {p.tokens:,} tokens at a time, unsharded; every layer keeps only its input and is run again"
        " when the backward pass reaches it. How many bytes of activations are there at the worst moment, embedding"
        " and head aside?"
    ),
    derive=_derive_full,
    count=lambda p: _counted(p, layers=p.layers, recompute="full"),
    prerequisites=("memory-activations",),
    slips=(
        Slip("inputs-only", lambda p: p.layers * _sbh(p, 2))
        | "That is what waits. At the worst moment one layer is running again, and it brings back everything that"
        " its own backward pass needs.",
        Slip("one-layer-only", lambda p: _sbh(p, 34 + _scores(p)))
        | "That is the layer that is run again. The other layers' inputs still lie there.",
        Slip("nothing-recomputed", lambda p: p.layers * _sbh(p, 34 + _scores(p)))
        | "You kept everything, in every layer, as if nothing were recomputed.",
        Slip("selective", lambda p: p.layers * _sbh(p, 34))
        | "You threw away the scores and kept the rest of every layer. That is selective recomputation.",
        Slip("scores-forgotten", lambda p: _sbh(p, 2 * p.layers + 32))
        | "The layer that is run again came back without its scores. Attention is explicit here, and they are"
        " most of it.",
        Slip("one-sequence", lambda p: _sbh(p, 2 * p.layers + 32 + _scores(p)) / p.batch)
        | "That is one sequence of the batch.",
    ),
)

DRILLS = (BLOCK, SELECTIVE, FULL)
