"""Memory segments: what an allocator holds, segment by segment, and which pieces of it tensors live in.

>>> pieces = [
...     Piece(segment="A", start_bytes=0, size_bytes=MiB, used=True),
...     Piece(segment="A", start_bytes=MiB, size_bytes=MiB, used=False),
... ]
>>> print(memory_segments(pieces, title="Half is free", caption="One segment.").alt)
1 segment, 2.00 MiB reserved, 1.00 MiB used; the largest free piece is 1.00 MiB.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from threeloops import checks
from threeloops.figures import look
from threeloops.figures.channels import WORDS, layer, nominal, quantitative
from threeloops.figures.figure import Figure
from threeloops.units import MiB, counted, fmt_bytes

ROW = 30  # pixels
KINDS = ("a tensor lives here", "free, and kept")


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """A block of a segment."""

    segment: str
    start_bytes: float
    size_bytes: float
    used: bool

    def __post_init__(self) -> None:
        checks.non_negative(start_bytes=self.start_bytes)
        checks.positive(size_bytes=self.size_bytes)


def memory_segments(pieces: Sequence[Piece], *, title: str, caption: str) -> Figure:
    """One row per segment; used pieces are dark, free ones light with a dashed edge."""
    if not pieces:
        raise ValueError("pieces is empty; a picture of memory needs at least one block")
    values = [
        {
            "segment": piece.segment,
            "start": piece.start_bytes / MiB,
            "end": (piece.start_bytes + piece.size_bytes) / MiB,
            "kind": KINDS[0] if piece.used else KINDS[1],
            "words": (
                f"segment {piece.segment}: {fmt_bytes(piece.size_bytes, base=2)},"
                f" {KINDS[0] if piece.used else KINDS[1]}"
            ),
        }
        for piece in pieces
    ]
    segments = list(dict.fromkeys(piece.segment for piece in pieces))
    return Figure(
        title=title,
        caption=caption,
        alt=_alt(pieces, len(segments)),
        body={
            "width": look.PLOT_WIDTH,
            "height": ROW * len(segments),
            **layer(
                {"type": "bar", "height": ROW - 8, "stroke": look.INK, "strokeWidth": 1.2},
                values,
                y=nominal("segment", title="segment", sort=segments),
                x=quantitative("start", title="MiB from the start of the segment", scale={"nice": False}),
                x2="end",
                color=nominal("kind", scale={"domain": list(KINDS), "range": ["#0072b2", "#eef4f8"]}),
                strokeDash=nominal("kind", scale={"domain": list(KINDS), "range": [[1, 0], [5, 3]]}),
                **WORDS,
            ),
        },
    )


def _alt(pieces: Sequence[Piece], segments: int) -> str:
    reserved, used = sum(piece.size_bytes for piece in pieces), sum(piece.size_bytes for piece in pieces if piece.used)
    free = max((piece.size_bytes for piece in pieces if not piece.used), default=0)
    largest = f"the largest free piece is {fmt_bytes(free, base=2)}" if free else "nothing is free"
    return (
        f"{counted(segments, 'segment')}, {fmt_bytes(reserved, base=2)} reserved, {fmt_bytes(used, base=2)} used;"
        f" {largest}."
    )
