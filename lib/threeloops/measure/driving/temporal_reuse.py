"""Temporal reuse: cameras take turns. In each frame one group of them goes through the backbone; what the others saw
last stays in the bird's-eye map, moved by as much as the vehicle has moved since.

Moving a map by the vehicle's own motion puts the road back in its place, and parked cars. What has moved by itself
since is where it was: its features are as old as the group's turn.

Source: Huang and Huang, BEVDet4D, 2022, arXiv:2203.17054 (maps of earlier frames, aligned by the vehicle's motion)
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from threeloops import checks
from threeloops.measure.driving import bev_network, faster_network
from threeloops.measure.driving.bev_network import CAMERAS, BirdsEye
from threeloops.measure.driving.faster_network import Pieces, Score
from threeloops.measure.driving.sparse_lift import TableLift
from threeloops.simulate.driving import rays, scenes
from threeloops.simulate.driving.scenes import Pose

PERIOD_S = 0.1
JUDGED_AT_S = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class _Seen:
    """What one group saw when it had its turn: its part of the map, in the vehicle's frame of that moment."""

    grid: Tensor
    ego: Pose


class CameraTurns:
    """A detector whose cameras take turns in so many groups; one group is everybody in every frame.

    aligned=False leaves old maps where they are, as if the vehicle had not moved: a mistake, to see what it costs.
    """

    def __init__(self, network: BirdsEye, pieces: Pieces, *, groups: int, aligned: bool = True) -> None:
        checks.divides(part="groups", part_value=groups, whole="cameras", whole_value=CAMERAS)
        self.pieces, self.aligned = pieces, aligned
        self.members = [list(range(first, CAMERAS, groups)) for first in range(groups)]
        self.lifts = [TableLift(network.lift, cameras=members) for members in self.members]
        self.turn = 0
        self.seen: dict[int, _Seen] = {}

    @torch.no_grad()
    def run(self, frame: rays.Frame) -> tuple[Tensor, Tensor]:
        """(boxes, road) of this frame. The first frames look at more than one group, until each has had a turn."""
        images, pillars = bev_network.batch([frame])
        return self.answer(images, pillars, frame.ego)

    def answer(self, images: Tensor, pillars: Tensor, ego: Pose) -> tuple[Tensor, Tensor]:
        groups = len(self.members)
        fresh = [self.turn] if len(self.seen) == groups else list(range(groups))
        self.turn = (self.turn + 1) % groups
        for group in fresh:
            features = self.pieces.backbone(images[self.members[group]])
            self.seen[group] = _Seen(grid=self.lifts[group](features), ego=ego)
        parts = [self._now(group, ego, old=group not in fresh) for group in range(groups)]
        return self.pieces.heads(torch.stack(parts).sum(0), pillars)

    def _now(self, group: int, ego: Pose, *, old: bool) -> Tensor:
        seen = self.seen[group]
        return moved_map(seen.grid, seen.ego, ego) if old and self.aligned else seen.grid


def moved_map(grid: Tensor, then: Pose, now: Pose) -> Tensor:
    """A map (1, channels, cells, cells) of the vehicle's frame then, as it lies in its frame now: each new cell reads
    between the four old ones around its place; what was outside is empty.
    """
    places = then.into_vehicle(now.into_world(rays.cells())) / rays.HALF_GRID_M
    # grid_sample counts the last axis, left, first.
    read = torch.from_numpy(np.ascontiguousarray(places[None, ..., ::-1])).to(grid.dtype)
    return functional.grid_sample(grid, read, mode="bilinear", padding_mode="zeros", align_corners=False)


def parts(network: BirdsEye, pieces: Pieces, frame: rays.Frame, *, groups: Sequence[int]) -> dict[int | str, float]:
    """Seconds of a frame for each number of groups, and of what they are made of: the "backbone" on all cameras, and
    one "move" of a map.
    """
    images, pillars = bev_network.batch([frame])
    cameras = {count: CameraTurns(network, pieces, groups=count) for count in groups}
    grid = torch.zeros(1, bev_network.CONTEXT, rays.GRID_CELLS, rays.GRID_CELLS)
    ways: dict[int | str, Callable[[], object]] = {
        count: partial(turns.answer, images, pillars, frame.ego) for count, turns in cameras.items()
    }
    ways["backbone"] = partial(pieces.backbone, images)
    ways["move"] = partial(moved_map, grid, frame.ego, frame.ego)
    return faster_network.in_turns(ways, rounds=15, warmup=max(groups) + 1)


def frames_before(seeds: Sequence[int], *, groups: int) -> list[list[rays.Frame]]:
    """For each scene as many frames as it takes until every group's turn is as old as it gets; the last one is
    judged.
    """
    moments = [JUDGED_AT_S - PERIOD_S * back for back in reversed(range(groups))]
    return [[rays.frame(scenes.scene(seed), moment) for moment in moments] for seed in seeds]


def score(
    network: BirdsEye, pieces: Pieces, sequences: Sequence[Sequence[rays.Frame]], *, groups: int, aligned: bool = True
) -> Score:
    """The score of the last frame of each sequence."""
    said = []
    for sequence in sequences:
        turns = CameraTurns(network, pieces, groups=groups, aligned=aligned)
        for frame in sequence:
            answer = turns.run(frame)
        said.append(answer)
    return faster_network.judged(said, [sequence[-1] for sequence in sequences])
