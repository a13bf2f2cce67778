"""Kernels: FLOPs against torch's counter, published networks and a scalar that counts its own operations; bytes
against tensors.
"""

import itertools
import math

import pytest
import torch
import torch.nn.functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel

from threeloops.measure.inner_loop.flops import counted_flops
from threeloops.operations import kernels
from threeloops.operations.attention import visible_keys

torch.set_num_threads(1)


def nbytes(*tensors):
    return sum(tensor.nbytes for tensor in tensors)


# ---- matrix products ---------------------------------------------------------------------------


def test_square_gemm_intensity_is_a_third_of_the_side_in_fp16():
    # 2 n^3 / (3 n^2 * 2 bytes) = n / 3: 4096 / 3 = 1365.3, the figure of every roofline lecture.
    assert kernels.gemm(m=4096, n=4096, k=4096, bytes_per_element=2).arithmetic_intensity == pytest.approx(4096 / 3)


@pytest.mark.parametrize(
    ("rows", "inputs", "outputs", "bias"), [(7, 33, 21, False), (1, 64, 96, True), (50, 8, 3, True)]
)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_linear_layer_in_torch(rows, inputs, outputs, bias, dtype):
    layer, x = torch.nn.Linear(inputs, outputs, bias=bias, dtype=dtype), torch.randn(rows, inputs, dtype=dtype)
    work = kernels.gemm(m=rows, n=outputs, k=inputs, bytes_per_element=dtype.itemsize, bias=bias)
    assert work.flops == counted_flops(layer, x).total
    assert work.moved_bytes == nbytes(x, layer(x), *layer.parameters())


def test_batched_gemm_in_torch():
    a, b = torch.randn(6, 5, 11), torch.randn(6, 11, 9)
    work = kernels.gemm(m=5, n=9, k=11, batch=6, bytes_per_element=4)
    assert (work.flops, work.moved_bytes) == (counted_flops(torch.bmm, a, b).total, nbytes(a, b, a @ b))


def test_quantised_weights_move_half_a_byte_each():
    # One token through a 4-bit weight: the weight is all that matters, four times lighter than in 16 bits.
    light, heavy = (
        kernels.gemm(m=1, n=8192, k=8192, bytes_per_element=2, weight_bytes_per_element=width) for width in (0.5, None)
    )
    assert heavy.moved_bytes - light.moved_bytes == 8192 * 8192 * 1.5
    assert light.flops == heavy.flops
    assert light.arithmetic_intensity == pytest.approx(4, rel=1e-2)


def test_a_tall_gemm_approaches_rows_times_two_over_weight_bytes():
    # m << n, k: only the weights are worth counting, intensity 2 m / bytes.
    assert kernels.gemm(m=3, n=10**5, k=10**5, bytes_per_element=2).arithmetic_intensity == pytest.approx(3, rel=1e-3)


def test_tiled_gemm_limits():
    shape = {"m": 60, "n": 84, "k": 35, "bytes_per_element": 2}
    assert kernels.tiled_gemm(**shape, tile_m=60, tile_n=84) == kernels.gemm(**shape)
    naive = kernels.tiled_gemm(**shape, tile_m=1, tile_n=1)
    assert naive.moved_bytes == 2 * (2 * 60 * 84 * 35 + 60 * 84)
    # Errors of rounding up: a tile one larger than half of the side still needs two strips.
    assert kernels.tiled_gemm(**shape, tile_m=31, tile_n=43) == kernels.tiled_gemm(**shape, tile_m=30, tile_n=42)


@pytest.mark.parametrize(
    ("height", "width", "tile", "reach"),
    [(12, 20, (4, 5), 2), (13, 10, (5, 4), 3), (6, 7, (6, 7), 1), (9, 8, (2, 3), 0)],
)
def test_a_stencil_in_tiles_fetches_what_its_results_are_made_of(height, width, tile, reach):
    accesses = 0
    for top, left in itertools.product(range(0, height, tile[0]), range(0, width, tile[1])):
        results = set(
            itertools.product(range(top, min(height, top + tile[0])), range(left, min(width, left + tile[1])))
        )
        around = list(itertools.product(range(-reach, reach + 1), repeat=2))
        accesses += len({(row + down, column + right) for row, column in results for down, right in around})
        accesses += len(results)
    size = {"height": height, "width": width, "tile_height": tile[0], "tile_width": tile[1], "bytes_per_element": 4}
    assert kernels.tiled_stencil_bytes(**size, reach=reach) == 4 * accesses
    with pytest.raises(ValueError, match="reach=-1 must be a whole number of at least 0"):
        kernels.tiled_stencil_bytes(**size, reach=-1)


