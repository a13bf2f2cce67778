"""Drills on grids: the code of zero, the mean error of a row, scales on two levels, a weight that makes up for another,
and a channel that hands its outlier on.
"""

import random

from threeloops.drills.engine.drill import AsFunction, Derivation, Draw, Drill, Slip, Taught, changed, drawn
from threeloops.drills.engine.fair_draws import fair
from threeloops.drills.engine.searches import holds_up_to, wanted
from threeloops.product_loop import quantisation
from threeloops.product_loop.gguf_formats import GgufFormat
from threeloops.simulate.product_loop import narrow_weights, weight_pairs
from threeloops.units import BITS_PER_BYTE

TAUGHT = Taught("product", "Compression")
JACOB = "Jacob et al., 2017, arXiv:1712.05877, section 2.1"

# --- zero point ----------------------------------------------------------------------------------


def _draw_zero(rng: random.Random) -> Draw:
    lowest = rng.randrange(31, 90) / 100
    return drawn(lowest=-lowest, highest=round(lowest * rng.randrange(222, 260) / 100, 2), bits=rng.choice((8, 9, 10)))


def _last(p: Draw) -> int:
    return int(2**p.bits - 1)


def _count_zero(p: Draw) -> float:
    """Walk up the grid from its lowest value; the code of zero is that of the value nearest to it, of two the even."""
    step = (p.highest - p.lowest) / _last(p)
    values = [p.lowest + code * step for code in range(_last(p) + 1)]
    return float(min(range(len(values)), key=lambda code: (round(abs(values[code]) / step, 9), code % 2)))


def _derive_zero(p: Draw) -> Derivation:
    """Two decimals can lie exactly between two codes: which is nearer is not left to the last digit of a float."""
    steps = round(-p.lowest / quantisation.affine_grid(lowest=p.lowest, highest=p.highest, bits=p.bits).step, 9)
    code = round(steps)
    quotient = f"{-p.lowest} / (({p.highest} + {-p.lowest}) / {_last(p)})"
    return Derivation(
        value=float(code),
        formula="round(−lowest / step), step = (highest − lowest) / (2^bits − 1)",
        substitution=f"floor({quotient} + 0.5)" if code >= steps else f"ceil({quotient} − 0.500000001)",
        source=JACOB,
    )


def _between_no_codes(rng: random.Random) -> Draw:
    """A range whose zero is nearer to one code: where two are equally near, a float's last digit decides."""

    def decided(p: Draw) -> bool:
        return bool(2 * round(-p.lowest / (p.highest - p.lowest) * (2**p.bits - 1), 6) % 2 != 1)

    return wanted(lambda: fair(ZERO_POINT).draw(rng), decided)


ZERO_POINT = Drill(
    key="compression-zero-point",
    taught=TAUGHT,
    title="The whole number that stands for zero",
    unit="",
    whole="exact",
    target_s=75,
    draw=_draw_zero,
    small=_draw_zero,
    prompt=lambda p: (
        f"Activations lie between −{-p.lowest:g} and {p.highest:g} and are quantised to {p.bits} bits by an affine"
        f" grid: code 0 stands for the lowest value and code {_last(p)} for the highest. Which code, as a whole number,"
        " is the zero point? (Of two that are equally near it is the even one.)"
    ),
    derive=_derive_zero,
    count=_count_zero,
    slips=(
        Slip("from-above", lambda p: p.highest / (p.highest - p.lowest) * _last(p))
        | "You counted down from the highest value. Codes begin at the lowest.",
        Slip("middle", lambda p: 2.0 ** (p.bits - 1))
        | "You put zero in the middle of the codes. This range has more above zero than below.",
        Slip("range-above", lambda p: -p.lowest / p.highest * _last(p))
        | "You spread the codes over the part above zero. They reach from the lowest to the highest value.",
        Slip("signed-codes", lambda p: -p.lowest / (p.highest - p.lowest) * (2 ** (p.bits - 1) - 1))
        | "You used half of the codes, as a symmetric grid has them on each side.",
    ),
    function=AsFunction(
        takes=("lowest", "highest", "bits"),
        limit={"lowest": 0.0},
        limit_case="values that are never negative",
        draw=_between_no_codes,
    ),
)

# --- mean error of a row -------------------------------------------------------------------------


def _draw_row(rng: random.Random) -> Draw:
    return drawn(bits=rng.choice((4, 5, 6)), largest=rng.randrange(31, 99) / 100)


def _symmetric_step(p: Draw) -> float:
    return quantisation.symmetric_grid(largest=p.largest, bits=p.bits).step


def _count_row(p: Draw) -> float:
    """Round ten thousand evenly placed weights to the nearest of the grid's values."""
    last = 2 ** (p.bits - 1) - 1
    values = [p.largest * code / last for code in range(-last, last + 1)]
    weights = [p.largest * (2 * (place + 0.5) / 10_000 - 1) for place in range(10_000)]
    return float(sum(min(abs(weight - value) for value in values) for weight in weights) / len(weights))


