"""Drills on the optimisation stack: bytes of an update in one kernel, the FLOPs of Muon, moments in eight
bits, and Adafactor's rows and columns.
"""

import random
from itertools import product

from threeloops.drills.engine import catalogued
from threeloops.drills.engine.drill import Derivation, Draw, Drill, Slip, Taught, changed, drawn
from threeloops.drills.engine.phrasing import billions
from threeloops.inner_loop.fusion import Operation, separate_bytes
from threeloops.training_loop.updates import optimisers
from threeloops.units import billion, fmt_si

TAUGHT = Taught("training", "The optimisation stack")
SOURCE_FUSED = (
    "torch 2.13, torch/optim/adam.py (foreach and fused), 2026; Loshchilov and Hutter, 2019, arXiv:1711.05101"
)
SOURCE_MUON = "Jordan et al., Muon, 2024, kellerjordan.github.io/posts/muon, runtime analysis"
SOURCE_NARROW = "Dettmers et al., 2021, arXiv:2110.02861, section 2"
SOURCE_FACTORED = "Shazeer and Stern, 2018, arXiv:1804.04235, sections 3 (factors) and 4 (no momentum)"
PARTS = ("a100-sxm4-80gb", "h100-sxm5", "h200-sxm")

STATE_BYTES = 16  # per parameter: weight, gradient and two moments, all fp32

# --- one kernel in place of many -----------------------------------------------------------------


def _moving_s(p: Draw, tensors: float) -> float:
    """Time to move so many fp32 tensors, each with a number per parameter."""
    return float(tensors * (4 * p.parameters / p.bandwidth))


def _chain(p: Draw) -> int:
    """Tensors that the separate kernels read and write."""
    return int(2 * p.ones + 3 * p.twos + 4 * p.threes)


def _draw_fused(rng: random.Random) -> Draw:
    part = catalogued.part(rng.choice(PARTS))
    most = int(10 * part["memory_bytes"] / (STATE_BYTES * billion))  # tenths of a billion that it holds
    return drawn(
        part=part.name,
        bandwidth=part["memory_bytes_per_s"],
        ones=rng.randrange(4, 9),
        twos=rng.randrange(2, 5),
        threes=rng.randrange(1, 3),
        parameters=rng.randrange(11, min(most, 69)) * billion // 10,
    )


def _saved_bytes(p: Draw) -> float:
    """What the separate kernels move, less what the fused one does."""
    kinds = ((p.ones, ("first",)), (p.twos, ("first", "second")), (p.threes, ("first", "second", "third")))
    kernels = [Operation("result", inputs) for number, inputs in kinds for _ in range(number)]
    sizes = dict.fromkeys(("first", "second", "third", "result"), 4 * p.parameters)
    fused = optimisers.update_bytes(num_parameters=p.parameters, kernels="one", bytes_per_element=4)
    return separate_bytes(kernels, sizes=sizes) - fused


def _count_fused(p: Draw) -> float:
    """Move every number, kernel by kernel; then move them once."""
    separate = one = 0
    for _ in range(p.parameters):
        for inputs, kernels in ((1, p.ones), (2, p.twos), (3, p.threes)):
            for _ in range(kernels):
                separate += sum(4 for _ in range(inputs)) + 4
        one += sum(4 for _ in ("weight", "gradient", "momentum", "variance")) + sum(
            4 for _ in ("weight", "momentum", "variance")
        )
    return float((separate - one) / p.bandwidth)


