"""GPTQ: round a layer's weights column by column, and after each column move the columns that are still to come, so
that the layer's output stays near what it was.

Rounding to nearest minimises the error of the weights. GPTQ minimises the error of the layer's output on calibration
data, the sum over rows of (w - q) H (w - q)^T with H = X^T X. When column j is rounded, the best move of the columns
after it is minus (error of j / U_jj) times row j of U, the upper Cholesky factor of the inverse of H. Plus in place of
minus makes it worse than rounding: see `compensation`.

>>> from threeloops.measure.product_loop.quantisers import quantise
>>> inputs, weight = torch.eye(3), torch.tensor([[0.5, -1.0, 0.3]])
>>> scheme = Scheme(bits=3, scope="channel")
>>> torch.equal(gptq(weight, inputs, scheme), quantise(weight, scheme).values)  # uncorrelated inputs: nothing to move
True

Source: Frantar et al., 2022, arXiv:2210.17323, section 3 and algorithm 1 (the factor of two in their Hessian cancels)
"""

import torch
from torch import Tensor, nn

from threeloops.measure.product_loop import glyphs
from threeloops.measure.product_loop.quantisers import Scheme, grid_of, rounded_to, with_weights

DAMPING = 0.01  # of the Hessian's mean diagonal, added to it: the paper's section 3.3


def hessian(inputs: Tensor) -> Tensor:
    """X^T X over calibration inputs of [samples, inputs]: which errors of a row the layer's output sees together."""
    return inputs.T @ inputs


def output_error(weight: Tensor, other: Tensor, inputs: Tensor) -> float:
    """Sum of squared differences of the layer's outputs on these inputs: what GPTQ makes small."""
    return float(((weight - other) @ inputs.T).square().sum())


def gptq(
    weight: Tensor, inputs: Tensor, scheme: Scheme, *, damping: float = DAMPING, compensation: float = 1.0
) -> Tensor:
    """The weights of [outputs, inputs] after GPTQ, already dequantised.

    Units:    compensation is the share of the correction that is subtracted: 1 is GPTQ, 0 rounding to nearest, and
              -1 GPTQ with the wrong sign
    Assumes:  scales per tensor and channel are taken from the weights as they were, those of a group when its first
              column's turn comes
    Counted:  simulate.product_loop.rounding_search.column_by_column; no rounding is better than its best_rounding
    """
    work, written = weight.double().clone(), torch.zeros_like(weight, dtype=torch.float64)
    upper = inverse_factor(hessian(inputs.double()), damping=damping)
    scale, zero = grid_of(work, scheme)
    for column in range(weight.shape[1]):
        if isinstance(scheme.scope, int) and column % scheme.scope == 0:
            scale, zero = grid_of(work, scheme)
        here = work[:, column]
        code = rounded_to(here, scale[:, column], zero[:, column], scheme)
        written[:, column] = scale[:, column] * (code - zero[:, column])
        error = (here - written[:, column]) / upper[column, column]
        work[:, column + 1 :] -= compensation * error.outer(upper[column, column + 1 :])
    return written.to(weight.dtype)


def inverse_factor(hessian: Tensor, *, damping: float) -> Tensor:
    """Upper triangular U with U^T U = the inverse of the damped Hessian: its rows are all that GPTQ needs of it."""
    damped = hessian + damping * hessian.diagonal().mean() * torch.eye(len(hessian), dtype=hessian.dtype)
    return torch.linalg.cholesky(torch.linalg.inv(damped), upper=True)


def gptq_model(
    model: nn.Sequential, calibration: Tensor, scheme: Scheme, *, compensation: float = 1.0
) -> nn.Sequential:
    """A copy of the model, every linear layer after GPTQ; each layer is calibrated on what the layers before it,
    already rounded, really give it.
    """
    made = with_weights(model, [layer.weight.data for layer in glyphs.linear_layers(model)])
    for at, layer in enumerate(glyphs.linear_layers(made)):
        inputs = glyphs.layer_inputs(made, calibration)[at]
        layer.weight.data = gptq(layer.weight.data, inputs, scheme, compensation=compensation)
    return made
