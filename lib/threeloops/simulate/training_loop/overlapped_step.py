"""A data-parallel step on a clock: a device that runs forward and backward, a link that sends one bucket of gradients
after another.

Nothing here knows how long the step will take.

>>> run = play(forward_s=1.0, slices_s=[1.0, 1.0], sends_s=[0.5, 0.5], update_s=0.25)
>>> run.finished_s, run.link_busy_s, run.device_waits_s
(3.75, 1.0, 0.5)
"""

import heapq
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """One piece of work: "device" or "link", what, from when to when."""

    where: str
    what: str
    start_s: float
    end_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class PlayedStep:
    """Everything that happened."""

    spans: tuple[Span, ...]

    @property
    def finished_s(self) -> float:
        return max(span.end_s for span in self.spans)

    @property
    def link_busy_s(self) -> float:
        return sum(span.end_s - span.start_s for span in self.spans if span.where == "link")

    @property
    def device_waits_s(self) -> float:
        """Seconds in which the device did nothing before the end."""
        return self.finished_s - sum(span.end_s - span.start_s for span in self.spans if span.where == "device")


def play(
    *, forward_s: float, slices_s: Sequence[float], sends_s: Sequence[float], update_s: float, overlap: bool = True
) -> PlayedStep:
    """Play one step. Bucket i is complete when slice i of the backward pass ends; the update needs all of them.
    Without overlap nothing is sent before.
    """
    if not slices_s or len(slices_s) != len(sends_s):
        raise ValueError(f"{len(slices_s)} slices and {len(sends_s)} sends must be as many, and at least one")
    spans = [Span(where="device", what="forward", start_s=0.0, end_s=forward_s)]
    now = forward_s
    ready: list[tuple[float, int]] = []
    for number, seconds in enumerate(slices_s):
        spans.append(Span(where="device", what=f"backward {number}", start_s=now, end_s=now + seconds))
        now += seconds
        heapq.heappush(ready, (now, number))
    link = 0.0 if overlap else now
    while ready:
        complete, number = heapq.heappop(ready)
        start = max(link, complete)
        link = start + sends_s[number]
        spans.append(Span(where="link", what=f"bucket {number}", start_s=start, end_s=link))
    start = max(now, link)
    spans.append(Span(where="device", what="update", start_s=start, end_s=start + update_s))
    return PlayedStep(spans=tuple(spans))