# ---- convolutions ------------------------------------------------------------------------------

CONVOLUTIONS = [
    {"in_channels": 6, "out_channels": 10, "kernel_size": 3},
    {"in_channels": 6, "out_channels": 9, "kernel_size": 5, "stride": 2, "padding": 2, "groups": 3},
    {"in_channels": 12, "out_channels": 12, "kernel_size": 3, "padding": 1, "groups": 12},
    {"in_channels": 4, "out_channels": 12, "kernel_size": 3, "groups": 4, "dilation": 2},
    {"in_channels": 5, "out_channels": 7, "kernel_size": 1, "stride": 3},
]


@pytest.mark.parametrize("shape", CONVOLUTIONS)
def test_convolutions_in_torch(shape):
    layer, x = torch.nn.Conv2d(**shape, bias=False), torch.randn(3, shape["in_channels"], 17, 23)
    arguments = {"kernel" if name == "kernel_size" else name: value for name, value in shape.items()}
    work = kernels.conv2d(batch=3, height=17, width=23, bytes_per_element=4, **arguments)
    assert work.flops == counted_flops(layer, x).total
    assert work.moved_bytes == nbytes(x, layer.weight, layer(x))
    options = {name: arguments[name] for name in ("kernel", "stride", "padding", "dilation") if name in arguments}
    assert tuple(kernels.conv2d_out_size(size, **options) for size in (17, 23)) == layer(x).shape[2:]


def test_pointwise_convolution_is_a_gemm():
    conv = kernels.conv2d(batch=2, in_channels=48, out_channels=80, height=14, width=15, kernel=1, bytes_per_element=2)
    assert conv == kernels.gemm(m=2 * 14 * 15, n=80, k=48, bytes_per_element=2)


