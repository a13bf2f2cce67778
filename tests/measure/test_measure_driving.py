"""The driving pipeline: scenes and rays against plain geometry, the filter and the assignment against known cases,
scores against cases by hand, the network's shapes against torch's count.
"""

import itertools
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from threeloops.measure import kept_models
from threeloops.measure.driving import (
    bev_network,
    bev_training,
    box_grid,
    detection_score,
    held_out,
    pipeline,
    planning,
    stage_costs,
    tracking,
)
from threeloops.simulate.driving import rays, scenes
from threeloops.simulate.driving.scenes import CAR, PEDESTRIAN, Boxes


def boxes(*places: tuple[float, float], kind: int = CAR, score: float = 1.0) -> Boxes:
    n = len(places)
    return Boxes(
        ids=np.arange(n),
        kind=np.full(n, kind),
        centre=np.array(places, dtype=float).reshape(n, 2),
        size=np.tile((4.0, 2.0, 1.5), (n, 1)),
        yaw=np.zeros(n),
        velocity=np.zeros((n, 2)),
        score=np.full(n, score),
    )


# --- scenes ----------------------------------------------------------------------------------------


def test_a_seed_is_a_scene_and_another_seed_another() -> None:
    one, again, other = (rays.frame(scenes.scene(seed), 0.4) for seed in (5, 5, 6))
    assert np.array_equal(one.images, again.images)
    assert np.array_equal(one.points, again.points)
    assert not np.array_equal(one.images, other.images)


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_velocities_are_what_places_do(seed: int) -> None:
    one = scenes.scene(seed)
    before, now, after = (one.at(t_s) for t_s in (0.99, 1.0, 1.01))
    assert np.allclose(now.boxes.velocity, (after.boxes.centre - before.boxes.centre) / 0.02, atol=0.2)
    moved = np.hypot(after.ego.x_m - before.ego.x_m, after.ego.y_m - before.ego.y_m)
    assert moved / 0.02 == pytest.approx(now.ego.speed_m_per_s, rel=0.02)
    turned = (after.ego.yaw_rad - before.ego.yaw_rad) / 0.02
    assert turned == pytest.approx(now.ego.turn_rad_per_s, abs=0.02)


def test_the_road_bends_both_ways() -> None:
    turns = [scenes.scene(seed).at(t_s).ego.turn_rad_per_s for seed in range(10) for t_s in (0.0, 2.0, 4.0)]
    assert min(turns) < -0.05
    assert max(turns) > 0.05


def test_a_vehicles_frame_and_back() -> None:
    pose = scenes.Pose(x_m=3.0, y_m=-2.0, yaw_rad=0.7)
    there = boxes((10.0, 4.0), (-3.0, 1.0))
    back = there.seen_from(pose).in_world(pose)
    assert np.allclose(back.centre, there.centre)
    ahead = scenes.Pose(x_m=0.0, y_m=0.0, yaw_rad=np.pi / 2).into_vehicle(np.array([0.0, 5.0]))
    assert np.allclose(ahead, (5.0, 0.0))


def test_nobody_touches_the_vehicle() -> None:
    for seed in range(8):
        one = scenes.scene(seed)
        for t_s in (0.0, 1.2, 2.4):
            now = one.at(t_s)
            assert (np.hypot(*now.seen_from(now.ego).centre.T) > 2.9).all()


# --- rays ------------------------------------------------------------------------------------------


def test_a_wall_ahead_is_as_far_as_it_is() -> None:
    wall = boxes((10.5, 0.0))
    wall.size[0] = (1.0, 40.0, 3.0)  # its face stands at 10 m
    angle = np.radians([0.0, 30.0, -45.0])
    hits = rays.cast(1.5, np.stack([np.cos(angle), np.sin(angle)], axis=-1), np.array([0.0, 0.1]), wall)
    assert np.allclose(hits.distance, (10 / np.cos(angle))[:, None])
    assert (hits.what == 0).all()


