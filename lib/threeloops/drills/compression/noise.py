"""Drills on what rounding to few bits does: the error of an evenly spaced grid, its decibels, and what one outlier
costs all others.
"""

import math
import random

from threeloops.drills.engine.drill import Derivation, Draw, Drill, Slip, Taught, drawn
from threeloops.product_loop import compression, quantisation
from threeloops.simulate.product_loop import narrow_weights

TAUGHT = Taught("product", "Compression")
BENNETT = 'Bennett, "Spectra of Quantized Signals", Bell System Technical Journal 27(3), 1948'
KESTER = "Kester, MT-001, Analog Devices, 2008 (6.02 N + 1.76 dB for a sine)"

# --- the error of a grid -------------------------------------------------------------------------


def _draw_error(rng: random.Random) -> Draw:
    return drawn(bits=rng.choice((3, 4, 5, 6)), peak=rng.randrange(21, 80) / 100)


def _step(p: Draw) -> float:
    return float(2 * p.peak / 2**p.bits)


ERROR = Drill(
    key="compression-rounding-error",
    taught=TAUGHT,
    title="How wrong a rounded weight is",
    unit="",
    target_s=75,
    draw=_draw_error,
    small=_draw_error,
    prompt=lambda p: (
        f"Weights between −{p.peak:g} and {p.peak:g} are rounded to {p.bits} bits: the range is cut into {2**p.bits}"
        " equal cells, and each weight becomes the middle of its cell. They lie anywhere in their cells equally often."
        " What is the root mean square of the error?"
    ),
    derive=lambda p: Derivation(
        value=compression.noise_power(_step(p)) ** 0.5,
        formula="cell / √12, cell = 2 × peak / 2^bits",
        substitution=f"2 × {p.peak} / 2**{p.bits} / 12**0.5",
        source=BENNETT,
    ),
    count=lambda p: narrow_weights.spread_noise_power(bits=p.bits, peak=p.peak) ** 0.5,
    slips=(
        Slip("largest", lambda p: _step(p) / 2)
        | "That is the largest error. Most weights lie nearer to the middle of their cell.",
        Slip("average", lambda p: _step(p) / 4)
        | "That is the mean size of the error. The root mean square weighs large ones more.",
        Slip("one-side", lambda p: _step(p) / 2 / 12**0.5)
        | "You cut up half of the range. It reaches from below zero to above.",
        Slip("power", lambda p: _step(p) ** 2 / 12) | "That is the mean square. Its root is asked for.",
        Slip("cell", _step) | "That is the width of a cell.",
    ),
)

# --- decibels ------------------------------------------------------------------------------------


def _draw_decibels(rng: random.Random) -> Draw:
    return drawn(bits=rng.choice((5, 6, 7, 8)), crest=rng.randrange(41, 64) / 10)


def _count_decibels(p: Draw) -> float:
    """A signal with a root mean square of 1, and the error of a grid that reaches to its peak."""
    return 10 * math.log10(1.0 / narrow_weights.spread_noise_power(bits=p.bits, peak=p.crest))


DECIBELS = Drill(
    key="compression-sqnr",
    taught=TAUGHT,
    title="Decibels of a few bits",
    unit="",
    target_s=120,
    tolerance=0.02,
    draw=_draw_decibels,
    small=_draw_decibels,
    prompt=lambda p: (
        f"A group's largest weight is {p.crest:g} times as large as their root mean square. An even grid of 2 to the"
        f" power of {p.bits} cells just reaches from minus to plus the largest. How far does the mean squared rounding"
        " error lie below the mean square of the weights, in decibels (the number alone)?"
    ),
    derive=lambda p: Derivation(
        value=compression.sqnr_db(p.bits, crest=p.crest),
        formula=(
            "10 log10(3 × 4^bits / crest²) = 6.02 × bits + 4.77 − 20 log10(crest), crest = largest / root mean square"
        ),
        substitution=f"10 × log2(3 × 4**{p.bits} / {p.crest}²) / log2(10)",
        source=f"{BENNETT}; {KESTER}",
    ),
    count=_count_decibels,
    prerequisites=("compression-rounding-error",),
    slips=(
        Slip("of-a-sine", lambda p: compression.sqnr_db(p.bits, crest=2**0.5))
        | "That is for a sine, whose peak is only 1.4 times its root mean square. These weights have a higher"
        " peak.",
        Slip("amplitudes", lambda p: 2 * compression.sqnr_db(p.bits, crest=p.crest))
        | "You took 20 log10 of a ratio of squares. It is 10 there, and 20 for amplitudes.",
        Slip("one-bit-more", lambda p: compression.sqnr_db(p.bits + 1, crest=p.crest))
        | "You made the cells half as wide. The grid reaches below zero, too.",
        Slip("natural-logarithm", lambda p: compression.sqnr_db(p.bits, crest=p.crest) / 10 * math.log(10))
        | "You took the natural logarithm. Decibels are ten times the decimal one.",
    ),
)

# --- one outlier ---------------------------------------------------------------------------------


def _draw_outlier(rng: random.Random) -> Draw:
    return drawn(
        bits=8, normal=(normal := rng.randrange(4, 10) / 100), largest=round(normal * rng.randrange(68, 120) / 10, 2)
    )


def _count_outlier(p: Draw) -> float:
    """Round to a grid that reaches to the outlier, and make another coarser, grid by grid of twice the cells, until
    the errors are alike.
    """
    with_outlier = narrow_weights.spread_noise_power(bits=p.bits, peak=p.largest)
    alone = narrow_weights.spread_noise_power(bits=p.bits, peak=p.normal)
    halvings = 0
    while 4 * alone <= with_outlier * (1 + 1e-12):
        alone, halvings = 4 * alone, halvings + 1
    return halvings + math.log(with_outlier / alone) / math.log(4)


OUTLIER = Drill(
    key="compression-outlier-bits",
    taught=TAUGHT,
    title="One weight takes the bits of all",
    unit="",
    target_s=90,
    draw=_draw_outlier,
    small=_draw_outlier,
    prompt=lambda p: (
        f"A tensor's weights lie between −{p.normal:g} and {p.normal:g}, except for a single one of {p.largest:g}. All"
        f" are rounded to {p.bits} bits on one even, symmetric grid that reaches to the largest. Compared with a grid"
        " made for the others alone, how many bits of precision do they lose?"
    ),
    derive=lambda p: Derivation(
        value=quantisation.lost_bits(largest=p.normal, outlier=p.largest),
        formula="log2(outlier / largest of the others): every doubling of the range makes the cells twice as wide",
        substitution=f"log2({p.largest} / {p.normal})",
        source=(
            "Dettmers et al., LLM.int8(), 2022, arXiv:2208.07339, section 3 (outliers and the precision of absmax"
            " quantisation)"
        ),
    ),
    count=_count_outlier,
    prerequisites=("compression-rounding-error",),
    slips=(
        Slip("ratio", lambda p: p.largest / p.normal)
        | "That is how many times as wide the cells become. A bit is worth a factor of two.",
        Slip("decimal", lambda p: math.log10(p.largest / p.normal))
        | "You counted decimal digits. A bit is a factor of two.",
        Slip("natural", lambda p: math.log(p.largest / p.normal))
        | "You took the natural logarithm. A bit is a factor of two.",
        Slip("left-over", lambda p: p.bits - math.log2(p.largest / p.normal))
        | "Those are the bits that they keep. The question asks for what is lost.",
    ),
)

DRILLS = (ERROR, DECIBELS, OUTLIER)
