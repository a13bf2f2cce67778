"""Quantisers: weights on a grid of whole numbers with one scale for the tensor, for each output channel or for each
group of inputs; and a network whose layers compute with what was stored.

>>> weight = torch.tensor([[0.5, -1.0, 0.25, 2.1]])
>>> quantise(weight, Scheme(bits=4, scope="tensor")).codes.tolist()
[[2, -3, 1, 7]]

Source: Jacob et al., 2017, arXiv:1712.05877, section 2.1 (the affine scheme r = S (q - Z))
"""

import copy
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from threeloops import checks
from threeloops.measure.product_loop import glyphs

SMALLEST = 1e-12  # of a scale: a group of zeros has none of its own


@dataclass(frozen=True, slots=True, kw_only=True)
class Scheme:
    """How many bits, whether zero is in the middle of the grid, and who shares a scale."""

    bits: int
    scope: str | int  # "tensor", "channel" (a row of the weight matrix), or the inputs of a group
    symmetric: bool = True

    def __post_init__(self) -> None:
        checks.count(at_least=2, bits=self.bits)
        if isinstance(self.scope, str):
            checks.one_of(("tensor", "channel"), scope=self.scope)
        else:
            checks.count(scope=self.scope)

    @property
    def ends(self) -> tuple[int, int]:
        """The smallest and the largest whole number of the grid."""
        half = 2 ** (self.bits - 1)
        return (1 - half, half - 1) if self.symmetric else (0, 2 * half - 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class QuantisedTensor:
    """What is stored: whole numbers, scales, zero points. Scales and zero points spread over the codes' shape."""

    codes: Tensor
    scale: Tensor
    zero: Tensor
    scheme: Scheme

    @property
    def values(self) -> Tensor:
        """Scale times (code minus zero point): the weights that the product sees."""
        return self.scale * (self.codes - self.zero)


def grid_of(weight: Tensor, scheme: Scheme) -> tuple[Tensor, Tensor]:
    """Scale and zero point for every weight, so that the largest of each scope is just on the grid."""
    cut = _cut(weight, scheme)
    high = scheme.ends[1]
    if scheme.symmetric:
        scale = (cut.abs().amax(-1, keepdim=True) / high).clamp_min(SMALLEST)
        zero = torch.zeros_like(scale)
    else:
        least, most = cut.amin(-1, keepdim=True).clamp_max(0), cut.amax(-1, keepdim=True).clamp_min(0)
        scale = ((most - least) / high).clamp_min(SMALLEST)
        zero = (-least / scale).round()
    spread = torch.ones_like(cut)
    return (scale * spread).reshape(weight.shape), (zero * spread).reshape(weight.shape)


def rounded_to(weight: Tensor, scale: Tensor, zero: Tensor, scheme: Scheme) -> Tensor:
    """The nearest whole numbers of a grid that is already chosen."""
    return (weight / scale + zero).round().clamp(*scheme.ends)


def quantise(weight: Tensor, scheme: Scheme) -> QuantisedTensor:
    """Round to nearest: every weight for itself, as if the others did not exist."""
    scale, zero = grid_of(weight, scheme)
    codes = rounded_to(weight, scale, zero, scheme).to(torch.int32)
    return QuantisedTensor(codes=codes, scale=scale, zero=zero, scheme=scheme)


def with_weights(model: nn.Sequential, weights: list[Tensor]) -> nn.Sequential:
    """A copy of the model whose linear layers have these weights."""
    made = copy.deepcopy(model)
    for layer, weight in zip(glyphs.linear_layers(made), weights, strict=True):
        layer.weight.data = weight.clone()
    return made


def stored_bits_per_weight(model: nn.Sequential, scheme: Scheme, *, scale_bits: int = 16) -> float:
    """Bits that the linear layers' weights take, their scales counted one by one and shared out over the weights.

    Assumes:  symmetric grids: no zero point is stored
    """
    layers = [layer.weight.data for layer in glyphs.linear_layers(model)]
    weights = sum(weight.numel() for weight in layers)
    scales = sum(_cut(weight, scheme)[..., 0].numel() for weight in layers)
    return scheme.bits + scales * scale_bits / weights


def rounded_model(model: nn.Sequential, scheme: Scheme) -> nn.Sequential:
    """A copy of the model, the weights of every linear layer rounded to nearest; activations stay as they are."""
    return with_weights(model, [quantise(layer.weight.data, scheme).values for layer in glyphs.linear_layers(model)])


class RoundedInput(nn.Module):
    """Rounds what passes to whole numbers times one scale, found before on calibration data: static, per tensor."""

    def __init__(self, *, largest: float, bits: int) -> None:
        super().__init__()
        self.scale, self.high = max(largest, SMALLEST) / (2 ** (bits - 1) - 1), 2 ** (bits - 1) - 1

    def forward(self, values: Tensor) -> Tensor:
        return (values / self.scale).round().clamp(-self.high, self.high) * self.scale


def with_rounded_inputs(
    model: nn.Sequential, calibration: Tensor, *, bits: int, layers: tuple[int, ...]
) -> nn.Sequential:
    """A copy of the model in which the inputs of these linear layers (0, 1, …) are rounded, one scale a tensor."""
    inputs = glyphs.layer_inputs(model, calibration)
    made, at = nn.Sequential(), 0
    for module in copy.deepcopy(model):
        if isinstance(module, nn.Linear):
            if at in layers:
                made.append(RoundedInput(largest=float(inputs[at].abs().max()), bits=bits))
            at += 1
        made.append(module)
    return made


def _cut(weight: Tensor, scheme: Scheme) -> Tensor:
    """The weight with the numbers that share a scale along its last axis."""
    if scheme.scope == "tensor":
        return weight.reshape(1, -1)
    if scheme.scope == "channel":
        return weight
    checks.divides(part="group", part_value=int(scheme.scope), whole="inputs", whole_value=weight.shape[1])
    return weight.reshape(len(weight), -1, int(scheme.scope))
