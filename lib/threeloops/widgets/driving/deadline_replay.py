"""Deadline replay: the recorded drive, with answers that are ready when their chain is: which frame's boxes a user has
at a moment, how old they are, and how far off. Any stage's time may be the reader's own.

>>> chain = Chain(way="shared fp32", clock="quiet", own_s=RECORDED, queue=False)
>>> shown = replayed(chain, predicted=False, moment=120)
>>> shown.frame, len(shown.true) >= shown.found
(29, True)
"""

import functools
import math
import statistics
from dataclasses import dataclass

from threeloops import checks
from threeloops.facts import recorded_drive
from threeloops.facts.recorded_drive import Car
from threeloops.units import ms

WITHIN_M = 0.5
PER_FRAME = 4  # moments that are shown in a camera's period
# What the reader's own times stand for: one backbone in FP32, and nobody else on the processor.
OWN_WAY, OWN_CLOCK = "shared fp32", "quiet"
RECORDED: tuple[float | None, ...] = (None,) * len(recorded_drive.drive().stages)  # no stage has a time of its own
Place = tuple[float, float, float]  # x, y, yaw


@dataclass(frozen=True, slots=True, kw_only=True)
class Chain:
    """How the frames are worked on."""

    way: str
    clock: str
    own_s: tuple[float | None, ...]  # of every stage, with one FP32 backbone and no neighbours; None: as recorded
    queue: bool  # False: a frame that finds the chain busy is dropped

    def __post_init__(self) -> None:
        checks.one_of(recorded_drive.WAYS, way=self.way)
        checks.one_of(recorded_drive.CLOCKS, clock=self.clock)
        if len(self.own_s) != len(RECORDED):
            raise ValueError(
                f"own_s has {len(self.own_s)} times; the chain has {len(RECORDED)} stages, a time for each"
            )
        checks.non_negative(**{f"own_s[{n}]": one for n, one in enumerate(self.own_s) if one is not None})


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """One moment: everything seen from where the vehicle is now."""

    frame: int | None  # whose answer is the newest; None before the first one
    age_s: float
    speed_m_per_s: float
    true: tuple[Car, ...]
    believed: tuple[Car, ...]
    off_m: tuple[float, ...]  # of each believed box to the nearest true car
    found: int  # true cars with a box within half a metre


@dataclass(frozen=True, slots=True, kw_only=True)
class Whole:
    """All moments from the first answer on."""

    mean_age_s: float
    largest_age_s: float
    answers_per_s: float
    found_share: float


def period_s() -> float:
    return 1 / recorded_drive.drive().rate_hz


def moments() -> int:
    """How many there are, the first counted as 0."""
    return PER_FRAME * (len(recorded_drive.drive().frames) - 1)


@functools.cache
def recorded_s() -> tuple[float, ...]:
    """Of every stage, the median of the drive with one FP32 backbone and no neighbours."""
    frames = recorded_drive.drive().milliseconds[OWN_CLOCK][OWN_WAY]
    return tuple(ms * statistics.median(column) for column in zip(*frames, strict=True))


def stage_seconds(chain: Chain) -> list[tuple[float, ...]]:
    """Of every frame, every stage. A repair, a neighbour or a slow frame changes the reader's own time by the factor
    by which it changed the recorded one.
    """
    frames, factors = recorded_drive.drive().milliseconds[chain.clock][chain.way], _factors(chain)
    return [tuple(ms * stage * factor for stage, factor in zip(frame, factors, strict=True)) for frame in frames]


def _factors(chain: Chain) -> list[float]:
    """Of every stage, its own time over the recorded one."""
    own = [told if told is not None else seen for told, seen in zip(chain.own_s, recorded_s(), strict=True)]
    factors = [told / seen for told, seen in zip(own, recorded_s(), strict=True)]
    if chain.way.startswith("separate"):  # there each backbone lifts its own features, and its time has both
        backbone, lift = (recorded_drive.drive().stages.index(name) for name in ("backbone", "lift"))
        both = sum(recorded_s()[stage] for stage in (backbone, lift))
        factors[backbone] = factors[lift] = (own[backbone] + own[lift]) / both
    return factors


@functools.lru_cache(maxsize=64)
def answers(chain: Chain) -> tuple[tuple[int, float], ...]:
    """(frame, ready at) of every frame that gets an answer; one frame is worked on at a time."""
    free, made = 0.0, []
    for number, stages in enumerate(stage_seconds(chain)):
        captured = number * period_s()
        if chain.queue or free <= captured:
            free = max(free, captured) + sum(stages)
            made.append((number, free))
    return tuple(made)


