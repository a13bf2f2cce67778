"""Convolutional networks read from the config.json that their checkpoint ships with: ResNet and EfficientNet.

Source: He et al., 2015, arXiv:1512.03385 (ResNet); Tan and Le, 2019, arXiv:1905.11946 (EfficientNet); laid out as the
        classes of Hugging Face
transformers 5.23.0 do, https://github.com/huggingface/transformers
"""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from threeloops import checks
from threeloops.models.convnets import Conv, ConvNet, Linear, output_size


def convnet_from_config(config: Mapping[str, Any], *, height: int, width: int, name: str) -> ConvNet:
    """A network from the fields of its Hugging Face config, laid out for images of this size.

    Raises:   ValueError for an unknown model_type, a missing or unknown field, and an image too small for the network

    >>> tiny = dict(
    ...     model_type="resnet",
    ...     num_channels=3,
    ...     embedding_size=8,
    ...     hidden_sizes=[16],
    ...     depths=[1],
    ...     layer_type="bottleneck",
    ...     num_labels=10,
    ... )
    >>> [layer.name for layer in convnet_from_config(tiny, height=32, width=32, name="tiny").layers]
    ['stem', 'stage1.0.shortcut', 'stage1.0.reduce', 'stage1.0.spatial', 'stage1.0.expand', 'classifier']
    """
    checks.count(height=height, width=width)
    checks.one_of(_BUILDERS, model_type=config.get("model_type"))
    build, known = _BUILDERS[config["model_type"]]
    for field in known:
        if field not in config:
            raise ValueError(f"{name}: {field!r} is missing; a {config['model_type']} config needs it")
    unknown = sorted(set(config) - set(known) - {"model_type", "architectures"})
    if unknown:
        raise ValueError(f"{name}: {unknown[0]!r} is not understood; known: {', '.join(known)}")
    try:
        layers = tuple(build(config, _Features(config["num_channels"], height, width)))
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from error
    return ConvNet(name=name, height=height, width=width, layers=layers)


