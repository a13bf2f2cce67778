"""A stack of blocks that forgets and computes again: what waits between the passes, the peak, and the arithmetic."""

import math
import random

from threeloops.drills.engine.drill import AsFunction, Derivation, Draw, Drill, Slip, Taught, drawn
from threeloops.simulate.training_loop.recomputed_step import Stretch, even_stretches, play
from threeloops.training_loop.memory import recomputation
from threeloops.units import GFLOP, MB, fmt_bytes, fmt_si

TAUGHT = Taught("driving", "The reference sheet")
SOURCE = "Chen et al., 2016, arXiv:1604.06174, section 4.1"
SOURCE_STEP = "Kaplan et al., 2020, arXiv:2001.08361, section 2.1 (a backward pass is two forward); Chen et al., 2016"


def _sizes(rng: random.Random) -> dict[str, int]:
    """Four to six and a half times as much in a block as enters it."""
    entry = rng.randrange(20, 60)
    return {"block_bytes": round(entry * rng.uniform(4.2, 6.4)) * round(MB), "input_bytes": entry * round(MB)}


def _even(p: Draw) -> float:
    return recomputation.segments_peak_bytes(
        num_layers=p.layers, every=p.every, block_bytes=p.block_bytes, input_bytes=p.input_bytes
    )


# --- the loop that checkpoints every k-th block --------------------------------------------------


def _draw_flipped(rng: random.Random) -> Draw:
    return drawn(layers=rng.choice((26, 28, 34, 38, 44)), every=rng.choice((3, 4)), **_sizes(rng))


def _kept_by_flipped(p: Draw) -> float:
    kept = recomputation.every_kth_kept_bytes(
        num_layers=p.layers, every=p.every, block_bytes=p.block_bytes, input_bytes=p.input_bytes
    )
    return float(kept)


def _count_flipped(p: Draw) -> float:
    """Walk the loop as it is written; what is alive after the last block's forward pass waits for the backward pass."""
    loop = [Stretch(layers=1, again=layer % p.every == 0) for layer in range(p.layers)]
    forward = play(loop, block_bytes=p.block_bytes, input_bytes=p.input_bytes).moments[: p.layers]
    return forward[-1].alive_bytes


FLIPPED = Drill(
    key="coding-every-kth",
    taught=TAUGHT,
    title="A loop that checkpoints one block in k",
    unit="B",
    capacity=True,
    target_s=120,
    draw=_draw_flipped,
    small=_draw_flipped,
    prompt=lambda p: (
        f"A stack of {p.layers} blocks runs `x = checkpoint(block, x) if i % {p.every} == 0 else block(x)` for i = 0,"
        f" 1, 2, and so on. A plain block keeps {fmt_bytes(p.block_bytes, base=10)} for its backward pass, of which"
        f" its input is {fmt_bytes(p.input_bytes, base=10)}; a checkpointed one keeps its input alone. How many bytes"
        " wait between the forward and the backward pass?"
    ),
    derive=lambda p: Derivation(
        value=_kept_by_flipped(p),
        formula="(layers − ceil(layers / k)) × block + ceil(layers / k) × input",
        substitution=(
            f"({p.layers} − ceil({p.layers} / {p.every})) × {p.block_bytes} + ceil({p.layers} / {p.every}) ×"
            f" {p.input_bytes}"
        ),
        source="PyTorch documentation, torch.utils.checkpoint, 2025 (what a checkpointed call keeps)",
    ),
    count=_count_flipped,
    slips=(
        Slip("as-segments", lambda p: math.ceil(p.layers / p.every) * p.input_bytes)
        | "That is what segments of k blocks would keep. Read the loop again: which blocks does it forget?",
        Slip("inputs-forgotten", lambda p: (p.layers - math.ceil(p.layers / p.every)) * p.block_bytes)
        | "You let the checkpointed blocks keep nothing. Without their inputs they could not be run again.",
        Slip(
            "one-in-k-kept",
            lambda p: (
                math.ceil(p.layers / p.every) * p.block_bytes
                + (p.layers - math.ceil(p.layers / p.every)) * p.input_bytes
            ),
        )
        | "You turned it round: this loop forgets one block in k, and keeps the others.",
        Slip("all-forgotten", lambda p: p.layers * p.input_bytes)
        | "You checkpointed every block. This loop does that to one in k.",
        Slip("everything", lambda p: p.layers * p.block_bytes) | "That is the stack without any checkpoint.",
    ),
)

# --- the peak of segments ------------------------------------------------------------------------


def _draw_segments(rng: random.Random) -> Draw:
    """Segments whose last one is not longer than the others; the inputs and the segment both count."""
    return drawn(layers=rng.choice((25, 31, 35, 39, 42, 46)), every=rng.choice((5, 6)), **_sizes(rng))


def _inputs(p: Draw) -> float:
    return float(math.ceil(p.layers / p.every) * p.input_bytes)


