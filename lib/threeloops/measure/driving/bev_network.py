"""A small perception network: six pictures and a LiDAR sweep in, a bird's-eye view of cars, pedestrians and road out.

One convolutional backbone reads every picture. The lift spreads each picture's features over 24 distances along each
pixel's ray, in the shares that the network gives to the distances, and sums what falls into one cell of the grid, as
lift-splat does (Philion and Fidler, 2020, arXiv:2008.05711). LiDAR points become pillars: a few numbers a cell. The
heads read both.

>>> network = BirdsEye()
>>> network.num_parameters
648065
"""

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

from threeloops.simulate.driving import rays

CAMERAS = len(rays.CAMERA_YAWS_RAD)
STRIDE = 8  # pixels of the picture for each pixel of the features
DEPTHS_M = tuple(2.0 + 1.5 * step for step in range(24))
CONTEXT = 32  # numbers that the lift carries from a picture into a cell
PILLAR = 13
HEIGHTS_M = (0.15, 0.5, 1.0, 1.4, 1.9)  # between them, points of a cell are counted
BOX = 8  # of each cell: two kinds, offset (2), log of length and width (2), sine and cosine of twice the yaw (2)


def _convolution(inside: int, outside: int, stride: int = 1) -> nn.Sequential:
    return nn.Sequential(
        nn.Conv2d(inside, outside, 3, stride=stride, padding=1, bias=False), nn.BatchNorm2d(outside), nn.ReLU()
    )


