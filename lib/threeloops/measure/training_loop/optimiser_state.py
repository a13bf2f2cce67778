"""Bytes of state that a real torch optimiser keeps, after the step that creates it.

>>> parameters = [torch.nn.Parameter(torch.ones(6, 10))]
>>> state_bytes(torch.optim.AdamW(parameters))  # two moments of 60 * 4 bytes, and a step counter of 4
484
"""

from dataclasses import dataclass

import torch
from torch.optim import Optimizer


@dataclass(frozen=True, slots=True, kw_only=True)
class StateTensor:
    """One tensor that an optimiser keeps for one parameter."""

    name: str  # as the optimiser calls it: "exp_avg", "momentum_buffer"
    parameter_shape: tuple[int, ...]
    shape: tuple[int, ...]
    dtype: str
    bytes: int


def state_tensors(optimizer: Optimizer) -> tuple[StateTensor, ...]:
    """Take one step on made-up gradients, then list every tensor of state. The parameters change; use throw-away
    ones.
    """
    for group in optimizer.param_groups:
        for parameter in group["params"]:
            parameter.grad = torch.ones_like(parameter)
    optimizer.step()
    return tuple(
        StateTensor(
            name=name,
            parameter_shape=tuple(parameter.shape),
            shape=tuple(value.shape),
            dtype=str(value.dtype),
            bytes=value.nbytes,
        )
        for parameter, state in optimizer.state.items()
        for name, value in state.items()
        if torch.is_tensor(value)
    )


def state_bytes(optimizer: Optimizer) -> int:
    """Bytes of all state tensors together."""
    return sum(tensor.bytes for tensor in state_tensors(optimizer))