def test_resnet_50_as_published():
    # He et al., 2015, arXiv:1512.03385, table 1; torchvision's model card (V1.5, stride in the 3 x 3) gives 4.09 G
    # multiply-adds at 224 x 224.
    def conv(size, inputs, outputs, kernel, stride=1):
        shape = {"batch": 1, "in_channels": inputs, "out_channels": outputs, "height": size, "width": size}
        return kernels.conv2d(**shape, kernel=kernel, stride=stride, padding=kernel // 2, bytes_per_element=4).flops

    flops, inputs, size = conv(224, 3, 64, 7, 2), 64, 56
    for width, blocks, stride in ((64, 3, 1), (128, 4, 2), (256, 6, 2), (512, 3, 2)):
        for block in range(blocks):
            step = stride if block == 0 else 1
            flops += (
                conv(size, inputs, width, 1)
                + conv(size, width, width, 3, step)
                + conv(size // step, width, 4 * width, 1)
            )
            flops += conv(size, inputs, 4 * width, 1, step) if block == 0 else 0
            inputs, size = 4 * width, size // step
    flops += kernels.gemm(m=1, n=1000, k=2048, bytes_per_element=4).flops
    assert flops / 2 == pytest.approx(4.09e9, rel=0.001)


def test_mobilenet_as_published():
    # Howard et al., 2017, arXiv:1704.04861, tables 1 and 8: 569 million multiply-adds at 224 x 224, depthwise
    # convolutions among them.
    def conv(size, inputs, outputs, kernel, stride, groups=1):
        shape = {"batch": 1, "in_channels": inputs, "out_channels": outputs, "height": size, "width": size}
        return kernels.conv2d(
            **shape, kernel=kernel, stride=stride, padding=kernel // 2, groups=groups, bytes_per_element=4
        ).flops

    flops, size, inputs = conv(224, 3, 32, 3, 2), 112, 32
    blocks = [(64, 1), (128, 2), (128, 1), (256, 2), (256, 1), (512, 2), *[(512, 1)] * 5, (1024, 2), (1024, 1)]
    for outputs, stride in blocks:
        flops += conv(size, inputs, inputs, 3, stride, groups=inputs)
        size //= stride
        flops += conv(size, inputs, outputs, 1, 1)
        inputs = outputs
    flops += kernels.gemm(m=1, n=1000, k=1024, bytes_per_element=4).flops
    assert flops / 2 == pytest.approx(569e6, rel=0.001)


# ---- attention ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("heads", "kv_heads", "queries", "keys"), [(6, 6, 40, 40), (6, 2, 24, 24), (8, 1, 1, 50), (4, 4, 7, 31)]
)
def test_fused_attention_in_torch(heads, kv_heads, queries, keys):
    q = torch.randn(3, heads, queries, 16)
    k, v = torch.randn(2, 3, kv_heads, keys, 16)
    shape = {
        "batch": 3,
        "num_heads": heads,
        "num_kv_heads": kv_heads,
        "head_dim": 16,
        "query_tokens": queries,
        "context_tokens": keys,
    }
    work = kernels.attention(**shape, causal="full", fused=True, bytes_per_element=4)
    assert work.flops == counted_flops(F.scaled_dot_product_attention, q, k, v, enable_gqa=True).total
    assert work.moved_bytes == nbytes(q, k, v, F.scaled_dot_product_attention(q, k, v, enable_gqa=True))


def counted_backward(q, k, v, attend):
    """FLOPs that torch counts for the backward pass alone."""
    with sdpa_kernel(SDPBackend.FLASH_ATTENTION):
        output = attend(q, k, v)
    return counted_flops(output.sum().backward).total


def written_out(q, k, v):
    return torch.softmax(q @ k.mT / q.shape[-1] ** 0.5, dim=-1) @ v


@pytest.mark.parametrize(("queries", "keys", "value_dim"), [(24, 24, 16), (7, 40, 16), (24, 24, 8)])
def test_attentions_backward_in_torch(queries, keys, value_dim):
    size = {
        "batch": 2,
        "num_heads": 6,
        "head_dim": 16,
        "query_tokens": queries,
        "context_tokens": keys,
        "causal": "full",
    }
    q, k, v = (
        torch.randn(2, 6, tokens, width, requires_grad=True)
        for tokens, width in ((queries, 16), (keys, 16), (keys, value_dim))
    )
    stored = kernels.attention_backward_flops(**size, value_head_dim=value_dim, recompute="none")
    assert counted_backward(q, k, v, written_out) == stored
    if value_dim == 16:  # torch's fused kernel has one width
        assert counted_backward(q, k, v, F.scaled_dot_product_attention) == kernels.attention_backward_flops(
            **size, recompute="scores"
        )


def test_attentions_backward_as_flashattention_2_counts_it():
    # arXiv:2307.08691, section 4.1: forward 4 * seqlen^2 * head dimension * number of heads, halved if causal;
    # backward 2.5 times that.
    size = {"batch": 1, "num_heads": 32, "head_dim": 64, "query_tokens": 2048, "context_tokens": 2048}
    forward = 4 * 2048**2 * 64 * 32
    assert kernels.attention_backward_flops(**size, causal="full", recompute="scores") == 2.5 * forward
    assert kernels.attention_backward_flops(**size, causal="half", recompute="scores") == 2.5 * forward / 2


def test_attentions_backward_refuses():
    size = {"batch": 1, "num_heads": 1, "head_dim": 4, "query_tokens": 3, "context_tokens": 5, "causal": "exact"}
    # four products, 4 wide; queries that see 3, 4 and 5 keys
    assert kernels.attention_backward_flops(**size, recompute="none") == 4 * 2 * 4 * (3 + 4 + 5)
    with pytest.raises(ValueError, match="recompute='full' is not known"):
        kernels.attention_backward_flops(**size, recompute="full")
    with pytest.raises(ValueError, match="num_heads=0"):
        kernels.attention_backward_flops(**size | {"num_heads": 0}, recompute="none")


def test_unfused_attention_in_torch():
    q, k, v = torch.randn(3, 2, 5, 12, 8)
    scores = q @ k.transpose(-1, -2)
    weights = scores.softmax(-1)
    shape = {
        "batch": 2,
        "num_heads": 5,
        "num_kv_heads": 5,
        "head_dim": 8,
        "query_tokens": 12,
        "context_tokens": 12,
        "bytes_per_element": 4,
    }
    parts = kernels.unfused_attention(**shape, causal="full")
    assert parts.scores.moved_bytes == nbytes(q, k, scores)
    assert parts.softmax.moved_bytes == nbytes(scores, weights)
    assert parts.values.moved_bytes == nbytes(weights, v, weights @ v)
    assert (
        parts.scores.flops + parts.values.flops
        == counted_flops(lambda: (q @ k.transpose(-1, -2)).softmax(-1) @ v).total
    )
    whole = kernels.attention(**shape, causal="full", fused=False)
    assert whole.moved_bytes == parts.total.moved_bytes
    # Fusing changes the bytes and not one FLOP.
    assert whole.flops == kernels.attention(**shape, causal="full", fused=True).flops


@pytest.mark.parametrize(
    ("queries", "context", "window"),
    [(9, 9, None), (1, 30, None), (5, 17, None), (20, 20, 6), (4, 20, 6), (7, 9, 8), (3, 3, 50)],
)
def test_attended_pairs_against_a_drawn_mask(queries, context, window):
    mask = [
        (query, key)
        for query in range(context - queries, context)
        for key in range(context)
        if key <= query and (window is None or query - key < window)
    ]
    drawn = len(mask)
    span = {"query_tokens": queries, "context_tokens": context, "window": window}
    exact, half, full = (kernels.attended_pairs(**span, causal=causal) for causal in ("exact", "half", "full"))
    assert exact == drawn
    # The half convention is the area under the curve of visible keys: the step on the diagonal is cut in two, as long
    # as the curve rises.
    rising = sum(1 for query in range(context - queries, context) if window is None or query < window)
    assert half == drawn - 0.5 * rising
    assert half <= exact <= full == queries * (context if window is None else min(window, context))
    assert visible_keys(**span) == len({key for _, key in mask})


def test_causal_conventions_as_the_field_uses_them():
    # Dao, 2023, arXiv:2307.08691, section 4.1: 4 * s^2 * head_dim * heads, divided by 2 when causal.
    shape = {
        "batch": 1,
        "num_heads": 16,
        "num_kv_heads": 16,
        "head_dim": 128,
        "query_tokens": 2048,
        "context_tokens": 2048,
    }
    full, half, exact = (
        kernels.attention(**shape, causal=causal, fused=True, bytes_per_element=2).flops
        for causal in ("full", "half", "exact")
    )
    assert full == 4 * 2048**2 * 128 * 16
    assert half == full / 2
    assert exact / half == pytest.approx(1 + 1 / 2048)
    # In decode every key is behind the one query: full and exact agree.
    decode = {**shape, "query_tokens": 1}
    assert kernels.attended_pairs(query_tokens=1, context_tokens=2048, causal="full") == kernels.attended_pairs(
        query_tokens=1, context_tokens=2048, causal="exact"
    )
    assert kernels.attention(**decode, causal="full", fused=True, bytes_per_element=2).conventions == (
        "causal=full",
        "fused=True",
    )


@pytest.mark.parametrize(("num_kv_heads", "kv_bytes"), [(40, 2), (8, 2), (1, 2), (8, 1)])
def test_decode_intensity_is_group_size_times_two_over_bytes_whatever_the_batch(num_kv_heads, kv_bytes):
    shape = {
        "num_heads": 40,
        "num_kv_heads": num_kv_heads,
        "head_dim": 128,
        "query_tokens": 1,
        "context_tokens": 10**6,
        "causal": "full",
    }
    works = [
        kernels.attention(**shape, batch=batch, fused=True, bytes_per_element=2, kv_bytes_per_element=kv_bytes)
        for batch in (1, 64)
    ]
    expected = 40 / num_kv_heads * 2 / kv_bytes
    assert [work.arithmetic_intensity for work in works] == pytest.approx([expected, expected], rel=1e-3)


def test_unfused_scores_stay_below_head_dim_however_long_the_prompt():
    shape = {"batch": 1, "num_heads": 4, "num_kv_heads": 4, "head_dim": 128, "causal": "full", "bytes_per_element": 2}
    intensities = [
        kernels.unfused_attention(**shape, query_tokens=s, context_tokens=s).scores.arithmetic_intensity
        for s in (128, 2048, 10**5)
    ]
    assert intensities == sorted(intensities)
    assert intensities[-1] == pytest.approx(128, rel=0.01)
    assert intensities[-1] < 128


def test_a_window_limits_what_decode_reads():
    shape = {
        "batch": 1,
        "num_heads": 6,
        "num_kv_heads": 2,
        "head_dim": 64,
        "query_tokens": 1,
        "causal": "exact",
        "fused": True,
        "bytes_per_element": 2,
    }
    assert kernels.attention(**shape, context_tokens=9000, window=500) == kernels.attention(**shape, context_tokens=500)
    assert kernels.attention(**shape, context_tokens=400, window=500) == kernels.attention(**shape, context_tokens=400)


# ---- kernels without a matrix product ----------------------------------------------------------


class Counted(float):
    """A number that counts the operations done on it."""

    operations = 0

    @classmethod
    def result(cls, value):
        cls.operations += 1
        return cls(value)

    def __add__(self, other):
        return Counted.result(float(self) + float(other))

    def __sub__(self, other):
        return Counted.result(float(self) - float(other))

    def __mul__(self, other):
        return Counted.result(float(self) * float(other))

    def __truediv__(self, other):
        return Counted.result(float(self) / float(other))

    def __neg__(self):
        return Counted.result(-float(self))

    def __gt__(self, other):
        Counted.operations += 1
        return float(self) > float(other)


def call(function, x):
    return Counted.result(function(float(x)))


def summed(values):
    result = values[0]
    for value in values[1:]:
        result = result + value
    return result


def scalar_softmax(row):
    largest = row[0]
    for x in row[1:]:
        largest = x if x > largest else largest
    powers = [call(math.exp, x - largest) for x in row]
    total = summed(powers)
    return [power / total for power in powers]


def scalar_layernorm(row, weight, bias):
    mean = summed(row) / len(row)
    deviations = [x - mean for x in row]
    variance = summed([d * d for d in deviations]) / len(row)
    scale = call(lambda v: 1 / math.sqrt(v), variance + 1e-5)
    return [d * scale * w + b for d, w, b in zip(deviations, weight, bias, strict=True)]


def scalar_rmsnorm(row, weight):
    scale = call(lambda v: 1 / math.sqrt(v), summed([x * x for x in row]) / len(row) + 1e-5)
    return [x * scale * w for x, w in zip(row, weight, strict=True)]


SCALAR_ACTIVATIONS = {
    "relu": lambda x: x if x > 0 else Counted(0),
    "relu2": lambda x: x * x if x > 0 else Counted(0) * 0,
    "silu": lambda x: x / (call(math.exp, -x) + 1),
    "gelu": lambda x: x * (call(math.erf, x * 0.5**0.5) + 1) * 0.5,
    "gelu_tanh": lambda x: x * (call(math.tanh, (x * x * x * 0.044715 + x) * (2 / math.pi) ** 0.5) + 1) * 0.5,
}
SCALAR_ACTIVATIONS["gelu_new"] = SCALAR_ACTIVATIONS["gelu_tanh"]


def counted_rows(function, rows, width):
    """Output of `function` on random rows, as a tensor, and the operations it took."""
    torch.manual_seed(1)
    x = torch.randn(rows, width, dtype=torch.float64)
    Counted.operations = 0
    out = [[float(y) for y in function([Counted(value) for value in row])] for row in x.tolist()]
    return x, torch.tensor(out, dtype=torch.float64), Counted.operations


@pytest.mark.parametrize(("rows", "width"), [(3, 7), (1, 40), (5, 2)])
def test_norms_and_softmax_operation_by_operation(rows, width):
    weight, bias = [Counted(0.5 + i) for i in range(width)], [Counted(-0.25 * i) for i in range(width)]
    w, b = torch.tensor(weight, dtype=torch.float64), torch.tensor(bias, dtype=torch.float64)
    shape = {"rows": rows, "width": width, "bytes_per_element": 8}

    x, out, operations = counted_rows(lambda row: scalar_layernorm(row, weight, bias), rows, width)
    torch.testing.assert_close(out, F.layer_norm(x, (width,), w, b))
    work = kernels.layernorm(**shape)
    assert (work.flops, work.moved_bytes) == (operations, nbytes(x, w, b, out))

    x, out, operations = counted_rows(lambda row: scalar_rmsnorm(row, weight), rows, width)
    torch.testing.assert_close(out, F.rms_norm(x, (width,), w, eps=1e-5))
    work = kernels.rmsnorm(**shape)
    assert (work.flops, work.moved_bytes) == (operations, nbytes(x, w, out))

    x, out, operations = counted_rows(scalar_softmax, rows, width)
    torch.testing.assert_close(out, x.softmax(-1))
    work = kernels.softmax(**shape)
    assert (work.flops, work.moved_bytes) == (operations, nbytes(x, out))


@pytest.mark.parametrize("name", kernels.ACTIVATION_FLOPS)
def test_activations_operation_by_operation(name):
    x, out, operations = counted_rows(lambda row: [SCALAR_ACTIVATIONS[name](value) for value in row], 4, 9)
    known = {"relu": F.relu, "relu2": lambda t: F.relu(t).square(), "silu": F.silu, "gelu": F.gelu}
    reference = known.get(name, lambda t: F.gelu(t, approximate="tanh"))
    torch.testing.assert_close(out, reference(x))
    work = kernels.activation(name, elements=x.numel(), bytes_per_element=8)
    assert (work.flops, work.moved_bytes) == (operations, nbytes(x, out))


def test_saxpy_and_embedding_against_tensors():
    x, y = torch.randn(2, 1000)
    saxpy = kernels.elementwise(elements=1000, flops_per_element=2, inputs=2, bytes_per_element=4)
    assert saxpy.moved_bytes == nbytes(x, y, 3 * x + y)
    assert saxpy.arithmetic_intensity == pytest.approx(2 / 12)
    table, tokens = torch.randn(50, 16), torch.tensor([[3, 9, 11], [40, 2, 7]])
    rows = F.embedding(tokens, table)
    assert kernels.embedding(tokens=6, hidden=16, bytes_per_element=4).moved_bytes == nbytes(
        tokens, rows, table[tokens]
    )
    assert (
        kernels.embedding(tokens=6, hidden=16, bytes_per_element=4).flops
        == counted_flops(F.embedding, tokens, table).total
        == 0
    )


def test_bytes_scale_with_the_element_and_flops_do_not():
    for wide, narrow in (
        [kernels.layernorm(rows=5, width=8, bytes_per_element=size) for size in (4, 2)],
        [kernels.softmax(rows=5, width=8, bytes_per_element=size) for size in (4, 2)],
        [kernels.gemm(m=5, n=8, k=3, bytes_per_element=size) for size in (1, 0.5)],
        [
            kernels.conv2d(batch=1, in_channels=3, out_channels=5, height=9, width=9, kernel=3, bytes_per_element=size)
            for size in (4, 2)
        ],
    ):
        assert wide.moved_bytes == 2 * narrow.moved_bytes
        assert wide.flops == narrow.flops


# ---- refusals ----------------------------------------------------------------------------------


def test_refusals():
    with pytest.raises(ValueError, match="n=0 must be a whole number of at least 1"):
        kernels.gemm(m=1, n=0, k=1, bytes_per_element=2)
    assert kernels.gemm(m=1, n=1, k=1, bytes_per_element=0.5).moved_bytes == 1.5
    with pytest.raises(ValueError, match=r"groups=4 must divide in_channels=6; try groups in \{1, 2, 3, 6\}"):
        kernels.conv2d(
            batch=1, in_channels=6, out_channels=8, height=9, width=9, kernel=3, groups=4, bytes_per_element=2
        )
    with pytest.raises(ValueError, match="kernel=5 with dilation=2 reaches over 9, more than size=8 padded to 8"):
        kernels.conv2d_out_size(8, kernel=5, dilation=2)
    assert kernels.conv2d_out_size(9, kernel=5, dilation=2) == 1
    with pytest.raises(ValueError, match="causal='halve' is not known; did you mean 'half'"):
        kernels.attended_pairs(query_tokens=1, context_tokens=1, causal="halve")
    with pytest.raises(ValueError, match="query_tokens=5 must not exceed context_tokens=4"):
        kernels.attended_pairs(query_tokens=5, context_tokens=4, causal="full")
    shape = {
        "batch": 1,
        "num_heads": 6,
        "head_dim": 8,
        "query_tokens": 4,
        "context_tokens": 4,
        "causal": "full",
        "bytes_per_element": 2,
    }
    with pytest.raises(ValueError, match=r"num_kv_heads=4 must divide num_heads=6; try num_kv_heads in \{1, 2, 3, 6\}"):
        kernels.attention(**shape, num_kv_heads=4, fused=True)
    with pytest.raises(ValueError, match="fused=False has no query_block"):
        kernels.attention(**shape, num_kv_heads=3, fused=False, query_block=2)
    assert kernels.attention(**shape, num_kv_heads=3, fused=True, query_block=4) == kernels.attention(
        **shape, num_kv_heads=3, fused=True
    )
    with pytest.raises(ValueError, match="activation='swish' is not known"):
        kernels.activation("swish", elements=1, bytes_per_element=2)