MEAN_ERROR = Drill(
    key="compression-mean-error",
    taught=TAUGHT,
    title="How far off a row of weights is",
    unit="",
    target_s=75,
    draw=_draw_row,
    small=_draw_row,
    prompt=lambda p: (
        f"A row of a weight matrix has {p.largest:g} as its largest size and is quantised to {p.bits} bits on a"
        f" symmetric grid of its own, with codes from −{2 ** (p.bits - 1) - 1} to {2 ** (p.bits - 1) - 1}. Weights lie"
        " anywhere between grid points equally often. What is the mean size of the error?"
    ),
    derive=lambda p: Derivation(
        value=quantisation.mean_rounding_error(_symmetric_step(p)),
        formula="step / 4, step = largest / (2^(bits − 1) − 1)",
        substitution=f"{p.largest} / (2**({p.bits} − 1) − 1) / 4",
        source=f"{JACOB}; the mean of an error spread evenly between −step / 2 and step / 2",
    ),
    count=_count_row,
    slips=(
        Slip("root-mean-square", lambda p: _symmetric_step(p) / 12**0.5)
        | "That is the root mean square. The mean size is asked for, which weighs large errors less.",
        Slip("largest-error", lambda p: _symmetric_step(p) / 2)
        | "That is the largest error. Most weights lie nearer to a grid point.",
        Slip("all-codes-above", lambda p: p.largest / (2**p.bits - 1) / 4)
        | "You gave all codes to one side of zero. Half of them are for negative weights.",
        Slip("step", _symmetric_step) | "That is the distance between two grid points.",
    ),
    function=AsFunction(takes=("bits", "largest"), limit={"bits": 2}, limit_case="two bits"),
)

# --- scales on two levels ------------------------------------------------------------------------


def _draw_levels(rng: random.Random) -> Draw:
    block = rng.choice((64, 96, 128))
    return drawn(
        bits=rng.choice((2, 3, 4)),
        block=block,
        sub_blocks=8,
        sub_bits=rng.choice((6, 7, 8)),
        weights=block * rng.randrange(200_000, 900_000, 1000),
    )


def _small_levels(rng: random.Random) -> Draw:
    p = _draw_levels(rng)
    return changed(p, weights=5 * p.block)


def _levels_bytes(p: Draw, **changes: int) -> float:
    own = {
        "element_bits": p.bits,
        "block": p.block,
        "min_bits": 16,
        "sub_blocks": p.sub_blocks,
        "sub_scale_bits": p.sub_bits,
        "sub_min_bits": p.sub_bits,
    }
    form = GgufFormat(name="", **(own | changes))
    return float(p.weights / p.block * form.block_bytes)


