"""A stack that somebody wrote by hand, tried: does every block run twice, are the gradients those of the plain stack,
and what waits between the passes?

>>> class Plain(torch.nn.Module):
...     def __init__(self, blocks, every):
...         super().__init__()
...         self.blocks = torch.nn.Sequential(*blocks)
...
...     def forward(self, x):
...         return self.blocks(x)
>>> found = tried(Plain, layers=3, every=2)
>>> found.runs, found.same_gradients
((1, 1, 1), True)
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from threeloops.measure.training_loop import alive_bytes

WIDTH, ROWS = 24, 50
FP32_BYTES = 4
INPUT_BYTES = ROWS * WIDTH * FP32_BYTES

Build = Callable[[Sequence[torch.nn.Module], int], torch.nn.Module]
NEAR, NEAR_ZERO = 1e-4, 1e-6  # relative, absolute: another order of additions moves a gradient of 1e-3 by less


@dataclass(frozen=True, slots=True, kw_only=True)
class Tried:
    """What came of one step."""

    runs: tuple[int, ...]  # how often each block was run forward
    same_gradients: bool  # within NEAR those of the blocks called one after the other
    waiting_bytes: int  # alive between the passes, what existed before left out


class Block(torch.nn.Module):
    """An MLP four times as wide with GELU, added to its input; it counts how often it is run."""

    def __init__(self) -> None:
        super().__init__()
        self.wide, self.narrow = torch.nn.Linear(WIDTH, 4 * WIDTH), torch.nn.Linear(4 * WIDTH, WIDTH)
        self.runs = 0

    def forward(self, x: Tensor) -> Tensor:
        self.runs += 1
        return x + self.narrow(torch.nn.functional.gelu(self.wide(x)))


def tried(build: Build, *, layers: int, every: int) -> Tried:
    """One step of build(blocks, every), beside one of the blocks alone."""
    torch.manual_seed(0)
    blocks = [Block() for _ in range(layers)]
    x = torch.randn(ROWS, WIDTH, requires_grad=True)
    expected = _gradients(torch.nn.Sequential(*blocks), x)
    for block in blocks:
        block.zero_grad()
        block.runs = 0
    stack, x.grad = build(blocks, every), None
    with alive_bytes.watched() as seen:
        loss = stack(x).square().mean()
        waiting = seen.alive_bytes
    loss.backward()
    found = [x.grad, *(parameter.grad for block in blocks for parameter in block.parameters())]
    pairs = zip(found, expected, strict=True)
    same = all(a is not None and torch.allclose(a, b, rtol=NEAR, atol=NEAR_ZERO) for a, b in pairs)
    return Tried(runs=tuple(block.runs for block in blocks), same_gradients=same, waiting_bytes=waiting)


def _gradients(stack: torch.nn.Module, x: Tensor) -> list[Tensor]:
    stack(x).square().mean().backward()
    grads = [tensor.grad for tensor in (x, *stack.parameters())]
    return [grad.clone() for grad in grads if grad is not None]
