"""Bytes that autograd really keeps between a forward pass and its backward pass.

torch calls a hook for every tensor that it saves. Views share a storage with their base, and two operations may save
one tensor: bytes are counted once per storage. Parameters and buffers are saved too, but they exist anyway and are
left out.

>>> linear = torch.nn.Linear(10, 30)
>>> saved_bytes(linear, torch.ones(7, 10, requires_grad=True))  # the input, 7 * 10 * 4 bytes
280
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True, slots=True, kw_only=True)
class SavedStorage:
    """One piece of memory that waits for the backward pass."""

    shape: tuple[int, ...]  # of the first tensor seen in it
    dtype: str
    bytes: int


def saved_storages(
    forward: Callable[[Tensor], Tensor], x: Tensor, *, module: torch.nn.Module | None = None
) -> tuple[SavedStorage, ...]:
    """Every storage that running forward(x) keeps for backward, in the order of saving; those of module's parameters
    and buffers left out.

    Assumes:  a storage is kept whole, however small the view into it; tensors that a Python function hides from
              autograd are not seen
    Raises:   ValueError if the result needs no gradient
    Source:   PyTorch documentation, torch.autograd.graph.saved_tensors_hooks
    """
    owner = module if module is not None else forward if isinstance(forward, torch.nn.Module) else None
    own = (
        {t.untyped_storage().data_ptr() for t in (*owner.parameters(), *owner.buffers())}
        if owner is not None
        else set()
    )
    kept: dict[int, Tensor] = {}

    def note(tensor: Tensor) -> Tensor:
        address = tensor.untyped_storage().data_ptr()
        # Holding the tensor itself keeps its address from being used again.
        if address not in own:
            kept.setdefault(address, tensor)
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(note, lambda tensor: tensor):
        result = forward(x)
    if not result.requires_grad:
        raise ValueError(
            "forward(x) recorded nothing: gradients are switched off, or neither x nor any parameter requires one"
        )
    return tuple(
        SavedStorage(shape=tuple(t.shape), dtype=str(t.dtype), bytes=t.untyped_storage().nbytes())
        for t in kept.values()
    )


def saved_bytes(forward: Callable[[Tensor], Tensor], x: Tensor, *, module: torch.nn.Module | None = None) -> int:
    """Bytes of saved_storages together."""
    return sum(storage.bytes for storage in saved_storages(forward, x, module=module))
