"""Drawn rate explorer: draw how fast an A100 can multiply more and more rows by a matrix, then see it.

In a notebook:

    from threeloops.widgets.inner_loop import drawn_rate
    drawn_rate.explorer()
"""

from threeloops.facts import hardware
from threeloops.figures.curves import Axis
from threeloops.operations import kernels, roofline
from threeloops.units import fmt_si
from threeloops.widgets.drawn_curve import Question, State, drawing
from threeloops.widgets.explorer import Explorer

PART = hardware.part("a100-sxm4-80gb")
PEAK, MEMORY = PART.peak_flops_per_s("bf16"), PART["memory_bytes_per_s"]
WIDTH, AT = 4096, (1.0, 8.0, 64.0, 256.0, 1024.0, 4096.0)


def intensity(rows: float) -> float:
    """FLOP per byte of a product of so many rows."""
    return kernels.gemm(m=int(rows), n=WIDTH, k=WIDTH, bytes_per_element=2).arithmetic_intensity


def rate(rows: float) -> float:
    """The highest rate that peak and memory allow."""
    work = kernels.gemm(m=int(rows), n=WIDTH, k=WIDTH, bytes_per_element=2)
    return work.flops / roofline.time(work, peak_flops_per_s=PEAK, memory_bytes_per_s=MEMORY).lower_bound_s


BEND = next(rows for rows in range(1, WIDTH) if intensity(rows) * MEMORY >= PEAK)
QUESTION = Question(
    asked="Draw the highest rate of a matmul",
    about=f"So many rows, times a matrix of {WIDTH:,} by {WIDTH:,}, in bf16 on an {PART.name}.",
    answer=f"Up to {BEND} rows the rate grows with them; then it is the peak",
    at=AT,
    x=Axis(title="rows", log=True, ticks=AT, format=",d", low=0.8, high=5000),
    y=Axis(title="rate (FLOP/s)", log=True, ticks=(1e11, 1e12, 1e13, 1e14, 1e15), format="~s", low=5e10, high=5e15),
    unit=lambda rate: fmt_si(rate, "FLOP/s"),
    truth=rate,
    slips={
        "You gave every matmul the peak. A single row uses each number of the matrix once, and waits for the"
        " next.": lambda rows: PEAK,
        "You let the memory set the rate for ever. From the ridge point on, the units are the slower"
        " part.": lambda rows: intensity(rows) * MEMORY,
        "You let the rate grow until the last row counts. The peak is reached at the ridge point, long"
        " before.": lambda rows: PEAK * rows / AT[-1],
    },
)


def explorer() -> Explorer[State]:
    """The explorer, with nothing drawn; as the last line of a cell, it shows itself."""
    return drawing(QUESTION)
