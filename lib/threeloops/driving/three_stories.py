"""Three stories: the calls with which this book begins, with repairs and factors invented for it, so that every loop's
share can be computed. No source: a teaching set, made to be consistent.

>>> round(hours_after(), 1), round(car_latency_s(CAR_REPAIRS) * 1e3, 1), round(step_after_s() * 1e3, 1)
(22.0, 33.0, 18.0)
"""

import math
from collections.abc import Collection, Iterable
from dataclasses import dataclass

from threeloops import checks
from threeloops.driving import information_age
from threeloops.units import ms


@dataclass(frozen=True, slots=True, kw_only=True)
class Repair:
    """One change, the loop to which it belongs, and how many times faster it makes what it touches."""

    name: str
    loop: str
    factor: float
    stage: str = ""  # of the car's chain; empty where the whole gets faster


GPUS, HOURS = 64, 72.0
TRAINING_REPAIRS = (
    Repair(name="narrower numbers, fused kernels", loop="inner", factor=1.75),
    Repair(name="a loader that keeps up", loop="inner", factor=1.1),
    Repair(name="an exchange that overlaps", loop="training", factor=1.25),
    Repair(name="fewer and shorter restarts", loop="training", factor=1.36),
)

FRAMES_PER_S = 30.0  # of the car's camera
CAR_STAGES_S = {
    "prepare": 4 * ms,
    "backbone": 20 * ms,
    "lift": 5 * ms,
    "heads": 6 * ms,
    "track": 3 * ms,
    "plan": 4 * ms,
}
CAR_REPAIRS = (
    Repair(name="one fused kernel", loop="inner", stage="prepare", factor=4 / 3),
    Repair(name="8-bit integers", loop="inner", stage="backbone", factor=5 / 4),
    Repair(name="a distilled backbone", loop="training", stage="backbone", factor=8 / 7),
    Repair(name="indices computed once", loop="inner", stage="lift", factor=5 / 4),
    Repair(name="only the heads that the mode needs", loop="product", stage="heads", factor=6 / 5),
)

REQUESTS_PER_S, STEP_S = 200.0, 42 * ms
SERVICE_REPAIRS = (
    Repair(name="narrower weights", loop="inner", factor=5 / 3),
    Repair(name="a distilled model", loop="training", factor=1.4),
    Repair(name="continuous batching", loop="product", factor=2.4),
    Repair(name="a shared prompt read once", loop="product", factor=1.25),
)

STORIES = {"training run": TRAINING_REPAIRS, "car": CAR_REPAIRS, "service": SERVICE_REPAIRS}


def by_loop(repairs: Iterable[Repair]) -> dict[str, float]:
    """Factor of each loop: the product of its repairs."""
    found: dict[str, float] = {}
    for one in repairs:
        found[one.loop] = found.get(one.loop, 1.0) * one.factor
    return found


def hours_after() -> float:
    """Hours of the training run with all repairs."""
    return HOURS / math.prod(one.factor for one in TRAINING_REPAIRS)


def hours_saved(loops: Collection[str]) -> float:
    """What the repairs of these loops take off the training run together."""
    made = [one for one in TRAINING_REPAIRS if one.loop in loops]
    return HOURS - HOURS / math.prod(one.factor for one in made)


def car_stages_s(made: Collection[Repair]) -> dict[str, float]:
    """The car's stages with these repairs made.

    Formula:  stage / product of its factors
    Source:   by definition
    Counted:  tests.driving.test_shares.test_the_car_is_repaired_one_repair_after_the_other
    """
    return {
        stage: seconds / math.prod(one.factor for one in made if one.stage == stage)
        for stage, seconds in CAR_STAGES_S.items()
    }


def car_latency_s(made: Collection[Repair]) -> float:
    """The whole chain, stage after stage."""
    return math.fsum(car_stages_s(made).values())


def car_split_s(stage: str) -> tuple[float, float]:
    """Before any repair: this stage, and all the others together.

    Raises:   ValueError for a stage that the chain does not have

    >>> tuple(round(seconds * 1e3, 1) for seconds in car_split_s("backbone"))
    (20.0, 22.0)
    """
    checks.one_of(tuple(CAR_STAGES_S), stage=stage)
    return CAR_STAGES_S[stage], math.fsum(seconds for name, seconds in CAR_STAGES_S.items() if name != stage)


def car_ages_s(made: Collection[Repair]) -> tuple[float, float]:
    """Mean and largest age of the newest answer with these repairs made.

    Assumes:  one frame at a time; pictures that come in the meantime are dropped
    """
    latency = car_latency_s(made)
    every = information_age.answered_every_s(busy_s=latency, period_s=1 / FRAMES_PER_S)
    mean = information_age.mean_age_s(latency_s=latency, period_s=every)
    return mean, information_age.largest_age_s(latency_s=latency, period_s=every, lost_in_a_row=0)


def car_saved_s(loops: Collection[str]) -> float:
    """What the repairs of these loops take off the chain together."""
    return car_latency_s(()) - car_latency_s([one for one in CAR_REPAIRS if one.loop in loops])


def step_after_s() -> float:
    """A step of the service's model; batching and shared prompts make it no shorter."""
    return STEP_S / math.prod(one.factor for one in SERVICE_REPAIRS if one.loop != "product")


def requests_per_s_after() -> float:
    """Requests per second and GPU with all repairs."""
    return REQUESTS_PER_S * math.prod(one.factor for one in SERVICE_REPAIRS)
