"""Labels of cells from rays: one ray by hand, sweeps that see more, and the trail of what moves."""

from dataclasses import replace

import numpy as np
import pytest

from threeloops.simulate.driving import occupancy_labels, rays
from threeloops.simulate.driving.occupancy_labels import FREE, OCCUPIED, UNOBSERVED

DRIVE = rays.frames(900_103, 4, period_s=0.1)


def with_points(*points: tuple[float, float, float]) -> rays.Frame:
    return replace(DRIVE[-1], points=np.array([(*point, 0.5) for point in points], dtype=np.float32))


def test_one_ray_frees_its_way_and_fills_its_end() -> None:
    level = rays.LIDAR_HEIGHT_M  # a ray that stays in one layer of cells
    grid = occupancy_labels.labelled([with_points((10.5, 0.5, level))], edge_m=1.0)
    along = grid[32:, 32, round(level)]
    assert along.tolist() == [FREE] * 10 + [OCCUPIED] + [UNOBSERVED] * 21
    assert (grid != UNOBSERVED).sum() == 11 + (grid[31] != UNOBSERVED).sum()


def test_a_surface_wins_over_the_rays_that_pass_it() -> None:
    grid = occupancy_labels.labelled([with_points((10.5, 0.5, 1.9), (20.5, 0.5, 1.9))], edge_m=1.0)
    assert [grid[at, 32, 2] for at in (32 + 9, 32 + 10, 32 + 15, 32 + 20, 32 + 25)] == [
        FREE, OCCUPIED, FREE, OCCUPIED, UNOBSERVED,
    ]  # fmt: skip


def test_every_point_lies_in_an_occupied_cell_and_more_sweeps_leave_less_unobserved() -> None:
    grids = {count: occupancy_labels.labelled(DRIVE[-count:], edge_m=1.0) for count in (1, 3)}
    x, y, z = DRIVE[-1].points[:, :3].T.astype(float)
    inside = (np.abs(x) < 32) & (np.abs(y) < 32) & (z < 3.5) & (z > -0.5)
    place = np.floor(np.column_stack([x, y, z])[inside] + (32, 32, 0.5)).astype(int)
    assert (grids[1][tuple(place.T)] == OCCUPIED).all()
    assert (grids[3] == UNOBSERVED).sum() < (grids[1] == UNOBSERVED).sum()


def test_what_moves_leaves_a_trail_and_one_sweep_has_none() -> None:
    trails = [
        occupancy_labels.trail(occupancy_labels.labelled(DRIVE[-count:], edge_m=1.0), DRIVE[-1], edge_m=1.0)
        for count in (1, 4)
    ]
    assert trails[0] == 0
    assert trails[1] > 5


def test_an_edge_that_does_not_divide_is_refused() -> None:
    with pytest.raises(ValueError, match="does not divide"):
        occupancy_labels.labelled(DRIVE[:1], edge_m=0.3)
    with pytest.raises(ValueError, match="sweeps"):
        occupancy_labels.labelled([], edge_m=1.0)
