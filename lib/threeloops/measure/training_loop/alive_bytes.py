"""Bytes alive after every operation of a real training step, the backward pass and the update included.

torch shows every operation to a dispatch mode. Each storage that an operation makes is weighed once, and counted
until nobody holds it any more. With fake tensors nothing is computed and no memory is taken: a step of a model far
larger than the machine can be watched.

>>> model, x = torch.nn.Linear(10, 30, bias=False), torch.ones(7, 10)
>>> with watched() as seen:
...     seen.begin("forward")
...     loss = model(x).square().sum()
...     seen.begin("backward")
...     loss.backward()
>>> seen.readings[0].phase, seen.readings[-1].phase
('forward', 'backward')
"""

import contextlib
import weakref
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves


@dataclass(frozen=True, slots=True)
class Reading:
    """One operation, and the bytes alive right after it, beyond those that were there when watching began."""

    phase: str
    operation: str
    alive_bytes: int


class Watched(TorchDispatchMode):
    """Weighs storages as they are made, and takes them off the scales when they are freed."""

    def __init__(self) -> None:
        super().__init__()
        self.alive_bytes = 0
        self.readings: list[Reading] = []
        self._phase = ""
        self._known: dict[int, Any] = {}

    def begin(self, phase: str) -> None:
        """What follows belongs to this phase."""
        self._phase = phase

    def peak(self, phase: str | None = None) -> Reading:
        """The reading with most bytes, of one phase or of all."""
        return max(
            (reading for reading in self.readings if phase in (None, reading.phase)),
            key=lambda reading: reading.alive_bytes,
        )

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        given = [_storage(tensor) for tensor in _tensors((args, kwargs))]
        made = func(*args, **(kwargs or {}))
        old = {id(storage) for storage in given}
        for tensor in _tensors(made):
            storage = _storage(tensor)
            if id(storage) not in old and id(storage) not in self._known:
                self._weigh(storage)
        self.readings.append(Reading(self._phase, str(func), self.alive_bytes))
        return made

    def _weigh(self, storage: Any) -> None:
        nbytes, key = storage.nbytes(), id(storage)
        self.alive_bytes += nbytes
        self._known[key] = weakref.finalize(storage, self._freed, key, nbytes)

    def _freed(self, key: int, nbytes: int) -> None:
        self._known.pop(key, None)
        self.alive_bytes -= nbytes


@contextlib.contextmanager
def watched() -> Iterator[Watched]:
    """Watch all operations inside the block.

    Assumes:  what existed before (parameters, inputs) is not counted; a storage counts whole, however small the view
              into it; what an operation takes and gives back inside itself is not seen; nor is what the allocator
              adds by rounding
    Source:   PyTorch documentation, torch.utils._python_dispatch; torch.distributed._tools.mem_tracker does the same
              with more categories
    """
    with Watched() as seen:
        yield seen


def _tensors(tree: Any) -> list[torch.Tensor]:
    return [leaf for leaf in tree_leaves(tree) if isinstance(leaf, torch.Tensor)]


def _storage(tensor: torch.Tensor) -> Any:
    return tensor.untyped_storage()
