"""Pruning: networks with weights left out, anywhere or two of every four, with and without training afterwards; and
training that knows of the rounding to come.

>>> two_of_four(torch.tensor([[0.1, -3.0, 2.0, 0.4]])).tolist()
[[0.0, 1.0, 1.0, 0.0]]

Source: Han et al., 2015, arXiv:1506.02626 (prune the smallest, then train on); Mishra et al., 2021, arXiv:2104.08378
        (2:4); Bengio et al., 2013, arXiv:1308.3432 (the straight-through estimator)
"""

import copy

import torch
from torch import Tensor, nn
from torch.nn.utils import parametrize, prune

from threeloops import checks
from threeloops.measure.product_loop import glyphs
from threeloops.measure.product_loop.quantisers import Scheme, quantise


def two_of_four(weight: Tensor) -> Tensor:
    """A mask that keeps the two largest of every four neighbours of a row, one at least that are not there filled up
    with zeros.
    """
    missing = -weight.shape[1] % 4
    cut = nn.functional.pad(weight.abs(), (0, missing)).reshape(len(weight), -1, 4)
    mask = torch.zeros_like(cut).scatter_(-1, cut.topk(2, dim=-1).indices, 1.0)
    return mask.reshape(len(weight), -1)[:, : weight.shape[1]]


def pruned(model: nn.Sequential, *, share: float) -> nn.Sequential:
    """A copy without this share of every layer's weights, the smallest ones; what is trained afterwards stays out."""
    checks.fraction(share=share)
    made = copy.deepcopy(model)
    for layer in glyphs.linear_layers(made):
        prune.l1_unstructured(layer, "weight", amount=share)
    return made


def pruned_two_of_four(model: nn.Sequential) -> nn.Sequential:
    """A copy without the two smallest of every four neighbouring weights."""
    made = copy.deepcopy(model)
    for layer in glyphs.linear_layers(made):
        prune.custom_from_mask(layer, "weight", two_of_four(layer.weight.data))
    return made


class StraightThrough(nn.Module):
    """Shows the forward pass rounded weights, and hands gradients on as if they were not."""

    def __init__(self, scheme: Scheme) -> None:
        super().__init__()
        self.scheme = scheme

    def forward(self, weight: Tensor) -> Tensor:
        return weight + (quantise(weight, self.scheme).values - weight).detach()


def quantisation_aware(model: nn.Sequential, scheme: Scheme) -> nn.Sequential:
    """A copy to be trained on, whose layers compute with rounded weights while training changes the wide ones."""
    made = copy.deepcopy(model)
    for layer in glyphs.linear_layers(made):
        parametrize.register_parametrization(layer, "weight", StraightThrough(scheme))
    return made


def fixed(model: nn.Sequential) -> nn.Sequential:
    """A copy with plain weights: masks and rounding applied for good."""
    plain = nn.Sequential()
    for module in model:
        if isinstance(module, nn.Linear):
            layer = nn.Linear(module.in_features, module.out_features)
            layer.weight.data, layer.bias.data = _shown(module).detach().clone(), module.bias.detach().clone()
            plain.append(layer)
        else:
            plain.append(copy.deepcopy(module))
    return plain


def _shown(layer: nn.Linear) -> Tensor:
    """The weights that the next forward pass would use: torch masks them only then."""
    mask = dict(layer.named_buffers()).get("weight_mask")
    return layer.weight if mask is None else layer.get_parameter("weight_orig") * mask