@dataclass(frozen=True, slots=True)
class _Features:
    """A feature map on its way through the network."""

    channels: int
    height: int
    width: int

    def convolved(
        self, name: str, channels: int, *, kernel: int, stride: int = 1, padding: int | None = None, **options: Any
    ) -> tuple[Conv, "_Features"]:
        """The convolution and the map behind it; `padding` is both sides together, by default enough to keep the size
        at stride 1.
        """
        padding = 2 * (kernel // 2) if padding is None else padding
        height, width = (
            output_size(size, kernel=kernel, stride=stride, padding=padding) for size in (self.height, self.width)
        )
        conv = Conv(
            name=name,
            in_channels=self.channels,
            out_channels=channels,
            kernel=kernel,
            output_height=height,
            output_width=width,
            **options,
        )
        return conv, _Features(channels, height, width)


_RESNET_FIELDS = ("num_channels", "embedding_size", "hidden_sizes", "depths", "layer_type", "num_labels")


def _resnet(config: Mapping[str, Any], features: _Features) -> Iterator[Conv | Linear]:
    """ResNet, with basic blocks or with the bottlenecks of "v1.5", whose stride sits in the 3x3 convolution."""
    checks.one_of(_RESNET_BLOCKS, layer_type=config["layer_type"])
    block_of = _RESNET_BLOCKS[config["layer_type"]]
    _same_length(config, "hidden_sizes", "depths")
    conv, features = features.convolved("stem", config["embedding_size"], kernel=7, stride=2)
    yield conv
    pooled = (output_size(size, kernel=3, stride=2, padding=2) for size in (features.height, features.width))
    features = _Features(features.channels, *pooled)
    for stage, (channels, depth) in enumerate(zip(config["hidden_sizes"], config["depths"], strict=True), start=1):
        for block in range(depth):
            stride = 2 if stage > 1 and block == 0 else 1
            layers, features = block_of(f"stage{stage}.{block}", features, channels, stride)
            yield from layers
    yield Linear(name="classifier", in_features=features.channels, out_features=config["num_labels"])


def _bottleneck(name: str, features: _Features, channels: int, stride: int) -> tuple[list[Conv], _Features]:
    """1x1 to a quarter of the channels, 3x3, 1x1 back; a 1x1 shortcut where the shape changes."""
    layers = []
    if features.channels != channels or stride != 1:
        layers.append(features.convolved(f"{name}.shortcut", channels, kernel=1, stride=stride)[0])
    for part, width, kernel, step in (
        ("reduce", channels // 4, 1, 1),
        ("spatial", channels // 4, 3, stride),
        ("expand", channels, 1, 1),
    ):
        conv, features = features.convolved(f"{name}.{part}", width, kernel=kernel, stride=step)
        layers.append(conv)
    return layers, features


def _basic(name: str, features: _Features, channels: int, stride: int) -> tuple[list[Conv], _Features]:
    """Two 3x3, the stride in the first; a 1x1 shortcut where the shape changes."""
    layers = []
    if features.channels != channels or stride != 1:
        layers.append(features.convolved(f"{name}.shortcut", channels, kernel=1, stride=stride)[0])
    for part, step in (("first", stride), ("second", 1)):
        conv, features = features.convolved(f"{name}.{part}", channels, kernel=3, stride=step)
        layers.append(conv)
    return layers, features


_RESNET_BLOCKS = {"bottleneck": _bottleneck, "basic": _basic}

_EFFICIENTNET_FIELDS = (
    *(
        "num_channels",
        "width_coefficient",
        "depth_coefficient",
        "depth_divisor",
        "kernel_sizes",
        "in_channels",
        "out_channels",
        "depthwise_padding",
    ),
    *("strides", "num_block_repeats", "expand_ratios", "squeeze_expansion_ratio", "hidden_dim", "num_labels"),
)


def _efficientnet(config: Mapping[str, Any], features: _Features) -> Iterator[Conv | Linear]:
    _same_length(config, "in_channels", "out_channels", "kernel_sizes", "strides", "num_block_repeats", "expand_ratios")
    if list(config["in_channels"]) != [32, *config["out_channels"][:-1]]:
        raise ValueError(
            f"in_channels={list(config['in_channels'])} must be the stem's 32 and then out_channels without its last"
        )
    if config["hidden_dim"] != _scaled_width(config, 1280):
        raise ValueError(
            f"hidden_dim={config['hidden_dim']} must be 1280 scaled by width_coefficient, {_scaled_width(config, 1280)}"
        )
    conv, features = features.convolved("stem", _scaled_width(config, 32), kernel=3, stride=2, padding=1)
    yield conv
    block = 0
    stages = zip(
        config["out_channels"],
        config["kernel_sizes"],
        config["strides"],
        config["expand_ratios"],
        config["num_block_repeats"],
        strict=True,
    )
    for channels, kernel, stride, expand, repeats in stages:
        for repeat in range(math.ceil(config["depth_coefficient"] * repeats)):
            # The class pads a strided convolution on one side only, except in the blocks listed for odd sizes.
            padding = (
                2 * (kernel // 2) - (block not in config["depthwise_padding"]) if stride == 2 and repeat == 0 else None
            )
            step, squeeze = (
                stride if repeat == 0 else 1,
                max(1, int(features.channels * config["squeeze_expansion_ratio"])),
            )
            layers, features = _inverted_bottleneck(
                f"block{block}",
                features,
                _scaled_width(config, channels),
                expand=expand,
                squeeze=squeeze,
                kernel=kernel,
                stride=step,
                padding=padding,
            )
            yield from layers
            block += 1
    conv, features = features.convolved("top", _scaled_width(config, 1280), kernel=1)
    yield conv
    yield Linear(name="classifier", in_features=config["hidden_dim"], out_features=config["num_labels"])


def _inverted_bottleneck(
    name: str,
    features: _Features,
    channels: int,
    *,
    expand: int,
    squeeze: int,
    kernel: int,
    stride: int,
    padding: int | None,
) -> tuple[list[Conv], _Features]:
    """1x1 to many channels, one filter per channel, a gate per channel (squeeze and excite, on one pixel), 1x1 to few
    channels.
    """
    layers = []
    if expand != 1:
        conv, features = features.convolved(f"{name}.expand", features.channels * expand, kernel=1)
        layers.append(conv)
    conv, features = features.convolved(
        f"{name}.depthwise", features.channels, kernel=kernel, stride=stride, padding=padding, groups=features.channels
    )
    layers.append(conv)
    pixel = _Features(features.channels, 1, 1)
    conv, pixel = pixel.convolved(f"{name}.squeeze", squeeze, kernel=1, bias=True, norm=False)
    layers.append(conv)
    layers.append(pixel.convolved(f"{name}.excite", features.channels, kernel=1, bias=True, norm=False)[0])
    conv, features = features.convolved(f"{name}.project", channels, kernel=1)
    return [*layers, conv], features


def _same_length(config: Mapping[str, Any], *fields: str) -> None:
    """Refuse lists that describe different numbers of stages."""
    for field in fields:
        if not isinstance(config[field], list | tuple):
            raise ValueError(f"{field}={config[field]!r} must be a list with one entry per stage")
    for field in fields[1:]:
        if len(config[field]) != len(config[fields[0]]):
            raise ValueError(
                f"{fields[0]}={list(config[fields[0]])} and {field}={list(config[field])} must have the same length"
            )


def _scaled_width(config: Mapping[str, Any], channels: int) -> int:
    """Channels times the width coefficient, rounded to the divisor, never more than a tenth below."""
    divisor, scaled = config["depth_divisor"], channels * config["width_coefficient"]
    rounded = max(divisor, int(scaled + divisor / 2) // divisor * divisor)
    return int(rounded + divisor if rounded < 0.9 * scaled else rounded)


_BUILDERS = {"resnet": (_resnet, _RESNET_FIELDS), "efficientnet": (_efficientnet, _EFFICIENTNET_FIELDS)}
