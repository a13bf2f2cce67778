"""Expert training: a small mixture of experts, really trained, and how its router spreads the tokens while it learns.

The data have topics, some common and most rare, each with a mapping of its own to learn: something for experts to
share out. All experts compute all tokens and the router's choice masks the result, which at this size is faster than
moving tokens.
"""

from dataclasses import dataclass

import torch
from torch import nn

from threeloops import checks

WIDTH, WIDE, TOPICS, TOKENS = 16, 24, 40, 512  # of a token, of an expert's hidden layer; topics; tokens per step
BALANCING = ("none", "auxiliary", "bias")


@dataclass(frozen=True, slots=True, kw_only=True)
class Trained:
    """What became of the model and of its experts."""

    balancing: str
    losses: tuple[float, ...]  # per step, without the auxiliary term
    loads: tuple[tuple[int, ...], ...]  # [step][expert]: tokens that chose it

    def mean_loads(self, last: int) -> tuple[float, ...]:
        """Loads per expert, mean over the last steps."""
        return tuple(sum(column) / last for column in zip(*self.loads[-last:], strict=True))


class Mixture(nn.Module):
    """A router and experts of two matrices each; also what the router thought, for those who balance."""

    def __init__(self, num_experts: int, top_k: int) -> None:
        super().__init__()
        self.top_k = top_k
        self.router = nn.Linear(WIDTH, num_experts, bias=False)
        self.up = nn.Parameter(torch.randn(WIDTH, num_experts * WIDE) / WIDTH**0.5)  # all experts side by side
        self.down = nn.Parameter(torch.randn(num_experts * WIDE, WIDTH) / WIDE**0.5)

    def forward(self, tokens: torch.Tensor, bias: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        probabilities = self.router(tokens).softmax(dim=1)
        # the bias chooses; the weights below know nothing of it
        chosen = (probabilities + bias).topk(self.top_k, dim=1).indices
        weights = torch.zeros_like(probabilities).scatter(1, chosen, probabilities.gather(1, chosen))
        weights = weights / weights.sum(dim=1, keepdim=True)
        hidden = torch.relu(tokens @ self.up) * weights.repeat_interleave(WIDE, dim=1)
        return hidden @ self.down, probabilities, chosen


def _data(
    generator: torch.Generator, centres: torch.Tensor, mappings: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    common = 1.0 / torch.arange(1, TOPICS + 1)  # the second topic half as common as the first, and so on
    topics = torch.multinomial(common, TOKENS, replacement=True, generator=generator)
    tokens = centres[topics] + 0.3 * torch.randn(TOKENS, WIDTH, generator=generator)
    return tokens, torch.tanh(torch.einsum("tw,twv->tv", tokens, mappings[topics]))


def trained(balancing: str, *, num_experts: int, top_k: int, steps: int, strength: float, seed: int) -> Trained:
    """Train from the same start on the same data, with one way to balance.

    Units:    strength: the coefficient of the auxiliary loss, or what a bias moves by in a step (in units of a
              probability); unused with "none"
    Raises:   ValueError for another way to balance
    Source:   Fedus et al., 2021, arXiv:2101.03961, equations 4 to 6 (auxiliary loss); Wang et al., 2024,
              arXiv:2408.15664, algorithm 1 (bias)
    """
    checks.one_of(BALANCING, balancing=balancing)
    checks.count(num_experts=num_experts, top_k=top_k, steps=steps)
    checks.non_negative(strength=strength)
    generator = torch.Generator().manual_seed(seed)
    torch.manual_seed(seed)
    centres, mappings = (
        torch.randn(TOPICS, WIDTH, generator=generator),
        torch.randn(TOPICS, WIDTH, WIDTH, generator=generator) / WIDTH**0.5,
    )
    model, bias = Mixture(num_experts, top_k), torch.zeros(num_experts)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    losses, history = [], []
    for _ in range(steps):
        tokens, target = _data(generator, centres, mappings)
        output, probabilities, chosen = model(tokens, bias)
        loads = torch.bincount(chosen.ravel(), minlength=num_experts)
        loss = (output - target).square().mean()
        extra = (
            num_experts * (loads / loads.sum() * probabilities.mean(dim=0)).sum()
            if balancing == "auxiliary"
            else torch.zeros(())
        )
        optimizer.zero_grad()
        (loss + strength * extra).backward()
        optimizer.step()
        if balancing == "bias":
            bias += strength * torch.sign(loads.float().mean() - loads)
        losses.append(float(loss.detach()))
        history.append(tuple(loads.tolist()))
    return Trained(balancing=balancing, losses=tuple(losses), loads=tuple(history))
