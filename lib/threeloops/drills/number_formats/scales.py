"""Drills on scales: where a loss scale settles, and what one large activation does to the small ones."""

from threeloops.drills.engine.drill import Derivation, Draw, Drill, Slip, Taught, drawn
from threeloops.drills.engine.searches import holds_up_to
from threeloops.inner_loop import number_formats
from threeloops.inner_loop.number_formats import E4M3, FP16
from threeloops.simulate.inner_loop import packed_blocks
from threeloops.simulate.training_loop import loss_scaler
from threeloops.training_loop.updates import loss_scaling

TAUGHT = Taught("inner", "Number formats")

SOURCE_SCALING = "Micikevicius et al., 2018, arXiv:1710.03740, section 4; torch.amp.GradScaler 2.13, 2026"
SOURCE_FP8 = "Micikevicius et al., 2022, arXiv:2209.05433, sections 3 and 4"

# --- where a loss scale settles ------------------------------------------------------------------

FP16_ENDS = loss_scaling.overflows_from(FP16)


def _skips(p: Draw) -> int:
    return loss_scaling.first_skips(loss_scaling.Scaler(initial=p.initial), largest_gradient=p.gradient, form=FP16)


SETTLED = Drill(
    key="format-loss-scale",
    taught=TAUGHT,
    title="Where a loss scale settles",
    unit="",
    whole="exact",
    target_s=90,
    fewest=10,  # a loss scale is a power of two below the largest number of FP16
    draw=lambda rng: drawn(
        initial=2 ** rng.choice((17, 18, 20)), gradient=2 ** rng.randrange(1, 11) * rng.choice((1.25, 1.375, 1.625))
    ),
    small=lambda rng: drawn(
        initial=2 ** rng.choice((17, 18)), gradient=2 ** rng.choice((2, 3)) * rng.choice((1.25, 1.625))
    ),
    prompt=lambda p: (
        f"A model trains in FP16, whose largest number is 65,504. Its loss scaler starts at {p.initial:,} and halves"
        " the scale after each step in which a gradient overflows. Before scaling, the largest gradient is"
        f" {p.gradient:g}, step after step. At which scale does the first update happen?"
    ),
    derive=lambda p: Derivation(
        value=p.initial * 0.5 ** _skips(p),
        formula="initial / 2^skips, skips = floor(log2(initial × largest gradient / 65,520)) + 1",
        substitution=f"{p.initial} / 2**(floor(log2({p.initial} × {p.gradient:g} / {FP16_ENDS:g})) + 1)",
        source=SOURCE_SCALING,
    ),
    count=lambda p: loss_scaler.play([p.gradient] * 40, limit=FP16_ENDS, initial=p.initial).scales[30],
    slips=(
        Slip("one-too-few", lambda p: p.initial * 0.5 ** (_skips(p) - 1))
        | "At that scale the largest gradient still overflows. One more halving.",
        Slip("not-a-halving", lambda p: 65504 / p.gradient)
        | "You divided the largest number by the gradient. The scaler only halves, so it lands on a power of two"
        " below that.",
        Slip("initial", lambda p: p.initial)
        | "You kept the first scale. Multiply it by the gradient and look whether FP16 holds the result.",
        Slip("one-too-many", lambda p: p.initial * 0.5 ** (_skips(p) + 1))
        | "One halving too many: the scale before already fitted.",
        Slip("skips", _skips) | "That is the number of steps thrown away. Asked is the scale.",
    ),
)

# --- what an outlier erases ----------------------------------------------------------------------


def _count_erased(p: Draw) -> float:
    """Halve the distance between a value that is kept and one that is lost, until nothing is left between them."""
    grid = packed_blocks.grid("E4M3")
    scale = p.outlier / float(grid.values[-1])
    return holds_up_to(lambda value: grid.nearest(value / scale) == 0, high=p.outlier)


ERASED = Drill(
    key="format-outlier-erases",
    taught=TAUGHT,
    title="What one outlier erases",
    unit="",
    target_s=120,
    draw=lambda rng: drawn(outlier=rng.randrange(6_000, 46_000, 500)),
    small=lambda rng: drawn(outlier=rng.choice((56, 112, 700, 2_800))),
    prompt=lambda p: (
        f"Activations are cast to E4M3 with one scale for the whole tensor, chosen so that the largest, {p.outlier:,},"
        " lands on 448. E4M3 has 4 exponent bits, 3 mantissa bits and a bias of 7. Up to which size do the other"
        " activations become zero?"
    ),
    derive=lambda p: Derivation(
        value=p.outlier / E4M3.largest * number_formats.number_at(1, E4M3) / 2,
        formula="outlier / 448 × smallest number / 2, smallest number = 2^-9",
        substitution=f"{p.outlier} / 448 × 2**-9 / 2",
        source=SOURCE_FP8,
    ),
    count=_count_erased,
    prerequisites=("format-smallest",),
    slips=(
        Slip("smallest-number", lambda p: p.outlier / 448 * 2.0**-9)
        | "That is the smallest number that is kept exactly. Down to half of it, values are still rounded up"
        " to it.",
        Slip("smallest-normal", lambda p: p.outlier / 448 * 2.0**-6)
        | "You stopped at the smallest normal number. Below it precision shrinks, but the values are not zero"
        " yet.",
        Slip("no-scale", lambda p: 2.0**-10) | "You used the format without its scale. The outlier has stretched it.",
        Slip("e5m2", lambda p: p.outlier / 57344 * 2.0**-17)
        | "That is E5M2, which has another end and another bottom.",
        Slip("integer-grid", lambda p: p.outlier / 127 / 2)
        | "You divided the range evenly, as int8 does. A floating-point grid is finer towards zero.",
    ),
)

DRILLS = (SETTLED, ERASED)
