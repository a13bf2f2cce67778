"""Overlap step: a data-parallel step as the simulator played it.

>>> from threeloops.simulate.training_loop import overlapped_step
>>> played = overlapped_step.play(forward_s=1, slices_s=[1], sends_s=[1], update_s=1)
>>> overlap_step(played, title="One bucket hides nothing", caption="Four seconds.").alt
'computing: forward from 0 to 1 s, backward 0 from 1 to 2 s, update from 3 to 4 s. network: bucket 0 from 2 to 3 s.'
"""

from threeloops.figures.figure import Figure
from threeloops.figures.overlap_rows import Busy, overlap_rows
from threeloops.simulate.training_loop.overlapped_step import PlayedStep


def overlap_step(played: PlayedStep, *, title: str, caption: str) -> Figure:
    """A data-parallel step as the simulator played it: the backward pass slice by slice, and the buckets that leave."""
    spans = [
        Busy(
            row="computing" if span.where == "device" else "network",
            text=span.what.replace(" ", "\n"),
            start_s=span.start_s,
            end_s=span.end_s,
            kind="compute" if span.where == "device" else "memory",
        )
        for span in played.spans
    ]
    return overlap_rows(spans, title=title, caption=caption)
