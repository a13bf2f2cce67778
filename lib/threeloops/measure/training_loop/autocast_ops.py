"""Autocast, op by op: which precision each operation of a forward pass really ran in.

torch dispatches every operation once more after autocast has chosen; a mode that listens there sees what the kernel
was given.

>>> layer = torch.nn.Linear(8, 8)
>>> with torch.autocast("cpu", dtype=torch.bfloat16):
...     [(op.name, op.read, op.wrote) for op in executed(lambda: layer(torch.ones(4, 8)))][-1]
('addmm', 'bfloat16', 'bfloat16')
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

# Operations that only look at the same bytes in another shape.
VIEWS = (
    "view",
    "_unsafe_view",
    "t",
    "transpose",
    "expand",
    "unsqueeze",
    "squeeze",
    "reshape",
    "detach",
    "permute",
    "slice",
    "select",
    "alias",
    "split",
)
CAST = "_to_copy"


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """One kernel as it was called."""

    name: str
    read: str  # dtypes of the floating-point tensors that went in, without repetition
    wrote: str  # dtypes of those that came out, likewise


class _Listener(TorchDispatchMode):
    def __init__(self) -> None:
        super().__init__()
        self.heard: list[Operation] = []

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = function(*args, **(kwargs or {}))
        name = str(function.overloadpacket).removeprefix("aten.")
        self.heard.append(Operation(name=name, read=_dtypes((args, kwargs)), wrote=_dtypes(result)))
        return result


def executed(forward: Callable[[], object]) -> tuple[Operation, ...]:
    """Every operation that forward() runs on floating-point tensors, casts included, views left out, in order."""
    with _Listener() as listener:
        forward()
    return tuple(op for op in listener.heard if op.name not in VIEWS and op.read and op.wrote)


def _dtypes(tree: object) -> str:
    found = (
        str(leaf.dtype).removeprefix("torch.")
        for leaf in tree_leaves(tree)
        if torch.is_tensor(leaf) and leaf.is_floating_point()
    )
    return "+".join(dict.fromkeys(found))