def test_ground_sky_and_roof() -> None:
    ahead = np.array([[1.0, 0.0]])
    low = boxes((12.0, 0.0))  # 10 to 14 m ahead, 1.5 m high
    hits = rays.cast(2.0, ahead, np.array([-0.5, 0.1, -0.05, -1 / 24]), low)
    # 2 m of height at a slope of a half: the ground at 4 m. Upwards: nothing. At 1:20 the ray is at 1.5 m when it meets
    # the face, at 10 m; a little flatter it passes over the edge and sinks to the roof at 12 m.
    assert hits.what[0].tolist() == [rays.GROUND, rays.SKY, 0, 0]
    assert hits.distance[0] == pytest.approx([4.0, rays.FAR_M, 10.0, 12.0])


def test_a_turned_box_is_met_at_its_corner() -> None:
    box = boxes((10.0, 0.0))
    box.size[0], box.yaw[0] = (2.0, 2.0, 3.0), np.pi / 4
    hits = rays.cast(1.0, np.array([[1.0, 0.0]]), np.array([0.0]), box)
    assert hits.distance[0, 0] == pytest.approx(10 - np.sqrt(2))


def test_truth_at_a_later_moment_is_the_same_people_elsewhere() -> None:
    frame = rays.frame(scenes.scene(4), 1.0)
    now, later = rays.truth(frame), rays.truth(frame, 1.2)
    assert np.array_equal(now.ids, later.ids)
    assert np.allclose(now.later(0.2).centre, later.centre, atol=0.4)


# --- filter, assignment, scores --------------------------------------------------------------------


def test_the_filter_finds_the_velocity_of_a_straight_way() -> None:
    one = tracking.new_filter(np.array([0.0, 0.0]))
    for step in range(1, 30):
        one.forward(0.1)
        one.corrected(np.array([0.5 * step, -0.2 * step]))
    assert one.state == pytest.approx([14.5, -5.8, 5.0, -2.0], abs=0.05)


def test_the_filter_weighs_as_textbooks_do() -> None:
    """Two equal variances: the mean of expectation and measurement, and half the variance."""
    one = tracking.new_filter(np.array([0.0, 0.0]))
    one.corrected(np.array([1.0, 3.0]))
    assert one.state[:2] == pytest.approx([0.5, 1.5])
    assert one.covariance[0, 0] == pytest.approx(tracking.BOX_SIGMA_M**2 / 2)


@pytest.mark.parametrize("seed", range(20))
def test_the_assignment_is_the_best_of_all(seed: int) -> None:
    drawn = np.random.default_rng(seed)
    tracks, found = drawn.uniform(0, 4, (4, 2)), boxes(*drawn.uniform(0, 4, (3, 2)))
    gate = 2.5
    pairs = tracking.assigned(tracks, np.zeros(4, dtype=int), found, gate)
    away = np.linalg.norm(tracks[:, None] - found.centre[None], axis=-1)

    def cost(rows: tuple[int, ...]) -> tuple[int, float]:
        allowed = [(row, column) for column, row in enumerate(rows) if away[row, column] <= gate]
        return -len(allowed), sum(away[pair] for pair in allowed)

    best = min(cost(rows) for rows in itertools.permutations(range(4), 3))
    assert (-len(pairs), sum(away[pair] for pair in pairs)) == pytest.approx(best)


def test_kinds_are_never_mixed() -> None:
    assert not tracking.assigned(
        np.array([[0.0, 0.0]]), np.array([CAR]), boxes((0.1, 0.0), kind=PEDESTRIAN), tracking.GATE_M
    )


def test_average_precision_by_hand() -> None:
    true = boxes((0.0, 0.0), (10.0, 0.0))
    found = boxes((0.2, 0.0), (30.0, 0.0), (10.1, 0.0), (10.2, 0.0))
    found.score[:] = (0.9, 0.8, 0.7, 0.6)
    # Right, wrong, right, wrong (its true box is taken): precision 1 at recall a half, then 2/3 at 1.
    for within_m, expected in ((0.5, (1 + 2 / 3) / 2), (0.15, 0.5 * 1 / 3), (0.05, 0.0)):
        got = detection_score.average_precision([found], [true], kind=CAR, within_m=within_m)
        assert got == pytest.approx(expected), within_m
    assert np.isnan(detection_score.average_precision([found], [true], kind=PEDESTRIAN, within_m=1.0))