@functools.lru_cache(maxsize=1024)
def replayed(chain: Chain, *, predicted: bool, moment: int) -> Shown:
    """What a user of the boxes has at a moment."""
    checks.count(at_least=0, moment=moment)
    now_s = moment * period_s() / PER_FRAME
    ego, true, speed = _world(moment)
    ready = [frame for frame, at in answers(chain) if at <= now_s]
    if not ready:
        return Shown(frame=None, age_s=now_s, speed_m_per_s=speed, true=true, believed=(), off_m=(), found=0)
    frame = max(ready)
    age_s = now_s - frame * period_s()
    seen = recorded_drive.drive().frames[frame]
    if predicted:
        believed = tuple(_from(ego, _later(track, age_s)) for track in seen.tracks)
    else:
        believed = tuple(_from(seen.ego, track) for track in seen.tracks)
    off = tuple(min((_apart(box, car) for car in true), default=math.inf) for box in believed)
    found = sum(any(_apart(box, car) <= WITHIN_M for box in believed) for car in true)
    return Shown(
        frame=frame, age_s=age_s, speed_m_per_s=speed, true=true, believed=believed, off_m=off, found=found
    )  # fmt: skip


@functools.lru_cache(maxsize=64)
def whole(chain: Chain, *, predicted: bool) -> Whole:
    """The two seconds together; where no answer was ready in time, nothing is known and nobody found."""
    every = [replayed(chain, predicted=predicted, moment=moment) for moment in range(moments() + 1)]
    known = [one for one in every if one.frame is not None]
    length_s = moments() * period_s() / PER_FRAME
    ready = [at for _, at in answers(chain) if at <= length_s]
    return Whole(
        mean_age_s=sum(one.age_s for one in known) / len(known) if known else length_s,
        largest_age_s=max((one.age_s for one in known), default=length_s),
        answers_per_s=len(ready) / length_s,
        found_share=sum(one.found for one in known) / max(1, sum(len(one.true) for one in known)),
    )


@functools.lru_cache(maxsize=256)
def _world(moment: int) -> tuple[Place, tuple[Car, ...], float]:
    """The vehicle, the cars seen from it, and its speed; between two frames, on the straight line between them."""
    frames = recorded_drive.drive().frames
    before, part = divmod(moment, PER_FRAME)
    after = min(before + 1, len(frames) - 1)
    share = part / PER_FRAME
    ego = _between(frames[before].ego, frames[after].ego, share)
    later = {car.number: car for car in frames[after].cars}
    cars = []
    for car in frames[before].cars:
        there = later.get(car.number, car)
        x, y, yaw = _between((car.x_m, car.y_m, car.yaw_rad), (there.x_m, there.y_m, there.yaw_rad), share)
        cars.append(_from(ego, _placed(car, x, y, yaw)))
    one = max(1, before + 1 if after > before else before)
    (x0, y0, _), (x1, y1, _) = frames[one - 1].ego, frames[one].ego
    return ego, tuple(cars), math.hypot(x1 - x0, y1 - y0) / period_s()


def _between(first: Place, second: Place, share: float) -> Place:
    x, y, yaw = (one + share * (other - one) for one, other in zip(first, second, strict=True))
    return x, y, yaw


def _from(ego: Place, car: Car) -> Car:
    """Over ground to seen from the vehicle: x ahead, y to the left."""
    x, y, yaw = ego
    cosine, sine = math.cos(yaw), math.sin(yaw)
    east, north = car.x_m - x, car.y_m - y
    return _placed(car, cosine * east + sine * north, cosine * north - sine * east, car.yaw_rad - yaw)


def _later(car: Car, seconds: float) -> Car:
    return _placed(car, car.x_m + seconds * car.vx_m_per_s, car.y_m + seconds * car.vy_m_per_s, car.yaw_rad)


def _placed(car: Car, x: float, y: float, yaw: float) -> Car:
    return Car(
        number=car.number, x_m=x, y_m=y, yaw_rad=yaw, length_m=car.length_m, width_m=car.width_m,
        vx_m_per_s=car.vx_m_per_s, vy_m_per_s=car.vy_m_per_s,
    )  # fmt: skip


def _apart(one: Car, other: Car) -> float:
    return math.hypot(one.x_m - other.x_m, one.y_m - other.y_m)
