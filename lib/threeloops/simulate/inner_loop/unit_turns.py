"""Groups of warps take turns on two units, matrix and exponential, and a clock says when the last one is done.

Each group works through its tiles in order: scores on the matrix unit, softmax on the exponential unit, output on the
matrix unit. A unit serves one group at a time, in the order of asking. Nothing here knows which unit binds.

>>> played = play(groups=1, tiles=3, matrix_cycles=200, exponential_cycles=100)
>>> played.finished_cycles, played.matrix_busy
(900.0, 0.6666666666666666)

A matrix product's block has two roles in place of such groups: a producer warp that loads, consumers that multiply.

>>> pipeline(stages=2, steps=3, load_cycles=300, matrix_cycles=100).finished_cycles
800.0
"""

from dataclasses import dataclass

from threeloops import checks


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """One group on one unit."""

    group: int  # in a pipeline: the step along the inner dimension
    unit: str  # "matrix" or "exponential", in a pipeline "load" or "matrix"
    start: float
    end: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Played:
    """Everything that happened, and the share of the time in which each unit worked."""

    turns: tuple[Turn, ...]

    @property
    def finished_cycles(self) -> float:
        return max(turn.end for turn in self.turns)

    @property
    def matrix_busy(self) -> float:
        return self._busy("matrix")

    @property
    def exponential_busy(self) -> float:
        return self._busy("exponential")

    def _busy(self, unit: str) -> float:
        return sum(turn.end - turn.start for turn in self.turns if turn.unit == unit) / self.finished_cycles


def play(*, groups: int, tiles: int, matrix_cycles: float, exponential_cycles: float) -> Played:
    """`groups` groups of warps, `tiles` tiles each, every tile with so many cycles of matrix work (half before the
    softmax, half after) and exponentials.
    """
    steps = [("matrix", matrix_cycles / 2), ("exponential", exponential_cycles), ("matrix", matrix_cycles / 2)] * tiles
    ready, done = [0.0] * groups, [0] * groups
    free = {"matrix": 0.0, "exponential": 0.0}
    turns = []
    while min(done) < len(steps):
        # Whoever could start first is next; of several, who has asked for longest, then the lowest number.
        group = min(
            (g for g in range(groups) if done[g] < len(steps)),
            key=lambda g: (max(ready[g], free[steps[done[g]][0]]), ready[g], g),
        )
        unit, cycles = steps[done[group]]
        start = max(ready[group], free[unit])
        turns.append(Turn(group=group, unit=unit, start=start, end=start + cycles))
        ready[group] = free[unit] = start + cycles
        done[group] += 1
    return Played(turns=tuple(turns))


def pipeline(*, stages: int, steps: int, load_cycles: float, matrix_cycles: float) -> Played:
    """A producer warp asks for the tiles of one step after the other, each into the next of `stages` places in shared
    memory as soon as that place is empty; consumer warps multiply them in order, and empty the place.

    A load takes `load_cycles` from the request until its place is full, however many loads are under way.
    """
    checks.count(stages=stages, steps=steps)
    checks.positive(load_cycles=load_cycles, matrix_cycles=matrix_cycles)
    empty, done, turns = [0.0] * stages, 0.0, []
    for step in range(steps):
        asked = empty[step % stages]
        full = asked + load_cycles
        start = max(full, done)
        done = empty[step % stages] = start + matrix_cycles
        turns.append(Turn(group=step, unit="load", start=asked, end=full))
        turns.append(Turn(group=step, unit="matrix", start=start, end=done))
    return Played(turns=tuple(turns))
