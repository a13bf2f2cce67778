"""Channel scaling: AWQ and SmoothQuant. Both multiply a column of the weights by a number and divide the input that
meets it by the same number. In exact arithmetic the layer gives what it gave; on a grid it does not.

AWQ makes the columns with large inputs larger before the weights are rounded, so that their rounding error, once it is
divided again, is smaller. SmoothQuant makes large inputs smaller, so that one scale for all of a tensor's inputs fits
them; the weights, which have their own scale for every row, take the difference.

>>> import torch
>>> weight, inputs = torch.tensor([[1.0, 4.0]]), torch.tensor([[64.0, 1.0]])
>>> factors = smooth_factors(weight, inputs, alpha=0.5)
>>> factors.tolist(), torch.equal((inputs / factors) @ (weight * factors).T, inputs @ weight.T)
([8.0, 0.5], True)

Source: Lin et al., AWQ, 2023, arXiv:2306.00978, section 3; Xiao et al., SmoothQuant, 2022, arXiv:2211.10438, section 4
"""

import copy
import itertools

from torch import Tensor, nn

from threeloops import checks
from threeloops.measure.product_loop import glyphs
from threeloops.measure.product_loop.gptq import output_error
from threeloops.measure.product_loop.quantisers import SMALLEST, Scheme, quantise, with_weights

STRENGTHS = tuple(step / 20 for step in range(20))  # the exponents that AWQ tries


def awq_factors(inputs: Tensor, *, strength: float) -> Tensor:
    """(Mean size of each input channel)^strength, scaled so that the largest and the smallest multiply to one."""
    checks.fraction(strength=strength)
    size = inputs.abs().mean(0).clamp_min(1e-4) ** strength
    return size / (size.max() * size.min()).sqrt()


def awq(weight: Tensor, inputs: Tensor, scheme: Scheme) -> tuple[Tensor, float]:
    """The weights after AWQ, already dequantised and scaled back, and the strength whose output error is least.

    Assumes:  the factors are divided out of the input by whatever comes before the layer; here they are divided out of
              the weights again, which gives the same product
    """
    tried = [
        (_scaled_round(weight, awq_factors(inputs, strength=strength), scheme), strength) for strength in STRENGTHS
    ]
    return min(tried, key=lambda one: output_error(weight, one[0], inputs))


def awq_model(model: nn.Sequential, calibration: Tensor, scheme: Scheme) -> nn.Sequential:
    """A copy of the model, every linear layer after AWQ."""
    inputs, layers = glyphs.layer_inputs(model, calibration), glyphs.linear_layers(model)
    return with_weights(
        model, [awq(layer.weight.data, given, scheme)[0] for layer, given in zip(layers, inputs, strict=True)]
    )


def smooth_factors(weight: Tensor, inputs: Tensor, *, alpha: float) -> Tensor:
    """What each input channel is divided by, and each column of the weights multiplied with.

    Formula:  max |input|^alpha / max |column|^(1 - alpha)
    Units:    alpha from 0 (all difficulty stays with the inputs) to 1 (all goes to the weights)
    """
    checks.fraction(alpha=alpha)
    largest = inputs.abs().amax(0).clamp_min(1e-5)
    return largest**alpha / weight.abs().amax(0).clamp_min(1e-5) ** (1 - alpha)


def smoothed(model: nn.Sequential, calibration: Tensor, *, alpha: float = 0.5) -> nn.Sequential:
    """A copy that computes the same function, the inputs of every layer but the first evened out.

    Assumes:  ReLU between the layers: dividing its output is dividing the rows of the layer before
    """
    made = copy.deepcopy(model)
    layers = glyphs.linear_layers(made)
    for before, layer in itertools.pairwise(layers):
        inputs = glyphs.layer_inputs(made, calibration)[layers.index(layer)]
        factors = smooth_factors(layer.weight.data, inputs, alpha=alpha)
        before.weight.data /= factors[:, None]
        before.bias.data /= factors
        layer.weight.data *= factors
    return made


def with_outlier_channels(model: nn.Sequential, *, channels: tuple[int, ...], factor: float) -> nn.Sequential:
    """A copy that computes the same function with some channels of the first hidden layer so many times larger, as a
    folded normalisation leaves them.
    """
    checks.positive(factor=factor)
    made = copy.deepcopy(model)
    first, second = glyphs.linear_layers(made)[:2]
    rows = list(channels)
    first.weight.data[rows] *= factor
    first.bias.data[rows] *= factor
    second.weight.data[:, rows] /= factor
    return made


def channel_largest(values: Tensor) -> Tensor:
    """The largest size in each channel of [samples, channels]."""
    return values.abs().amax(0).clamp_min(SMALLEST)


def _scaled_round(weight: Tensor, factors: Tensor, scheme: Scheme) -> Tensor:
    return quantise(weight * factors, scheme).values / factors