SEGMENTS = Drill(
    key="coding-segments-peak",
    taught=TAUGHT,
    title="Segments that are run again: the peak",
    unit="B",
    capacity=True,
    target_s=150,
    draw=_draw_segments,
    small=_draw_segments,
    prompt=lambda p: (
        f"A stack of {p.layers} blocks is cut into segments of {p.every} blocks (the last takes what is left). Each"
        f" segment keeps its input alone, {fmt_bytes(p.input_bytes, base=10)}, and is run again when the backward pass"
        f" reaches it; then each of its blocks holds {fmt_bytes(p.block_bytes, base=10)}, its own input included. A"
        " block's backward pass frees what the block held. What is the most that is held at one moment?"
    ),
    derive=lambda p: Derivation(
        value=_even(p),
        formula="max over segments i, from 1, of  i × input + blocks of segment i × block − input",
        substitution=_segments_told(p),
        source=SOURCE,
    ),
    count=lambda p: (
        play(
            even_stretches(num_layers=p.layers, every=p.every), block_bytes=p.block_bytes, input_bytes=p.input_bytes
        ).peak_bytes
    ),
    slips=(
        Slip("inputs-only", _inputs)
        | "That is what waits between the passes. While a segment is run again, more is there.",
        Slip("segment-only", lambda p: p.every * p.block_bytes)
        | "You held one segment. The inputs of those that are still to come wait beside it.",
        Slip("one-block-again", lambda p: _inputs(p) + p.block_bytes - p.input_bytes)
        | "You had one block back. A segment comes back as a whole.",
        Slip("everything", lambda p: p.layers * p.block_bytes) | "That is the stack without any checkpoint.",
        Slip("one-in-k", _kept_by_flipped)
        | "You forgot one block in k and kept the others. Here every segment keeps its input alone.",
    ),
    function=AsFunction(
        takes=("layers", "every", "block_bytes", "input_bytes"),
        limit=lambda p: {"every": p.layers},
        limit_case="one segment as long as the stack: everything is there at once",
    ),
)


def _segments_told(p: Draw) -> str:
    full, rest = divmod(p.layers, p.every)
    whole = f"{full} × {p.input_bytes} + {p.every} × {p.block_bytes} − {p.input_bytes}"
    last = f"{full + 1} × {p.input_bytes} + {rest} × {p.block_bytes} − {p.input_bytes}"
    return f"max({whole}, {last})" if rest else whole


# --- the arithmetic ------------------------------------------------------------------------------


def _draw_again(rng: random.Random) -> Draw:
    """A last segment that is a good part of the stack, so that whether it is run again shows."""
    every = rng.choice((7, 9, 11))
    return drawn(
        layers=2 * every + rng.randrange(6, every + 1), every=every, forward_flops=rng.randrange(13, 90) * 1e10
    )


def _last(p: Draw) -> int:
    return int(p.layers - p.every * (math.ceil(p.layers / p.every) - 1))


def _count_again(p: Draw) -> float:
    """Run the stack; the last stretch is left alone. A backward pass of a block is twice its forward pass."""
    stretches = even_stretches(num_layers=p.layers, every=p.every)
    stretches[-1] = Stretch(layers=stretches[-1].layers, again=False)
    return float((play(stretches, block_bytes=1, input_bytes=1).layer_runs + 2 * p.layers) * p.forward_flops)


AGAIN = Drill(
    key="coding-step-flops",
    taught=TAUGHT,
    title="Segments that are run again: the arithmetic",
    unit="FLOP",
    target_s=120,
    draw=_draw_again,
    small=_draw_again,
    prompt=lambda p: (
        f"A stack of {p.layers} blocks is cut into segments of {p.every} blocks; the last takes what is left. All but"
        " the last segment are run again in the backward pass, as torch's checkpoint_sequential does it. One block's"
        f" forward pass is {fmt_si(p.forward_flops, 'FLOP')}, and its backward pass twice that. How much arithmetic is"
        " a whole training step of the stack?"
    ),
    derive=lambda p: Derivation(
        value=recomputation.recomputed_step_s(
            forward_s=p.layers * p.forward_flops,
            backward_s=2 * p.layers * p.forward_flops,
            recomputed_share=1 - _last(p) / p.layers,
        ),
        formula="forward of a block × (3 × layers + layers outside the last segment)",
        substitution=f"{p.forward_flops / GFLOP:g}e9 × (3 × {p.layers} + {p.layers} − {_last(p)})",
        source=SOURCE_STEP,
    ),
    count=_count_again,
    slips=(
        Slip("last-too", lambda p: 4 * p.layers * p.forward_flops)
        | "You ran the last segment again, too. It has only just been run, so torch leaves it alone.",
        Slip("never-again", lambda p: 3 * p.layers * p.forward_flops)
        | "That is a step without checkpoints: nothing is run again.",
        Slip("last-alone", lambda p: (3 * p.layers + _last(p)) * p.forward_flops)
        | "You ran the last segment again and spared the others. It is the other way round.",
        Slip("backward-once", lambda p: (3 * p.layers - _last(p)) * p.forward_flops)
        | "You let the backward pass cost what the forward pass costs. It is twice that.",
    ),
    function=AsFunction(
        takes=("layers", "every", "forward_flops"),
        limit=lambda p: {"every": p.layers},
        limit_case="one segment as long as the stack, which is the last one and left alone",
    ),
)

DRILLS = (FLIPPED, SEGMENTS, AGAIN)
