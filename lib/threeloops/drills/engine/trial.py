"""One drill, tried a thousand times: what its author wants to see before the tests do.

>>> evaluated("2 × (1,960 − 24) ÷ 2^4")
242.0
"""

import math
import random
import re
import sys
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from numbers import Real
from types import FrameType

from threeloops.drills.engine.answers import EXAMPLES
from threeloops.drills.engine.drill import Draw, Drill, seeded
from threeloops.drills.engine.fair_draws import fair, unfit
from threeloops.drills.engine.judge import judge

DRAWS, COUNTED = 1000, 50
FEWEST_SLIPS, TARGETS_S = 4, (20, 300)
LOOPS = ("inner", "training", "product", "driving")
ROOMS = ("operations", "models", "foundations", "inner_loop", "training_loop", "product_loop", "driving")
READS = "threeloops.models.catalogue"  # looks a model up, and computes nothing


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """What came of it. `faults` are what the tests would refuse, one sentence each."""

    question: str
    working: str
    slips: dict[str, str]  # what each gives in the same draw
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
        slips={slip.key: drill.shown(slip.wrong(draws[0])) for slip in drill.slips},
        answers=tuple(answers),
        numbers=_spans(draws),
        again=dict(again.most_common()),
        draws_s=drawn_s,
        counted_s=time.process_time() - begun,
        faults=(
            *incomplete(drill),
            *_few(drill, answers),
            *_unworked(drill, draws[:COUNTED]),
            *miscounted,
            *_misnamed(drill, draws[:COUNTED]),
        ),
    )


def _spans(draws: list[Draw]) -> dict[str, tuple[float, float]]:
    """The smallest and the largest of each number that is one."""
    found: dict[str, tuple[float, float]] = {}
    for name, value in vars(draws[0]).items():
        if isinstance(value, Real):
            drawn = [float(getattr(p, name)) for p in draws]
            found[name] = min(drawn), max(drawn)
    return found


def incomplete(drill: Drill) -> Iterator[str]:
    """What the definition lacks, or has too much of."""
    keys, stories = [slip.key for slip in drill.slips], [slip.story for slip in drill.slips]
    holds = {
        f"unit={drill.unit!r} is none of {', '.join(map(repr, EXAMPLES))}": drill.unit in EXAMPLES,
        f"the loop {drill.loop!r} is none of {', '.join(LOOPS)}": drill.loop in LOOPS,
        f"there are {len(keys)} slips, and {FEWEST_SLIPS} are wanted": len(keys) >= FEWEST_SLIPS,
        "two slips have one key": len(set(keys)) == len(keys),
        "two slips tell one story": len(set(stories)) == len(stories),
        "a story ends without . or ?": all(story.endswith((".", "?")) for story in stories),
        f"target_s={drill.target_s} is not within {TARGETS_S}": TARGETS_S[0] <= drill.target_s <= TARGETS_S[1],
    }
    return (fault for fault, held in holds.items() if not held)


def _few(drill: Drill, answers: list[float]) -> Iterator[str]:
    if not all(math.isfinite(answer) and answer > 0 for answer in answers):
        yield "an answer is no positive number"
    if len(answers) < drill.fewest:
        yield f"there are {len(answers)} different answers, and {drill.fewest} are wanted"


def _unworked(drill: Drill, draws: list[Draw]) -> Iterator[str]:
    """The first draw whose working does not come to its answer; a source without a year; an answer of its own."""
    for p in draws:
        derivation = drill.derive(p)
        if not math.isclose(evaluated(derivation.substitution), derivation.value, rel_tol=1e-9):
            yield f"the substitution {derivation.substitution} is not {derivation.value:g}, with {_told(p)}"
            break
    if not re.search(r"\d{4}", drill.derive(draws[0]).source):
        yield "the source has no year"
    if not called(drill, draws[0]):
        yield "the answer calls no formula of the library"


def evaluated(substitution: str) -> float:
    """The value of a printed substitution: arithmetic signs as people write them.

    Raises:   ValueError for anything but plain arithmetic
    """
    source = substitution.replace("×", "*").replace("÷", "/").replace("−", "-").replace("²", "**2").replace("^", "**")
    source = re.sub(r"(?<=\d),(?=\d)", "", source)  # 1,960 is one number; max(a, b) keeps its comma
    if not re.fullmatch(r"[-+*/(). 0-9eEmaxinlogcfr_,]*", source):
        raise ValueError(f"{substitution!r} is not plain arithmetic")
    functions = {name: getattr(math, name) for name in ("ceil", "log2", "floor")}
    functions |= {"min": min, "max": max, "ln": math.log}
    return float(eval(source, {"__builtins__": {}}, functions))


def called(drill: Drill, p: Draw) -> set[str]:
    """The library's formulas that the answer is computed with."""
    found = set[str]()

    def noted(frame: FrameType, event: str, argument: object) -> None:
        module = frame.f_globals.get("__name__", "")
        if event == "call" and module != READS and module.split(".")[1:2] and module.split(".")[1] in ROOMS:
            found.add(f"{module}.{frame.f_code.co_name}")

    before = sys.getprofile()
    sys.setprofile(noted)
    try:
        drill.derive(p)
    finally:
        sys.setprofile(before)
    return found


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
