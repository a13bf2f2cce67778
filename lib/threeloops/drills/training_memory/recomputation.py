"""Drills on recomputation: what segments leave waiting and bring back, how few layers suffice, what it costs, and what
torch leaves out of it; and the longest sequence that fits.
"""

import math
import random

from threeloops.drills.engine import catalogued
from threeloops.drills.engine.drill import Derivation, Draw, Drill, Slip, Taught, drawn
from threeloops.drills.training_memory.activations import SOURCE_BLOCK
from threeloops.models import model_flops
from threeloops.models.architecture import Attention, DenseMlp, Layer, Model
from threeloops.simulate.training_loop.recomputed_step import Stretch, even_stretches, play
from threeloops.training_loop.memory import recomputation
from threeloops.units import GB, MB, KiB, fmt_bytes, fmt_seconds, ms

TAUGHT = Taught("training", "Training memory")
SOURCE_SEGMENTS = (
    "Chen et al., 2016, arXiv:1604.06174, section 4.1; Korthikanti et al., 2022, arXiv:2205.05198, section 5"
)
SOURCE_BLOCK_METHOD = (
    "Megatron-LM, argument recompute_method=block; Korthikanti et al., 2022, arXiv:2205.05198, section 5"
)
SOURCE_EARLY = "torch 2.13, torch/utils/checkpoint.py, set_checkpoint_early_stop, 2026"
EARLY = (  # models whose layers are alike, and layers of a segment
    ("llama-3-8b", 4),
    ("llama-2-13b", 5),
    ("llama-3-70b", 5),
    ("qwen2.5-7b", 7),
    ("qwen2.5-14b", 6),
    ("qwen3-8b", 6),
    ("qwen3-32b", 4),
)


# --- segments -----------------------------------------------------------------------------------


def _draw_segments(rng: random.Random) -> Draw:
    entry = rng.choice((24, 32, 40, 48, 56, 64)) * MB
    every = rng.choice((3, 5, 6, 7))
    return drawn(
        every=every,
        layers=every * rng.choice((7, 9, 10, 11, 12, 13)),
        input_bytes=entry,
        block_bytes=entry * rng.choice((9, 11, 12, 13, 14)),
    )


