"""Update rounding: one small network trained four times, alike in everything but what happens when an updated weight
is written back.

Products run in bf16 in all of them but "fp32", and Adam works in fp32 with fp32 moments in all of them. What differs
is one line: "master" remembers what rounding cut off, "nearest" forgets it, "stochastic" forgets it too but rounds up
or down by a coin.

>>> run = train("nearest", steps=5, learning_rate=1e-5)
>>> len(run.losses), 0 < run.stuck_share < 1
(5, True)
"""

from dataclasses import dataclass

import torch

from threeloops import checks
from threeloops.measure.inner_loop.machine import one_core

KEEPINGS = ("fp32", "master", "nearest", "stochastic")
INPUTS, HIDDEN, SAMPLES = 32, 64, 512


@dataclass(frozen=True, slots=True, kw_only=True)
class Trained:
    """What came of a run."""

    losses: list[float]  # on the whole batch, before each step
    stuck_share: float  # of the weights: those with the value that they had at the start
    first_weights: tuple[float, ...]  # all weights at the start, in bf16


def train(keeping: str, *, steps: int, learning_rate: float, seed: int = 1) -> Trained:
    """Fit a two-layer network to the outputs of another one, with Adam, on the same batch every step."""
    checks.one_of(KEEPINGS, keeping=keeping)
    checks.count(steps=steps)
    checks.positive(learning_rate=learning_rate)
    with one_core():  # several threads, with a microsecond's work each, mostly wait for each other
        return _trained(keeping, steps, learning_rate, seed)


def _trained(keeping: str, steps: int, learning_rate: float, seed: int) -> Trained:
    coins = torch.Generator().manual_seed(seed)
    inputs, wanted, masters = _problem(coins)
    dtype = torch.float32 if keeping == "fp32" else torch.bfloat16
    weights = [master.to(dtype).requires_grad_() for master in masters]
    starts = [weight.detach().clone() for weight in weights]
    adam = torch.optim.Adam(masters, lr=learning_rate)
    losses = []
    for _ in range(steps):
        hidden = torch.relu(inputs.to(dtype) @ weights[0])
        loss = torch.nn.functional.mse_loss((hidden @ weights[1]).float(), wanted)
        losses.append(float(loss.detach()))
        for master, gradient in zip(masters, torch.autograd.grad(loss, weights), strict=True):
            master.grad = gradient.float()
        adam.step()
        for master, weight in zip(masters, weights, strict=True):
            _write_back(master, weight, keeping, coins)
    stuck = sum(int((weight == start).sum()) for weight, start in zip(weights, starts, strict=True))
    first = tuple(value for start in starts for value in start.flatten().tolist())
    return Trained(losses=losses, stuck_share=stuck / len(first), first_weights=first)


def _problem(coins: torch.Generator) -> tuple[torch.Tensor, torch.Tensor, list[torch.Tensor]]:
    """Inputs, what a hidden network of the same shape makes of them, and weights to begin with, which bf16 can
    hold.
    """

    def weights() -> list[torch.Tensor]:
        shapes = ((INPUTS, HIDDEN), (HIDDEN, 1))
        return [(torch.randn(shape, generator=coins) / shape[0] ** 0.5).bfloat16().float() for shape in shapes]

    inputs = torch.randn(SAMPLES, INPUTS, generator=coins)
    first, second = weights()
    return inputs, torch.relu(inputs @ first) @ second, weights()


def _write_back(master: torch.Tensor, weight: torch.Tensor, keeping: str, coins: torch.Generator) -> None:
    """Round the updated master into the weight; without a master, what was cut off is forgotten."""
    with torch.no_grad():
        rounded = stochastically_rounded(master, coins) if keeping == "stochastic" else master.to(weight.dtype)
        weight.copy_(rounded)
        if keeping in ("nearest", "stochastic"):
            master.copy_(weight)


def stochastically_rounded(values: torch.Tensor, coins: torch.Generator) -> torch.Tensor:
    """fp32 to bf16: add a random number to the 16 bits that will go, then cut them off.

    >>> ups = stochastically_rounded(torch.full((4096,), 1 + 0.25 / 128), torch.Generator().manual_seed(1)) > 1
    >>> 0.22 < ups.float().mean() < 0.28  # a quarter of the way up: a quarter of them go up
    tensor(True)
    """
    noise = torch.randint(0, 1 << 16, values.shape, generator=coins, dtype=torch.int32)
    cut: torch.Tensor = (
        ((values.contiguous().view(torch.int32) + noise) & -(1 << 16)).view(torch.float32).to(torch.bfloat16)
    )
    return cut
