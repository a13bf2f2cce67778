"""Bytes that wait for a backward pass at this moment, and whom they have been waiting for since an earlier step.

>>> model, losses = torch.nn.Linear(10, 30, bias=False), []
>>> with watched(model) as waiting:
...     for _ in range(3):
...         losses.append(model(torch.ones(7, 10)).square().sum())
...     waiting.bytes  # three inputs of 7 * 10 and three outputs of 7 * 30 numbers, 4 bytes each
3360
"""

import contextlib
import weakref
from collections.abc import Iterator

import torch
from torch import Tensor


class _Kept:
    """A saved tensor, held by the graph alone: it is gone when the graph lets go of it."""

    def __init__(self, tensor: Tensor) -> None:
        self.tensor = tensor.detach()  # the same storage; with its graph it would hold itself


class Waiting:
    """What is being kept for backward passes that have not happened."""

    def __init__(self, own: set[int]) -> None:
        self._own = own
        self._kept: weakref.WeakSet[_Kept] = weakref.WeakSet()

    def note(self, tensor: Tensor) -> _Kept:
        kept = _Kept(tensor)
        if tensor.untyped_storage().data_ptr() not in self._own:
            self._kept.add(kept)
        return kept

    @property
    def bytes(self) -> int:
        """Bytes of all storages that wait now; one that several operations keep counts once."""
        return sum(
            {
                kept.tensor.untyped_storage().data_ptr(): kept.tensor.untyped_storage().nbytes() for kept in self._kept
            }.values()
        )


@contextlib.contextmanager
def watched(module: torch.nn.Module) -> Iterator[Waiting]:
    """Watch what forward passes inside the block keep; parameters and buffers of the module are left out, for they
    exist anyway.

    Assumes:  as saved_tensors.saved_storages
    Source:   PyTorch documentation, torch.autograd.graph.saved_tensors_hooks
    """
    waiting = Waiting({t.untyped_storage().data_ptr() for t in (*module.parameters(), *module.buffers())})
    with torch.autograd.graph.saved_tensors_hooks(waiting.note, lambda kept: kept.tensor):
        yield waiting
