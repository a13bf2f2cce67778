"""Convolutional networks, against transformers' own classes on the meta device and torch's FLOP counter."""

import functools

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode
from transformers import AutoConfig, AutoModelForImageClassification

from threeloops.models import catalogue
from threeloops.models.convnet_config import convnet_from_config
from threeloops.models.convnets import Conv, Linear, output_size

KEYS = catalogue.convnet_keys()
# The published size, a multiple of it that is not square, a camera's 3:2, and an odd one.
SIZES = {
    "resnet-50": [(224, 224), (448, 672), (512, 768), (225, 301)],
    "resnet-34": [(224, 224), (768, 1280), (225, 301)],
    "efficientnet-b4": [(380, 380), (760, 1140), (512, 768), (381, 299)],
}


@functools.cache
def built(key: str) -> torch.nn.Module:
    config = dict(catalogue.convnet_entry(key).config)
    with torch.device("meta"):
        return AutoModelForImageClassification.from_config(
            AutoConfig.for_model(config.pop("model_type"), **config)
        ).eval()


@functools.cache
def measured(key: str, height: int, width: int) -> tuple[int, int]:
    """FLOPs that torch counts (2 per multiply-add, convolutions and matrix products), and values that conv and linear
    layers write.
    """
    elements = []
    hooks = [
        module.register_forward_hook(lambda module, inputs, output: elements.append(output.numel()))
        for module in built(key).modules()
        if isinstance(module, torch.nn.Conv2d | torch.nn.Linear)
    ]
    with FlopCounterMode(display=False) as counter, torch.no_grad():
        built(key)(pixel_values=torch.empty(1, 3, height, width, device="meta"))
    for hook in hooks:
        hook.remove()
    return counter.get_total_flops(), sum(elements)


@pytest.mark.parametrize("key", KEYS)
def test_parameters_equal_the_real_model(key):
    net = catalogue.convnet(key, height=380, width=380)
    assert net.parameters == sum(p.numel() for p in built(key).parameters())


@pytest.mark.parametrize(("key", "height", "width"), [(key, *size) for key in KEYS for size in SIZES[key]])
def test_flops_and_activations_equal_the_real_model(key, height, width):
    net = catalogue.convnet(key, height=height, width=width)
    assert (net.flops, net.output_elements) == measured(key, height, width)


@pytest.mark.parametrize("key", KEYS)
def test_layers_equal_the_real_layers(key):
    """Layer by layer, weights and biases alone, in any order."""
    net = catalogue.convnet(key, height=380, width=380)
    ours = sorted(
        layer.parameters - (2 * layer.out_channels if isinstance(layer, Conv) and layer.norm else 0)
        for layer in net.layers
    )
    real = [
        sum(p.numel() for p in module.parameters())
        for module in built(key).modules()
        if isinstance(module, torch.nn.Conv2d | torch.nn.Linear)
    ]
    assert ours == sorted(real)


@pytest.mark.parametrize(("key", "side"), [("resnet-50", 224), ("resnet-34", 224), ("efficientnet-b4", 380)])
def test_published_figures(key, side):
    net, facts = catalogue.convnet(key, height=side, width=side), catalogue.convnet_entry(key).published
    # torchvision prints parameters to the unit and multiply-adds as "GFLOPS" with two decimals.
    assert net.parameters == facts["parameters"].value
    assert abs(net.flops / 2 - facts["macs"].value) <= 0.01e9


def test_stem_of_resnet_50():
    # 64 filters of 7 x 7 x 3 = 9,408 weights and 2 * 64 of normalisation; 112 x 112 outputs each: 118,013,952
    # multiply-adds (He et al., 2015, Table 1).
    stem = catalogue.convnet("resnet-50", height=224, width=224).layers[0]
    assert (stem.output_height, stem.output_width) == (112, 112)
    assert (stem.parameters, stem.flops) == (9_408 + 128, 2 * 118_013_952)


