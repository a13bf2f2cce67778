"""Optimizer traffic: the bytes that the operations of one real update read and write, operation by operation.

What an operation reads is what it is handed; what it writes is what it declares to write in place, and what is new.

>>> parameters = [torch.nn.Parameter(torch.ones(64, 64))]
>>> counted = traffic(torch.optim.AdamW(parameters, foreach=True))
>>> counted.kernels, round(counted.bytes_per_parameter)
(8, 80)
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.optim import Optimizer
from torch.utils._python_dispatch import TorchDispatchMode


@dataclass(frozen=True, slots=True, kw_only=True)
class Traffic:
    """Operations of one update that handle tensors as large as parameters, in order, with the bytes that each reads
    and writes.
    """

    operations: tuple[tuple[str, int], ...]
    parameters: int

    @property
    def kernels(self) -> int:
        return len(self.operations)

    @property
    def bytes_per_parameter(self) -> float:
        return sum(moved for _, moved in self.operations) / self.parameters


class _Counter(TorchDispatchMode):
    def __init__(self) -> None:
        super().__init__()
        self.seen: list[tuple[str, int]] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        declared = {
            one.name for one in func._schema.arguments if one.alias_info is not None and one.alias_info.is_write
        }
        named = {one.name: value for one, value in zip(func._schema.arguments, args, strict=False)} | (kwargs or {})
        given = {tensor.data_ptr(): tensor for tensor in _tensors((args, kwargs or {}))}
        # A fused update declares its gradients, too, because it may unscale them; they count where that has happened.
        gradients = [(tensor, tensor.clone()) for tensor in _tensors(named.get("grads"))]
        result = func(*args, **(kwargs or {}))
        written = [tensor for name in declared - {"grads"} for tensor in _tensors(named.get(name))]
        written += [tensor for tensor, before in gradients if not torch.equal(tensor, before)]
        made = [tensor for tensor in _tensors(result) if tensor.data_ptr() not in given]
        moved = sum(tensor.nbytes for tensor in (*given.values(), *written, *made))
        if written or made:
            self.seen.append((str(func.overloadpacket).removeprefix("aten."), moved))
        return result


def _tensors(value: Any) -> Iterator[Tensor]:
    """Every tensor of more than one value in there: step counters are left out."""
    if isinstance(value, Tensor):
        if value.numel() > 1:
            yield value
    elif isinstance(value, dict):
        yield from _tensors(list(value.values()))
    elif isinstance(value, list | tuple):
        for one in value:
            yield from _tensors(one)


def traffic(optimizer: Optimizer) -> Traffic:
    """Count one update on made-up gradients; the one before, which creates the state, is not counted. The parameters
    change; use throw-away ones.
    """
    parameters = [parameter for group in optimizer.param_groups for parameter in group["params"]]
    random = torch.Generator().manual_seed(1)
    for parameter in parameters:
        parameter.grad = torch.rand(parameter.shape, generator=random) + 0.5
    optimizer.step()
    with _Counter() as counter:
        optimizer.step()
    return Traffic(operations=tuple(counter.seen), parameters=sum(parameter.numel() for parameter in parameters))
