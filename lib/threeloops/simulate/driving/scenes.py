"""Generated traffic: an S-curved road with a crossing, cars and pedestrians with their own motions, and a vehicle that
drives and turns among them.

A scene is a function of time: `scene(seed).at(t_s)` is exact at every moment, so a detection can be judged against
the world at the moment it is used. The road bends both ways and crosses another one because on a straight road, or on
one of constant curvature, every place looks like the next, and a mistake in the vehicle's own motion would not show.
All sizes and speeds are invented for this book.
"""

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from typing import Self

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]

CAR, PEDESTRIAN = 0, 1
HALF_ROAD_M = 5.0
LANE_M = 2.2  # from the middle of the road to the middle of a lane
ACCIDENT_FREE_S = 6.0
_STEP_M = 0.1
_AHEAD_M = np.linspace(-300.0, 500.0, 4_001)  # where the road's length is tabulated


@dataclass(frozen=True, slots=True, kw_only=True)
class Pose:
    """Where a vehicle is, how it stands (0 along x, anticlockwise) and how it moves."""

    x_m: float
    y_m: float
    yaw_rad: float
    speed_m_per_s: float = 0.0
    turn_rad_per_s: float = 0.0

    def into_vehicle(self, points: Floats) -> Floats:
        """Points of the world as the vehicle sees them: x ahead, y to the left."""
        return turned(np.asarray(points) - (self.x_m, self.y_m), -self.yaw_rad)

    def into_world(self, points: Floats) -> Floats:
        origin = np.array([self.x_m, self.y_m])
        return np.asarray(turned(np.asarray(points), self.yaw_rad) + origin)