@pytest.mark.parametrize("key", KEYS)
def test_flops_grow_with_the_pixels_and_parameters_do_not(key):
    small, large = (catalogue.convnet(key, height=64 * scale, width=96 * scale) for scale in (2, 6))
    assert small.parameters == large.parameters
    for before, after in zip(small.layers, large.layers, strict=True):
        # run once per image, whatever its size
        once = isinstance(before, Linear) or "squeeze" in before.name or "excite" in before.name
        if not once and before.output_height % 2 == 0:
            assert after.flops == 9 * before.flops


def test_depthwise_is_a_convolution_divided_by_its_groups():
    full = Conv(name="full", in_channels=24, out_channels=24, kernel=3, output_height=5, output_width=7, norm=False)
    depthwise = Conv(
        name="depthwise",
        in_channels=24,
        out_channels=24,
        kernel=3,
        output_height=5,
        output_width=7,
        groups=24,
        norm=False,
    )
    assert full.flops == 24 * depthwise.flops
    assert full.parameters == 24 * depthwise.parameters


def test_output_size_counts_positions():
    """Against sliding the kernel along, one step at a time."""
    for size in range(1, 20):
        for kernel in range(1, 8):
            for stride in range(1, 4):
                for padding in range(5):
                    positions = len(range(0, size + padding - kernel + 1, stride))
                    if positions:
                        assert output_size(size, kernel=kernel, stride=stride, padding=padding) == positions


TINY = {
    "model_type": "resnet",
    "num_channels": 3,
    "embedding_size": 8,
    "hidden_sizes": [16],
    "depths": [1],
    "layer_type": "bottleneck",
    "num_labels": 10,
}


@pytest.mark.parametrize(
    ("changes", "size", "message"),
    [
        ({"model_type": "vgg"}, (32, 32), r"^model_type='vgg' is not known. Known: resnet, efficientnet"),
        ({"layer_type": "wide"}, (32, 32), r"^tiny: layer_type='wide' is not known"),
        ({"depths": ...}, (32, 32), r"^tiny: 'depths' is missing; a resnet config needs it"),
        (
            {"downsample_in_bottleneck": True},
            (32, 32),
            r"^tiny: 'downsample_in_bottleneck' is not understood; known: num_channels",
        ),
        ({}, (0, 32), r"^height=0 must be a whole number of at least 1"),
        (
            {"hidden_sizes": [16, 32]},
            (32, 32),
            r"^tiny: hidden_sizes=\[16, 32\] and depths=\[1\] must have the same length",
        ),
    ],
)
def test_refusals(changes, size, message):
    config = {name: value for name, value in (TINY | changes).items() if value is not ...}
    with pytest.raises(ValueError, match=message):
        convnet_from_config(config, height=size[0], width=size[1], name="tiny")
    assert convnet_from_config(TINY, height=1, width=1, name="tiny").parameters > 0


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"in_channels": [32, 16, 24, 40, 80, 112, 200]},
            r"^in_channels=\[32, 16, 24, 40, 80, 112, 200\] must be the stem's 32",
        ),
        ({"hidden_dim": 1280}, r"^hidden_dim=1280 must be 1280 scaled by width_coefficient, 1792"),
        (
            {"strides": [1, 2]},
            r"^in_channels=\[32, 16, 24, 40, 80, 112, 192\] and strides=\[1, 2\] must have the same length",
        ),
        ({"strides": 2}, r"^strides=2 must be a list with one entry per stage"),
    ],
)
def test_efficientnet_fields_must_fit_each_other(changes, message):
    config = dict(catalogue.convnet_entry("efficientnet-b4").config) | changes
    with pytest.raises(ValueError, match=message.replace("^", "^b4: ")):
        convnet_from_config(config, height=380, width=380, name="b4")


def test_a_kernel_must_fit():
    with pytest.raises(
        ValueError, match=r"^kernel=5 does not fit on size=3 with padding=1; use a larger image or more padding"
    ):
        output_size(3, kernel=5, stride=2, padding=1)
    assert output_size(4, kernel=5, stride=2, padding=1) == 1
    with pytest.raises(ValueError, match=r"^groups=5 must divide in_channels=24; try groups in"):
        Conv(name="x", in_channels=24, out_channels=24, kernel=3, output_height=5, output_width=7, groups=5)