def test_road_overlap_by_hand() -> None:
    one, other = np.array([[True, True, False]]), np.array([[False, True, True]])
    assert detection_score.road_iou([one], [other]) == pytest.approx(1 / 3)


# --- planner ---------------------------------------------------------------------------------------


def test_the_planner_brakes_before_a_wall_and_drives_where_nothing_is() -> None:
    road = np.ones((rays.GRID_CELLS, rays.GRID_CELLS), dtype=bool)
    free = planning.planned([boxes()] * 10, road, speed_m_per_s=10.0, wanted_m_per_s=10.0)
    assert abs(free.acceleration_m_per_s2) < 0.3
    assert free.curvature_per_m == pytest.approx(0.0, abs=1e-9)
    wall = boxes((24.0, 0.0))
    wall.size[0] = (2.0, 60.0, 2.0)
    held = planning.planned([wall] * 10, road, speed_m_per_s=10.0, wanted_m_per_s=10.0)
    assert not held.collides
    assert held.path[-1, 0] < 24.0 - 1.0 - planning.OWN_LENGTH_M / 2


def test_a_candidate_that_brakes_stands_still_and_stays() -> None:
    paths, push, bend = planning.candidates(3.0)
    straight = np.flatnonzero((push == -6.0) & (np.abs(bend) < 1e-9))[0]
    assert paths[straight, -1] == pytest.approx([3.0**2 / 12, 0.0])


# --- the network and the chain ---------------------------------------------------------------------


@pytest.fixture(scope="module")
def network() -> bev_network.BirdsEye:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return bev_network.BirdsEye().eval().requires_grad_(False)


def test_flops_by_shapes_are_those_that_torch_counts(network: bev_network.BirdsEye) -> None:
    counted = stage_costs.stage_flops(network, rays.frame(scenes.scene(1), 0.0))
    predicted = stage_costs.stage_work_by_shapes()
    for stage in ("backbone", "heads"):
        assert predicted[stage].flops == counted[stage]
    assert counted["lift"] == 0


def test_stages_alone_are_the_network_stage_by_stage(network: bev_network.BirdsEye) -> None:
    frame = rays.frame(scenes.scene(1), 0.0)
    alone = stage_costs.stages_alone(network, frame)
    assert list(alone) == ["backbone", "lift", "heads"]
    for mine, whole in zip(alone["heads"](), network(*bev_network.batch([frame])), strict=True):
        torch.testing.assert_close(mine, whole)


