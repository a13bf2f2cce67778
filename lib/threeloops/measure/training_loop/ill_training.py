"""Ill training: a small network with one of three planted faults that all end in a loss of NaN, and the remedies that
people try.

>>> train("square", "none", steps=4).first_place
'forward: made in energy'
"""

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from threeloops import checks
from threeloops.measure.inner_loop.machine import one_core
from threeloops.measure.training_loop.first_bad import watched

REMEDIES = ("none", "clip", "bf16", "rewrite")
WIDTH, BATCH, RATE = 16, 32, 0.05
BAD_STEP = 2  # steps before the one that is different


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """How a run went."""

    losses: list[float]
    first_step: int | None  # with a number that is not finite, counted from 1; None where there was none
    first_place: str  # where it was first seen

    @property
    def healthy(self) -> bool:
        return self.first_step is None


class Square(nn.Module):
    """Squared ReLU of activations that are already in the hundreds; rewritten, it is scaled before it is squared."""

    def __init__(self, rewritten: bool) -> None:
        super().__init__()
        self.rewritten = rewritten

    def forward(self, x: Tensor) -> Tensor:
        large = torch.relu(x) * (1 if self.rewritten else 400)
        return large * large * (1 if self.rewritten else 1 / 400**2)


class Root(nn.Module):
    """The root of the distance to the largest of a row, with zeros taken care of after the root; rewritten, before
    it.
    """

    def __init__(self, rewritten: bool) -> None:
        super().__init__()
        self.rewritten = rewritten

    def forward(self, x: Tensor) -> Tensor:
        below = x.amax(dim=1, keepdim=True) - x
        if self.rewritten:
            below = torch.where(below > 0, below, torch.full_like(below, 1e-6))
        return torch.where(below > 0, torch.sqrt(below), torch.zeros_like(below))


FAULTS = {"square": Square, "root": Root, "records": lambda rewritten: nn.ReLU()}


def network(fault: str, *, rewritten: bool = False) -> nn.Sequential:
    """Three named layers with the fault between the first and the last."""
    checks.one_of(FAULTS, fault=fault)
    torch.manual_seed(1)
    model = nn.Sequential()
    model.add_module("first", nn.Linear(WIDTH, WIDTH))
    model.add_module("energy", FAULTS[fault](rewritten))
    model.add_module("last", nn.Linear(WIDTH, 1))
    return model


def batch(fault: str, step: int, *, rewritten: bool = False) -> tuple[Tensor, Tensor]:
    """Inputs and targets; in the fault "records", one batch was never normalised, unless the loader was repaired."""
    coins = torch.Generator().manual_seed(100 + step)
    inputs = torch.randn(BATCH, WIDTH, generator=coins)
    wanted = inputs.mean(dim=1, keepdim=True)
    return (inputs * 60 if fault == "records" and step == BAD_STEP and not rewritten else inputs), wanted


def loss_of(model: nn.Module, inputs: Tensor, wanted: Tensor, dtype: torch.dtype = torch.float16) -> Tensor:
    """The forward pass under autocast."""
    with torch.autocast("cpu", dtype=dtype):
        return nn.functional.mse_loss(model(inputs), wanted)


def train(fault: str, remedy: str, *, steps: int) -> Outcome:
    """Some steps of SGD under fp16 autocast; remedies are clipping the norm to 1, bf16 in place of fp16, or the
    rewritten source of the trouble.
    """
    checks.one_of(REMEDIES, remedy=remedy)
    rewritten = remedy == "rewrite"
    model = network(fault, rewritten=rewritten)
    sgd = torch.optim.SGD(model.parameters(), lr=RATE)
    losses: list[float] = []
    with one_core(), watched(model) as found:
        for step in range(steps):
            inputs, wanted = batch(fault, step, rewritten=rewritten)
            loss = loss_of(
                model, inputs.requires_grad_(), wanted, torch.bfloat16 if remedy == "bf16" else torch.float16
            )
            losses.append(float(loss.detach()))
            sgd.zero_grad()
            loss.backward()
            if remedy == "clip":
                nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            sgd.step()
            if found:
                return Outcome(losses=losses, first_step=step + 1, first_place=found[0])
    return Outcome(losses=losses, first_step=None, first_place="")
