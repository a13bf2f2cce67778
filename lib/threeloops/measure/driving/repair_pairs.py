"""Repair pairs: two real repairs of one small job, each alone and both together, on this machine's clock."""

import functools
import itertools

import torch
from torch import nn

from threeloops.measure import timing

INPUTS, WIDE, NARROW = 512, 128, 32
REPAIRS = ("one batch", "a narrow network")


def seconds(*, repeats: int = 9) -> dict[frozenset[str], float]:
    """Median seconds of answering all inputs, for every set of repairs: inputs one after the other or in one batch,
    and a network of full width or of a quarter.
    """
    given = torch.randn(INPUTS, WIDE, generator=torch.Generator().manual_seed(0))
    found = {}
    for size in range(len(REPAIRS) + 1):
        for made in itertools.combinations(REPAIRS, size):
            width = NARROW if REPAIRS[1] in made else WIDE
            inputs = given[:, :width].contiguous()
            calls = [inputs] if REPAIRS[0] in made else list(inputs.split(1))
            work = functools.partial(_answer, _network(width), calls)
            found[frozenset(made)] = timing.timed(work, repeats=repeats).median_s
    return found


@torch.inference_mode()
def _answer(network: nn.Module, calls: list[torch.Tensor]) -> None:
    for call in calls:
        network(call)


def _network(width: int) -> nn.Sequential:
    layers = [layer for _ in range(4) for layer in (nn.Linear(width, width), nn.ReLU())]
    return nn.Sequential(*layers)