def _count_levels(p: Draw) -> float:
    """Write block after block, bit by bit: its own scale and minimum, those of every sub-block, then the weights."""
    written = ""
    for _ in range(p.weights // p.block):
        written += format(1, "016b") + format(2, "016b")
        for _sub in range(p.sub_blocks):
            written += format(3, f"0{p.sub_bits}b") + format(1, f"0{p.sub_bits}b")
        written += narrow_weights.masked([1] * p.block, bits=p.bits)[p.block :]
    return len(written) / BITS_PER_BYTE


TWO_LEVELS = Drill(
    key="compression-two-levels",
    taught=TAUGHT,
    title="Scales for the scales",
    unit="B",
    target_s=120,
    draw=_draw_levels,
    small=_small_levels,
    prompt=lambda p: (
        f"A tensor of {p.weights:,} weights is stored in {p.bits} bits each, in blocks of {p.block}. A block has one"
        f" scale and one minimum of 16 bits each; each of its {p.sub_blocks} sub-blocks has a scale and a minimum of"
        f" {p.sub_bits} bits each, in multiples of those. How large is the tensor?"
    ),
    derive=lambda p: Derivation(
        value=_levels_bytes(p),
        formula="weights × (bits + (sub-blocks × (sub-scale + sub-minimum bits) + 32) / block) / 8",
        substitution=f"{p.weights} × ({p.bits} + ({p.sub_blocks} × (2 × {p.sub_bits}) + 32) / {p.block}) / 8",
        source="llama.cpp, ggml/src/ggml-common.h: the layout of its K-quants (blocks of 256); pull request 1684, 2023",
    ),
    count=_count_levels,
    prerequisites=("compression-bits-per-weight",),
    slips=(
        Slip("no-block", lambda p: _levels_bytes(p, scale_bits=0, min_bits=0))
        | "You left out the scale and the minimum of the block. The small ones are multiples of them.",
        Slip("no-minima", lambda p: _levels_bytes(p, min_bits=0, sub_min_bits=0))
        | "You stored no minima. Every scale here has one beside it.",
        Slip("one-level", lambda p: _levels_bytes(p, scale_bits=0, min_bits=0, sub_scale_bits=16, sub_min_bits=16))
        | "You gave every sub-block 16-bit numbers of its own. Two levels are there to avoid that.",
        Slip("bare", lambda p: p.weights * p.bits / BITS_PER_BYTE) | "You counted the weights alone.",
    ),
)

# --- a weight that makes up for another ----------------------------------------------------------


def _draw_move(rng: random.Random) -> Draw:
    other = rng.randrange(50, 70)
    return drawn(
        exact=0.62,
        rounded=round(0.62 - rng.randrange(16, 24) / 100, 2),
        second=rng.randrange(20, 27) / 100,
        own=round(other * rng.randrange(18, 22) / 10),
        together=round(other * rng.randrange(70, 82) / 100),
        other=other,
    )


def _moved(p: Draw) -> float:
    return float(p.second + quantisation.compensating_move(p.rounded - p.exact, together=p.together, other=p.other))


COMPENSATION = Drill(
    key="compression-compensation",
    taught=TAUGHT,
    title="The second weight pays for the first",
    unit="",
    target_s=120,
    draw=_draw_move,
    small=_draw_move,
    prompt=lambda p: (
        f"A row has two weights, {p.exact:g} and {p.second:g}. The first has just been rounded to {p.rounded:g}. Over"
        f" the calibration inputs the sum of x1² is {p.own:g}, of x1·x2 {p.together:g}, of x2² {p.other:g}. What does"
        " the second weight become, before its own rounding, so that the squared error of the output is least?"
    ),
    derive=lambda p: Derivation(
        value=_moved(p),
        formula="w2 − (rounded − exact) × sum(x1·x2) / sum(x2²)",
        substitution=f"{p.second} − ({p.rounded} − {p.exact}) × {p.together} / {p.other}",
        source="Frantar et al., GPTQ, 2022, arXiv:2210.17323, equation 2, for two weights",
    ),
    count=lambda p: (
        p.second + weight_pairs.best_move(p.rounded - p.exact, own=p.own, together=p.together, other=p.other)
    ),
    slips=(
        Slip("wrong-sign", lambda p: 2 * p.second - _moved(p))
        | "You moved the second weight with the error. It has to move against it.",
        Slip("not-moved", lambda p: p.second)
        | "You left the second weight where it was. The inputs are correlated, so it can help.",
        Slip("own-sum", lambda p: p.second - (p.rounded - p.exact) * p.together / p.own)
        | "You divided by the first input's sum of squares. What matters is how much the second one moves.",
        Slip("whole-error", lambda p: p.second - (p.rounded - p.exact))
        | "You gave the second weight the whole error. The two inputs are not the same.",
    ),
    function=AsFunction(
        takes=("exact", "rounded", "second", "own", "together", "other"),
        limit={"together": 0},
        limit_case="inputs that have nothing to do with each other",
    ),
)

# --- smoothing -----------------------------------------------------------------------------------


def _draw_smooth(rng: random.Random) -> Draw:
    return drawn(inputs=rng.randrange(38, 90), column=rng.randrange(38, 70) / 100)


def _count_smooth(p: Draw) -> float:
    """Halve the interval of divisors until the channel and the column that meets it are equally large."""
    return float(p.inputs / holds_up_to(lambda divisor: p.inputs / divisor > p.column * divisor, low=1e-3, high=1e6))


SMOOTHED = Drill(
    key="compression-smoothed",
    taught=TAUGHT,
    title="Half of the difficulty moves to the weights",
    unit="",
    target_s=90,
    draw=_draw_smooth,
    small=_draw_smooth,
    prompt=lambda p: (
        f"The largest value of an input channel is {p.inputs:g}; the largest weight in the column that meets it is"
        f" {p.column:g}. SmoothQuant with α = 0.5 divides the channel by its factor and multiplies the column by it."
        " What is the channel's largest value afterwards?"
    ),
    derive=lambda p: Derivation(
        value=quantisation.smoothed_largest(input_largest=p.inputs, column_largest=p.column, alpha=0.5),
        formula="input / factor, factor = input^α / column^(1 − α)",
        substitution=f"{p.inputs} / ({p.inputs}**0.5 / {p.column}**0.5)",
        source="Xiao et al., SmoothQuant, 2022, arXiv:2211.10438, equation 4",
    ),
    count=_count_smooth,
    slips=(
        Slip("factor", lambda p: (p.inputs / p.column) ** 0.5) | "That is the factor. The channel is divided by it.",
        Slip("weights-forgotten", lambda p: p.inputs**0.5)
        | "You left the weights out of the factor. Small weights leave room to take more.",
        Slip("no-root", lambda p: p.inputs * p.column) | "You moved nothing by half: α is an exponent of both.",
        Slip("all-moved", lambda p: p.column)
        | "You divided by the whole ratio of the two. With α = 0.5 they meet in the middle.",
    ),
)

DRILLS = (ZERO_POINT, MEAN_ERROR, TWO_LEVELS, COMPENSATION, SMOOTHED)
