"""Matrix kernels: FLOPs and bytes of matrix products and convolutions.

FLOPs: a multiply-add is 2. Bytes: device-memory traffic in which each operand is moved once, the least that any
implementation can do; caches, re-reads and padding are what a simulator or a profiler adds (simulate.tiled_gemm).

>>> cube = gemm(m=4096, n=4096, k=4096, bytes_per_element=2)
>>> round(cube.arithmetic_intensity, 1)
1365.3
"""

from threeloops import checks
from threeloops.operations.roofline import Work


def gemm(
    *,
    m: int,
    n: int,
    k: int,
    bytes_per_element: float,
    weight_bytes_per_element: float | None = None,
    bias: bool = False,
    batch: int = 1,
) -> Work:
    """FLOPs and bytes of [m, k] x [k, n] -> [m, n], `batch` times with operands of its own.

    Formula:  2 * m * n * k;  (m*k + m*n) * bytes_per_element + (k*n [+ n]) * weight_bytes_per_element
    Units:    bytes_per_element in bytes (may be 0.5); the second operand, the weights, may have another (default: the
              same)
    Assumes:  every operand moved once; the addition of a bias (m*n) is not counted as FLOPs, as no FLOP counter does,
              only its bytes are
    Source:   by definition: a multiply-add counts as 2, each operand moves once
    Counted:  simulate.inner_loop.tiled_gemm.multiply
    Measured: measure.inner_loop.flops.counted_flops
    """
    checks.count(m=m, n=n, k=k, batch=batch)
    weight_bytes = bytes_per_element if weight_bytes_per_element is None else weight_bytes_per_element
    checks.positive(bytes_per_element=bytes_per_element, weight_bytes_per_element=weight_bytes)
    activations = (m * k + m * n) * bytes_per_element
    weights = (k * n + n * bias) * weight_bytes
    return Work(flops=batch * 2 * m * n * k, moved_bytes=batch * (activations + weights))


def tiled_gemm(*, m: int, n: int, k: int, tile_m: int, tile_n: int, bytes_per_element: float) -> Work:
    """FLOPs and bytes of a matrix product in which every output tile fetches its own strips of both operands.

    Formula:  2 * m * n * k;  (m*k * ceil(n/tile_n) + k*n * ceil(m/tile_m) + m*n) * bytes_per_element
    Assumes:  nothing survives in fast memory from one output tile to the next; a 1 x 1 tile is the naive kernel
    Source:   Hong and Kung, STOC 1981, doi:10.1145/800076.802486 (no schedule moves asymptotically less)
    Counted:  simulate.inner_loop.tiled_gemm.multiply

    >>> tiles = [
    ...     tiled_gemm(m=256, n=256, k=256, tile_m=t, tile_n=t, bytes_per_element=4).arithmetic_intensity
    ...     for t in (1, 16)
    ... ]
    >>> [round(intensity, 2) for intensity in tiles]
    [0.25, 3.88]
    """
    checks.count(m=m, n=n, k=k, tile_m=tile_m, tile_n=tile_n)
    checks.positive(bytes_per_element=bytes_per_element)
    first, second = m * k * -(-n // tile_n), k * n * -(-m // tile_m)
    return Work(flops=2 * m * n * k, moved_bytes=(first + second + m * n) * bytes_per_element)


def tiled_stencil_bytes(
    *, height: int, width: int, tile_height: int, tile_width: int, reach: int, bytes_per_element: float
) -> float:
    """Bytes that a stencil moves when every tile of results fetches for itself all elements that they are made of.

    Formula:  ((height + 2 * reach * ceil(height/tile_height)) * (width + 2 * reach * ceil(width/tile_width)) + height
              * width) * bytes_per_element
    Shapes:   [height, width] in and out; a frame of `reach` zeros around it is fetched like elements
    Assumes:  a result is made of all elements up to `reach` rows and columns away; a tile fetches each of them once;
              nothing survives in fast memory from one tile to the next
    Source:   Datta et al., SC 2008, doi:10.1109/SC.2008.5222004 (stencils: ghost cells around every tile)
    Counted:  tests.operations.test_kernels.test_a_stencil_in_tiles_fetches_what_its_results_are_made_of

    >>> tiled_stencil_bytes(height=1080, width=1920, tile_height=8, tile_width=64, reach=3, bytes_per_element=4) / 1e6
    24.1704
    """
    checks.count(height=height, width=width, tile_height=tile_height, tile_width=tile_width)
    checks.count(at_least=0, reach=reach)
    checks.positive(bytes_per_element=bytes_per_element)
    rows = height + 2 * reach * -(-height // tile_height)
    columns = width + 2 * reach * -(-width // tile_width)
    return (rows * columns + height * width) * bytes_per_element


def conv2d(
    *,
    batch: int,
    in_channels: int,
    out_channels: int,
    height: int,
    width: int,
    kernel: int,
    stride: int = 1,
    padding: int = 0,
    dilation: int = 1,
    groups: int = 1,
    bytes_per_element: float,
) -> Work:
    """FLOPs and bytes of a two-dimensional convolution; groups=in_channels is a depthwise one.

    Formula:  2 * kernel^2 * (in_channels/groups) per output element; input + weights + output, each once
    Shapes:   [batch, in_channels, height, width] -> [batch, out_channels, out_height, out_width]; weights
              [out_channels, in_channels/groups, kernel, kernel]
    Assumes:  a square kernel, direct convolution (Winograd and FFT do fewer multiplications), multiplications by
              padding counted
    Raises:   ValueError if groups does not divide both channel counts, or if the kernel does not fit into the padded
              input
    Source:   by definition: a multiply-add counts as 2, each operand moves once
    Measured: measure.inner_loop.flops.counted_flops
    """
    checks.count(batch=batch, in_channels=in_channels, out_channels=out_channels, groups=groups)
    checks.divides(part="groups", part_value=groups, whole="in_channels", whole_value=in_channels)
    checks.divides(part="groups", part_value=groups, whole="out_channels", whole_value=out_channels)
    checks.positive(bytes_per_element=bytes_per_element)
    window = {"kernel": kernel, "stride": stride, "padding": padding, "dilation": dilation}
    outputs = batch * out_channels * conv2d_out_size(height, **window) * conv2d_out_size(width, **window)
    weights = out_channels * (in_channels // groups) * kernel**2
    inputs = batch * in_channels * height * width
    return Work(
        flops=2 * outputs * weights // out_channels, moved_bytes=(inputs + weights + outputs) * bytes_per_element
    )


def conv2d_out_size(size: int, *, kernel: int, stride: int = 1, padding: int = 0, dilation: int = 1) -> int:
    """Height or width of a convolution's output.

    Formula:  floor((size + 2*padding - dilation*(kernel - 1) - 1) / stride) + 1
    Source:   Dumoulin and Visin, 2016, arXiv:1603.07285
    Measured: tests.operations.test_kernels.test_convolutions_in_torch

    >>> conv2d_out_size(224, kernel=7, stride=2, padding=3)
    112
    """
    checks.count(size=size, kernel=kernel, stride=stride, dilation=dilation)
    checks.count(at_least=0, padding=padding)
    reach = dilation * (kernel - 1) + 1
    if reach > size + 2 * padding:
        raise ValueError(
            f"kernel={kernel} with dilation={dilation} reaches over {reach}, more than size={size} padded to"
            f" {size + 2 * padding}"
        )
    return (size + 2 * padding - reach) // stride + 1
