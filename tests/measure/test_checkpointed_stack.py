"""A stack tried by hand: the printed solution keeps one input a segment, to the byte; the loop that looks like it does
not; and a stack that changes a gradient is found out.
"""

import math
from collections.abc import Sequence
from typing import Any

import pytest
import torch
from torch.utils.checkpoint import checkpoint

from threeloops.measure.driving.checkpointed_stack import FP32_BYTES, INPUT_BYTES, tried
from threeloops.sheets import coding
from threeloops.simulate.training_loop.recomputed_step import even_stretches, play

BLOCK_BYTES = 9 * INPUT_BYTES  # a block keeps its input, and before and after the GELU four times that

LOSS_BYTES = FP32_BYTES


def solution() -> Any:
    defined: dict[str, Any] = {"__name__": "solution"}
    exec(coding.CHECKPOINT_SOLUTION, defined)
    return defined["CheckpointedStack"]


class EveryKth(torch.nn.Module):
    """The loop of the drill coding-every-kth."""

    def __init__(self, blocks: Sequence[torch.nn.Module], every: int) -> None:
        super().__init__()
        self.blocks, self.every = torch.nn.ModuleList(blocks), every

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for i, block in enumerate(self.blocks):
            x = checkpoint(block, x, use_reentrant=False) if i % self.every == 0 else block(x)
        return x


class Detached(EveryKth):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return super().forward(x.detach().requires_grad_())


@pytest.mark.parametrize(("layers", "every"), [(10, 1), (10, 2), (10, 4), (7, 3), (5, 5)])
def test_what_waits_is_what_the_simulator_counts(layers: int, every: int) -> None:
    found = tried(solution(), layers=layers, every=every)
    counted = play(even_stretches(num_layers=layers, every=every), block_bytes=BLOCK_BYTES, input_bytes=INPUT_BYTES)
    # the first block's input was there before; the last block's output is alive, and so is the loss
    assert found.waiting_bytes == counted.moments[layers - 1].alive_bytes + LOSS_BYTES
    assert found.runs == (2,) * layers
    assert found.same_gradients


@pytest.mark.parametrize("every", [2, 3, 4])
def test_the_loop_that_checkpoints_one_block_in_k_keeps_all_the_others(every: int) -> None:
    found = tried(EveryKth, layers=10, every=every)
    forgets = math.ceil(10 / every)
    assert found.waiting_bytes == (10 - forgets) * BLOCK_BYTES + forgets * INPUT_BYTES + LOSS_BYTES
    assert sum(found.runs) == 10 + forgets


def test_a_stack_that_loses_a_gradient_is_found_out() -> None:
    assert not tried(Detached, layers=4, every=2).same_gradients