def test_a_stages_seconds_are_the_median_of_the_frames_least_on_a_drive_that_goes_on(
    network: bev_network.BirdsEye, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first round is busy and its frames take longer; of the frames the first two do not count."""
    drive, chain = rays.frames(3, 5, period_s=0.1), pipeline.Pipeline(network)
    tracks_before: list[int] = []
    took = iter([*range(900, 905), 100, 100, 1, 5, 3])
    real = chain.run

    def run(frame: rays.Frame, **_clock: object) -> pipeline.Result:
        tracks_before.append(0 if chain.last is None else 1)
        return replace(real(frame), seconds=dict.fromkeys(pipeline.STAGES, float(next(took))))

    monkeypatch.setattr(chain, "run", run)
    told = stage_costs.stage_seconds({"only": chain}, drive, rounds=2)
    assert told == {"only": dict.fromkeys(pipeline.STAGES, 3.0)}
    assert tracks_before == [0, 1, 1, 1, 1] * 2


def test_boxes_survive_the_grid() -> None:
    frame = rays.frame(scenes.scene(9), 0.5)
    wanted, _, _ = box_grid.targets([frame])
    numbers = wanted[0].clone()
    numbers[:2] = torch.where(wanted[0, :2] == 1.0, 6.0, -6.0)
    found, true = box_grid.boxes_of(numbers), rays.truth(frame)
    assert detection_score.average_precision([found], [true], kind=CAR, within_m=0.01) == 1.0
    nearest = np.linalg.norm(found.centre[:, None] - true.centre[None], axis=-1).argmin(axis=1)
    assert np.allclose(found.size[:, :2], true.size[nearest, :2], atol=1e-3)
    assert np.allclose(np.sin(2 * (found.yaw - true.yaw[nearest])), 0, atol=1e-3)


def test_a_pixel_is_lifted_to_where_its_ray_goes() -> None:
    """All features of one camera's middle column at one distance fall on the camera's axis."""
    table = bev_network.frustum_cells().reshape(6, len(bev_network.DEPTHS_M), 8, 22)
    distance = bev_network.DEPTHS_M.index(9.5)
    ahead, left = divmod(int(table[0, distance, 0, 11]), rays.GRID_CELLS)
    assert (ahead - 31.5, left - 31.5) == pytest.approx((9.5, -0.2), abs=1.0)


class Oracle(pipeline.Pipeline):
    """A chain whose heads say the truth: what is left are the stages behind them."""

    def run(self, frame: rays.Frame) -> pipeline.Result:
        self.frame = frame
        return super().run(frame)

    def heads(self, grid: object, pillars: object) -> tuple[Boxes, scenes.Flags]:
        return rays.truth(self.frame), rays.road_truth(self.frame)


def test_with_true_boxes_the_tracker_foresees_and_odometry_backwards_does_not(network: bev_network.BirdsEye) -> None:
    drives = held_out.drives(scenes_seen=2, frames=7)
    right = held_out.score(Oracle(network), drives, latency_s=0.1)
    backwards = held_out.score(Oracle(network, odometry_sign=-1), drives, latency_s=0.1)
    assert right.fine_ap > 0.95
    assert right.later_ap > 0.9
    assert right.later_ap > right.unmoved_ap + 0.3
    assert backwards.later_ap < 0.5 * right.later_ap
    assert right.road_iou == 1.0


def test_a_detector_is_trained_once_and_says_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(bev_training, "KEPT", tmp_path)
    monkeypatch.setattr(bev_training, "HELD_OUT_SEEDS", (900_000,))
    short = bev_training.Recipe(scenes=2, steps=2, batch=1)
    first, second = bev_training.detector(short), bev_training.detector(short)
    said = capsys.readouterr().out.splitlines()
    assert len(said) == 2
    assert all(line.startswith("detector: measured ") for line in said)
    assert ["trained now" in line for line in said] == [True, False]
    assert all(torch.equal(a, b) for a, b in zip(first.parameters(), second.parameters(), strict=True))


def test_the_detector_that_comes_with_the_book_is_of_its_recipe_and_as_good_as_it_says() -> None:
    """Its name carries the recipe: who changes that trains another, as the head of the module says."""
    shipped = bev_training.shipped_path()
    assert list(shipped.parent.iterdir()) == [shipped]
    said = kept_models.loaded(shipped)
    network = bev_network.BirdsEye()
    network.load_state_dict(said["weights"])
    frames = [rays.frame(scenes.scene(seed), 1.0) for seed in bev_training.HELD_OUT_SEEDS]
    found, roads = bev_training.detections(network.eval(), frames)
    true = [rays.truth(frame) for frame in frames]
    assert detection_score.average_precision(found, true, kind=scenes.CAR, within_m=2.0) == pytest.approx(
        said["car_ap"], abs=0.02
    )
    assert detection_score.road_iou(roads, [rays.road_truth(frame) for frame in frames]) == pytest.approx(
        said["road_iou"], abs=0.02
    )


def test_training_lowers_the_loss() -> None:
    frames = [rays.frame(scenes.scene(seed), 0.0) for seed in range(2)]
    network, _ = bev_training.trained(bev_training.Recipe(scenes=2, steps=12, batch=1))
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(bev_training.SEED)
        before = bev_network.BirdsEye()
    wanted, given = box_grid.targets(frames), bev_network.batch(frames)
    with torch.no_grad():
        losses = [box_grid.loss(one.train()(*given), wanted).item() for one in (before, network)]
    assert losses[1] < 0.7 * losses[0]
