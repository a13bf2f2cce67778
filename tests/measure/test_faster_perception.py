"""The detector in other ways: the same answers where they should be the same, and where not, why."""

from dataclasses import replace

import numpy as np
import onnx
import pytest
import torch
from onnx import numpy_helper
from torch import Tensor, nn

from threeloops.measure.driving import bev_network, faster_network, occupied_cells, onnx_engine, sparse_lift
from threeloops.measure.driving import temporal_reuse as reuse
from threeloops.measure.driving.bev_network import BirdsEye
from threeloops.simulate.driving import rays, scenes
from threeloops.simulate.driving.scenes import Pose

Answer = tuple[Tensor, Tensor]


@pytest.fixture(scope="module")
def network() -> BirdsEye:
    """Not trained, but with norms that do something."""
    torch.manual_seed(0)
    made = BirdsEye().eval().requires_grad_(False)
    for part in made.modules():
        if isinstance(part, nn.BatchNorm2d):
            part.running_mean.uniform_(-0.5, 0.5)
            part.running_var.uniform_(0.5, 2.0)
            part.weight.uniform_(0.5, 1.5)
            part.bias.uniform_(-0.2, 0.2)
    return made


@pytest.fixture(scope="module")
def frame() -> rays.Frame:
    return rays.frame(scenes.scene(5), 1.0)


@pytest.fixture(scope="module")
def told(network: BirdsEye, frame: rays.Frame) -> Answer:
    answer: Answer = network(*bev_network.batch([frame]))
    return answer


def same(one: Answer, other: Answer) -> None:
    for a, b in zip(one, other, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-3, atol=1e-3)


def test_ways_that_only_save_time_answer_the_same(network: BirdsEye, frame: rays.Frame, told: Answer) -> None:
    given = bev_network.batch([frame])
    plain = faster_network.with_norms_folded(network)
    table = replace(plain, lift=sparse_lift.TableLift(network.lift))
    for way in (faster_network.encoder_per_task(network, tasks=3), faster_network.channels_last(network), plain, table):
        same(way(*given), told)
    kinds = [type(part) for part in faster_network.folded(network).modules()]
    assert nn.BatchNorm2d not in kinds


def test_without_the_road_the_boxes_stay(network: BirdsEye, frame: rays.Frame, told: Answer) -> None:
    boxes, _ = faster_network.boxes_only(network)(*bev_network.batch([frame]))
    torch.testing.assert_close(boxes, told[0], rtol=1e-3, atol=1e-3)


def test_boxes_on_occupied_cells_are_exact_there_and_silent_elsewhere(
    network: BirdsEye, frame: rays.Frame, told: Answer
) -> None:
    images, pillars = bev_network.batch([frame])
    where = occupied_cells.occupied(pillars, around=2)
    boxes, road = occupied_cells.boxes_where_occupied(network, around=2)(images, pillars)
    assert 0.01 < where.float().mean() < 0.5
    torch.testing.assert_close(boxes[..., where], told[0][..., where], rtol=1e-3, atol=1e-3)
    assert (boxes[..., ~where] == occupied_cells.NOBODY).all()
    torch.testing.assert_close(road, told[1], rtol=1e-3, atol=1e-3)
    dense, sparse = occupied_cells.box_heads(network, frame)
    torch.testing.assert_close(sparse()[..., where], dense()[..., where], rtol=1e-3, atol=1e-3)


def test_all_cameras_in_one_group_are_the_network(network: BirdsEye, frame: rays.Frame, told: Answer) -> None:
    whole = reuse.CameraTurns(network, faster_network.as_trained(network), groups=1)
    same(whole.run(frame), told)
    same(whole.run(frame), told)


def test_a_vehicle_that_stands_still_can_let_its_cameras_take_turns(
    network: BirdsEye, frame: rays.Frame, told: Answer
) -> None:
    turns = reuse.CameraTurns(network, faster_network.as_trained(network), groups=3)
    for _ in range(4):
        same(turns.run(frame), told)


def test_a_map_is_moved_back_by_as_much_as_the_vehicle_went_on() -> None:
    grid = torch.zeros(1, 1, rays.GRID_CELLS, rays.GRID_CELLS)
    grid[0, 0, 40, 20] = 1.0
    then, ahead = Pose(x_m=3.0, y_m=4.0, yaw_rad=0.5), np.array([np.cos(0.5), np.sin(0.5)])
    now = replace(then, x_m=3.0 + 5 * ahead[0], y_m=4.0 + 5 * ahead[1])
    moved = reuse.moved_map(grid, then, now)
    assert moved[0, 0, 35, 20] == pytest.approx(1.0, abs=1e-4)  # five metres nearer
    assert moved.sum() == pytest.approx(1.0, abs=1e-3)


