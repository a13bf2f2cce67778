"""Six cameras and a LiDAR looking at a generated scene: one ray caster for both.

A pinhole camera that stands upright has all rays of a column in one vertical plane, and so has a spinning LiDAR. So
the caster meets each box in plan first, a column at a time, and then asks each ray of the column how high it is there.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from threeloops.simulate.driving.scenes import CAR, Boxes, Flags, Floats, Ints, Pose, Scene, scene
from threeloops.units import us

CAMERA_YAWS_RAD = np.radians((0.0, 60.0, 120.0, 180.0, 240.0, 300.0))
IMAGE_ROWS, IMAGE_COLUMNS = 64, 176
HALF_VIEW_RAD = np.radians(36.0)  # a little over a sixth of the circle: neighbours overlap
FOCAL_PX = IMAGE_COLUMNS / 2 / np.tan(HALF_VIEW_RAD)
HORIZON_ROW = 24.0  # most of a picture shows the ground: the upper part of a full frame is cut away
CAMERA_HEIGHT_M, LIDAR_HEIGHT_M = 1.6, 1.9
LIDAR_BEAMS, LIDAR_COLUMNS = 32, 512
LIDAR_SLOPES = np.tan(np.radians(np.linspace(-25.0, 4.0, LIDAR_BEAMS)))
FAR_M = 80.0
GRID_CELLS, CELL_M = 64, 1.0
HALF_GRID_M = GRID_CELLS * CELL_M / 2
SKY, GROUND = -1, -2  # what a ray has hit, beside the numbers of boxes
CAR_LIDAR_REFLECTANCE, WALKER_LIDAR_REFLECTANCE = 0.7, 0.4
SEEN_PIXELS, SEEN_POINTS = 6, 2  # fewer of both: nobody could have seen it


@dataclass(frozen=True, slots=True, kw_only=True)
class Hits:
    """What each ray met, (columns, rays): how far away in plan, and which box, the ground or the sky."""

    distance: Floats
    what: Ints


@dataclass(frozen=True, slots=True, kw_only=True)
class Frame:
    """What the sensors deliver at one moment, and who could be seen in it. The scene is for the judge alone."""

    scene: Scene
    t_s: float
    ego: Pose
    images: NDArray[np.uint8]  # (cameras, rows, columns, 3)
    points: NDArray[np.float32]  # (points, 4): x ahead, y left, z above ground, reflectance
    visible: Ints


def cast(height_m: float, directions: Floats, slopes: Floats, boxes: Boxes) -> Hits:
    """Send rays from a point `height_m` above the origin.

    directions: (columns, 2), unit vectors in plan. slopes: (rays,) or (columns, rays), metres up for each in plan.
    boxes: in the vehicle's frame.

    >>> car = Boxes(
    ...     ids=np.array([7]), kind=np.array([CAR]), centre=np.array([[10.0, 0.0]]), size=np.array([[4.0, 2.0, 1.5]]),
    ...     yaw=np.zeros(1), velocity=np.zeros((1, 2)), score=np.ones(1),
    ... )  # fmt: skip
    >>> seen = cast(1.6, np.array([[1.0, 0.0]]), np.array([0.5, -0.1, -0.4]), car)  # sky, its rear, ground before it
    >>> seen.what.tolist() == [[SKY, 0, GROUND]], seen.distance.round(3).tolist()
    (True, [[80.0, 8.0, 4.0]])
    """
    slopes = np.broadcast_to(slopes, (len(directions), np.shape(slopes)[-1]))
    with np.errstate(divide="ignore"):
        distance = np.where(slopes < 0, height_m / -slopes, np.inf)
    distance = np.where(distance < FAR_M, distance, FAR_M)
    what = np.where(distance < FAR_M, GROUND, SKY)
    for number in range(len(boxes)):
        near, far = _in_plan(directions, boxes.centre[number], boxes.size[number], float(boxes.yaw[number]))
        some = np.flatnonzero((near < far) & (near > 0) & (near < FAR_M))
        if not len(some):
            continue
        top = boxes.size[number, 2]
        enters, leaves = near[some, None], far[some, None]
        up = slopes[some]
        at_face = height_m + enters * up
        with np.errstate(divide="ignore", invalid="ignore"):
            at_top = (top - height_m) / up  # where a ray that comes from above sinks to the roof
        met = np.where((at_face >= 0) & (at_face <= top), enters, np.inf)
        met = np.where((at_face > top) & (at_top > enters) & (at_top < leaves), at_top, met)
        nearer = met < distance[some]
        distance[some] = np.where(nearer, met, distance[some])
        what[some] = np.where(nearer, number, what[some])
    return Hits(distance=distance, what=what)


def _in_plan(directions: Floats, centre: Floats, size: Floats, yaw: float) -> tuple[Floats, Floats]:
    """Where rays from the origin enter and leave a rectangle: the slab method, in the rectangle's own axes."""
    axes = np.array([[np.cos(yaw), np.sin(yaw)], [-np.sin(yaw), np.cos(yaw)]])
    start = -axes @ centre
    along = directions @ axes.T
    along = np.where(np.abs(along) < 1e-12, 1e-12, along)
    one, other = (-size[:2] / 2 - start) / along, (size[:2] / 2 - start) / along
    return np.minimum(one, other).max(axis=1), np.maximum(one, other).min(axis=1)


