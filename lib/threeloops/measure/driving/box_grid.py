"""Boxes as the network learns and says them: a heat map for each kind, and in the cell of each centre its offset, its
size and its direction (as in CenterPoint, Yin et al., 2021, arXiv:2006.11275).
"""

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from threeloops.simulate.driving import rays
from threeloops.simulate.driving.scenes import Boxes

LEAST_SCORE, MOST_BOXES = 0.1, 40
APART_M = np.array([2.2, 0.6])  # two cars, or two pedestrians, never stand closer: the weaker box is dropped
SPREAD_CELLS = 0.8  # how far the heat of a centre reaches
HEIGHT_M = (1.65, 1.7)  # a bird's-eye view tells no heights: the middle ones


def targets(frames: Sequence[rays.Frame]) -> tuple[Tensor, Tensor, Tensor]:
    """(heat and box numbers, 1 where a centre is, road) of frames: (n, 8, c, c), (n, 1, c, c), (n, 1, c, c)."""
    cells = rays.GRID_CELLS
    wanted, centres = np.zeros((len(frames), 8, cells, cells)), np.zeros((len(frames), 1, cells, cells))
    roads = np.stack([rays.road_truth(frame) for frame in frames])[:, None]
    middle = np.arange(cells) + 0.5
    for number, frame in enumerate(frames):
        true = rays.truth(frame)
        place = (true.centre + rays.HALF_GRID_M) / rays.CELL_M
        for row in range(len(true)):
            ahead, left = place[row]
            heat = np.exp(-((middle[:, None] - ahead) ** 2 + (middle - left) ** 2) / (2 * SPREAD_CELLS**2))
            i, j = int(ahead), int(left)
            heat[i, j] = 1.0
            kind, yaw = true.kind[row], 2 * true.yaw[row]
            wanted[number, kind] = np.maximum(wanted[number, kind], heat)
            said = (ahead - i - 0.5, left - j - 0.5, *np.log(true.size[row, :2]), np.sin(yaw), np.cos(yaw))
            wanted[number, 2:, i, j] = said
            centres[number, 0, i, j] = 1.0
    heat_and_boxes, where, road = (torch.from_numpy(grid).float() for grid in (wanted, centres, roads))
    return heat_and_boxes, where, road


def loss(said: tuple[Tensor, Tensor], wanted: tuple[Tensor, Tensor, Tensor]) -> Tensor:
    """Focal loss of the heat (as in CenterNet), distance of the box numbers where a centre is, cross-entropy of the
    road.
    """
    boxes, road = said
    target, where, road_target = wanted
    heat, hot = boxes[:, :2], target[:, :2]
    share = heat.sigmoid().clamp(1e-4, 1 - 1e-4)
    peak = hot == 1.0
    lost = torch.where(
        peak, (1 - share) ** 2 * share.log(), (1 - hot) ** 4 * share**2 * (1 - share).log()
    )  # fmt: skip
    centres = where.sum().clamp(min=1.0)
    numbers = (functional.smooth_l1_loss(boxes[:, 2:], target[:, 2:], reduction="none", beta=0.1) * where).sum()
    return (
        -lost.sum() / centres
        + 2.0 * numbers / centres
        + 3.0 * functional.binary_cross_entropy_with_logits(road, road_target)
    )


def boxes_of(grid: Tensor) -> Boxes:
    """The boxes that one frame's numbers (8, cells, cells) say: each peak of the heat, in the vehicle's frame."""
    heat = grid[:2].sigmoid()
    peaks = heat * (functional.max_pool2d(heat[None], 3, stride=1, padding=1)[0] == heat)
    score, where = peaks.flatten().topk(MOST_BOXES)
    where = where[score > LEAST_SCORE]
    numbers = grid[2:].flatten(1)[:, where % rays.GRID_CELLS**2].T.double().numpy()
    cell = (where % rays.GRID_CELLS**2).numpy()
    kind = (where // rays.GRID_CELLS**2).numpy()
    middle = np.stack([cell // rays.GRID_CELLS, cell % rays.GRID_CELLS], axis=-1) + 0.5
    yaw = np.arctan2(numbers[:, 4], numbers[:, 5]) / 2
    said = Boxes(
        ids=np.arange(len(cell)),
        kind=kind,
        centre=(middle + numbers[:, :2]) * rays.CELL_M - rays.HALF_GRID_M,
        size=np.column_stack([np.exp(numbers[:, 2:4]), np.take(HEIGHT_M, kind)]),
        yaw=yaw,
        velocity=np.zeros((len(cell), 2)),
        score=score[score > LEAST_SCORE].double().numpy(),
    )
    return said.only(_strongest(said))


def _strongest(said: Boxes) -> NDArray[np.bool_]:
    """Which boxes have no stronger one of their kind in their place; they come in the order of their scores."""
    away = np.linalg.norm(said.centre[:, None] - said.centre[None], axis=-1)
    clash = (away < APART_M[said.kind][:, None]) & (said.kind[:, None] == said.kind[None])
    stays = np.ones(len(said), dtype=bool)
    for row in range(len(said)):
        if stays[row]:
            stays[row + 1 :] &= ~clash[row, row + 1 :]
    return stays
