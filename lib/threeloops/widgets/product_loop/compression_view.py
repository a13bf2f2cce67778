"""Compression view: what the compression explorer shows for a state, as figure, sentences and table. No widget in
here: it is computed and tested without a browser.

Accuracies are the measured ones of `facts.compressed_glyphs`; bytes are computed: whole numbers and one 16-bit scale
for every group of 16, and for pruned weights a mask of one bit each, where that is smaller than keeping the zeros.

>>> print(view(State(bits=4, sparsity=0.5, network="teacher")).summary)
teacher, 4 bits, 50 % pruned: 96.4 % read correctly, 0.7 points less than the teacher as trained; 4.61 kB, 4.0 times smaller.
"""  # noqa: E501

import itertools
from dataclasses import dataclass

from threeloops.facts.compressed_glyphs import ACCURACIES, BITS, NETWORKS, SPARSITIES, STAMP
from threeloops.figures.product_loop.plain_lines import plain_lines
from threeloops.product_loop import compression
from threeloops.units import fmt_bytes, fmt_percent
from threeloops.widgets.view import View

INPUTS, GROUP, SCALE_BITS, WIDE = 64, 16, 16, 16
LEAST_TOLD = 0.25  # points: 4,096 questions say no more, their standard error is 0.26 points
LOWEST = 0.7  # of the axis: below it a network is of no use to anybody, and is only told in words
COLUMNS = ("bits", "read correctly", "bytes", "times smaller")


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """Where the controls stand."""

    bits: int
    sparsity: float
    network: str

    def __post_init__(self) -> None:
        for name, value, known in (
            ("bits", self.bits, BITS),
            ("sparsity", self.sparsity, SPARSITIES),
            ("network", self.network, tuple(NETWORKS)),
        ):
            if value not in known:
                raise ValueError(f"{name}={value!r} must be one of {', '.join(map(str, known))}")


def accuracy(state: State) -> float:
    """The measured share of images read correctly."""
    return ACCURACIES[state.network][state.sparsity][BITS.index(state.bits)]


def weights_of(network: str) -> int:
    """Weights of the three layers; biases are left out, and stay as they are."""
    widths = (INPUTS, *NETWORKS[network][1:])
    return sum(one * other for one, other in itertools.pairwise(widths))


def stored_bytes(state: State) -> float:
    """Bytes of the weights: the smaller of a dense tensor and one with a mask, scales included."""
    weights = weights_of(state.network)
    kept = round(weights * (1 - state.sparsity))
    masked = compression.bitmask_bytes(weights, kept=kept, element_bits=state.bits)
    numbers = min(masked, weights * state.bits / 8)
    scales = weights / GROUP * SCALE_BITS / 8 if state.bits < WIDE else 0
    return numbers + scales


def _apart(here: float, whole: float) -> str:
    """The difference in words that do not contradict two shares which are printed to a tenth of a point."""
    points = 100 * abs(whole - here)
    if here == whole:
        return "as the teacher as trained"
    if points < LEAST_TOLD:
        return f"within {LEAST_TOLD:g} points of the teacher as trained"
    return f"{points:.1f} points {'less' if here < whole else 'more'} than the teacher as trained"


def view(state: State) -> View:
    """Accuracy against bits for the three networks at this sparsity, with the state marked."""
    lines = {name: list(zip(BITS, ACCURACIES[name][state.sparsity], strict=True)) for name in NETWORKS}
    here, whole = accuracy(state), ACCURACIES["teacher"][0.0][0]
    size, first = stored_bytes(state), stored_bytes(State(bits=WIDE, sparsity=0.0, network="teacher"))
    pruned = f"{100 * state.sparsity:.0f} % pruned" if state.sparsity else "nothing pruned"
    figure = plain_lines(
        lines,
        x="bits of a weight",
        y="read correctly",
        percent=True,
        low=LOWEST,
        high=1.0,
        level=whole,
        here=(state.bits, here),
        title=f"{state.network}, {state.bits} bits, {pruned}: {fmt_percent(here)} in {fmt_bytes(size, base=10)}",
        caption=f"Dashed: the teacher as trained. Measured once ({STAMP.split(',')[0]}); axis from 70 %.",
    )
    summary = (
        f"{state.network}, {state.bits} bits, {pruned}: {fmt_percent(here)} read correctly, {_apart(here, whole)};"
        f" {fmt_bytes(size, base=10)}, {first / size:.1f} times smaller."
    )
    rows = []
    for bits in BITS:
        other = State(bits=bits, sparsity=state.sparsity, network=state.network)
        held = stored_bytes(other)
        rows.append((f"{bits}", fmt_percent(accuracy(other)), fmt_bytes(held, base=10), f"{first / held:.1f}"))
    return View(columns=COLUMNS, figure=figure, summary=summary, rows=tuple(rows))