SEGMENTS = Drill(
    key="memory-recomputed-segments",
    taught=TAUGHT,
    title="Two piles",
    unit="B",
    capacity=True,
    target_s=120,
    apart=1.06,
    draw=_draw_segments,
    small=lambda rng: drawn(
        every=(every := rng.choice((2, 3))),
        layers=every * rng.choice((4, 5)),
        input_bytes=2,
        block_bytes=rng.choice((10, 13)),
    ),
    prompt=lambda p: (
        f"A model has {p.layers} layers. For a micro-batch, a layer keeps {fmt_bytes(p.block_bytes, base=10)} of"
        f" activations for its backward pass, {fmt_bytes(p.input_bytes, base=10)} of which are its input. It trains"
        f" with a checkpoint every {p.every} layers: a segment of {p.every} layers keeps its input alone and is run"
        " again as a whole when the backward pass reaches it. How many bytes of activations are there at the worst"
        " moment, embedding and head aside?"
    ),
    derive=lambda p: Derivation(
        value=recomputation.segments_peak_bytes(
            num_layers=p.layers, every=p.every, block_bytes=p.block_bytes, input_bytes=p.input_bytes
        ),
        formula=(
            "segments × input + layers of a segment × what a layer keeps − input (the last segment's, which is there"
            " already)"
        ),
        substitution=(
            f"{p.layers} / {p.every} × {p.input_bytes:.0f} + {p.every} × {p.block_bytes:.0f} − {p.input_bytes:.0f}"
        ),
        source=SOURCE_SEGMENTS,
    ),
    count=lambda p: (
        play(
            even_stretches(num_layers=p.layers, every=p.every), block_bytes=p.block_bytes, input_bytes=p.input_bytes
        ).peak_bytes
    ),
    prerequisites=("memory-full-recomputation",),
    slips=(
        Slip("waiting-only", lambda p: p.layers // p.every * p.input_bytes)
        | "That is what waits after the forward pass. At the worst moment a part of the model has been run again,"
        " and what it keeps is back.",
        Slip("segment-only", lambda p: p.every * p.block_bytes)
        | "That is the segment that came back. The inputs of all the others are still waiting.",
        Slip("nothing-dropped", lambda p: p.layers * p.block_bytes) | "You kept everything. What do checkpoints drop?",
        Slip("every-layer", lambda p: p.layers * p.input_bytes + p.block_bytes - p.input_bytes)
        | "You put a checkpoint before every layer. Read again how long a segment is.",
        Slip("one-layer-back", lambda p: p.layers // p.every * p.input_bytes + p.block_bytes - p.input_bytes)
        | "You brought one layer back. A segment is run again as a whole.",
        Slip("lengths-swapped", lambda p: p.every * p.input_bytes + p.layers // p.every * p.block_bytes - p.input_bytes)
        | "You took the length of a segment for the number of segments.",
    ),
)

# --- no more than needed -------------------------------------------------------------------------


def _fewest(p: Draw) -> int:
    return recomputation.fewest_recomputed_layers(
        num_layers=p.layers, block_bytes=p.block_bytes, input_bytes=p.input_bytes, usable_bytes=p.room_bytes
    )


def _missing_bytes(p: Draw) -> float:
    """What there is no room for where nothing is recomputed."""
    return float(p.layers * p.block_bytes - p.room_bytes)


def _draw_fewest(rng: random.Random) -> Draw:
    layers, entry = rng.choice((40, 44, 48, 52, 56)), rng.choice((40, 48, 56, 64)) * MB
    block = entry * rng.choice((5, 6))
    least = rng.randrange(11, 16)
    part = rng.choice((0.3, 0.5, 0.7))
    return drawn(
        layers=layers,
        input_bytes=entry,
        block_bytes=block,
        room_bytes=round((layers * block - (least - part) * (block - entry)) / GB, 1) * GB,
        forward_s=rng.randrange(30, 120, 2) / 10 * ms,
    )


def _small_fewest(rng: random.Random) -> Draw:
    layers, block = rng.choice((7, 9)), rng.choice((10, 12))
    return drawn(
        layers=layers,
        input_bytes=2,
        block_bytes=block,
        room_bytes=layers * block - rng.choice((13, 21, 27)),
        forward_s=1.0,
    )


def _count_fewest(p: Draw) -> float:
    """Recompute one more layer until a step that is really played has room."""
    for layers in range(p.layers + 1):
        stretches = [Stretch(layers=1, again=place < layers) for place in range(p.layers)]
        step = play(stretches, block_bytes=p.block_bytes, input_bytes=p.input_bytes)
        if step.peak_bytes <= p.room_bytes:
            return float((step.layer_runs - p.layers) * p.forward_s)
    raise AssertionError("nothing fits")


FEWEST = Drill(
    key="memory-fewest-recomputed",
    taught=TAUGHT,
    title="No more than must be",
    unit="s",
    target_s=150,
    apart=1.06,
    draw=_draw_fewest,
    small=_small_fewest,
    prompt=lambda p: (
        f"A model has {p.layers} equal layers. For a micro-batch, a layer keeps {fmt_bytes(p.block_bytes, base=10)} of"
        f" activations, of which {fmt_bytes(p.input_bytes, base=10)} are its input, and its forward pass takes"
        f" {fmt_seconds(p.forward_s)}. Beside states and head there is room for {p.room_bytes / GB:.1f} GB of"
        " activations. As few layers as possible are recomputed, one by one, beginning with the first; such a layer"
        " keeps its input alone. How much computing does that add to each micro-batch, in seconds?"
    ),
    derive=lambda p: Derivation(
        value=_fewest(p) * p.forward_s,
        formula=(
            "layers to recompute × forward time of one; layers to recompute = (layers × kept − room) / (kept − input),"
            " rounded up"
        ),
        substitution=(
            f"ceil(({p.layers} × {p.block_bytes:.0f} − {p.room_bytes:.0f}) / ({p.block_bytes:.0f} −"
            f" {p.input_bytes:.0f})) × {p.forward_s:g}"
        ),
        source=SOURCE_BLOCK_METHOD,
    ),
    count=_count_fewest,
    prerequisites=("memory-recomputed-segments",),
    slips=(
        Slip("all-layers", lambda p: p.layers * p.forward_s)
        | "You recomputed every layer. Read again how much room there is.",
        Slip("input-free", lambda p: math.ceil(_missing_bytes(p) / p.block_bytes) * p.forward_s)
        | "You dropped everything that a recomputed layer keeps. From what will it be run again?",
        Slip("the-others", lambda p: (p.layers - _fewest(p)) * p.forward_s)
        | "Those are the layers that keep everything. The others are run twice.",
        Slip("backward-too", lambda p: 3 * _fewest(p) * p.forward_s)
        | "You charged a forward and a backward pass. The backward pass is run once in any case.",
        Slip("rounded-down", lambda p: _missing_bytes(p) / (p.block_bytes - p.input_bytes) // 1 * p.forward_s)
        | "You rounded down. One layer less, and it does not fit.",
    ),
)

# --- what it costs -------------------------------------------------------------------------------


def _computing_s(p: Draw) -> float:
    """Seconds of a step in which layers compute."""
    return float(p.step_s - p.other_s)


def _step_s(p: Draw, *, again: int) -> float:
    """Seconds of a step in which so many layers are recomputed."""
    return recomputation.recomputed_step_s(
        forward_s=_computing_s(p) / 3,
        backward_s=2 * _computing_s(p) / 3,
        recomputed_share=again / p.layers,
        other_s=p.other_s,
    )


def _draw_time(rng: random.Random) -> Draw:
    layers = rng.choice((36, 40, 48, 60))
    step = rng.randrange(12, 40) / 10
    return drawn(
        layers=layers,
        again=round(layers * rng.choice((0.35, 0.4, 0.45, 0.55))),
        step_s=step,
        other_s=round(step * rng.choice((0.2, 0.25, 0.45)), 1),
    )


def _count_time(p: Draw) -> float:
    """Play the step with and without, and put a price on every run of a layer."""
    runs = [
        play(
            [Stretch(layers=1, again=place < again) for place in range(p.layers)], block_bytes=5, input_bytes=1
        ).layer_runs
        for again in (0, p.again)
    ]
    of_a_forward_run = (p.step_s - p.other_s) / (p.layers + 2 * p.layers)
    return float(of_a_forward_run * (runs[1] - runs[0]))


TIME = Drill(
    key="memory-recomputation-time",
    taught=TAUGHT,
    title="The price of forgetting",
    unit="s",
    target_s=90,
    apart=1.06,
    draw=_draw_time,
    small=lambda rng: drawn(
        layers=6, again=rng.choice((2, 3, 4)), step_s=rng.choice((9.0, 12.0)), other_s=rng.choice((2.0, 3.0))
    ),
    prompt=lambda p: (
        f"A training step takes {fmt_seconds(p.step_s)}. In {fmt_seconds(p.other_s)} of it no layer computes: that is"
        f" the update, and communication that nothing hides. The rest are the forward and backward passes of {p.layers}"
        " equal layers; head and embedding are negligible. A backward pass takes twice as long as a forward pass. To"
        f" save memory, {p.again} of the layers are now recomputed in full, to their end. How much longer does the step"
        " become?"
    ),
    derive=lambda p: Derivation(
        value=_step_s(p, again=p.again) - _step_s(p, again=0),
        formula="(step − other) / 3 × recomputed layers / layers",
        substitution=f"({p.step_s:g} − {p.other_s:g}) / 3 × {p.again} / {p.layers}",
        source=(
            "Narayanan et al., 2021, arXiv:2104.04473, appendix (a step with recomputation makes four forward passes'"
            " work, without it three)"
        ),
    ),
    count=_count_time,
    slips=(
        Slip("whole-step", lambda p: p.step_s * (p.again / p.layers) / 3)
        | "You took a third of the whole step for forward passes. In a part of it no layer computes.",
        Slip("all-layers", lambda p: _computing_s(p) / 3) | "You recomputed all layers. Read again how many do it.",
        Slip("half", lambda p: _computing_s(p) * (p.again / p.layers) / 2)
        | "You took a forward pass for half of the computing. The backward pass takes longer.",
        Slip("everything-twice", lambda p: _computing_s(p) * (p.again / p.layers))
        | "You ran the backward pass twice as well. Only the forward pass is repeated.",
    ),
)

# --- where the second pass stops -----------------------------------------------------------------


def _early_draw(model: Model, *, every: int, tokens: int) -> Draw:
    """A model's numbers as the prompt gives them, beside the model itself."""
    ((layer, layers),) = model.groups
    assert isinstance(layer.mlp, DenseMlp)
    return drawn(
        model=model, layers=layers, hidden=model.hidden, wide=layer.mlp.intermediate, every=every, tokens=tokens
    )


def _draw_early(rng: random.Random) -> Draw:
    key, every = rng.choice(EARLY)
    p = _early_draw(catalogued.model(key), every=every, tokens=rng.randrange(5 * KiB, 48 * KiB, KiB))
    p.name = catalogued.model_name(key)
    return p


def _small_early(rng: random.Random) -> Draw:
    layer = Layer(
        attention=Attention(num_heads=2, num_kv_heads=1, head_dim=2),
        mlp=DenseMlp(intermediate=rng.choice((7, 9)), gated=True, activation="silu"),
        norm="rmsnorm",
        num_norms=2,
    )
    every = rng.choice((2, 4))
    groups = ((layer, every * rng.choice((2, 3))),)
    model = Model(name="drawn", hidden=4, vocab=11, groups=groups, tied_head=False, max_context=99)
    return _early_draw(model, every=every, tokens=rng.choice((5, 6)))


def _products(p: Draw, *, matrices: float, per_token: float = 2) -> float:
    """FLOPs of that many matrices of the feed-forward block for all tokens."""
    return float(matrices * per_token * p.hidden * p.wide * p.tokens)


def _kernels(model: Model) -> list[tuple[str, str, int]]:
    """A layer's kernels in turn: what each reads and makes, and the weights of its matrix."""
    ((layer, _),) = model.groups
    assert isinstance(layer.attention, Attention)
    assert isinstance(layer.mlp, DenseMlp)
    heads, wide = layer.attention, layer.mlp.intermediate * model.hidden
    query, key = (model.hidden * heads.head_dim * number for number in (heads.num_heads, heads.num_kv_heads))
    return [
        ("layer", "query", query),
        ("layer", "key", key),
        ("layer", "value", key),
        ("query key value", "read", 0),
        ("read", "mixed", query),
        ("mixed", "gate", wide),
        ("mixed", "up", wide),
        ("gate up", "inner", 0),
        ("inner", "layer", wide),
    ]


def _count_early(p: Draw) -> float:
    """Run every segment again, kernel by kernel, until all that its kernels read is there; count what is left."""
    left = 0
    for _segment in range(0, p.layers, p.every):
        kernels = p.every * _kernels(p.model)
        made_by, last = {"layer": -1}, -1  # the input of the segment is kept
        for place, (reads, makes, _) in enumerate(kernels):
            last = max(last, *(made_by[name] for name in reads.split()))
            made_by[makes] = place
        left += sum(2 for *_, weights in kernels[last + 1 :] for _ in range(p.tokens) for _ in range(weights))
    return float(left)


EARLY_STOP = Drill(
    key="memory-early-stop",
    taught=TAUGHT,
    title="Where the second pass stops",
    unit="FLOP",
    target_s=120,
    draw=_draw_early,
    small=_small_early,
    prompt=lambda p: (
        f"{p.name} has {p.layers} layers, {p.hidden:,} wide; a layer ends with a gated feed-forward block (gate, up,"
        f" down), {p.wide:,} wide. It trains on {p.tokens:,} tokens a step, with a checkpoint around every {p.every}"
        " layers: when the backward pass reaches such a segment, torch runs it forward once more, and stops as soon as"
        " everything that the backward pass reads has been made. A matmul's backward pass reads its inputs, and no"
        " kernel reads what the segment's last matmul returns. How many FLOPs does stopping early save in a step?"
    ),
    derive=lambda p: Derivation(
        value=model_flops.early_stop_flops(
            p.model, batch=1, sequence=p.tokens, causal="exact", recompute="full", every=p.every
        ),
        formula="layers / layers of a segment × 2 × width × feed-forward width × tokens",
        substitution=f"{p.layers} / {p.every} × 2 × {p.hidden} × {p.wide} × {p.tokens}",
        source=SOURCE_EARLY,
    ),
    count=_count_early,
    prerequisites=("memory-recomputed-segments",),
    slips=(
        Slip("every-layer", lambda p: _products(p, matrices=p.layers))
        | "You left out a matmul in every layer. Inside a segment the next layer reads what it returns.",
        Slip("one-segment", lambda p: _products(p, matrices=1))
        | "That is one segment. Each of them is run again, and each stops early.",
        Slip("whole-block", lambda p: _products(p, matrices=3 * p.layers / p.every))
        | "You left out the whole feed-forward block. The last matmul reads what gate and up make.",
        Slip("multiply-adds", lambda p: _products(p, matrices=p.layers / p.every, per_token=1))
        | "You counted multiply-adds. Each is two operations.",
        Slip("square", lambda p: _products(p, matrices=p.layers / p.every) * p.hidden / p.wide)
        | "You took attention's last matmul. What stands at the end of a layer?",
    ),
)

# --- the longest sequence ------------------------------------------------------------------------


def _longest(
    p: Draw, *, linear: float = 34, scores: float = 5, heads: float | None = None, layers: int | None = None
) -> float:
    """Tokens s at which layers × (linear × s × hidden + scores × heads × s²) is the room."""
    room = p.room_bytes / (p.layers if layers is None else layers)
    a, b = scores * (p.heads if heads is None else heads), linear * p.hidden
    return float(room / b if a == 0 else (math.sqrt(b * b + 4 * a * room) - b) / (2 * a))


def _draw_longest(rng: random.Random) -> Draw:
    heads = rng.choice((20, 24, 28, 30, 36, 40))
    return drawn(
        layers=rng.choice((24, 30, 36, 42, 48)),
        heads=heads,
        hidden=heads * rng.choice((64, 80, 96)),
        room_bytes=rng.randrange(14, 60) * GB,
    )


def _small_longest(rng: random.Random) -> Draw:
    p = drawn(layers=1, heads=3, hidden=rng.choice((6, 12)), room_bytes=0)
    tokens = rng.choice((5, 7, 8))
    p.room_bytes = 34 * tokens * p.hidden + 5 * p.heads * tokens**2 + rng.choice((3, 40))
    return p


def _count_longest(p: Draw) -> float:
    """Let a block read one token more until what it keeps has no room."""
    import numpy as np

    from threeloops.simulate.training_loop.block_tape import Blocks

    blocks, tokens = Blocks(layers=p.layers, heads=p.heads, hidden=p.hidden, dtype=np.float16), 1
    while (
        blocks.peak_bytes(blocks.inputs(batch=1, sequence=tokens + 1), tp=1, sequence_parallel=False, recompute="none")
        <= p.room_bytes
    ):
        tokens += 1
    return float(tokens)


LONGEST = Drill(
    key="memory-longest-sequence",
    taught=TAUGHT,
    title="Where the square takes over",
    unit="",
    whole="down",
    loose="bound",
    target_s=180,
    apart=1.06,
    draw=_draw_longest,
    small=_small_longest,
    prompt=lambda p: (
        f"A GPT of {p.layers} layers, {p.hidden:,} wide, with {p.heads} heads, trains on one sequence at a time;"
        f" {p.room_bytes / GB:g} GB are left for the activations of its layers. In bytes, a layer keeps 34 × tokens ×"
        " width and, because its attention is not fused, 5 more for every head and pair of tokens (softmax, its"
        " dropout mask, and what dropout leaves). Nothing is recomputed. What is the longest sequence that fits, in"
        " tokens?"
    ),
    derive=lambda p: Derivation(
        value=float(
            recomputation.longest_kept_sequence(
                num_layers=p.layers, hidden=p.hidden, num_heads=p.heads, usable_bytes=p.room_bytes
            )
        ),
        formula=(
            "the s with layers × (34 × width × s + 5 × heads × s²) = room: (√(b² + 4 a c) − b) / 2a, a = 5 × heads, b ="
            " 34 × width, c = room / layers"
        ),
        substitution=(
            f"floor((((34 × {p.hidden})² + 4 × 5 × {p.heads} × {p.room_bytes:.0f} / {p.layers})**0.5 − 34 × {p.hidden})"
            f" / (2 × 5 × {p.heads}))"
        ),
        source=SOURCE_BLOCK,
    ),
    count=_count_longest,
    prerequisites=("memory-activations",),
    slips=(
        Slip("scores-forgotten", lambda p: _longest(p, scores=0))
        | "You left out the pairs of tokens. At this length they are the larger part.",
        Slip("scores-only", lambda p: _longest(p, linear=0))
        | "You counted pairs of tokens alone. What grows in proportion to the length is still there.",
        Slip("heads-forgotten", lambda p: _longest(p, heads=1))
        | "You kept one table of pairs per layer. Each head has its own.",
        Slip("softmax-only", lambda p: _longest(p, scores=2))
        | "You kept the softmax and stopped. Read again what is kept for a pair.",
        Slip("one-layer", lambda p: _longest(p, layers=1)) | "You gave all the room to a single layer.",
    ),
)

DRILLS = (SEGMENTS, FEWEST, TIME, EARLY_STOP, LONGEST)
