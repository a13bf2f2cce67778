"""Split block: the MLP of a transformer on several GPUs, one row each, from the input that all of them have to the
sum that all of them get.

>>> figure = split_mlp(gpus=2, hidden=8192, wide=28672, title="One sum at the end", caption="A sketch.")
>>> print(figure.alt.split(". ")[1])
GPU 1 multiplies X by columns 1 to 14,336 of A, applies GELU to its own columns, and multiplies them by rows 1 to 14,336 of B
"""  # noqa: E501

from threeloops import checks
from threeloops.figures.boxes import Arrow, Box, boxes
from threeloops.figures.figure import Figure

ROW, GAP = 74, 32  # pixels: the tallest box of a GPU's row, the space between two rows
WIDTHS = (74, 74, 94, 104, 80)  # of the boxes in a row
LOW = 44  # a block of rows is wide and low, a block of columns narrow and high
SPACE = 26  # pixels between two boxes, for an arrow
JOIN = 62  # the box of the all-reduce, as tall as all rows


def split_mlp(*, gpus: int, hidden: int, wide: int, title: str, caption: str) -> Figure:
    """A row per GPU: the whole input, its columns of A, GELU, its rows of B, its partial result; and the one box that
    joins them.

    Raises:   ValueError where the GPUs do not divide the width, or for more rows than fit on a page
    """
    checks.count(at_least=2, gpus=gpus)
    checks.count(hidden=hidden)
    checks.divides(part="gpus", part_value=gpus, whole="wide", whole_value=wide)
    if gpus > 4:
        raise ValueError(f"gpus={gpus} must be at most 4: more rows do not fit on a page")
    plan: list[Box] = []
    arrows: list[Arrow] = []
    for gpu in range(gpus):
        x = 0.0
        for width, (text, kind, tall) in zip(WIDTHS, _row(gpu, hidden, wide // gpus), strict=True):
            plan.append(Box(x=x, y=_middle(gpu) - tall / 2, width=width, height=tall, kind=kind, text=text))
            arrows.append(_arrow(x + width, gpu))
            x += width + SPACE
        plan.append(
            Box(
                x=x + JOIN + SPACE,
                y=_middle(gpu) - ROW / 2,
                width=WIDTHS[0],
                height=ROW,
                kind="memory",
                text=f"Z\n{hidden:,}\nwide",
            )
        )
        arrows.append(_arrow(x + JOIN, gpu))
    plan.append(Box(x=x, y=0, width=JOIN, height=_middle(gpus - 1) + ROW / 2, kind="control", text="all-\nreduce\n(g)"))
    return boxes(plan, arrows=arrows, title=title, caption=caption, alt=_alt(gpus, wide))


def _middle(gpu: int) -> float:
    return gpu * (ROW + GAP) + ROW / 2


def _arrow(x: float, gpu: int) -> Arrow:
    """From a box that ends at x to the next one of the row."""
    return Arrow(x=x + 2, y=_middle(gpu), to_x=x + SPACE - 8, to_y=_middle(gpu))


def _row(gpu: int, hidden: int, share: int) -> list[tuple[str, str, int]]:
    """Text, kind and height of each box of a row."""
    n = gpu + 1
    return [
        (f"X (f)\n{hidden:,}\nwide", "memory", ROW),
        (f"A{n}\ncolumns\n{share:,}", "compute", ROW),
        (f"GELU\nof XA{n}\n{share:,}\nwide", "frame", ROW),
        (f"B{n}: rows\n{share:,}", "compute", LOW),
        (f"partial\nZ{n}\n{hidden:,}\nwide", "frame", ROW),
    ]


def _alt(gpus: int, wide: int) -> str:
    share = wide // gpus
    rows = [
        f"GPU {gpu + 1} multiplies X by columns {gpu * share + 1:,} to {(gpu + 1) * share:,} of A, applies GELU to its"
        f" own columns, and multiplies them by rows {gpu * share + 1:,} to {(gpu + 1) * share:,} of B"
        for gpu in range(gpus)
    ]
    joined = "The partial results are added up in one all-reduce, and every GPU has the whole output Z."
    return f"Every one of {gpus} GPUs has the whole input X. {'. '.join(rows)}. {joined}"
