"""Count: batches go through the layers of a mixture of experts, on one GPU and one network, stage by stage.

Whatever can begin first begins first. Nothing here knows how long a layer will take.

>>> played = play(stages_s=(3.0, 1.0, 2.0, 1.0), batches=2, num_layers=1)
>>> played.finished_s, [(span.where, span.what, span.start_s) for span in played.spans][:3]
(11.0, [('GPU', 'attention A', 0.0), ('GPU', 'attention B', 3.0), ('network', 'dispatch A', 3.0)])
"""

from collections.abc import Sequence
from dataclasses import dataclass

from threeloops import checks

STAGES = (("attention", "GPU"), ("dispatch", "network"), ("experts", "GPU"), ("combine", "network"))


@dataclass(frozen=True, slots=True, kw_only=True)
class StageSpan:
    """A stage of one batch: where, what, from when to when."""

    where: str
    what: str
    start_s: float
    end_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class PlayedBatches:
    """Everything that happened."""

    spans: tuple[StageSpan, ...]

    @property
    def finished_s(self) -> float:
        return max(span.end_s for span in self.spans)

    def busy_s(self, where: str) -> float:
        return sum(span.end_s - span.start_s for span in self.spans if span.where == where)


def play(*, stages_s: Sequence[float], batches: int, num_layers: int) -> PlayedBatches:
    """Batches A, B, … through so many layers; stages_s are those of one batch and layer, in the order of STAGES."""
    checks.count(batches=batches, num_layers=num_layers)
    checks.non_negative(**{name: seconds for (name, _), seconds in zip(STAGES, stages_s, strict=True)})
    free = {"GPU": 0.0, "network": 0.0}
    ready, done, spans = [0.0] * batches, [0] * batches, list[StageSpan]()
    while any(number < num_layers * len(STAGES) for number in done):
        starts = []
        for batch in range(batches):
            if done[batch] < num_layers * len(STAGES):
                where = STAGES[done[batch] % len(STAGES)][1]
                starts.append((max(free[where], ready[batch]), ready[batch], batch, where))
        start, _, batch, where = min(starts)
        stage = done[batch] % len(STAGES)
        free[where] = ready[batch] = start + stages_s[stage]
        done[batch] += 1
        what = f"{STAGES[stage][0]} {chr(ord('A') + batch)}"
        spans.append(StageSpan(where=where, what=what, start_s=start, end_s=free[where]))
    return PlayedBatches(spans=tuple(spans))
