"""The lift from pictures to the bird's-eye map, twice: through the tensor of all pixels at all depths, and by a table
of places that is made once.

Every pixel has features and a share for each depth; a pixel at a depth lies in one cell of the map, or outside. Which
cell depends on the cameras' calibration alone, so the table holds for every frame. With the table the lift is a sparse
matrix, cells by pixels, times the features: the matrix's places are fixed, its values are the frame's depth shares. It
is still dense work: every pixel at every depth that lies on the map takes part.

>>> import torch
>>> cells = torch.tensor([[[[0, 1]], [[2, 3]]]])  # one camera, two depths, one row of two pixels; 3 is outside
>>> features, depth = torch.tensor([[[[1.0, 10.0]]]]), torch.full((1, 2, 1, 2), 0.5)
>>> through_frustum(features, depth, cells, num_cells=3).tolist(), planned(cells, num_cells=3)(features, depth).tolist()
([[0.5, 5.0, 0.5]], [[0.5, 5.0, 0.5]])

Source: Philion and Fidler, Lift, Splat, Shoot, 2020, arXiv:2008.05711; Huang and Huang, BEVPoolv2, 2022,
        arXiv:2211.17111 (the tensor is never made; places are computed beforehand)
"""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from threeloops.measure.driving.bev_network import CAMERAS, DEPTHS_M, STRIDE, Lift
from threeloops.simulate.driving import rays


def through_frustum(features: Tensor, depth: Tensor, cells: Tensor, *, num_cells: int) -> Tensor:
    """[channels, cells] from features [cameras, channels, h, w], depth shares and cells [cameras, depths, h, w]: every
    pixel's features at every depth are written down, then added up by cell.
    """
    frustum = depth.unsqueeze(1) * features.unsqueeze(2)  # [cameras, channels, depths, h, w]: the largest tensor
    flat = frustum.transpose(0, 1).flatten(1)
    inside = cells.flatten() < num_cells
    out = flat.new_zeros(flat.shape[0], num_cells)
    return out.index_add_(1, cells.flatten()[inside], flat[:, inside])


def frustum_bytes(features: Tensor, depth: Tensor) -> int:
    """Bytes of the tensor that the plain way writes and reads again."""
    return depth.numel() * features.shape[1] * features.element_size()


@dataclass(frozen=True, slots=True)
class Places:
    """What the calibration decides, in the order of the cells: row starts, pixels, and where each one's depth share
    stands.
    """

    starts: Tensor
    pixels: Tensor
    shares: Tensor
    num_pixels: int

    @property
    def stored_bytes(self) -> int:
        return sum(part.nbytes for part in (self.starts, self.pixels, self.shares))

    def __call__(self, features: Tensor, depth: Tensor) -> Tensor:
        """The lift of one frame: fixed places, this frame's depth shares as the values."""
        size = (self.starts.numel() - 1, self.num_pixels)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # torch calls its CSR layout a beta
            matrix = torch.sparse_csr_tensor(
                self.starts, self.pixels, depth.flatten()[self.shares], size, check_invariants=False
            )
        return (matrix @ features.permute(0, 2, 3, 1).flatten(0, 2)).T


class TableLift:
    """The chapter's lift by a table: the same call, the same map, without the largest tensor."""

    def __init__(self, lift: Lift, *, cameras: Sequence[int] = range(CAMERAS)) -> None:
        self.places = planned(cells_of(lift)[list(cameras)], num_cells=rays.GRID_CELLS**2)

    def __call__(self, features: Tensor) -> Tensor:
        shares, context = features[:, : len(DEPTHS_M)].softmax(dim=1), features[:, len(DEPTHS_M) :]
        return self.places(context, shares).view(1, -1, rays.GRID_CELLS, rays.GRID_CELLS)


def cells_of(lift: Lift) -> Tensor:
    """The lift's own table: [cameras, depths, h, w]."""
    assert isinstance(lift.cell, Tensor)
    return lift.cell.view(CAMERAS, len(DEPTHS_M), rays.IMAGE_ROWS // STRIDE, rays.IMAGE_COLUMNS // STRIDE)


def planned(cells: Tensor, *, num_cells: int) -> Places:
    """The table for one calibration, made once.

    Assumes:  cells is [cameras, depths, h, w]; a number past the last cell is outside of the map
    """
    cameras, depths, height, width = cells.shape
    place = torch.arange(cells.numel())
    area = height * width
    pixel = (place // (depths * area)) * area + place % area
    inside = cells.flatten() < num_cells
    cell, pixel, place = cells.flatten()[inside], pixel[inside], place[inside]
    order = torch.argsort(cell * (cameras * area) + pixel)
    starts = torch.zeros(num_cells + 1, dtype=torch.long)
    starts[1:] = torch.bincount(cell, minlength=num_cells).cumsum(0)
    return Places(starts.int(), pixel[order].int(), place[order], cameras * area)
