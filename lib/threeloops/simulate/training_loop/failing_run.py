"""A long training run that fails now and then, played event by event: work, saves, failures, detection, spares,
restarts.

Failures are drawn; what they cost comes out. Nothing here knows a formula.

>>> calm = play(work_s=100.0, saves=[Save(interval_s=10.0, stall_s=1.0)], mtbf_s=1e12, detect_s=0.0, seed=1)
>>> calm.wall_s, calm.saving_s, calm.failures
(110.0, 10.0, 0)
"""

import heapq
import math
import random
from collections.abc import Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class Save:
    """One kind of save: how often, how long training stands still, how long it is then written in the background, and
    which failures it survives.
    """

    interval_s: float
    stall_s: float
    write_s: float = 0.0
    restart_s: float = 0.0
    survives: float = 1.0  # this share of failures leaves it readable; at least one kind must survive all of them


@dataclass(slots=True, kw_only=True)
class PlayedRun:
    """Where the wall time went. The parts add up."""

    kept_s: float = 0.0
    repeated_s: float = 0.0  # work that a failure threw away
    saving_s: float = 0.0
    detecting_s: float = 0.0
    restarting_s: float = 0.0
    waiting_s: float = 0.0  # for a node to come back from repair
    failures: int = 0
    restored: list[int] = field(default_factory=list)  # how often from each kind of save

    @property
    def wall_s(self) -> float:
        return self.kept_s + self.repeated_s + self.saving_s + self.detecting_s + self.restarting_s + self.waiting_s

    @property
    def goodput(self) -> float:
        return self.kept_s / self.wall_s


class _Run:
    """The clock, the next failure, and what has been saved."""

    def __init__(
        self, saves: Sequence[Save], mtbf_s: float, detect_s: float, spares: int | None, repair_s: float, seed: int
    ) -> None:
        self.saves, self.mtbf_s, self.detect_s, self.spares, self.repair_s = saves, mtbf_s, detect_s, spares, repair_s
        self.rng = random.Random(seed)
        self.now, self.progress = 0.0, 0.0
        self.fails_at = self.rng.expovariate(1 / mtbf_s)
        self.finished = [0.0] * len(saves)  # the progress that the last readable save of each kind holds
        self.writing: list[tuple[float, int, float]] = []  # (readable from, kind, progress)
        self.in_repair: list[float] = []  # when each broken node comes back
        self.result = PlayedRun(restored=[0] * len(saves))

    def spent(self, seconds: float) -> tuple[float, bool]:
        """Let time pass until the seconds are over or something fails; how much passed, and whether all of it did."""
        passed = min(seconds, self.fails_at - self.now)
        self.now += passed
        return passed, passed == seconds

    def due(self) -> float:
        """The progress at which the next save of any kind is due."""
        return min(self.next_due(kind) for kind in range(len(self.saves)))

    def next_due(self, kind: int) -> float:
        interval = self.saves[kind].interval_s
        return (math.floor(self.progress / interval + 1e-9) + 1) * interval

    def settle(self) -> None:
        """Saves whose writing is over become readable."""
        while self.writing and self.writing[0][0] <= self.now:
            _, kind, progress = heapq.heappop(self.writing)
            self.finished[kind] = progress

    def save(self, kind: int) -> bool:
        passed, done = self.spent(self.saves[kind].stall_s)
        self.result.saving_s += passed
        if done:
            heapq.heappush(self.writing, (self.now + self.saves[kind].write_s, kind, self.progress))
        return done

    def recover(self) -> None:
        """From a failure to the next step: notice, find a node, load the best save that is left; and again, if that
        fails.
        """
        self.settle()
        self.writing.clear()
        lives = self.rng.random()
        while True:
            self.result.failures += 1
            self.result.detecting_s += self.detect_s
            self.now += self.detect_s
            self._take_spare()
            readable = [kind for kind, save in enumerate(self.saves) if lives < save.survives]
            kind = max(readable, key=lambda kind: self.finished[kind])
            self.fails_at = self.now + self.rng.expovariate(1 / self.mtbf_s)
            passed, done = self.spent(self.saves[kind].restart_s)
            self.result.restarting_s += passed
            if done:
                break
            lives = max(lives, self.rng.random())  # what the first failure destroyed stays destroyed
        self.result.restored[kind] += 1
        self.result.repeated_s += self.progress - self.finished[kind]
        self.progress = self.finished[kind]
        self.finished = [self.progress] * len(self.saves)  # whatever was loaded is held in every place again

    def _take_spare(self) -> None:
        if self.spares is None:
            return
        while self.in_repair and self.in_repair[0] <= self.now:
            heapq.heappop(self.in_repair)
        heapq.heappush(self.in_repair, self.now + self.repair_s)
        if len(self.in_repair) > self.spares:
            back = heapq.heappop(self.in_repair)
            self.result.waiting_s += back - self.now
            self.now = back


def play(
    *,
    work_s: float,
    saves: Sequence[Save],
    mtbf_s: float,
    detect_s: float,
    seed: int,
    spares: int | None = None,
    repair_s: float = 0.0,
) -> PlayedRun:
    """Play a run until `work_s` of work is done and saved. Without `spares`, a new node is always at hand; with them,
    each failure breaks one node.

    After a failure every kind of save holds what was loaded: the ranks read it and give it to their peers again.
    """
    if not any(save.survives == 1 for save in saves) or any(save.write_s > save.interval_s for save in saves):
        raise ValueError(
            "some kind of save must survive every failure, and each must be written before the next one of its kind"
        )
    run = _Run(saves, mtbf_s, detect_s, spares, repair_s, seed)
    while run.progress < work_s - 1e-6:
        due = run.due()
        kinds = [kind for kind in range(len(saves)) if run.next_due(kind) <= due + 1e-9]
        passed, done = run.spent(due - run.progress)
        run.progress = due if done else run.progress + passed
        for kind in kinds:
            run.settle()
            done = done and run.save(kind)
        run.settle()
        if not done:
            run.recover()
    run.result.kept_s = run.progress
    return run.result
