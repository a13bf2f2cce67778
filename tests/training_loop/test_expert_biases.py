"""Expert biases: bytes against those that torch's own operations read and write, forward and backward."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from threeloops.training_loop.parallelism.expert_biases import expert_bias_bytes

HIDDEN, INTERMEDIATE, TOKENS = 192, 320, [40, 24]  # of two experts


class Moved(TorchDispatchMode):
    """Bytes that operations read and write; views are free."""

    def __init__(self) -> None:
        super().__init__()
        self.total = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        read = [one for one in tree_leaves((args, kwargs or {})) if isinstance(one, Tensor)]
        known = {one.untyped_storage().data_ptr() for one in read}
        in_place = func._schema.is_mutable
        made = [one for one in tree_leaves(result) if isinstance(one, Tensor)]
        written = [one for one in made if in_place or one.untyped_storage().data_ptr() not in known]
        if written and "ones_like" not in str(func):
            self.total += sum(map(touched, [*read, *written]))
        return result


def touched(tensor: Tensor) -> int:
    """Bytes of its elements, those that a broadcast repeats once."""
    elements = 1
    for size, stride in zip(tensor.shape, tensor.stride(), strict=True):
        elements *= size if stride else 1
    return elements * tensor.element_size()


def moved_by_torch(program: Callable[[Tensor], Tensor], width: int) -> tuple[float, float]:
    """Bytes a row, forward and backward, of a program on activations in 16 bits."""
    given = torch.randn(sum(TOKENS), width, dtype=torch.bfloat16, requires_grad=True)
    with Moved() as forward:
        result = program(given)
    with Moved() as backward:
        result.backward(torch.ones_like(result))
    return forward.total / sum(TOKENS), backward.total / sum(TOKENS)


def clamped(given: Tensor) -> Tensor:
    gate, linear = given.chunk(2, -1)
    return torch.cat((gate.clamp(min=None, max=7.0), linear.clamp(min=-7.0, max=7.0)), -1)


@pytest.mark.parametrize(("routing_bytes", "dtype"), [(2, torch.bfloat16), (4, torch.float32)])
def test_bytes_are_those_of_torchs_own_operations(routing_bytes: int, dtype: torch.dtype) -> None:
    biases = [torch.randn(HIDDEN, dtype=torch.bfloat16, requires_grad=True) for _ in TOKENS]
    weights = torch.rand(sum(TOKENS), 1, dtype=dtype).requires_grad_()

    def biased(given: Tensor) -> Tensor:
        each = zip(given.split(TOKENS), biases, weights.split(TOKENS), strict=True)
        return torch.cat([one + bias * weight for one, bias, weight in each]).to(given.dtype)

    first = expert_bias_bytes(rows=1, hidden=1, intermediate=INTERMEDIATE, routing_bytes=routing_bytes)
    nothing = expert_bias_bytes(rows=1, hidden=1, intermediate=1, routing_bytes=routing_bytes)
    forward, backward = moved_by_torch(clamped, 2 * INTERMEDIATE)
    assert forward == first.activation
    assert backward == pytest.approx(first.backward - nothing.backward, rel=0.01)
    second = expert_bias_bytes(rows=1, hidden=HIDDEN, intermediate=1, routing_bytes=routing_bytes)
    forward, backward = moved_by_torch(biased, HIDDEN)
    assert forward == pytest.approx(second.output, rel=0.03)  # biases and weights are read beside
    assert backward == pytest.approx(second.backward - nothing.backward, rel=0.05)


def test_sizes_that_are_none_are_refused() -> None:
    with pytest.raises(ValueError, match="routing_bytes=8"):
        expert_bias_bytes(rows=1, hidden=1, intermediate=1, routing_bytes=8)
    with pytest.raises(ValueError, match="rows=0"):
        expert_bias_bytes(rows=0, hidden=1, intermediate=1, routing_bytes=2)