class Backbone(nn.Module):
    """Pictures (n, 3, 64, 176) to (n, depths + context, 8, 22)."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            _convolution(3, 24, 2), _convolution(24, 40, 2), _convolution(40, 40), _convolution(40, 40),
            _convolution(40, 80, 2), _convolution(80, 80), _convolution(80, 112), _convolution(112, 112),
        )  # fmt: skip
        self.out = nn.Conv2d(112, len(DEPTHS_M) + CONTEXT, 1)

    def forward(self, images: Tensor) -> Tensor:
        out: Tensor = self.out(self.layers(images))
        return out


class Lift(nn.Module):
    """Features of the pictures to (frames, context, cells, cells): which cell each pixel and depth falls into is fixed
    by where the cameras stand, so it is computed once.
    """

    def __init__(self, camera_turned_deg: float = 0.0) -> None:
        super().__init__()
        self.register_buffer("cell", torch.from_numpy(frustum_cells(camera_turned_deg)), persistent=False)

    def forward(self, features: Tensor) -> Tensor:
        cell = self.cell
        assert isinstance(cell, Tensor)
        shares = features[:, : len(DEPTHS_M)].softmax(dim=1)
        context = features[:, len(DEPTHS_M) :]
        # (frames, cameras, depths, rows, columns, context), as the table of cells is ordered
        spread = shares[..., None] * context.permute(0, 2, 3, 1)[:, None]
        spread = spread.reshape(-1, cell.numel(), CONTEXT)
        grid = spread.new_zeros(len(spread), rays.GRID_CELLS**2 + 1, CONTEXT)  # the last cell: outside
        grid = grid.index_add(1, cell, spread)[:, :-1]
        return grid.transpose(1, 2).reshape(-1, CONTEXT, rays.GRID_CELLS, rays.GRID_CELLS)


def frustum_cells(camera_turned_deg: float = 0.0) -> NDArray[np.int64]:
    """The grid's cell of each camera, depth, row and column of features; the number past the last one is outside.

    camera_turned_deg: how far the cameras are believed to be turned beside what they are: 0, unless a mistake is meant
    """
    rows, columns = rays.IMAGE_ROWS // STRIDE, rays.IMAGE_COLUMNS // STRIDE
    right = ((np.arange(columns) + 0.5) * STRIDE - rays.IMAGE_COLUMNS / 2) / rays.FOCAL_PX
    angles = (rays.CAMERA_YAWS_RAD + np.radians(camera_turned_deg))[:, None] - np.arctan(right)
    away = np.array(DEPTHS_M)[None, :, None]  # in plan
    ahead = np.floor((away * np.cos(angles)[:, None] + rays.HALF_GRID_M) / rays.CELL_M).astype(np.int64)
    left = np.floor((away * np.sin(angles)[:, None] + rays.HALF_GRID_M) / rays.CELL_M).astype(np.int64)
    inside = (ahead >= 0) & (ahead < rays.GRID_CELLS) & (left >= 0) & (left < rays.GRID_CELLS)
    cell = np.where(inside, ahead * rays.GRID_CELLS + left, rays.GRID_CELLS**2)
    whole = np.broadcast_to(cell[:, :, None, :], (CAMERAS, len(DEPTHS_M), rows, columns))
    return np.ascontiguousarray(whole).reshape(-1)


class Heads(nn.Module):
    """Grid and pillars to (boxes (frames, 8, cells, cells), road (frames, 1, cells, cells))."""

    def __init__(self) -> None:
        super().__init__()
        self.near = nn.Sequential(_convolution(CONTEXT + PILLAR, 48), _convolution(48, 48))
        self.wide = nn.Sequential(
            _convolution(48, 96, 2), _convolution(96, 96), _convolution(96, 96), nn.Conv2d(96, 48, 1)
        )
        self.joined = _convolution(48 + 48, 48)
        self.boxes = nn.Sequential(_convolution(48, 40), nn.Conv2d(40, BOX, 1))
        self.road = nn.Sequential(_convolution(48, 24), nn.Conv2d(24, 1, 1))

    def forward(self, grid: Tensor, pillars: Tensor) -> tuple[Tensor, Tensor]:
        near = self.near(torch.cat([grid, pillars], dim=1))
        wide = functional.interpolate(self.wide(near), scale_factor=2.0, mode="nearest")
        joined = self.joined(torch.cat([near, wide], dim=1))
        return self.boxes(joined), self.road(joined)


class BirdsEye(nn.Module):
    """The whole network; the pipeline calls its pieces one by one."""

    def __init__(self) -> None:
        super().__init__()
        self.backbone, self.lift, self.heads = Backbone(), Lift(), Heads()
        last = self.heads.boxes[-1]
        assert isinstance(last, nn.Conv2d)
        assert last.bias is not None
        nn.init.constant_(last.bias[:2], -4.0)  # most cells hold nobody: begin by saying so

    @property
    def num_parameters(self) -> int:
        return sum(parameter.numel() for parameter in self.parameters())

    def forward(self, images: Tensor, pillars: Tensor) -> tuple[Tensor, Tensor]:
        boxes, road = self.heads(self.lift(self.backbone(images)), pillars)
        return boxes, road


def as_pictures(images: NDArray[np.uint8]) -> Tensor:
    """(n, rows, columns, 3) of bytes to (n, 3, rows, columns) around zero."""
    return torch.from_numpy(images).permute(0, 3, 1, 2).float().sub_(115.0).div_(60.0).contiguous()


def as_pillars(points: NDArray[np.float32]) -> Tensor:
    """(points, 4) to (1, 13, cells, cells): counts by height, the highest, and of what stands above the ground the mean
    place in the cell, the mean reflectance and the extent in the cell.
    """
    cells = rays.GRID_CELLS
    place = (points[:, :2] + rays.HALF_GRID_M) / rays.CELL_M
    inside = ((place >= 0) & (place < cells)).all(axis=1)
    place, height, shine = place[inside], points[inside, 2], points[inside, 3]
    cell = (place[:, 0].astype(np.int64)) * cells + place[:, 1].astype(np.int64)
    sheet = np.digitize(height, HEIGHTS_M)
    counted = np.bincount(cell * 6 + sheet, minlength=cells**2 * 6).reshape(cells**2, 6)[:, :5]
    above = height > HEIGHTS_M[0]
    standing = cell[above]
    many = np.maximum(np.bincount(standing, minlength=cells**2), 1)
    offset = place[above] - np.floor(place[above]) - 0.5
    means = [
        np.bincount(standing, weights=values, minlength=cells**2) / many
        for values in (offset[:, 0], offset[:, 1], shine[above])
    ]
    highest = np.zeros(cells**2)
    np.maximum.at(highest, standing, height[above])
    extents = np.zeros((4, cells**2))  # in each direction from the middle of the cell
    for extent, toward in zip(extents, (offset[:, 0], offset[:, 1], -offset[:, 0], -offset[:, 1]), strict=True):
        np.maximum.at(extent, standing, toward + 0.5)
    numbers = np.column_stack([np.log1p(counted), highest, *means, *extents]).astype(np.float32)
    return torch.from_numpy(np.ascontiguousarray(numbers.T)).view(1, PILLAR, cells, cells)


def batch(frames: Sequence[rays.Frame]) -> tuple[Tensor, Tensor]:
    """Frames as the network wants them: the cameras of all frames behind one another."""
    pictures = torch.cat([as_pictures(frame.images) for frame in frames])
    return pictures, torch.cat([as_pillars(frame.points) for frame in frames])
