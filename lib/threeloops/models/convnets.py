"""Convolutional networks as a list of layers at one resolution: parameters, FLOPs and activations, layer by layer.

A convolution's weights are counted once and used at every output position. That is why parameters do not depend on
the resolution while FLOPs and activations grow with its area, and why a camera network is sized by its pixels, not by
its weights.

>>> conv = Conv(name="stem", in_channels=3, out_channels=64, kernel=7, output_height=112, output_width=112)
>>> conv.parameters, conv.flops
(9536, 236027904)

Source: Dumoulin and Visin, 2016, arXiv:1603.07285
"""

from dataclasses import dataclass

from threeloops import checks


@dataclass(frozen=True, slots=True, kw_only=True)
class Conv:
    """A square convolution, and the batch normalisation that follows it unless told otherwise."""

    name: str
    in_channels: int
    out_channels: int
    kernel: int
    output_height: int
    output_width: int
    groups: int = 1  # in_channels: depthwise, one filter per channel
    bias: bool = False
    norm: bool = True  # a scale and a shift per output channel

    def __post_init__(self) -> None:
        checks.count(
            in_channels=self.in_channels, out_channels=self.out_channels, kernel=self.kernel, groups=self.groups
        )
        checks.count(output_height=self.output_height, output_width=self.output_width)
        checks.divides(part="groups", part_value=self.groups, whole="in_channels", whole_value=self.in_channels)
        checks.divides(part="groups", part_value=self.groups, whole="out_channels", whole_value=self.out_channels)

    @property
    def parameters(self) -> int:
        """Filter weights, biases, and the normalisation's scale and shift."""
        return self.out_channels * (self.macs_per_output + self.bias + 2 * self.norm)

    @property
    def macs_per_output(self) -> int:
        """Multiply-adds that make one output value: one filter laid over its input channels."""
        return self.kernel**2 * self.in_channels // self.groups

    @property
    def output_elements(self) -> int:
        """Values that one image leaves behind this layer."""
        return self.out_channels * self.output_height * self.output_width

    @property
    def flops(self) -> int:
        """FLOPs for one image: 2 per multiply-add; biases and normalisation are left out."""
        return 2 * self.macs_per_output * self.output_elements


@dataclass(frozen=True, slots=True, kw_only=True)
class Linear:
    """A fully connected layer with a bias, run once per image."""

    name: str
    in_features: int
    out_features: int

    def __post_init__(self) -> None:
        checks.count(in_features=self.in_features, out_features=self.out_features)

    @property
    def parameters(self) -> int:
        return self.out_features * (self.in_features + 1)

    @property
    def output_elements(self) -> int:
        return self.out_features

    @property
    def flops(self) -> int:
        """FLOPs for one image: 2 per multiply-add; the bias is left out."""
        return 2 * self.in_features * self.out_features


@dataclass(frozen=True, slots=True, kw_only=True)
class ConvNet:
    """A convolutional network on images of one size."""

    name: str
    height: int
    width: int
    layers: tuple[Conv | Linear, ...]

    @property
    def parameters(self) -> int:
        """All trained values; the running means and variances of batch normalisation are buffers and not among
        them.
        """
        return sum(layer.parameters for layer in self.layers)

    @property
    def flops(self) -> int:
        """FLOPs for one image, 2 per multiply-add: twice what vision papers print as "FLOPs" or "GFLOPs"."""
        return sum(layer.flops for layer in self.layers)

    @property
    def output_elements(self) -> int:
        """Values written by all layers for one image, pooling, activations and sums left out."""
        return sum(layer.output_elements for layer in self.layers)


def output_size(size: int, *, kernel: int, stride: int, padding: int) -> int:
    """Positions that a kernel takes along one side; `padding` is the zeros at both ends together.

    Formula:  (size + padding - kernel) // stride + 1
    Source:   Dumoulin and Visin, 2016, arXiv:1603.07285, relationship 6
    Counted:  tests.models.test_convnets.test_output_size_counts_positions

    >>> output_size(224, kernel=7, stride=2, padding=6)
    112
    """
    checks.count(size=size, kernel=kernel, stride=stride)
    checks.count(at_least=0, padding=padding)
    if size + padding < kernel:
        raise ValueError(
            f"kernel={kernel} does not fit on size={size} with padding={padding}; use a larger image or more padding"
        )
    return (size + padding - kernel) // stride + 1
