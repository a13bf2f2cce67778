"""Vector kernels: FLOPs and bytes of the operations that multiply no matrices: norms, softmax, activations,
element-wise, look-ups.

FLOPs: every addition, multiplication, division, comparison, root or transcendental function is 1. Bytes: each operand
moved once. With so little arithmetic per byte, all of them are memory-bound on every machine of the last decade; the
exact count per element hardly matters.

>>> layernorm(rows=8192, width=4096, bytes_per_element=2).arithmetic_intensity < 2
True
"""

from threeloops import checks
from threeloops.operations.roofline import Work

# Operations per element. gelu is the form with erf; gelu_tanh the polynomial inside a tanh, gelu_new its other name;
# silu is x / (1 + exp(-x)).
ACTIVATION_FLOPS = {"relu": 1, "relu2": 2, "silu": 4, "gelu": 5, "gelu_tanh": 9, "gelu_new": 9}


def layernorm(*, rows: int, width: int, bytes_per_element: float) -> Work:
    """FLOPs and bytes of LayerNorm over rows of `width`, with a learned weight and bias.

    Formula:  rows * (7 * width + 2); read and write every row, read weight and bias
    Assumes:  one pass over memory; mean, deviation, square, sum, normalise, scale, shift are 1 per element each, plus
              epsilon and reciprocal root per row. Figures of 4 and 8 per element circulate too: all of them leave the
              kernel memory-bound
    Source:   by definition: every operation of the scalar function counts as 1
    Counted:  tests.operations.test_kernels.counted_rows

    >>> round(layernorm(rows=8192, width=4096, bytes_per_element=2).arithmetic_intensity, 2)
    1.75
    """
    checks.count(rows=rows, width=width)
    checks.positive(bytes_per_element=bytes_per_element)
    return Work(flops=rows * (7 * width + 2), moved_bytes=(2 * rows * width + 2 * width) * bytes_per_element)


def rmsnorm(*, rows: int, width: int, bytes_per_element: float) -> Work:
    """FLOPs and bytes of RMSNorm over rows of `width`, with a learned weight.

    Formula:  rows * (4 * width + 2); read and write every row, read the weight
    Assumes:  one pass over memory; square, sum, normalise, scale are 1 per element each, plus epsilon and reciprocal
              root per row
    Source:   by definition: every operation of the scalar function counts as 1
    Counted:  tests.operations.test_kernels.counted_rows
    """
    checks.count(rows=rows, width=width)
    checks.positive(bytes_per_element=bytes_per_element)
    return Work(flops=rows * (4 * width + 2), moved_bytes=(2 * rows * width + width) * bytes_per_element)


def softmax(*, rows: int, width: int, bytes_per_element: float) -> Work:
    """FLOPs and bytes of a softmax over rows of `width`.

    Formula:  rows * (5 * width - 2); read and write every row
    Assumes:  one pass over memory; maximum, subtraction, exponential, sum, division are 1 per element each (a maximum
              and a sum of w take w - 1)
    Source:   by definition: every operation of the scalar function counts as 1
    Counted:  tests.operations.test_kernels.counted_rows
    """
    checks.count(rows=rows, width=width)
    checks.positive(bytes_per_element=bytes_per_element)
    return Work(flops=rows * (5 * width - 2), moved_bytes=2 * rows * width * bytes_per_element)


def activation(name: str, *, elements: int, bytes_per_element: float) -> Work:
    """FLOPs and bytes of an activation function applied to every element.

    Formula:  ACTIVATION_FLOPS[name] * elements; read and write every element
    Raises:   ValueError for an unknown name, with the known ones
    Source:   by definition: every operation of the scalar function counts as 1
    Counted:  tests.operations.test_kernels.counted_rows
    """
    checks.one_of(ACTIVATION_FLOPS, activation=name)
    return elementwise(
        elements=elements, flops_per_element=ACTIVATION_FLOPS[name], inputs=1, bytes_per_element=bytes_per_element
    )


def elementwise(*, elements: int, flops_per_element: float, inputs: int, bytes_per_element: float) -> Work:
    """FLOPs and bytes of an operation on each element by itself: `inputs` arrays read, one of the same size written.

    Formula:  flops_per_element * elements; (inputs + 1) * elements * bytes_per_element
    Source:   by definition
    Counted:  tests.operations.test_kernels.test_saxpy_and_embedding_against_tensors

    >>> saxpy = elementwise(elements=1_000_000, flops_per_element=2, inputs=2, bytes_per_element=4)
    >>> round(saxpy.arithmetic_intensity, 4)
    0.1667
    """
    checks.count(elements=elements)
    checks.count(at_least=0, inputs=inputs)
    checks.non_negative(flops_per_element=flops_per_element)
    checks.positive(bytes_per_element=bytes_per_element)
    return Work(flops=flops_per_element * elements, moved_bytes=(inputs + 1) * elements * bytes_per_element)


def embedding(
    *,
    tokens: int,
    hidden: int,
    bytes_per_element: float,
    weight_bytes_per_element: float | None = None,
    index_bytes: int = 8,
) -> Work:
    """Bytes of looking up one row of `hidden` per token: a copy, without a FLOP.

    Formula:  tokens * (hidden * weight_bytes_per_element + hidden * bytes_per_element + index_bytes)
    Assumes:  every token reads a row of its own (a repeated token may hit a cache); indices are 64-bit, as torch's
              are
    Source:   by definition: a lookup calculates nothing
    Measured: measure.inner_loop.flops.counted_flops
    """
    checks.count(tokens=tokens, hidden=hidden, index_bytes=index_bytes)
    weight_bytes = bytes_per_element if weight_bytes_per_element is None else weight_bytes_per_element
    checks.positive(bytes_per_element=bytes_per_element, weight_bytes_per_element=weight_bytes)
    return Work(flops=0, moved_bytes=tokens * (hidden * weight_bytes + hidden * bytes_per_element + index_bytes))
