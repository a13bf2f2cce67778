"""Drills on layers that a DLA lacks: into how many loadables they cut networks, and what the hand-overs take."""

import random

from threeloops.drills.engine.drill import Derivation, Draw, Drill, Slip, Taught, drawn
from threeloops.driving import dla_placement
from threeloops.driving.dla_placement import GraphNode
from threeloops.simulate.driving import dla_turns
from threeloops.units import GB, MB, ms, us

TAUGHT = Taught("driving", "Silicon in the car")
TABLE = "NVIDIA TensorRT documentation 11.4, DLA Supported Layers and Restrictions, read in November 2026"

# --- loadables -----------------------------------------------------------------------------------


def _ops(layers: int, every: int) -> list[str]:
    """One network's operators, in the order in which they run."""
    ops: list[str] = []
    for layer in range(1, layers + 1):
        ops += ["Conv", "Relu" if layer % every else "HardSwish"]
    return [*ops, "Conv"]


def _loadables(layers: int, every: int) -> int:
    ops = enumerate(_ops(layers, every))
    return dla_placement.loadables([GraphNode(name=str(i), op=op, after=(i - 1,) if i else ()) for i, op in ops])


def _pieces(p: Draw) -> float:
    return float(p.networks * _loadables(p.layers, p.every))


def _count_pieces(p: Draw) -> float:
    ops = _ops(p.layers, p.every)
    after = [(i - 1,) if i else () for i in range(len(ops))]
    return float(sum(dla_turns.fewest(after, on_dla=[op != "HardSwish" for op in ops]) for _ in range(p.networks)))


PIECES = Drill(
    key="soc-loadables",
    taught=TAUGHT,
    title="How many pieces a DLA has to hold",
    unit="",
    whole="exact",
    target_s=90,
    draw=lambda rng: drawn(networks=rng.randrange(2, 8), layers=rng.randrange(24, 56), every=rng.randrange(3, 8)),
    small=lambda rng: drawn(networks=rng.choice((2, 3)), layers=rng.randrange(5, 9), every=rng.choice((2, 3))),
    prompt=lambda p: (
        f"{p.networks} networks go to one DLA, with fall-back to the GPU. Each is a chain of {p.layers} convolutions,"
        " every one of them followed by an activation, and one more convolution at the end. Activations number"
        f" {p.every}, {2 * p.every}, {3 * p.every} and so on are HardSwish, which the DLA lacks; the others are ReLU."
        " Into how many loadables, at least, are the networks cut, all together?"
    ),
    derive=lambda p: Derivation(
        value=_pieces(p),
        formula="networks × (activations that fall back + 1)",
        substitution=f"{p.networks} × (floor({p.layers} / {p.every}) + 1)",
        source=TABLE,
    ),
    count=_count_pieces,
    slips=(
        Slip("cuts", lambda p: p.networks * (p.layers // p.every))
        | "You counted the cuts. What lies behind the last of them is a piece, too.",
        Slip("gpu-too", lambda p: p.networks * (2 * (p.layers // p.every) + 1))
        | "The GPU's pieces are among them. A loadable is what the DLA runs.",
        Slip("one-network", lambda p: p.layers // p.every + 1)
        | "That is one network. The others need loadables of their own.",
        Slip("each-activation", lambda p: p.networks * (p.layers + 1))
        | "You cut at every activation. ReLU is a layer of the DLA.",
    ),
)

# --- hand-overs ----------------------------------------------------------------------------------


def _draw_slower(rng: random.Random) -> Draw:
    return drawn(
        alone=rng.randrange(26, 64) / 10,
        pieces=rng.randrange(5, 15),
        gpu=rng.randrange(120, 260, 10),
        hand_over=rng.randrange(330, 470, 10),
        tensor=rng.randrange(7, 16),
        bandwidth=rng.choice((102, 137, 205)),
    )


def _slower(p: Draw, *, tensor: float | None = None, hand_over: float | None = None) -> float:
    return dla_placement.with_fallback_s(
        alone_s=p.alone * ms,
        pieces=p.pieces,
        gpu_s=p.gpu * us,
        hand_over_s=(p.hand_over if hand_over is None else hand_over) * us,
        tensor_bytes=(p.tensor if tensor is None else tensor) * MB,
        memory_bytes_per_s=p.bandwidth * GB,
    )


def _count_slower(p: Draw) -> float:
    """The DLA's time in equal parts, a layer of the GPU between each two, and the clock at every change."""
    part = p.alone * ms / (p.pieces + 1)
    layers = [("dla", part)]
    for _ in range(p.pieces):
        layers += [("gpu", p.gpu * us), ("dla", part)]
    passed_s = p.tensor * MB / (p.bandwidth * GB)
    return dla_turns.chain_s(layers, hand_over_s=p.hand_over * us, write_s=passed_s, read_s=passed_s)


SLOWER = Drill(
    key="soc-hand-overs",
    taught=TAUGHT,
    title="A backbone that leaves the DLA and comes back",
    unit="s",
    target_s=120,
    draw=_draw_slower,
    small=_draw_slower,
    prompt=lambda p: (
        f"A backbone takes {p.alone:g} ms on a DLA. After a change {p.pieces} of its activations, each between two"
        f" convolutions, run on the GPU, for {p.gpu} µs each; the DLA's own layers take {p.alone:g} ms as before. Each"
        f" change of engine takes {p.hand_over} µs, and a tensor of {p.tensor} MB is written in one layout and read in"
        f" another, at {p.bandwidth} GB/s. How long does a frame take now?"
    ),
    derive=lambda p: Derivation(
        value=_slower(p),
        formula="DLA + activations × (GPU + 2 × (change + 2 × tensor / bandwidth))",
        substitution=(
            f"{p.alone:g} / 1000 + {p.pieces} × ({p.gpu} × 1e-6 + 2 × ({p.hand_over} × 1e-6 + 2 × {p.tensor} × 1e6 /"
            f" ({p.bandwidth} × 1e9)))"
        ),
        source=TABLE + " (the formatting of tensors between engines)",
    ),
    count=_count_slower,
    slips=(
        Slip("there-only", lambda p: (_slower(p) + p.alone * ms + p.pieces * p.gpu * us) / 2)
        | "You went to the GPU and stayed there. After each activation the DLA has the next convolution.",
        Slip("one-pass", lambda p: _slower(p, tensor=p.tensor / 2))
        | "You moved each tensor once. One engine writes it, the other reads it.",
        Slip("no-bytes", lambda p: _slower(p, tensor=0))
        | "You left out the tensors. Every change takes one through memory.",
        Slip("bytes-alone", lambda p: _slower(p, hand_over=0)) | "You left out what a change takes besides its bytes.",
        Slip("no-hand-overs", lambda p: p.alone * ms + p.pieces * p.gpu * us)
        | "You added the GPU's work alone. What lies between the engines takes longer.",
    ),
)

DRILLS = (PIECES, SLOWER)
