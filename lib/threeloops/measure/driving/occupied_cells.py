"""Occupied cells: convolutions over a bird's-eye map that are computed only where something is.

A dense convolution works on every cell. Here a layer gathers, for each occupied cell, its neighbours' features, and
multiplies; a neighbour that is not occupied counts as zero, and a cell that is not occupied gets no answer. So work
shrinks with the share of occupied cells, and the answers differ from the dense ones near the edge of what is occupied.

>>> import torch
>>> layers = nn.Sequential(nn.Conv2d(2, 3, 3, padding=1), nn.ReLU(), nn.Conv2d(3, 1, 1)).eval()
>>> x = torch.rand(1, 2, 6, 6)
>>> everywhere = on_cells(layers, x, torch.ones(6, 6, dtype=torch.bool))
>>> bool(torch.allclose(everywhere, layers(x), atol=1e-6))
True

Source: Graham, Engelcke and van der Maaten, Submanifold sparse convolutional networks, 2017, arXiv:1711.10275
"""

import torch
from torch import Tensor, nn


def on_cells(layers: nn.Sequential, x: Tensor, occupied: Tensor) -> Tensor:
    """The output of the layers [1, channels, rows, columns] at the occupied cells [rows, columns], zero elsewhere.

    Assumes:  convolutions of odd kernels that keep the size, with pointwise layers between; batch norms folded
    """
    _, _, rows, columns = x.shape
    places = occupied.flatten().nonzero().squeeze(1)
    values = x[0].flatten(1).T[places]  # one row of features per occupied cell
    row_of = torch.full((rows * columns + 1,), len(places))  # of a cell: its row in values; the last row is zeros
    row_of[places] = torch.arange(len(places))
    near: dict[int, Tensor] = {}
    for layer in layers:
        if isinstance(layer, nn.Conv2d):
            side = layer.kernel_size[0]
            if side not in near:
                near[side] = row_of[_neighbours(places, rows, columns, side)]
            values = _convolved(layer, values, near[side])
        else:
            values = layer(values)
    out = x.new_zeros(rows * columns, values.shape[1])
    out[places] = values
    return out.T.view(1, -1, rows, columns)


def _convolved(layer: nn.Conv2d, values: Tensor, near: Tensor) -> Tensor:
    """One row per cell: its neighbours side by side, times the kernel."""
    padded = torch.cat([values, values.new_zeros(1, values.shape[1])])
    patches = padded[near].flatten(1)  # [cells, kernel places * channels]
    kernel = layer.weight.permute(0, 2, 3, 1).flatten(1)
    return nn.functional.linear(patches, kernel, layer.bias)


def _neighbours(places: Tensor, rows: int, columns: int, side: int) -> Tensor:
    """[cells, side * side]: the neighbours' numbers, row by row; rows * columns stands for outside of the map."""
    offsets = torch.arange(side) - side // 2
    row = (places // columns)[:, None, None] + offsets[None, :, None]
    column = (places % columns)[:, None, None] + offsets[None, None, :]
    inside = (row >= 0) & (row < rows) & (column >= 0) & (column < columns)
    return torch.where(inside, row * columns + column, rows * columns).flatten(1)