FUSED = Drill(
    key="stack-fused-update",
    taught=TAUGHT,
    title="One kernel in place of many",
    unit="s",
    target_s=120,
    apart=1.06,
    draw=_draw_fused,
    small=lambda rng: changed(_draw_fused(rng), parameters=rng.randrange(20, 60)),
    prompt=lambda p: (
        f"An Adam-like update runs as kernels over all {p.parameters / billion:g} billion parameters of a model:"
        f" {p.ones} kernels read one tensor and write one, {p.twos} read two and write one, {p.threes} read three and"
        " write one. A fused kernel reads weight, gradient and moments once and writes all but the gradient. Everything"
        f" is fp32, and the {p.part} moves {fmt_si(p.bandwidth, 'B/s')}. How much time does fusing save per update?"
    ),
    derive=lambda p: Derivation(
        value=_saved_bytes(p) / p.bandwidth,
        formula="(tensors moved by the chain − 7) × 4 bytes × parameters / bandwidth",
        substitution=(
            f"({p.ones} × 2 + {p.twos} × 3 + {p.threes} × 4 − (4 + 3)) × 4 × {p.parameters} / {p.bandwidth:.15g}"
        ),
        source=SOURCE_FUSED,
    ),
    count=_count_fused,
    slips=(
        Slip("nothing-left", lambda p: _moving_s(p, _chain(p)))
        | "You saved the whole time. The fused kernel moves bytes, too.",
        Slip("fused-time", lambda p: _moving_s(p, 7))
        | "That is how long the fused kernel takes. The question asks what is saved.",
        Slip("reads-only", lambda p: _moving_s(p, p.ones + 2 * p.twos + 3 * p.threes - 4))
        | "You counted what is read. Results are written, too.",
        Slip("one-pass-each", lambda p: _moving_s(p, p.ones + p.twos + p.threes - 1))
        | "You charged one tensor per kernel. Each reads its operands and writes a result.",
        Slip("sixteen-bit", lambda p: _moving_s(p, (_chain(p) - 7) / 2))
        | "You took two bytes per number. The question says fp32.",
    ),
)

# --- orthogonal updates --------------------------------------------------------------------------


def _muon(
    p: Draw,
    *,
    short: int,
    long: int,
    gram: float = 2,
    square: float = 1,
    per_token: float = 6,
    iterations: int | None = None,
) -> float:
    rounds = p.iterations if iterations is None else iterations
    return float(
        rounds * (gram * 2 * short**2 * long + square * 2 * short**3) / (per_token * p.short * p.long * p.tokens)
    )


def _draw_muon(rng: random.Random) -> Draw:
    short = rng.randrange(2048, 9000, 256)
    return drawn(
        short=short,
        long=short * rng.choice((11, 14, 16)) // 4,
        iterations=rng.choice((4, 5, 6, 7)),
        tokens=rng.randrange(5, 41) * 100_000,
    )


def _small_muon(rng: random.Random) -> Draw:
    short = rng.randrange(3, 6)
    return drawn(
        short=short, long=short + rng.randrange(4, 8), iterations=rng.choice((2, 3)), tokens=rng.randrange(20, 60)
    )


def _product_flops(rows: int, inner: int, columns: int) -> int:
    return sum(2 for _ in range(rows) for _ in range(inner) for _ in range(columns))


def _count_muon(p: Draw) -> float:
    """Every multiplication and addition of the three products, per iteration; and of a token's way through the
    matrix, forward and back.
    """
    update = 0
    for _ in range(p.iterations):
        update += (
            _product_flops(p.short, p.long, p.short)
            + _product_flops(p.short, p.short, p.short)
            + _product_flops(p.short, p.short, p.long)
        )
    tokens = sum(3 * _product_flops(1, p.short, p.long) for _ in range(p.tokens))
    return update / tokens