def camera_rays(yaw_rad: float) -> tuple[Floats, Floats]:
    """(directions, slopes) of one camera: (columns, 2) and (columns, rows)."""
    right = (np.arange(IMAGE_COLUMNS) + 0.5 - IMAGE_COLUMNS / 2) / FOCAL_PX
    down = (np.arange(IMAGE_ROWS) + 0.5 - HORIZON_ROW) / FOCAL_PX
    angle = yaw_rad - np.arctan(right)
    return np.stack([np.cos(angle), np.sin(angle)], axis=-1), -down[None, :] / np.hypot(1, right)[:, None]


def lidar_rays() -> tuple[Floats, Floats]:
    angle = 2 * np.pi * np.arange(LIDAR_COLUMNS) / LIDAR_COLUMNS
    return np.stack([np.cos(angle), np.sin(angle)], axis=-1), LIDAR_SLOPES


_CAMERAS = [camera_rays(yaw) for yaw in CAMERA_YAWS_RAD]
_DIRECTIONS = np.concatenate([directions for directions, _ in _CAMERAS])
_SLOPES = np.concatenate([slopes for _, slopes in _CAMERAS])


def frame(of: Scene, t_s: float) -> Frame:
    """The sensors' view of a scene. Its noise is drawn from the scene's seed and the moment: the same at each call."""
    now = of.at(t_s)
    boxes = now.seen_from(now.ego)
    drawn = np.random.default_rng((of.seed, round(t_s / us)))
    seen = cast(CAMERA_HEIGHT_M, _DIRECTIONS, _SLOPES, boxes)
    swept = cast(LIDAR_HEIGHT_M, *lidar_rays(), boxes)
    pixels, echoes = (np.bincount(hits.what[hits.what >= 0], minlength=len(boxes)) for hits in (seen, swept))
    return Frame(
        scene=of, t_s=t_s, ego=now.ego,
        images=_pictures(seen, of, now.ego, boxes, drawn),
        points=_points(swept, boxes, drawn),
        visible=boxes.ids[(pixels >= SEEN_PIXELS) | (echoes >= SEEN_POINTS)],
    )  # fmt: skip


def frames(seed: int, n: int, period_s: float = 0.1) -> list[Frame]:
    """n frames of the scene with this seed, from its beginning."""
    one = scene(seed)
    return [frame(one, number * period_s) for number in range(n)]


def _pictures(seen: Hits, of: Scene, ego: Pose, boxes: Boxes, drawn: np.random.Generator) -> NDArray[np.uint8]:
    """Road grey, verge green, sky blue; each road user in a colour of its own, darker below."""
    colours = np.random.default_rng((of.seed, 1)).uniform(40, 230, (len(boxes), 3))  # by scene, not by frame
    ground = seen.what == GROUND
    place = _DIRECTIONS[:, None, :] * seen.distance[..., None]
    picture = np.empty((*seen.what.shape, 3))
    picture[:] = (150, 185, 225)
    on_road = of.road.covers(ego.into_world(place[ground]))
    picture[ground] = np.where(on_road[:, None], (95, 95, 100), (80, 125, 60))
    on_box = seen.what >= 0
    height = CAMERA_HEIGHT_M + (seen.distance * _SLOPES)[on_box]
    which = seen.what[on_box]
    shade = 0.55 + 0.45 * np.clip(height / boxes.size[which, 2], 0, 1)
    picture[on_box] = colours[which] * shade[:, None]
    picture += drawn.normal(0, 6, picture.shape)
    whole = picture.clip(0, 255).astype(np.uint8).reshape(len(_CAMERAS), IMAGE_COLUMNS, IMAGE_ROWS, 3)
    return whole.transpose(0, 2, 1, 3)


def _points(swept: Hits, boxes: Boxes, drawn: np.random.Generator) -> NDArray[np.float32]:
    directions, slopes = lidar_rays()
    hit = swept.what != SKY
    # A distance along the ground, with 2 cm of noise as of a good sensor.
    distance = swept.distance + drawn.normal(0, 0.02, swept.distance.shape)
    plan = directions[:, None, :] * distance[..., None]
    height = LIDAR_HEIGHT_M + distance * slopes[None, :]
    shines = np.append(np.where(boxes.kind == CAR, CAR_LIDAR_REFLECTANCE, WALKER_LIDAR_REFLECTANCE), (0.2, 0.0))
    reflectance = shines[swept.what] + drawn.normal(0, 0.05, hit.shape)  # -2, the ground, is last but one
    points: NDArray[np.float32] = np.concatenate([plan, height[..., None], reflectance[..., None]], axis=-1)[
        hit
    ].astype(np.float32)
    return points


def truth(seen: Frame, at_s: float | None = None) -> Boxes:
    """Who could be seen in a frame and stood in the grid then, where they are at `at_s` (the frame's own moment if not
    given), in the vehicle's frame at capture.
    """
    then = seen.scene.at(seen.t_s).seen_from(seen.ego)
    inside = (np.abs(then.centre) < HALF_GRID_M - CELL_M).all(axis=1)
    judged = np.intersect1d(seen.visible, then.ids[inside])
    moment = seen.t_s if at_s is None else at_s
    return seen.scene.at(moment).seen_from(seen.ego).kept(judged)


def cells() -> Floats:
    """(cells, cells, 2): the middle of each cell in the vehicle's frame; first counted ahead, then to the left."""
    middle = (np.arange(GRID_CELLS) + 0.5) * CELL_M - HALF_GRID_M
    return np.stack(np.meshgrid(middle, middle, indexing="ij"), axis=-1)


def road_truth(seen: Frame) -> Flags:
    return seen.scene.road.covers(seen.ego.into_world(cells()))
