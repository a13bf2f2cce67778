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
    """A detector whose cameras take turns in so many groups; one group is everybody in every frame."""

    def __init__(self, network: BirdsEye, pieces: Pieces, *, groups: int) -> None:
        checks.divides(part="groups", part_value=groups, whole="cameras", whole_value=CAMERAS)
        self.pieces = pieces
        self.members = [list(range(first, CAMERAS, groups)) for first in range(groups)]
        self.lifts = [TableLift(network.lift, cameras=members) for members in self.members]
        self.reset()

    def reset(self) -> None:
        """Forget what was seen: another drive begins."""
        self.turn = 0
        self.seen: dict[int, _Seen] = {}
        self.fresh: list[int] = []

    def run(self, frame: rays.Frame) -> tuple[Tensor, Tensor]:
        """(boxes, road) of this frame. The first frames look at more than one group, until each has had a turn."""
        images, pillars = bev_network.batch([frame])
        return self.looked_and_answered(images, pillars, frame.ego)

    def looked_and_answered(self, images: Tensor, pillars: Tensor, ego: Pose) -> tuple[Tensor, Tensor]:
        self.look(images, ego)
        return self.answer(pillars, ego)

    @torch.no_grad()
    def look(self, images: Tensor, ego: Pose) -> None:
        """The pictures of those whose turn it is, through the backbone and into a map that is kept."""
        groups = len(self.members)
        self.fresh = [self.turn] if len(self.seen) == groups else list(range(groups))
        self.turn = (self.turn + 1) % groups
        for group in self.fresh:
            features = self.pieces.backbone(images[self.members[group]])
            self.seen[group] = _Seen(grid=self.lifts[group](features), ego=ego)

    @torch.no_grad()
    def answer(self, pillars: Tensor, ego: Pose, *, aligned: bool = True) -> tuple[Tensor, Tensor]:
        """(boxes, road) from all maps that are kept and this frame's LiDAR.

        aligned=False leaves old maps where they are, as if the vehicle had not moved: a mistake, to see what it costs.
        """
        parts = [
            moved_map(seen.grid, seen.ego, ego) if aligned and group not in self.fresh else seen.grid
            for group, seen in self.seen.items()
        ]
        return self.pieces.heads(torch.stack(parts).sum(0), pillars)


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
        count: partial(turns.looked_and_answered, images, pillars, frame.ego) for count, turns in cameras.items()
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


def scores(
    network: BirdsEye, pieces: Pieces, sequences: Sequence[Sequence[rays.Frame]], *, groups: int
) -> dict[str, Score]:
    """The score of the last frame of each sequence, with the old maps "aligned" and "not aligned": two answers from
    the same looks. The frames before are looked at and need no answer.
    """
    turns = CameraTurns(network, pieces, groups=groups)
    said: dict[str, list[tuple[Tensor, Tensor]]] = {"aligned": [], "not aligned": []}
    for sequence in sequences:
        turns.reset()
        for frame in sequence:
            turns.look(bev_network.as_pictures(frame.images), frame.ego)
        pillars = bev_network.as_pillars(sequence[-1].points)
        for way, answers in said.items():
            answers.append(turns.answer(pillars, sequence[-1].ego, aligned=way == "aligned"))
    lasts = [sequence[-1] for sequence in sequences]
    return {way: faster_network.judged(answers, lasts) for way, answers in said.items()}
