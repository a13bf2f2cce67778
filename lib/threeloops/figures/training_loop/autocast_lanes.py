"""Autocast lanes: the operations of a forward pass in the order in which they ran, one lane a precision.

>>> seen = [("rsqrt", "float32"), ("mm", "bfloat16"), ("mm", "bfloat16"), ("add", "float32")]
>>> print(autocast_lanes(seen, title="Products are narrow", caption="Four operations.").alt)
2 of 4 operations write bfloat16. In order: norm in float32, 2 operations around matmuls in bfloat16, sum in float32.
"""

from collections.abc import Sequence
from dataclasses import replace
from itertools import groupby

from threeloops.figures.figure import Figure
from threeloops.figures.overlap_rows import Busy, overlap_rows

NARROW = "bfloat16"
# torch's name of an operation -> the word that stands in its box; what has none, goes with its neighbours
WORDS = {
    "mm": "matmuls",
    "_scaled_dot_product_flash_attention": "attention",
    "silu": "SiLU",
    "rsqrt": "norm",
    "_log_softmax": "loss",
}


def autocast_lanes(operations: Sequence[tuple[str, str]], *, title: str, caption: str) -> Figure:
    """operations: names and what they write, in order. Neighbours of one precision share a box; its width is their
    number.
    """
    spans: list[Busy] = []
    told, at = [], 0
    for lane, group in groupby(operations, key=lambda operation: operation[1].partition("+")[0]):
        names = [name.removesuffix("_for_cpu") for name, _ in group]
        words = list(dict.fromkeys(WORDS[name] for name in names if name in WORDS))
        kind = "compute" if lane == NARROW else "memory"
        spans.append(Busy(row=lane, text="\n".join(words) or "+", start_s=at, end_s=at + len(names), kind=kind))
        many = f"{len(names)} operations around " if len(names) > 1 else ""
        told.append(f"{many}{' and '.join(words) or 'sum'} in {lane}")
        at += len(names)
    narrow = sum(written.startswith(NARROW) for _, written in operations)
    figure = overlap_rows(spans, title=title, caption=caption, unit="operations")
    return replace(figure, alt=f"{narrow} of {at} operations write {NARROW}. In order: {', '.join(told)}.")
