"""Expert exchange: a layer of experts spread over real processes, which send each token to its experts and the
results back, forward and backward.

The numbers are real: outputs and gradients are compared with those of one process that holds all experts. The bytes
are what torch hands to gloo's all-to-all for other ranks; wire.step_traffic reads from the connections what gloo
makes of them.
"""

from dataclasses import dataclass

import torch
import torch.distributed as dist
from torch.distributed._functional_collectives import all_to_all_single_autograd

from threeloops import checks
from threeloops.measure.processes.ranks import run_ranks
from threeloops.measure.processes.wire import FLOAT_BYTES, Step

SEED = 20261122


@dataclass(frozen=True, slots=True, kw_only=True)
class Layer:
    """The sizes of one layer of experts and what each rank brings to it."""

    num_experts: int
    top_k: int
    hidden: int
    wide: int
    tokens_per_rank: int
    skew: float  # of the experts' popularity, in units of a router's logit; 0: all alike


@dataclass(frozen=True, slots=True, kw_only=True)
class Exchanged:
    """A forward and a backward pass over all ranks."""

    arrived: tuple[int, ...]  # copies of tokens that each rank's experts worked on
    sent_forward_bytes: tuple[int, ...]  # by each rank to others: dispatch and combine
    output_difference: float  # the largest from one process that did it all, over the largest output
    gradient_difference: float  # the same for the experts' and the tokens' gradients


def _made(layer: Layer, *, rank: int) -> tuple[torch.Tensor, torch.Tensor]:
    """A rank's tokens, and the experts that each has chosen."""
    generator = torch.Generator().manual_seed(SEED + 1 + rank)
    tokens = torch.randn(layer.tokens_per_rank, layer.hidden, generator=generator)
    popularity = layer.skew * torch.randn(layer.num_experts, generator=torch.Generator().manual_seed(SEED))
    uniform = torch.rand(layer.tokens_per_rank, layer.num_experts, generator=generator)
    likes = popularity - torch.log(-torch.log(uniform))
    return tokens, likes.topk(layer.top_k, dim=1).indices


def _experts(layer: Layer) -> tuple[torch.Tensor, torch.Tensor]:
    """Both matrices of all experts, the same on every rank that asks."""
    generator = torch.Generator().manual_seed(SEED + 99)
    up = torch.randn(layer.num_experts, layer.hidden, layer.wide, generator=generator) / layer.hidden**0.5
    return up, torch.randn(layer.num_experts, layer.wide, layer.hidden, generator=generator) / layer.wide**0.5


class ExpertRank:
    """One rank: its experts, its tokens, and the way there and back."""

    def __init__(self, layer: Layer) -> None:
        self.layer, self.rank, self.ranks = layer, dist.get_rank(), dist.get_world_size()
        assert dist.group.WORLD is not None
        self.world = dist.group.WORLD
        self.each = layer.num_experts // self.ranks
        mine = slice(self.rank * self.each, (self.rank + 1) * self.each)
        self.up, self.down = (matrix[mine].clone().requires_grad_() for matrix in _experts(layer))
        self.tokens, chosen = _made(layer, rank=self.rank)
        self.tokens.requires_grad_()
        self.flat = chosen.ravel()
        self.order = torch.argsort(self.flat, stable=True)  # copies sorted by expert, and so by rank
        self.to = torch.bincount(self.flat // self.each, minlength=self.ranks)
        coming = torch.empty_like(self.to)
        dist.all_to_all_single(coming, self.to)  # how many copies come from whom: known before the tokens travel
        self.sends, self.receives = self.to.tolist(), coming.tolist()
        self.numbers = torch.empty(sum(self.receives), dtype=torch.long)
        dist.all_to_all_single(self.numbers, self.flat[self.order], self.receives, self.sends)

    def forward(self) -> torch.Tensor:
        """Dispatch, compute, combine."""
        copies = self.tokens.repeat_interleave(self.layer.top_k, dim=0)[self.order]
        came = all_to_all_single_autograd(copies, self.receives, self.sends, self.world)
        worked = torch.zeros_like(came)
        for place in range(self.each):
            rows = torch.nonzero(self.numbers == self.rank * self.each + place).ravel()
            worked = worked.index_add(0, rows, torch.relu(came[rows] @ self.up[place]) @ self.down[place])
        back = all_to_all_single_autograd(worked, self.sends, self.receives, self.world)
        unsorted = torch.zeros_like(back).index_copy(0, self.order, back)
        return unsorted.view(-1, self.layer.top_k, self.layer.hidden).sum(dim=1)

    def sent_bytes(self) -> int:
        """To other ranks, forward: its own copies on the way out, others' results on the way back."""
        others = sum(self.sends) - self.sends[self.rank] + sum(self.receives) - self.receives[self.rank]
        return others * self.layer.hidden * FLOAT_BYTES


def prepared_exchange(layer: Layer, backward: bool) -> Step:
    """On a rank: a step that runs the layer forward, or forward and backward (for wire.step_traffic)."""
    rank = ExpertRank(layer)

    def step() -> None:
        output = rank.forward()
        if backward:
            output.square().sum().backward()

    return step


def _on_a_rank(layer: Layer) -> tuple[int, int, torch.Tensor, list[torch.Tensor]]:
    rank = ExpertRank(layer)
    output = rank.forward()
    gradients = torch.autograd.grad(output.square().sum(), [rank.tokens, rank.up, rank.down])
    return len(rank.numbers), rank.sent_bytes(), output.detach(), list(gradients)


def _alone(layer: Layer, ranks: int) -> tuple[torch.Tensor, list[torch.Tensor]]:
    """The same layer in one process, over all ranks' tokens."""
    made = [_made(layer, rank=rank) for rank in range(ranks)]
    tokens, chosen = torch.cat([each for each, _ in made]).requires_grad_(), torch.cat([each for _, each in made])
    up, down = (matrix.requires_grad_() for matrix in _experts(layer))
    output = torch.zeros_like(tokens)
    for expert in range(layer.num_experts):
        rows = torch.nonzero((chosen == expert).any(dim=1)).ravel()
        output = output.index_add(0, rows, torch.relu(tokens[rows] @ up[expert]) @ down[expert])
    return output.detach(), list(torch.autograd.grad(output.square().sum(), [tokens, up, down]))


def exchanged(layer: Layer, *, ranks: int, timeout_s: float = 60.0) -> Exchanged:
    """Run the layer over real ranks, forward and backward, and compare it with one process.

    Raises:   ValueError if the ranks do not divide the experts; RankError as run_ranks does
    """
    checks.divides(part="ranks", part_value=ranks, whole="num_experts", whole_value=layer.num_experts)
    by_rank = run_ranks(_on_a_rank, layer, ranks=ranks, timeout_s=timeout_s)
    output, gradients = _alone(layer, ranks)
    spread = [torch.cat(parts) for parts in zip(*(each[3] for each in by_rank), strict=True)]
    return Exchanged(
        arrived=tuple(each[0] for each in by_rank),
        sent_forward_bytes=tuple(each[1] for each in by_rank),
        output_difference=_difference(torch.cat([each[2] for each in by_rank]), output),
        gradient_difference=max(_difference(one, other) for one, other in zip(spread, gradients, strict=True)),
    )


def _difference(one: torch.Tensor, other: torch.Tensor) -> float:
    return float((one - other).abs().max() / other.abs().max())
