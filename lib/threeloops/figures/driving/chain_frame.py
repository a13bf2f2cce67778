"""One frame of the chain: what its sensors saw, and what came out, as pictures."""

import numpy as np
from numpy.typing import NDArray

from threeloops.figures.driving import birds_eye, camera_strip
from threeloops.figures.driving.birds_eye import Outline
from threeloops.figures.figure import Figure
from threeloops.simulate.driving import rays
from threeloops.simulate.driving.scenes import Boxes, Flags, Floats

# In the order in which a driver would turn the head: left, ahead, right; then behind.
ORDER = {"left front": 1, "front": 0, "right front": 5, "left rear": 2, "rear": 3, "right rear": 4}
STANDING_M = 0.15  # LiDAR points below are ground
STEP = 22  # colours are drawn in so coarse steps: see _calm
EVERY = 2  # of the standing points one in so many is drawn


def cameras(frame: rays.Frame) -> Figure:
    """The six pictures of a frame."""
    return camera_strip.camera_strip(
        {name: _calm(frame.images[number]).tolist() for name, number in ORDER.items()},
        title="What the six cameras see",
        caption=f"{rays.IMAGE_COLUMNS} x {rays.IMAGE_ROWS} pixels each, of a generated scene.",
    )


def _calm(image: NDArray[np.uint8]) -> NDArray[np.int64]:
    """Each pixel as the middle one of itself and its neighbours, in coarse colours: pictures of a sensor's noise are
    many times as large.
    """
    shifted = [np.roll(image, (down, right), axis=(0, 1)) for down in (-1, 0, 1) for right in (-1, 0, 1)]
    middle: NDArray[np.int64] = np.median(shifted, axis=0).astype(np.int64)
    return middle // STEP * STEP + STEP // 2


def from_above(frame: rays.Frame, *, road: Flags, found: Boxes, tracks: Boxes, path: Floats, title: str) -> Figure:
    """Sensors in, boxes out, tracks, plan; the true boxes lie beneath."""
    standing = frame.points[frame.points[:, 2] > STANDING_M][::EVERY]
    return birds_eye.birds_eye(
        road=[(float(ahead), float(left)) for ahead, left in rays.cells()[road]],
        outlines={
            "true": outlines(rays.truth(frame), moving=False),
            "detected": outlines(found.only(found.score > 0.3), moving=False),
            "tracked": outlines(tracks.only(tracks.score > 0.3), moving=True, size=0.6),
        },
        points=[(float(ahead), float(left)) for ahead, left in standing[:, :2]],
        path=[(float(ahead), float(left)) for ahead, left in path],
        title=title,
        caption="Grey squares: cells that the network calls road. Dots: LiDAR points above the ground. A line from a"
        " track ends where it is in a second. Black: the vehicle and its plan.",
    )


def lifted(table: NDArray[np.int64], *, column: int, title: str) -> Figure:
    """Which cells of the grid the cameras' features fall into, and those of one column of the front camera.

    table: the cell of each (camera, depth, row, column); a number past the grid's last cell is outside
    """
    places = rays.cells().reshape(-1, 2)
    reached = np.unique(table[table < len(places)])
    ray = np.unique(table[0, :, 0, column])
    one = [
        Outline(x_m=float(ahead), y_m=float(left), length_m=rays.CELL_M, width_m=rays.CELL_M, yaw_rad=0.0)
        for ahead, left in places[ray[ray < len(places)]]
    ]
    return birds_eye.birds_eye(
        road=[(float(ahead), float(left)) for ahead, left in places[reached]],
        outlines={"one column of pixels": one},
        title=title,
        caption="Grey: cells that at least one pixel and distance fall into. Black: the vehicle.",
    )


def outlines(boxes: Boxes, *, moving: bool, size: float = 1.0) -> list[Outline]:
    """Boxes as the figure draws them; `size` shrinks them where they would hide what lies beneath."""
    return [
        Outline(
            x_m=round(float(boxes.centre[row, 0]), 2),
            y_m=round(float(boxes.centre[row, 1]), 2),
            length_m=size * float(boxes.size[row, 0]),
            width_m=size * float(boxes.size[row, 1]),
            yaw_rad=float(boxes.yaw[row]),
            velocity=(float(boxes.velocity[row, 0]), float(boxes.velocity[row, 1])) if moving else (0.0, 0.0),
        )
        for row in range(len(boxes))
    ]
