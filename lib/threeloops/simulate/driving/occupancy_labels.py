"""Occupancy labels: what the rays of a LiDAR say of the cells of space around a car, with sweeps laid over each other.

A ray marks the cells on its way free and the one in which it ends occupied; a cell that no ray has met is unobserved,
which is not free. Sweeps are laid over each other by the car's own motion alone, so what moves by itself leaves a
trail.

>>> one = rays.frame(scenes.scene(5), 1.0)
>>> grid = labelled([one], edge_m=1.0)
>>> grid.shape, sorted(np.unique(grid).tolist()) == [UNOBSERVED, FREE, OCCUPIED]
((64, 64, 4), True)
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from threeloops import checks
from threeloops.simulate.driving import rays, scenes

Labels = NDArray[np.int8]
UNOBSERVED, FREE, OCCUPIED = 0, 1, 2
HEIGHT_M = 4.0
STEPS_A_CELL = 2  # of a ray


def labelled(sweeps: Sequence[rays.Frame], *, edge_m: float) -> Labels:
    """(ahead, left, up): the label of every cell around the car at the last sweep; the ground lies in the middle of the
    lowest ones.

    Raises:   ValueError without sweeps, or for an edge that does not divide the grid
    """
    checks.count(sweeps=len(sweeps))
    checks.positive(edge_m=edge_m)
    side, up = (round(length / edge_m) for length in (2 * rays.HALF_GRID_M, HEIGHT_M))
    if not np.isclose(side * edge_m, 2 * rays.HALF_GRID_M) or not np.isclose(up * edge_m, HEIGHT_M):
        raise ValueError(f"edge_m={edge_m} does not divide {2 * rays.HALF_GRID_M} and {HEIGHT_M} m; 1.0 or 0.5 does")
    grid: Labels = np.zeros((side, side, up), dtype=np.int8)
    now, ends = sweeps[-1].ego, []
    for sweep in sweeps:
        points = _seen_from(now, sweep, sweep.points[:, :3].astype(float))
        source = _seen_from(now, sweep, np.array([[0.0, 0.0, rays.LIDAR_HEIGHT_M]]))
        for share in np.arange(0.0, 1.0, edge_m / STEPS_A_CELL / (rays.HALF_GRID_M * np.sqrt(2))):
            _mark(grid, source + (points - source) * share, FREE, edge_m)
        ends.append(points)
    _mark(grid, np.concatenate(ends), OCCUPIED, edge_m)
    return grid


def trail(grid: Labels, at: rays.Frame, *, edge_m: float) -> int:
    """Cells above the ground that are marked occupied though no road user of that moment is within a cell of them."""
    boxes = at.scene.at(at.t_s).seen_from(at.ego)
    x, y, _z = (index.astype(float) for index in np.nonzero(grid[:, :, 1:] == OCCUPIED))
    places = np.stack([(x + 0.5) * edge_m, (y + 0.5) * edge_m], axis=-1) - rays.HALF_GRID_M
    near = np.zeros(len(places), dtype=bool)
    for centre, size, yaw in zip(boxes.centre, boxes.size, boxes.yaw, strict=True):
        along = scenes.turned(places - centre, -float(yaw))
        near |= (np.abs(along) < size[:2] / 2 + edge_m).all(axis=1)
    return int((~near).sum())


def _seen_from(now: scenes.Pose, sweep: rays.Frame, points: NDArray[np.float64]) -> NDArray[np.float64]:
    """Points of a sweep in the car's frame of now."""
    plan = now.into_vehicle(sweep.ego.into_world(points[:, :2]))
    return np.column_stack([plan, points[:, 2]])


def _mark(grid: Labels, points: NDArray[np.float64], label: int, edge_m: float) -> None:
    place = np.floor(points / edge_m + np.array([grid.shape[0] / 2, grid.shape[1] / 2, 0.5])).astype(int)
    inside = ((place >= 0) & (place < grid.shape)).all(axis=1)
    grid[tuple(place[inside].T)] = label
