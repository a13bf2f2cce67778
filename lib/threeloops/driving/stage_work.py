"""What the network stages of a driving pipeline compute and move: a backbone of convolutions over all cameras, and the
lift of its features into a bird's-eye grid.

>>> layers = convolutions(((3, 24, 3, 2), (24, 40, 3, 2)), height=64, width=176)
>>> [(layer.output_height, layer.output_width) for layer in layers]
[(32, 88), (16, 44)]
>>> layers_work(layers, images=6, input_elements=3 * 64 * 176, bytes_per_element=4, passes=2).flops
94887936
"""

from collections.abc import Sequence

from threeloops import checks
from threeloops.models.convnets import Conv
from threeloops.operations.roofline import Work


def convolutions(shapes: Sequence[tuple[int, int, int, int]], *, height: int, width: int) -> tuple[Conv, ...]:
    """Layers in a row, from (channels in, channels out, kernel, stride) each and the size of the first one's input.

    Formula:  output height and width = input's / stride
    Assumes:  odd kernels, padded by (kernel - 1) / 2, and sizes that the strides divide
    Raises:   ValueError where a stride does not divide what it meets
    Source:   by definition
    Counted:  simulate.driving.filters.multiply_adds
    """
    layers = []
    for number, (inside, outside, kernel, stride) in enumerate(shapes):
        checks.divides(part="stride", part_value=stride, whole="height", whole_value=height)
        checks.divides(part="stride", part_value=stride, whole="width", whole_value=width)
        height, width = height // stride, width // stride
        layers.append(
            Conv(
                name=f"{number}",
                in_channels=inside,
                out_channels=outside,
                kernel=kernel,
                output_height=height,
                output_width=width,
            )
        )
    return tuple(layers)


def layers_work(
    layers: Sequence[Conv], *, images: int, input_elements: int, bytes_per_element: float, passes: int
) -> Work:
    """FLOPs and bytes of convolutions that are run one after the other over a number of pictures.

    Formula:  FLOPs: images x sum of 2 k^2 x channels in x channels out x output area
              bytes: each layer reads its input once and writes its output once, and every pass over the output (batch
              norm, ReLU) reads and writes it again; the weights are read once for all pictures
    Assumes:  every activation goes to memory and comes back from there, as if no cache held it
    Source:   Dumoulin and Visin, 2016, arXiv:1603.07285 (shapes); Williams et al., 2009, doi:10.1145/1498765.1498785
    Counted:  simulate.driving.filters.multiply_adds
    """
    checks.count(images=images, input_elements=input_elements)
    checks.count(at_least=0, passes=passes)
    checks.positive(bytes_per_element=bytes_per_element)
    flops = images * sum(layer.flops for layer in layers)
    written = [layer.output_elements for layer in layers]
    read = [input_elements, *written[:-1]]
    activations = images * (sum(read) + (1 + 2 * passes) * sum(written))
    weights = sum(layer.macs_per_output * layer.out_channels for layer in layers)
    return Work(flops=flops, moved_bytes=bytes_per_element * (activations + weights))


def lift_work(*, cameras: int, depths: int, pixels: int, context: int, cells: int, bytes_per_element: float) -> Work:
    """Lift-splat: each pixel's context times its share at each depth, added into the grid's cells.

    Formula:  FLOPs: 2 x cameras x depths x pixels x context
              bytes: features read, shares written and read, products written and read, a cell read and written for
              each product, the grid cleared
    Assumes:  the products are stored before they are added, as plain tensor code does; the softmax is left out of the
              FLOPs
    Source:   Philion and Fidler, 2020, arXiv:2008.05711
    Counted:  tests.driving.test_stage_work.test_the_lift_multiplies_and_adds_every_product

    >>> lift_work(cameras=6, depths=24, pixels=176, context=32, cells=4096, bytes_per_element=4).flops
    1622016
    """
    checks.count(cameras=cameras, depths=depths, pixels=pixels, context=context, cells=cells)
    checks.positive(bytes_per_element=bytes_per_element)
    points = cameras * depths * pixels
    products = points * context
    moved = cameras * pixels * (depths + context) + 2 * points + 2 * products + 2 * products + cells * context
    return Work(flops=2 * products, moved_bytes=bytes_per_element * moved)
