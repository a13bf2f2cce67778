"""Faster network: the same weights and the same answers in less time: batch norms folded into the convolutions before
them, other orders in memory; and a fair clock for several ways of doing the same.

>>> import torch
>>> block = nn.Sequential(nn.Conv2d(2, 3, 3, bias=False), nn.BatchNorm2d(3), nn.ReLU()).eval()
>>> x = torch.ones(1, 2, 5, 5)
>>> bool(torch.allclose(folded(block)(x), block(x), atol=1e-6)), norms(block), norms(folded(block))
(True, 1, 0)
"""

import copy
import statistics
import time
from collections.abc import Callable, Mapping

from torch import nn
from torch.nn.utils.fusion import fuse_conv_bn_eval

from threeloops import checks


def folded(module: nn.Module) -> nn.Module:
    """A copy in which each batch norm that follows a convolution directly, in one Sequential, is part of it.

    Formula:  weight * gamma / sqrt(variance + eps) per output channel; bias likewise
    Assumes:  the module is in evaluation: its norms use the means and variances that training left behind
    Source:   Jacob et al., 2017, arXiv:1712.05877, section 3.2 (folding)
    """
    copied = copy.deepcopy(module).eval()
    for part in copied.modules():
        if isinstance(part, nn.Sequential):
            _fold_inside(part)
    return copied


def _fold_inside(row: nn.Sequential) -> None:
    for place in range(len(row) - 1):
        before, after = row[place], row[place + 1]
        if isinstance(before, nn.Conv2d) and isinstance(after, nn.BatchNorm2d):
            row[place] = fuse_conv_bn_eval(before, after)
            row[place + 1] = nn.Identity()


def norms(module: nn.Module) -> int:
    """Batch norms that are still there."""
    return sum(isinstance(part, nn.BatchNorm2d) for part in module.modules())


def in_turns(ways: Mapping[str, Callable[[], object]], *, rounds: int, warmup: int = 2) -> dict[str, float]:
    """Median seconds of each way, all ways in every round: what else runs on the machine meets all of them alike."""
    checks.count(rounds=rounds)
    checks.count(at_least=0, warmup=warmup)
    samples: dict[str, list[float]] = {name: [] for name in ways}
    for turn in range(warmup + rounds):
        for name, way in ways.items():
            start = time.perf_counter()
            way()
            if turn >= warmup:
                samples[name].append(time.perf_counter() - start)
    return {name: statistics.median(seconds) for name, seconds in samples.items()}