MUON = Drill(
    key="stack-muon-share",
    taught=TAUGHT,
    title="What orthogonal updates cost",
    unit="",
    target_s=150,
    apart=1.06,
    draw=_draw_muon,
    small=_small_muon,
    prompt=lambda p: (
        f"Muon updates a weight matrix of {p.short:,} × {p.long:,}. With X its momentum, the short side first, each of"
        f" {p.iterations} iterations takes X Xᵀ, the square of that, and a combination of the two times X. A batch"
        f" holds {p.tokens:,} tokens, each of which passes the matrix forward and backward. How many FLOPs does the"
        " update cost, as a share of the training FLOPs of this matrix? (Symmetry is not used; sums of matrices are"
        " neglected.)"
    ),
    derive=lambda p: Derivation(
        value=optimisers.newton_schulz_share(rows=p.short, columns=p.long, iterations=p.iterations, tokens=p.tokens),
        formula="iterations × (4 × short² × long + 2 × short³) / (6 × short × long × tokens)",
        substitution=(
            f"{p.iterations} × (4 × {p.short}² × {p.long} + 2 × {p.short} × {p.short}²) / (6 × {p.short} × {p.long} ×"
            f" {p.tokens})"
        ),
        source=SOURCE_MUON,
    ),
    count=_count_muon,
    slips=(
        Slip("long-side", lambda p: _muon(p, short=p.long, long=p.short))
        | "You multiplied the long side with itself. Which side is the Gram matrix made of?",
        Slip("one-iteration", lambda p: _muon(p, short=p.short, long=p.long, iterations=1))
        | "You counted one iteration.",
        Slip("forward-only", lambda p: _muon(p, short=p.short, long=p.long, per_token=2))
        | "You compared with the forward pass. A token also goes back through the matrix.",
        Slip("square-forgotten", lambda p: _muon(p, short=p.short, long=p.long, square=0))
        | "One of the three matmuls is missing: that of the small square matrix with itself.",
        Slip("one-wide-product", lambda p: _muon(p, short=p.short, long=p.long, gram=1))
        | "Two matmuls per iteration have a long side. You counted one.",
    ),
)

# --- moments in eight bits -----------------------------------------------------------------------


def _eight_bit(p: Draw) -> int:
    """Parameters with moments in eight bits."""
    return int(p.parameters - p.wide)


def _scaled(p: Draw) -> float:
    """Bytes of an 8-bit value with its share of the scale."""
    return float(1 + 4 / p.block)


