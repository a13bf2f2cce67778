"""Recorded drive: two seconds through the whole pipeline of the case study, frame by frame: where the vehicle and the
cars were, what the tracker said of them, and how long every stage took. Remade by measure/driving/recorded_drive.py.

>>> kept = drive()
>>> len(kept.frames), kept.stages
(60, ('preprocess', 'backbone', 'lift', 'heads', 'track', 'predict', 'plan'))
"""

import functools
import json
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import resources

WAYS = ("separate fp32", "shared fp32", "separate int8", "shared int8")
CLOCKS = ("quiet", "crowded")


@dataclass(frozen=True, slots=True, kw_only=True)
class Car:
    """A car over ground; number is -1 where nobody said which."""

    number: int
    x_m: float
    y_m: float
    yaw_rad: float
    length_m: float
    width_m: float
    vx_m_per_s: float = 0.0
    vy_m_per_s: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """One frame: the vehicle (x, y, yaw), the cars that it could see, and what the tracker said of cars."""

    ego: tuple[float, float, float]
    cars: tuple[Car, ...]
    tracks: tuple[Car, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Drive:
    """The recording."""

    stamp: Mapping[str, str]
    rate_hz: int
    stages: tuple[str, ...]
    frames: tuple[Seen, ...]
    milliseconds: Mapping[str, Mapping[str, tuple[tuple[float, ...], ...]]]  # clock, way: of every frame, every stage


@functools.cache
def drive() -> Drive:
    """The one that comes with the library."""
    text = (resources.files("threeloops.facts") / "drives" / "drive.json").read_text(encoding="utf-8")
    kept = json.loads(text)
    return Drive(
        stamp=kept["stamp"],
        rate_hz=kept["rate_hz"],
        stages=tuple(kept["stages"]),
        frames=tuple(
            Seen(
                ego=tuple(one["ego"]),
                cars=tuple(_car(*row) for row in one["cars"]),
                tracks=tuple(_track(*row) for row in one["tracks"]),
            )
            for one in kept["frames"]
        ),
        milliseconds={
            clock: {way: tuple(tuple(frame) for frame in kept["milliseconds"][clock][way]) for way in WAYS}
            for clock in CLOCKS
        },
    )


def _car(number: int, x: float, y: float, yaw: float, length: float, width: float) -> Car:
    return Car(number=number, x_m=x, y_m=y, yaw_rad=yaw, length_m=length, width_m=width)


def _track(x: float, y: float, vx: float, vy: float, yaw: float, length: float, width: float) -> Car:
    return Car(
        number=-1, x_m=x, y_m=y, yaw_rad=yaw, length_m=length, width_m=width, vx_m_per_s=vx, vy_m_per_s=vy
    )  # fmt: skip
