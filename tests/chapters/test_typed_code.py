"""What chapter 4 types in sight is what the library runs: the network and the tracker."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from threeloops.measure.driving import bev_network, tracking
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
def test_the_network_of_the_chapter_is_the_librarys_to_the_bit() -> None:
    names = typed("typed-backbone", "typed-lift", "typed-heads")
    torch.manual_seed(3)
    network = bev_network.BirdsEye().eval()
    backbone, heads = names["Backbone"]().eval(), names["Heads"]().eval()
    backbone.load_state_dict(network.backbone.state_dict())
    heads.load_state_dict(network.heads.state_dict())
    images, pillars = small_world()
    said = heads(names["lift"](backbone(images), network.lift.cell), pillars)
    assert all(map(torch.equal, said, network(images, pillars)))
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