def _draw_narrow(rng: random.Random) -> Draw:
    parameters = rng.randrange(12, 90) * billion // 10
    return drawn(parameters=parameters, wide=parameters * rng.randrange(8, 26) // 100, block=rng.choice((16, 32)))


def _small_narrow(rng: random.Random) -> Draw:
    block = rng.choice((16, 32))
    narrow, wide = block * rng.randrange(20, 50), rng.randrange(100, 300)
    return drawn(parameters=narrow + wide, wide=wide, block=block)


def _count_narrow(p: Draw) -> float:
    """Lay out both moments value by value; each block of codes brings its scale along."""
    total = 0
    for _ in ("momentum", "variance"):
        total += sum(4 for _ in range(p.wide))
        for place in range(p.parameters - p.wide):
            total += 1 + (4 if place % p.block == 0 else 0)
    return float(total)


NARROW = Drill(
    key="stack-8-bit-moments",
    taught=TAUGHT,
    title="Moments in eight bits",
    unit="B",
    capacity=True,
    target_s=120,
    apart=1.06,
    draw=_draw_narrow,
    small=_small_narrow,
    prompt=lambda p: (
        f"Adam's two moments of a model with {p.parameters / billion:g} billion parameters are kept in 8 bits, one fp32"
        f" scale per block of {p.block} values. The {billions(p.wide)} parameters of the embeddings keep both moments"
        " in fp32. How much memory do the moments take?"
    ),
    derive=lambda p: Derivation(
        value=optimisers.adam_8bit_state_bytes(num_parameters=p.parameters, wide_parameters=p.wide, block=p.block),
        formula="8 × wide + 2 × (1 + 4 / block) × (parameters − wide)",
        substitution=f"8 × {p.wide} + 2 × (1 + 4 / {p.block}) × ({p.parameters} − {p.wide})",
        source=SOURCE_NARROW,
    ),
    count=_count_narrow,
    slips=(
        Slip("scales-forgotten", lambda p: 8 * p.wide + 2 * _eight_bit(p)) | "You forgot what each block brings along.",
        Slip("all-narrow", lambda p: 2 * _scaled(p) * p.parameters) | "You narrowed the embeddings' moments, too.",
        Slip("one-moment", lambda p: 4 * p.wide + _scaled(p) * _eight_bit(p))
        | "You counted one moment. How many does Adam keep?",
        Slip("still-wide", lambda p: 8.0 * p.parameters) | "That is Adam without any narrowing.",
        Slip("embeddings-forgotten", lambda p: 2 * _scaled(p) * _eight_bit(p))
        | "You left the embeddings' moments out. They are there, and wide.",
        Slip("what-is-saved", lambda p: (8 - 2 * _scaled(p)) * _eight_bit(p))
        | "That is what is saved. The question asks what the moments take.",
    ),
)

# --- a row and a column in place of a matrix -----------------------------------------------------


def _shapes(p: Draw) -> list[tuple[int, ...]]:
    """Parameters of one layer: attention's four matrices, the feed-forward block's three, two norms."""
    return [(p.width, p.width)] * 4 + [(p.wide, p.width)] * 2 + [(p.width, p.wide)] + [(p.width,)] * 2


def _values(p: Draw) -> int:
    """Parameters of the whole model."""
    return int(p.layers * (4 * p.width**2 + 3 * p.width * p.wide + 2 * p.width))


def _factored(p: Draw, *, widths: float, wides: float) -> float:
    """fp32 bytes of that many vectors of either length in each layer."""
    return float(4 * p.layers * (widths * p.width + wides * p.wide))


def _draw_factored(rng: random.Random) -> Draw:
    width = rng.randrange(2048, 8449, 256)
    return drawn(layers=rng.randrange(24, 82, 2), width=width, wide=width * rng.choice((11, 12, 13, 15)) // 4)


def _count_factored(p: Draw) -> float:
    """Visit every squared gradient, and see which means it goes into."""
    means = set()
    for layer, (tensor, shape) in product(range(p.layers), enumerate(_shapes(p))):
        for place in product(*map(range, shape)):
            for side in range(len(shape)):
                means.add((layer, tensor, side, place[side]))
    return float(sum(4 for _ in means))


FACTORED = Drill(
    key="stack-adafactor-state",
    taught=TAUGHT,
    title="A row and a column in place of a matrix",
    unit="B",
    capacity=True,
    target_s=150,
    draw=_draw_factored,
    small=lambda rng: drawn(layers=rng.choice((2, 3)), width=rng.choice((5, 7)), wide=rng.choice((16, 18))),
    prompt=lambda p: (
        f"Each of a model's {p.layers} layers has four square matrices in its attention, {p.width:,} wide, three"
        f" matrices of {p.width:,} by {p.wide:,} in its feed-forward block, and two norms with a weight for each of"
        f" {p.width:,} channels. Adafactor trains it without a first moment. Of a matrix's second moment it keeps a"
        " mean per row and a mean per column, of a vector's all of it, in fp32. How much memory does the second moment"
        " of these layers take?"
    ),
    derive=lambda p: Derivation(
        value=p.layers * optimisers.adafactor_state_bytes(shapes=_shapes(p), bytes_per_element=4, first_moment=False),
        formula=(
            "4 bytes × layers × (4 × (width + width) + 3 × (feed-forward width + width) + 2 × width): a matrix has rows"
            " plus columns, a norm its whole width"
        ),
        substitution=f"4 × {p.layers} × (4 × ({p.width} + {p.width}) + 3 × ({p.wide} + {p.width}) + 2 × {p.width})",
        source=SOURCE_FACTORED,
    ),
    count=_count_factored,
    prerequisites=("stack-8-bit-moments",),
    slips=(
        Slip("not-factored", lambda p: 4 * _values(p))
        | "You kept a number for every parameter: the second moment as a whole, or a first one beside the"
        " factors. Read again what is kept of a matrix.",
        Slip("two-moments", lambda p: 8 * _values(p))
        | "Those are Adam's two moments. Adafactor keeps neither as a whole.",
        Slip("rows-alone", lambda p: _factored(p, widths=4 + 1 + 2, wides=2))
        | "You kept one mean per row of a matrix. Its columns have theirs, too.",
        Slip("norms-forgotten", lambda p: _factored(p, widths=11, wides=3))
        | "You left out the norms. Beside factors they are no longer small.",
        Slip("one-layer", lambda p: _factored(p, widths=13, wides=3) / p.layers)
        | "That is one layer. How many are there?",
    ),
)

DRILLS = (FUSED, MUON)
MEMORY_DRILLS = (NARROW, FACTORED)
