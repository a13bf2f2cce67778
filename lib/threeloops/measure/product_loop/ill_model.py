"""An ill model: a network that loses nearly nine points in INT8, for a reader to find out why.

The cause, for those who read on: before it was handed over, three channels of its first hidden layer were made 32 times
larger and the next layer's columns 32 times smaller, as folding a normalisation into the weights can do. In floats the
function is the same. One INT8 scale for the whole tensor is not.
"""

from dataclasses import dataclass

from torch import nn

from threeloops.measure.product_loop import channel_scaling, glyphs
from threeloops.measure.product_loop.quantisers import Scheme, rounded_model, with_rounded_inputs

CHANNELS, FACTOR = (5, 17, 40), 32.0
PER_TENSOR = Scheme(bits=8, scope="tensor")
ALL = (0, 1, 2)  # the linear layers


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """What one trial says."""

    what: str
    accuracy: float


def delivered() -> nn.Sequential:
    """The network as it was handed over."""
    return channel_scaling.with_outlier_channels(glyphs.trained(), channels=CHANNELS, factor=FACTOR)


def in_int8(model: nn.Sequential, *, weights: Scheme = PER_TENSOR) -> nn.Sequential:
    """Weights by this scheme, the input of every linear layer in INT8 with one scale for the tensor."""
    rounded = rounded_model(model, weights)
    return with_rounded_inputs(rounded, glyphs.sets().calibration, bits=8, layers=ALL)


def trials(model: nn.Sequential) -> list[Reading]:
    """Accuracy with nothing, all, and one thing at a time in INT8."""
    calibration = glyphs.sets().calibration
    alone = {
        f"only the inputs of layer {layer + 1}": with_rounded_inputs(model, calibration, bits=8, layers=(layer,))
        for layer in ALL
    }
    tried = {
        "in floats": model,
        "weights and inputs in INT8": in_int8(model),
        "only the weights": rounded_model(model, PER_TENSOR),
        **alone,
    }
    return [Reading(what=what, accuracy=glyphs.accuracy(one)) for what, one in tried.items()]


def channel_ranges(model: nn.Sequential) -> list[tuple[float, float]]:
    """(median, largest) over the channels of each layer's input, of the largest value that the channel takes."""
    largest = [
        channel_scaling.channel_largest(given) for given in glyphs.layer_inputs(model, glyphs.sets().calibration)
    ]
    return [(float(each.median()), float(each.max())) for each in largest]