def turned(points: Floats, angle_rad: float) -> Floats:
    """Points turned about the origin, anticlockwise.

    >>> turned(np.array([[1.0, 0.0]]), np.pi / 2).round(6).tolist()
    [[0.0, 1.0]]
    """
    cosine, sine = np.cos(angle_rad), np.sin(angle_rad)
    x, y = points[..., 0], points[..., 1]
    return np.stack([cosine * x - sine * y, sine * x + cosine * y], axis=-1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Boxes:
    """Road users at one moment, one row each. Velocities are over ground, whatever the frame's own motion."""

    ids: Ints
    kind: Ints
    centre: Floats  # (n, 2)
    size: Floats  # (n, 3): length, width, height
    yaw: Floats
    velocity: Floats  # (n, 2)
    score: Floats

    def __len__(self) -> int:
        return len(self.ids)

    def only(self, which: NDArray[np.generic]) -> Self:
        """These rows, by flags or by numbers."""
        return replace(self, **{field.name: getattr(self, field.name)[which] for field in fields(self)})

    def kept(self, ids: Ints) -> Self:
        return self.only(np.isin(self.ids, ids))

    def of(self, kind: int) -> Self:
        return self.only(self.kind == kind)

    def later(self, seconds: float) -> Self:
        """Moved on at constant velocity."""
        return replace(self, centre=self.centre + seconds * self.velocity)

    def seen_from(self, pose: Pose) -> Self:
        """From the world's frame into a vehicle's."""
        return replace(
            self,
            centre=pose.into_vehicle(self.centre),
            yaw=self.yaw - pose.yaw_rad,
            velocity=turned(self.velocity, -pose.yaw_rad),
        )

    def in_world(self, pose: Pose) -> Self:
        """From a vehicle's frame into the world's."""
        return replace(
            self,
            centre=pose.into_world(self.centre),
            yaw=self.yaw + pose.yaw_rad,
            velocity=turned(self.velocity, pose.yaw_rad),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Road:
    """A main road along two sine waves, and a straight one that crosses it."""

    bends: Floats  # (2, 3): amplitude in metres, wavelength in metres, phase
    crossing_x_m: float
    crossing_yaw_rad: float

    def sideways(self, x: Floats) -> Floats:
        """Where the middle of the main road is, left of the x axis."""
        return sum((a * np.sin(2 * np.pi * x / w + p) for a, w, p in self.bends), np.zeros_like(x))

    def heading(self, x: Floats) -> Floats:
        slope = sum((2 * np.pi * a / w * np.cos(2 * np.pi * x / w + p) for a, w, p in self.bends), np.zeros_like(x))
        return np.arctan(slope)

    def covers(self, points: Floats) -> Flags:
        """Which points of the world lie on the road or on its crossing."""
        x, y = points[..., 0], points[..., 1]
        main = np.abs(y - self.sideways(x)) * np.cos(self.heading(x)) < HALF_ROAD_M
        corner = np.array([self.crossing_x_m, float(self.sideways(np.array(self.crossing_x_m)))])
        across = turned(points - corner, -self.crossing_yaw_rad)[..., 1]
        return np.asarray(main | (np.abs(across) < HALF_ROAD_M))


@dataclass(frozen=True, slots=True, kw_only=True)
class Way:
    """A road user's way: along the main road at an offset to the left, or straight on over ground."""

    begins: tuple[float, float]  # metres along the road and to its left; or x and y
    speed_m_per_s: float
    straight_yaw_rad: float | None = None  # None: along the road


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """The world at one moment."""

    t_s: float
    ego: Pose
    boxes: Boxes
    road: Callable[[Floats], Flags]

    def seen_from(self, pose: Pose) -> Boxes:
        return self.boxes.seen_from(pose)


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """What a seed has laid out; nothing in it changes, time is asked for."""

    seed: int
    road: Road
    lengths: Floats  # metres along the road at each tabulated x
    ego: Way
    ways: tuple[Way, ...]
    kind: Ints
    size: Floats

    def at(self, t_s: float) -> Snapshot:
        place, yaw, speed, turn = _moved((self.ego, *self.ways), self.road, self.lengths, t_s)
        users = len(self.ways)
        boxes = Boxes(
            ids=np.arange(users),
            kind=self.kind,
            centre=place[1:],
            size=self.size,
            yaw=yaw[1:],
            velocity=(speed * np.stack([np.cos(yaw), np.sin(yaw)])).T[1:],
            score=np.ones(users),
        )
        x, y, angle, fast, turning = (float(one) for one in (*place[0], yaw[0], speed[0], turn[0]))
        ego = Pose(x_m=x, y_m=y, yaw_rad=angle, speed_m_per_s=fast, turn_rad_per_s=turning)
        return Snapshot(t_s=t_s, ego=ego, boxes=boxes, road=self.road.covers)


def _moved(ways: tuple[Way, ...], road: Road, lengths: Floats, t_s: float) -> tuple[Floats, Floats, Floats, Floats]:
    """(places, yaws, speeds, turning speeds) of everybody at one moment."""
    begins, pace = np.array([way.begins for way in ways]), np.array([way.speed_m_per_s for way in ways])
    straight = np.array([np.nan if way.straight_yaw_rad is None else way.straight_yaw_rad for way in ways])
    # Along the road: as if everybody went that way.
    left = begins[:, 1]
    x = np.interp(begins[:, 0] + pace * t_s, lengths, _AHEAD_M)
    heading = road.heading(x)
    bend = (road.heading(x + _STEP_M) - heading) / _STEP_M * np.cos(heading)  # radians for each metre of road
    along = np.column_stack([x - left * np.sin(heading), road.sideways(x) + left * np.cos(heading)])
    # Straight on, for those who do.
    direction = np.column_stack([np.cos(straight), np.sin(straight)])
    on_road = np.isnan(straight)
    return (
        np.where(on_road[:, None], along, begins + (pace * t_s)[:, None] * direction),
        np.where(on_road, heading + np.pi * (pace < 0), straight),
        # A lane inside the bend is shorter than the middle of the road that the way is counted along.
        np.where(on_road, np.abs(pace) * (1 - left * bend), pace),
        np.where(on_road, pace * bend, 0.0),
    )


def _lengths(road: Road) -> Floats:
    """Metres along the middle of the main road at each tabulated x, 0 where x is 0."""
    steps = np.hypot(np.diff(_AHEAD_M), np.diff(road.sideways(_AHEAD_M)))
    lengths = np.concatenate([[0.0], np.cumsum(steps)])
    return np.asarray(lengths - np.interp(0.0, _AHEAD_M, lengths))


def scene(seed: int) -> Scene:
    """A scene drawn from its seed: the vehicle in the right lane, up to some ten cars and seven pedestrians around."""
    drawn = np.random.default_rng(seed)
    road = Road(
        bends=np.array(
            [
                (drawn.uniform(5, 8), drawn.uniform(85, 120), drawn.uniform(0, 2 * np.pi)),
                (drawn.uniform(0.5, 1.5), drawn.uniform(35, 55), drawn.uniform(0, 2 * np.pi)),
            ]
        ),
        crossing_x_m=float(drawn.uniform(5, 40)),
        crossing_yaw_rad=float(drawn.uniform(1.2, 1.9)),
    )
    ego = Way(begins=(0.0, -LANE_M), speed_m_per_s=float(drawn.uniform(6, 13)))
    cars = _cars(drawn, road, ego.speed_m_per_s)
    walkers = [_pedestrian(drawn, road) for _ in range(drawn.integers(3, 8))]
    kind = np.array([CAR] * len(cars) + [PEDESTRIAN] * len(walkers))
    low = np.where(kind[:, None] == CAR, (3.8, 1.7, 1.4), (0.5, 0.5, 1.55))
    high = np.where(kind[:, None] == CAR, (5.0, 2.0, 1.9), (0.8, 0.8, 1.9))
    laid_out = Scene(
        seed=seed, road=road, lengths=_lengths(road), ego=ego,
        ways=(*cars, *walkers), kind=kind, size=drawn.uniform(low, high),
    )  # fmt: skip
    return _without_accidents(laid_out)


def _without_accidents(laid_out: Scene) -> Scene:
    """Without those whom the vehicle, which drives its way whatever comes, would touch."""
    gaps = []
    for t_s in np.arange(0.0, ACCIDENT_FREE_S, 0.4):
        now = laid_out.at(float(t_s))
        gaps.append(np.hypot(*(now.boxes.centre - (now.ego.x_m, now.ego.y_m)).T))
    apart = np.min(gaps, axis=0) > np.where(laid_out.kind == CAR, 4.2, 3.0)
    ways = tuple(way for way, stays in zip(laid_out.ways, apart, strict=True) if stays)
    return replace(laid_out, ways=ways, kind=laid_out.kind[apart], size=laid_out.size[apart])


def _cars(drawn: np.random.Generator, road: Road, ego_speed: float) -> list[Way]:
    """With the vehicle, against it, parked beside it, and on the crossing; never two in one place."""
    cars = []
    # One speed for a lane: traffic that keeps its distance.
    for left, speed in ((-LANE_M, ego_speed * drawn.uniform(0.9, 1.1)), (LANE_M, -drawn.uniform(5, 12))):
        for place in (-26.0, -13.0, 13.0, 26.0, 39.0):
            if drawn.random() < 0.55:
                begins = (float(place + drawn.uniform(-3, 3) + (6 if left > 0 else 0)), left)
                cars.append(Way(begins=begins, speed_m_per_s=float(speed)))
    for _ in range(drawn.integers(1, 3)):
        parked = (float(drawn.uniform(-15, 35)), float(drawn.choice([-1, 1])) * 6.5)
        cars.append(Way(begins=parked, speed_m_per_s=0.0))
    corner = np.array([road.crossing_x_m, float(road.sideways(np.array(road.crossing_x_m)))])
    yaw = road.crossing_yaw_rad
    for left, way in ((-LANE_M, yaw), (LANE_M, yaw + np.pi)):
        along = float(drawn.uniform(8, 25))  # before the corner, seen in its own direction
        x, y = corner + turned(np.array([0.0, left]), yaw) - along * np.array([np.cos(way), np.sin(way)])
        cars.append(Way(begins=(float(x), float(y)), speed_m_per_s=float(drawn.uniform(0, 5)), straight_yaw_rad=way))
    return cars


def _pedestrian(drawn: np.random.Generator, road: Road) -> Way:
    """On the pavement along the road, or across it."""
    x = float(drawn.uniform(-20, 35))
    heading = float(road.heading(np.array([x]))[0])
    side = float(drawn.choice([-1, 1]))
    left = side * drawn.uniform(5.5, 9)
    place = (x - left * np.sin(heading), float(road.sideways(np.array([x]))[0]) + left * np.cos(heading))
    crossing = drawn.random() < 0.4
    yaw = heading - side * np.pi / 2 if crossing else heading + np.pi * drawn.integers(0, 2)
    return Way(begins=place, speed_m_per_s=float(drawn.uniform(0.8, 1.8)), straight_yaw_rad=float(yaw))