def test_two_answers_from_the_same_looks_are_those_of_a_drive(network: BirdsEye) -> None:
    """As if every frame had been answered, each way on its own."""
    drive, pieces = rays.frames(5, 3), faster_network.as_trained(network)
    turns = reuse.CameraTurns(network, pieces, groups=3)
    *_, last = [turns.run(one) for one in drive]
    found = reuse.scores(network, pieces, [drive], groups=3)
    assert found["aligned"] == faster_network.judged([last], drive[-1:])
    unmoved = turns.answer(bev_network.as_pillars(drive[-1].points), drive[-1].ego, aligned=False)
    assert found["not aligned"] == faster_network.judged([unmoved], drive[-1:])
    assert not torch.allclose(unmoved[1], last[1])


def test_what_is_timed_while_it_is_judged_gets_the_same_score(network: BirdsEye, frame: rays.Frame) -> None:
    ways = {"once": faster_network.as_trained(network), "thrice": faster_network.encoder_per_task(network, tasks=3)}
    taken, scores = faster_network.scored_in_turns(ways, [frame])
    assert scores == dict.fromkeys(ways, faster_network.score(ways["once"], [frame]))
    assert 0 < min(taken.values()) < float("inf")


def test_only_one_group_a_frame_is_looked_at(network: BirdsEye, frame: rays.Frame) -> None:
    seen: list[int] = []

    def backbone(images: Tensor) -> Tensor:
        seen.append(len(images))
        features: Tensor = network.backbone(images)
        return features

    turns = reuse.CameraTurns(network, replace(faster_network.as_trained(network), backbone=backbone), groups=3)
    for _ in range(3):
        turns.run(frame)
    assert seen == [2, 2, 2, 2, 2]  # all three groups at first, then one a frame
    with pytest.raises(ValueError, match="groups"):
        reuse.CameraTurns(network, faster_network.as_trained(network), groups=4)


def small_piece() -> tuple[nn.Module, list[Tensor], bytes]:
    torch.manual_seed(0)
    piece = nn.Sequential(
        nn.Conv2d(3, 8, 3, padding=1), nn.ReLU(), nn.Conv2d(8, 8, 3, padding=1), nn.ReLU(), nn.Conv2d(8, 2, 1)
    ).eval()
    seen = [torch.rand(2, 3, 16, 16) for _ in range(4)]
    return piece, seen, onnx_engine.exported(piece, seen[0])


def test_calibrated_convolutions_answer_nearly_the_same_and_the_last_one_stays() -> None:
    piece, seen, graph = small_piece()
    for quantised in (onnx_engine.calibrated, onnx_engine.for_tensorrt):
        for outputs_in_fp32, int8 in ((True, 2), (False, 3)):
            made = quantised(graph, seen, outputs_in_fp32=outputs_in_fp32)
            assert onnx_engine.convolutions(made) == {"fp32": 3 - int8, "int8": int8}
            assert onnx_engine.layers(made) == {"Conv": 3, "Relu": 2}
            with torch.no_grad():
                torch.testing.assert_close(
                    onnx_engine.Engine(made, fuse=True)(seen[0]), piece(seen[0]), rtol=0.1, atol=0.03
                )


def test_int8_is_symmetric_and_ends_at_127() -> None:
    piece, seen, graph = small_piece()
    largest = piece[0].weight.detach().abs().amax(dim=(1, 2, 3)).numpy()  # a scale for each output channel
    for quantised, most in ((onnx_engine.calibrated, 64), (onnx_engine.for_tensorrt, 127)):
        model = onnx.load_from_string(quantised(graph, seen, outputs_in_fp32=True))
        held = {one.name: numpy_helper.to_array(one) for one in model.graph.initializer}
        entry = next(node for node in model.graph.node if node.input[0] == model.graph.input[0].name)
        assert held[entry.input[1]] == pytest.approx(max(float(one.max()) for one in seen) / 127, rel=1e-5)
        assert any(array.shape == (8,) and np.allclose(array, largest / most, rtol=1e-5) for array in held.values())
        integers = [array for array in held.values() if array.dtype == np.int8 and array.ndim == 4]
        assert all(abs(array.astype(int)).max() == most for array in integers)
        assert bool(integers) == (quantised is onnx_engine.calibrated)  # TensorRT rounds the weights itself


def test_tensorrt_would_refuse_what_the_processor_likes() -> None:
    _, seen, graph = small_piece()
    ours = onnx_engine.calibrated(graph, seen, outputs_in_fp32=False)
    assert onnx_engine.refused_by_tensorrt(ours) == ["3 bias in INT32", "3 convolution's own output rounded"]
    assert onnx_engine.refused_by_tensorrt(onnx_engine.for_tensorrt(graph, seen, outputs_in_fp32=False)) == []
    assert onnx_engine.refused_by_tensorrt(graph) == []


def test_every_way_has_its_turn_in_every_round() -> None:
    called: list[str] = []
    found = faster_network.in_turns(
        {"a": lambda: called.append("a"), "b": lambda: called.append("b")}, rounds=3, warmup=1
    )
    assert called == ["a", "b"] * 4
    assert set(found) == {"a", "b"}
