"""Two halves: what GPU and network do while two halves of a batch go through the first layers.

>>> from threeloops.simulate.product_loop.experts.played_batches import play
>>> played = play(stages_s=(3e-4, 1e-4, 2e-4, 1e-4), batches=2, num_layers=3)
>>> print(two_halves(played, layers=1, title="One layer", caption="A sketch.").alt)
GPU: att A from 0 to 300 µs, att B from 300 to 600 µs, ex A from 600 to 800 µs, ex B from 800 to 1000 µs. \
network: d A from 300 to 400 µs, d B from 600 to 700 µs, com A from 800 to 900 µs, com B from 1000 to 1100 µs.
"""

from collections import Counter

from threeloops import checks
from threeloops.figures.figure import Figure
from threeloops.figures.overlap_rows import Busy, overlap_rows
from threeloops.simulate.product_loop.experts.played_batches import STAGES, PlayedBatches
from threeloops.units import us

SHORT = {"attention": "att", "dispatch": "d", "experts": "ex", "combine": "com"}
KINDS = {"GPU": "compute", "network": "memory"}


def two_halves(played: PlayedBatches, *, layers: int, title: str, caption: str) -> Figure:
    """The first layers of every batch, times in whole microseconds."""
    checks.count(layers=layers)
    drawn, done = [], Counter[str]()
    for span in played.spans:
        stage, batch = span.what.split()
        if done[batch] < layers * len(STAGES) and span.end_s > span.start_s:
            drawn.append(
                Busy(
                    row=span.where,
                    text=f"{SHORT[stage]} {batch}",
                    start_s=round(span.start_s / us),
                    end_s=round(span.end_s / us),
                    kind=KINDS[span.where],
                )
            )
        done[batch] += 1
    return overlap_rows(drawn, title=title, caption=caption, unit="µs")
