"""Ring waits: what each rank of a causal ring computes in each step, and how long it waits for the slowest.

>>> figure = ring_waits({"in order": [(3, 3), (0, 4)]}, title="Rank 0 waits", caption="Two ranks.")
>>> print(figure.alt)
in order: 7 pairs of time for 5 of work a rank; rank 0 computes 3 and waits 4, rank 1 computes 7 and waits 0.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from threeloops.figures.figure import Figure
from threeloops.figures.overlap_rows import Busy, overlap_rows

Pairs = Sequence[Sequence[int]]  # [step][rank]: query-key pairs


def ring_waits(dealings: Mapping[str, Pairs], *, title: str, caption: str) -> Figure:
    """A row a rank for every way of dealing out the tokens; a step lasts as long as its fullest rank.

    In a box stands the piece whose keys the rank attends to: its own first, then its left neighbour's, and so on.
    """
    spans = [span for name, steps in dealings.items() for span in _spans(name, steps)]
    figure = overlap_rows(spans, title=title, caption=caption, unit="pairs")
    return replace(figure, alt=". ".join(_said(name, steps) for name, steps in dealings.items()) + ".")


def _spans(name: str, steps: Pairs) -> list[Busy]:
    ranks, found = len(steps[0]), []
    for rank in range(ranks):
        row, starts = f"{name}\nrank {rank}", 0
        for step, pairs in enumerate(steps):
            ends, longest = starts + pairs[rank], starts + max(pairs)
            text = f"keys {(rank - step) % ranks}"
            if pairs[rank]:
                found.append(Busy(row=row, text=text, start_s=starts, end_s=ends, kind="compute"))
            if ends < longest:
                found.append(Busy(row=row, text="waits", start_s=ends, end_s=longest, kind="off"))
            starts = longest
    return found


def _said(name: str, steps: Pairs) -> str:
    lasts = sum(max(pairs) for pairs in steps)
    work = [sum(pairs[rank] for pairs in steps) for rank in range(len(steps[0]))]
    each = ", ".join(f"rank {rank} computes {done} and waits {lasts - done}" for rank, done in enumerate(work))
    return f"{name}: {lasts} pairs of time for {sum(work) / len(work):g} of work a rank; {each}"
