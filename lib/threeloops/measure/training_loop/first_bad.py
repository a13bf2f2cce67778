"""First bad number: watch a model, and say which module first gave out something that is not finite, forward or
backward.

A hook on every module looks at what comes out of it in the forward pass, and at what it hands on in the backward
pass. Only leaves are watched: a module that contains others passes on what they made.

>>> model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.ReLU())
>>> with watched(model) as found:
...     _ = model(torch.full((1, 4), torch.inf))
>>> found[0]
'forward: input of 0'
"""

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn


@contextmanager
def watched(model: nn.Module) -> Iterator[list[str]]:
    """A list that fills with every place where a number that is not finite appears, the first one first."""
    found: list[str] = []
    handles = []
    for name, module in model.named_modules():
        if not list(module.children()):
            handles.append(module.register_forward_hook(_forward(found, name)))
            handles.append(module.register_full_backward_hook(_backward(found, name)))
    try:
        yield found
    finally:
        for handle in handles:
            handle.remove()


def _forward(found: list[str], name: str) -> Callable[..., None]:
    def look(module: nn.Module, inputs: Any, output: Any) -> None:
        if _bad(inputs):
            found.append(f"forward: input of {name}")
        elif any(_bad(parameter) for parameter in module.parameters()):
            found.append(f"forward: weights of {name}")
        elif _bad(output):
            found.append(f"forward: made in {name}")

    return look


def _backward(found: list[str], name: str) -> Callable[..., None]:
    def look(module: nn.Module, handed_on: Any, received: Any) -> None:
        if _bad(received):
            found.append(f"backward: received by {name}")
        elif _bad(handed_on):
            found.append(f"backward: made in {name}")

    return look


def _bad(tensors: Any) -> bool:
    several = tensors if isinstance(tensors, tuple) else (tensors,)
    return any(
        torch.is_tensor(one) and one.is_floating_point() and not bool(torch.isfinite(one).all()) for one in several
    )


def anomaly(loss_of: Callable[[], Tensor]) -> str:
    """What anomaly mode says of a backward pass: the operation that made a NaN, or that there was none.

    Assumes:  anomaly mode looks at NaN only: an infinity passes until something makes a NaN of it
    Source:   PyTorch documentation, torch.autograd.detect_anomaly
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it warns that it is slow, and prints where the operation was called forward
        with torch.autograd.detect_anomaly(check_nan=True):
            try:
                loss_of().backward()
            except RuntimeError as error:
                return str(error)
    return "no NaN"
