"""Datapath of a tensor core in 8 bits: narrow numbers in, exact products, a sum of about 14 bits, FP32 registers.

>>> figure = fp8_datapath(title="Narrow in, wide out", caption="To no scale.")
>>> figure.alt.startswith("The sum is the narrow place")
True

Source: NVIDIA Hopper Architecture In-Depth, 2022 (FP8 products, FP32 or FP16 accumulators); DeepSeek-V3 Technical
        Report, 2024, arXiv:2412.19437,
section 3.5.2 (the sum in the core keeps about 14 bits on an H800, so partial sums are moved to FP32 registers)
"""

from threeloops.figures.boxes import Arrow, Box, boxes
from threeloops.figures.figure import Figure

_PLAN = (
    Box(x=0, y=0, width=150, height=54, kind="memory", text="tile of A\nE4M3, 8 bits"),
    Box(x=0, y=84, width=150, height=54, kind="memory", text="tile of B\nE4M3, 8 bits"),
    Box(x=190, y=42, width=130, height=54, kind="compute", text="multiply\nexact products"),
    Box(x=360, y=42, width=120, height=54, kind="compute", text="add up along k\nabout 14 bits"),
    Box(x=520, y=42, width=100, height=54, kind="memory", text="registers\nFP32 sum"),
    Box(x=360, y=126, width=120, height=40, kind="control", text="scale of A × B"),
)
_ARROWS = (
    Arrow(x=150, y=27, to_x=188, to_y=58),
    Arrow(x=150, y=111, to_x=188, to_y=80),
    Arrow(x=320, y=69, to_x=357, to_y=69),
    Arrow(x=480, y=69, to_x=517, to_y=69),
    Arrow(x=480, y=146, to_x=560, to_y=99),
)
_ALT = (
    "The sum is the narrow place. Two tiles of 8-bit numbers enter a multiplier, whose products are exact. They are"
    " added up along k with about 14 bits, and the partial sums go to FP32 registers, where the scales of the two tiles"
    " are multiplied in."
)


def fp8_datapath(*, title: str, caption: str) -> Figure:
    """The way of one product of tiles, from left to right."""
    return boxes(_PLAN, arrows=_ARROWS, title=title, caption=caption, alt=_ALT)
