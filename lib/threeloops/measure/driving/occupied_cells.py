"""Occupied cells: convolutions over a bird's-eye map that are computed only where something is.

A dense convolution works on every cell. Here each layer gathers, for the occupied cells alone, their neighbours'
features, and multiplies. The first layer reads the whole map; further in, a neighbour that is not occupied counts as
zero. A cell that is not occupied gets no answer: that is the price, and a dense task such as the road cannot pay it.

>>> import torch
>>> layers = nn.Sequential(nn.Conv2d(2, 3, 3, padding=1), nn.ReLU(), nn.Conv2d(3, 1, 1)).eval()
>>> x, some = torch.rand(1, 2, 6, 6), torch.rand(6, 6) < 0.3
>>> bool(torch.allclose(on_cells(layers, x, some, elsewhere=0.0)[0, 0][some], layers(x)[0, 0][some], atol=1e-6))
True

Source: Graham, Engelcke and van der Maaten, Submanifold sparse convolutional networks, 2017, arXiv:1711.10275
"""

from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional

from threeloops.measure.driving import bev_network
from threeloops.measure.driving.bev_network import BirdsEye, Heads
from threeloops.measure.driving.faster_network import Pieces, folded
from threeloops.simulate.driving import rays

NOBODY = -10.0  # a score before the sigmoid that no threshold lets through
LOWEST_SHEET = 1  # of the pillars' counts by height: the first one above the ground


def occupied(pillars: Tensor, *, around: int) -> Tensor:
    """[rows, columns]: cells in which the LiDAR met something above the ground, and those so many cells around them."""
    counts = pillars[:, LOWEST_SHEET : len(bev_network.HEIGHTS_M)].amax(dim=1, keepdim=True)
    grown = functional.max_pool2d(counts, 2 * around + 1, stride=1, padding=around)
    return grown[0, 0] > 0


def boxes_where_occupied(network: BirdsEye, *, around: int) -> Pieces:
    """The detector, its norms folded, with boxes looked for in occupied cells only; the road everywhere."""
    backbone, heads = folded(network.backbone), folded(network.heads)
    layers = nn.Sequential(*flat(heads.boxes))

    def both_heads(grid: Tensor, pillars: Tensor) -> tuple[Tensor, Tensor]:
        joined = before_outputs(heads, grid, pillars)
        boxes = on_cells(layers, joined, occupied(pillars, around=around), elsewhere=NOBODY)
        return boxes, heads.road(joined)

    return Pieces(backbone=backbone, lift=network.lift, heads=both_heads)


def box_heads(network: BirdsEye, frame: rays.Frame) -> tuple[Callable[[], Tensor], Callable[[], Tensor]]:
    """The box head on one frame, everywhere and on occupied cells with a margin of two: both ready to be timed."""
    heads = folded(network.heads)
    images, pillars = bev_network.batch([frame])
    with torch.no_grad():
        joined = before_outputs(heads, network.lift(network.backbone(images)), pillars)
    layers, where = nn.Sequential(*flat(heads.boxes)), occupied(pillars, around=2)
    return lambda: layers(joined), lambda: on_cells(layers, joined, where, elsewhere=NOBODY)


def before_outputs(heads: Heads, grid: Tensor, pillars: Tensor) -> Tensor:
    """What both outputs read."""
    read: list[Tensor] = []
    hook = heads.joined.register_forward_hook(lambda _module, _inputs, output: read.append(output))
    heads(grid, pillars)
    hook.remove()
    return read[0]


def flat(row: nn.Module) -> list[nn.Module]:
    """The layers of nested Sequentials in order, without those that do nothing."""
    if isinstance(row, nn.Sequential):
        return [layer for part in row for layer in flat(part)]
    return [] if isinstance(row, nn.Identity) else [row]


def on_cells(layers: nn.Sequential, x: Tensor, where: Tensor, *, elsewhere: float) -> Tensor:
    """The output of the layers [1, channels, rows, columns] at the cells of `where` [rows, columns].

    Assumes:  convolutions of odd kernels that keep the size, with pointwise layers between; batch norms folded
    """
    _, _, rows, columns = x.shape
    places = where.flatten().nonzero().squeeze(1)
    values, row_of = x[0].flatten(1).T, torch.arange(rows * columns + 1)  # the first layer reads every cell
    narrowed = torch.full((rows * columns + 1,), len(places))  # of a cell: its row; the last row is zeros
    narrowed[places] = torch.arange(len(places))
    for layer in layers:
        if isinstance(layer, nn.Conv2d):
            near = row_of[_neighbours(places, rows, columns, layer.kernel_size[0])]
            values, row_of = _convolved(layer, values, near), narrowed
        else:
            values = layer(values)
    out = x.new_full((rows * columns, values.shape[1]), elsewhere)
    out[places] = values
    return out.T.view(1, -1, rows, columns)


def _convolved(layer: nn.Conv2d, values: Tensor, near: Tensor) -> Tensor:
    """One row per cell: its neighbours side by side, times the kernel."""
    padded = torch.cat([values, values.new_zeros(1, values.shape[1])])
    patches = padded[near].flatten(1)  # [cells, kernel places * channels]
    kernel = layer.weight.permute(0, 2, 3, 1).flatten(1)
    return functional.linear(patches, kernel, layer.bias)


def _neighbours(places: Tensor, rows: int, columns: int, side: int) -> Tensor:
    """[cells, side * side]: the neighbours' numbers, row by row; rows * columns stands for outside of the map."""
    offsets = torch.arange(side) - side // 2
    row = (places // columns)[:, None, None] + offsets[None, :, None]
    column = (places % columns)[:, None, None] + offsets[None, None, :]
    inside = (row >= 0) & (row < rows) & (column >= 0) & (column < columns)
    return torch.where(inside, row * columns + column, rows * columns).flatten(1)
