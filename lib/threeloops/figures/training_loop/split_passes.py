"""Split passes: what one GPU does in one half of a cut layer. Forward and backward, with the two places where all GPUs
exchange; and the same half with the all-reduce pulled apart along the sequence.

>>> figure = both_passes(title="Each pass has one all-reduce", caption="One of t GPUs.")
>>> figure.alt.split(". ")[2]
'Backward, from right to left: dZ whole; g: nothing; B_i transposed; GELU, derivative; A_i transposed; f: all-reduce; dX whole'
"""  # noqa: E501

from collections.abc import Sequence

from threeloops.figures.boxes import Arrow, Box, boxes
from threeloops.figures.figure import Figure

HEIGHT, GAP, SPACE = 66, 32, 24  # pixels: of a box, between two rows, between two boxes
NAME = 76  # of the box that names a row
Step = tuple[str, str, int]  # what stands in a box, its kind, its width

FORWARD: tuple[Step, ...] = (
    ("X\nwhole", "memory", 62),
    ("f:\nnothing", "off", 76),
    ("A_i\ncolumns", "compute", 76),
    ("GELU", "frame", 66),
    ("B_i\nrows", "compute", 76),
    ("g:\nall-reduce", "control", 84),
    ("Z\nwhole", "memory", 62),
)
BACKWARD: tuple[Step, ...] = (
    ("dX\nwhole", "memory", 62),
    ("f:\nall-reduce", "control", 76),
    ("A_i\ntransposed", "compute", 76),
    ("GELU,\nderivative", "frame", 66),
    ("B_i\ntransposed", "compute", 76),
    ("g:\nnothing", "off", 84),
    ("dZ\nwhole", "memory", 62),
)
BESIDE = "dA_i: weight gradient,\ncomputed while f adds up"


def both_passes(*, title: str, caption: str) -> Figure:
    """The half of a layer on one GPU: forward left to right, backward right to left below it, and the product that
    need not wait for the second all-reduce.
    """
    plan, arrows = _row("forward", FORWARD, y=0)
    below, back = _row("backward", BACKWARD, y=HEIGHT + GAP, leftward=True)
    beside = below[2]  # f
    under = Box(
        x=beside.x, y=2 * (HEIGHT + GAP), width=beside.width + SPACE + below[3].width, height=44, kind="compute",
        text=BESIDE,
    )  # fmt: skip
    down = Arrow(
        x=below[3].x + below[3].width / 2,
        y=HEIGHT * 2 + GAP + 4,
        to_x=below[3].x + below[3].width / 2,
        to_y=under.y - 6,
    )
    words = (
        f"One of several GPUs. Forward, from left to right: {_words(FORWARD)}. Backward, from right to left:"
        f" {_words(BACKWARD[::-1])}. While f adds up, the GPU computes the weight gradient of A_i."
    )
    return boxes(
        [*plan, *below, under],
        arrows=[*arrows, *back, down],
        title=title,
        caption=caption,
        alt=words,
    )


def along_the_sequence(*, title: str, caption: str) -> Figure:
    """The same half twice, with the shape of the stream at every stage: with an all-reduce, and with its two halves at
    the two ends.
    """
    plain: tuple[Step, ...] = (
        ("norm\ns × h", "memory", 84),
        ("f:\nnothing", "off", 88),
        ("columns, GELU, rows\ns × 4h/t inside", "compute", 160),
        ("g:\nall-reduce", "control", 98),
        ("dropout,\nresidual\ns × h", "memory", 84),
    )
    parted: tuple[Step, ...] = (
        ("norm\ns/t × h", "frame", 84),
        ("f:\nall-gather", "control", 88),
        ("columns, GELU, rows\ns × 4h/t inside", "compute", 160),
        ("g: reduce-\nscatter", "control", 98),
        ("dropout,\nresidual\ns/t × h", "frame", 84),
    )
    above, arrows = _row("tensor\nparallel", plain, y=0)
    below, more = _row("and\nsequence\nparallel", parted, y=HEIGHT + GAP)
    return boxes(
        [*above, *below],
        arrows=[*arrows, *more],
        title=title,
        caption=caption,
        alt=f"Tensor parallel: {_words(plain)}. Tensor and sequence parallel: {_words(parted)}.",
    )


def _row(name: str, steps: Sequence[Step], *, y: float, leftward: bool = False) -> tuple[list[Box], list[Arrow]]:
    """The row's name, its boxes, and an arrow between any two neighbours."""
    plan = [Box(x=0, y=y, width=NAME, height=HEIGHT, kind="off", text=name)]
    arrows = []
    x = NAME + 14.0
    for place, (text, kind, width) in enumerate(steps):
        if place:
            ends = (x - SPACE + 3, x - 8) if not leftward else (x - 3, x - SPACE + 8)
            arrows.append(Arrow(x=ends[0], y=y + HEIGHT / 2, to_x=ends[1], to_y=y + HEIGHT / 2))
        plan.append(Box(x=x, y=y, width=width, height=HEIGHT, kind=kind, text=text))
        x += width + SPACE
    return plan, arrows


def _words(steps: Sequence[Step]) -> str:
    """The row as a sentence: "g: reduce-/scatter" is one word again."""
    return "; ".join(text.replace("-\n", "-").replace("\n", " ") for text, *_ in steps)
