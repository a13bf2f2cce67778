"""What chapter 4 types in sight is what the library runs: the network, the tracker, the export and its Q/DQ pairs."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
import torch
from onnx import helper, numpy_helper
from onnxruntime import InferenceSession

from threeloops.measure.driving import bev_network, onnx_engine, tracking
from threeloops.measure.driving.faster_network import folded
from threeloops.simulate.driving import rays, scenes

CHAPTER = Path(__file__).parents[2] / "chapters" / "4_driving_case_study.ipynb"
BACKBONE = "BACKBONE = ("


def typed(*ids: str, **given: Any) -> dict[str, Any]:
    """What the cells with these ids define, run in their order on what they are given."""
    cells = json.loads(CHAPTER.read_text(encoding="utf-8"))["cells"]
    held = {cell["id"]: "".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"}
    (table,) = [text for text in held.values() if text.startswith(BACKBONE)]
    names: dict[str, Any] = {"np": np, "torch": torch, **given}
    exec(table.partition("\nlayers = ")[0], names)
    for name in ids:
        exec(held[name], names)
    return names


def small_world() -> tuple[torch.Tensor, torch.Tensor]:
    return bev_network.batch([rays.frame(scenes.scene(5), 1.0)])


@torch.no_grad()
def test_the_network_of_the_chapter_is_the_librarys() -> None:
    """Within 1e-4: another machine's kernels may add up in another order."""
    names = typed("typed-backbone", "typed-lift", "typed-heads")
    torch.manual_seed(3)
    network = bev_network.BirdsEye().eval()
    backbone, heads = names["Backbone"]().eval(), names["Heads"]().eval()
    backbone.load_state_dict(network.backbone.state_dict())
    heads.load_state_dict(network.heads.state_dict())
    images, pillars = small_world()
    said = heads(names["lift"](backbone(images), network.lift.cell), pillars)
    for ours, theirs in zip(said, network(images, pillars), strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-4)
    count = sum(one.numel() for part in (backbone, heads) for one in part.parameters())
    assert count == network.num_parameters


def cars_at(centres: np.ndarray) -> scenes.Boxes:
    n = len(centres)
    return scenes.Boxes(
        ids=np.arange(n), kind=np.zeros(n, dtype=np.int64), centre=centres, size=np.ones((n, 3)), yaw=np.zeros(n),
        velocity=np.zeros((n, 2)), score=np.ones(n),
    )  # fmt: skip


def test_the_tracker_of_the_chapter_keeps_the_librarys_states() -> None:
    """Cars that drive, vanish for a while, come back and are new, in an order of their own in each frame."""
    names = typed("typed-filter", "typed-update", "typed-track")
    rng = np.random.default_rng(8)
    start, speed = rng.uniform(-20, 20, (9, 2)), rng.uniform(-6, 6, (9, 2))
    mine: list[Any] = []
    theirs = tracking.Tracker()
    for frame in range(25):
        there = rng.permutation(np.flatnonzero(rng.random(9) < (0.0 if frame in (7, 8, 9, 10) else 0.7)))
        found = start[there] + speed[there] * 0.1 * frame + rng.normal(0, 0.2, (len(there), 2))
        mine = names["update"](mine, found, 0.1)
        theirs.update(cars_at(found), 0.1 * frame)
        assert len(mine) == len(theirs.tracks)
        for one, other in zip(mine, theirs.tracks, strict=True):
            assert one.x == pytest.approx(other.filter.state, rel=1e-9, abs=1e-9)
            assert pytest.approx(other.filter.covariance, rel=1e-9, abs=1e-9) == one.P
            assert one.missed == other.misses
    assert theirs.born > 9  # some have ended and begun again


@torch.no_grad()
def test_the_pairs_of_the_chapter_are_the_librarys() -> None:
    """The same scales on the same tensors, nothing that TensorRT refuses, and an answer that only rounding moves."""
    names = typed("typed-peaks", "typed-pair", "typed-pairs", onnx=onnx, helper=helper, numpy_helper=numpy_helper)
    torch.manual_seed(1)
    piece = folded(bev_network.Backbone().eval())
    seen = [torch.randn(2, 3, 32, 48) for _ in range(3)]
    graph = onnx_engine.exported(piece, seen[0])
    ours = names["with_pairs"](graph, names["peaks"](graph, seen))
    theirs = onnx_engine.for_tensorrt(graph, seen, outputs_in_fp32=True)
    mine, held = names["scales"](ours), names["scales"](theirs)
    assert mine.keys() == held.keys()
    assert all(mine[name] == pytest.approx(held[name], rel=1e-5) for name in mine)
    assert onnx_engine.refused_by_tensorrt(ours) == []
    assert onnx_engine.convolutions(ours) == onnx_engine.convolutions(theirs) == {"fp32": 1, "int8": 8}
    entry = onnx.load_from_string(graph).graph.input[0].name
    exact, rounded = (InferenceSession(one).run(None, {entry: seen[0].numpy()})[0] for one in (graph, ours))
    assert 0 < abs(exact - rounded).max() < 0.05 * abs(exact).max()
    both = InferenceSession(theirs).run(None, {entry: seen[0].numpy()})[0]
    assert abs(both - rounded).max() < abs(exact - rounded).max()
