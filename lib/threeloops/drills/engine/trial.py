"""One drill, tried a thousand times: what its author wants to see before the tests do."""

import math
import random
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from numbers import Real

from threeloops.drills.engine.drill import Draw, Drill, seeded
from threeloops.drills.engine.fair_draws import fair, unfit
from threeloops.drills.engine.judge import judge

DRAWS, COUNTED = 1000, 50
# Different answers: in a class of hundreds, few may draw the number of somebody they know. An idea that cannot have as
# many says why in a table of tests/drills/test_every_drill.py.
FEWEST = 40
FEWEST_SLIPS = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """What came of it. `faults` are what the tests would refuse, one sentence each."""

    question: str
    working: str
    answers: tuple[float, ...]  # different ones, the smallest first
    numbers: dict[str, tuple[float, float]]  # by name: the smallest and the largest that was drawn
    again: dict[str, int]  # by reason: how often the numbers were drawn again
    draws_s: float
    counted_s: float
    faults: tuple[str, ...]


def tried(drill: Drill) -> Trial:
    """Draw, ask and answer it a thousand times, make each of its mistakes, count small draws.

    Assumes:  a drill as its module defines it, whose draws nobody has sifted yet
    Raises:   ValueError for a drill that finds no draw that can be asked
    """
    again: Counter[str] = Counter()

    def noted(rng: random.Random) -> Draw:
        p = drill.draw(rng)
        found = unfit(drill, p)
        again.update([found] if found else [])
        return p

    asked = fair(replace(drill, draw=noted))
    begun = time.process_time()
    draws = [asked.draw(seeded("test", str(seed), drill.key)) for seed in range(DRAWS)]
    answers = sorted({float(f"{drill.derive(p).value:.9g}") for p in draws})
    drawn_s = time.process_time() - begun
    begun = time.process_time()
    miscounted = list(_miscounted(fair(drill)))
    return Trial(
        question=drill.ask(draws[0]),
        working=drill.working(draws[0]),
        answers=tuple(answers),
        numbers=_spans(draws),
        again=dict(again.most_common()),
        draws_s=drawn_s,
        counted_s=time.process_time() - begun,
        faults=(*_faults(drill, answers), *miscounted, *_misnamed(drill, draws[:COUNTED])),
    )


def _spans(draws: list[Draw]) -> dict[str, tuple[float, float]]:
    """The smallest and the largest of each number that is one."""
    found: dict[str, tuple[float, float]] = {}
    for name, value in vars(draws[0]).items():
        if isinstance(value, Real):
            drawn = [float(getattr(p, name)) for p in draws]
            found[name] = min(drawn), max(drawn)
    return found


def _faults(drill: Drill, answers: list[float]) -> Iterator[str]:
    if not all(math.isfinite(answer) and answer > 0 for answer in answers):
        yield "an answer is no positive number"
    if len(drill.slips) < FEWEST_SLIPS:
        yield f"there are {len(drill.slips)} slips, and {FEWEST_SLIPS} are wanted"


def _miscounted(drill: Drill) -> Iterator[str]:
    """The first small draw whose count is another number than the formula's."""
    for seed in range(COUNTED):
        p = drill.small(random.Random(seed))
        predicted, counted = drill.derive(p).value, drill.count(p)
        if not math.isclose(predicted, counted, rel_tol=1e-9):
            yield f"small draw {seed}: {predicted:g} predicted, {counted:g} counted, with {_told(p)}"
            return


def _misnamed(drill: Drill, draws: list[Draw]) -> Iterator[str]:
    """Each slip that is not named when it is made, once."""
    for slip in drill.slips:
        for p in draws:
            verdict = judge(drill, p, f"{slip.wrong(p)!r} {drill.unit}".strip())
            if verdict.slips != (slip.key,):
                taken = " and ".join(verdict.slips) or verdict.status
                yield f"who makes the slip {slip.key} is told: {taken}, with {_told(p)}"
                break


def _told(p: Draw) -> str:
    return ", ".join(f"{name} = {value}" for name, value in vars(p).items())
