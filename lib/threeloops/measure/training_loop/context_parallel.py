"""Context parallelism: causal attention over a sequence that is cut over real processes, forward and backward.

Ring attention sends keys and values round and adds up softmax pieces; on the way back the gradients of keys and
values travel with them and come home. Ulysses trades sequence for heads. Both are compared with torch's own attention
in one process, and each rank notes what it hands to gloo for others.
"""

from dataclasses import dataclass

import torch
import torch.distributed as dist
from torch import Tensor
from torch.distributed._functional_collectives import all_to_all_single_autograd
from torch.nn.functional import scaled_dot_product_attention

from threeloops import checks
from threeloops.measure.processes.ranks import run_ranks
from threeloops.measure.processes.wire import FLOAT_BYTES

SEED = 20261122
WAYS = ("ring", "zigzag", "ulysses")


@dataclass(frozen=True, slots=True, kw_only=True)
class Heads:
    """The sizes of one attention layer over one sequence."""

    sequence: int
    num_heads: int
    num_kv_heads: int
    head_dim: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Spread:
    """Attention over all ranks, forward and backward."""

    forward_bytes: tuple[int, ...]  # handed over for other ranks, per rank
    backward_bytes: tuple[int, ...]
    output_difference: float  # the largest from one process, over the largest output
    gradient_difference: float


def inputs(heads: Heads) -> list[Tensor]:
    """Queries, keys, values [heads, tokens, head_dim] and a gradient of the output, the same on every rank."""
    generator = torch.Generator().manual_seed(SEED)
    counts = (heads.num_heads, heads.num_kv_heads, heads.num_kv_heads, heads.num_heads)
    return [torch.randn(count, heads.sequence, heads.head_dim, generator=generator) for count in counts]


def places(heads: Heads, *, rank: int, ranks: int, zigzag: bool) -> Tensor:
    """Which tokens a rank has: one run of the sequence, or its early and its late run under zigzag."""
    if not zigzag:
        return torch.arange(heads.sequence).chunk(ranks)[rank]
    runs = torch.arange(heads.sequence).chunk(2 * ranks)
    return torch.cat([runs[rank], runs[2 * ranks - 1 - rank]])


class Ring:
    """One rank of a ring. Gradients are worked out by hand, block by block, as in FlashAttention's backward pass."""

    def __init__(self, heads: Heads, zigzag: bool) -> None:
        self.rank, self.ranks = dist.get_rank(), dist.get_world_size()
        self.own = [places(heads, rank=rank, ranks=self.ranks, zigzag=zigzag) for rank in range(self.ranks)]
        self.queries, self.keys, self.values, self.output_gradient = (
            each[:, self.own[self.rank]] for each in inputs(heads)
        )
        self.group, self.scale = heads.num_heads // heads.num_kv_heads, heads.head_dim**-0.5
        self.sent_bytes = 0

    def passed_on(self, tensor: Tensor) -> Tensor:
        """Send to the right, receive from the left."""
        came = torch.empty_like(tensor)
        works = [dist.isend(tensor, (self.rank + 1) % self.ranks), dist.irecv(came, (self.rank - 1) % self.ranks)]
        for work in works:
            assert work is not None
            work.wait()
        self.sent_bytes += tensor.numel() * FLOAT_BYTES
        return came

    def _scores(self, step: int, keys: Tensor) -> Tensor:
        """Of the own queries with the piece that is here in this step; minus infinity where the mask forbids it."""
        seen = self.own[(self.rank - step) % self.ranks] <= self.own[self.rank][:, None]
        scores = self.queries @ keys.repeat_interleave(self.group, dim=0).transpose(1, 2) * self.scale
        return scores.masked_fill(~seen, float("-inf"))

    def forward(self) -> None:
        """Leaves the output, and the logarithm of each query's softmax sum, which is all that the backward pass
        needs.
        """
        held = torch.stack([self.keys, self.values])
        self.output, self.log_sums = torch.zeros_like(self.queries), torch.full(self.queries.shape[:2], float("-inf"))
        for step in range(self.ranks):
            scores = self._scores(step, held[0])
            log_sums = torch.logaddexp(self.log_sums, scores.logsumexp(dim=2))
            part = (scores - log_sums[:, :, None]).exp() @ held[1].repeat_interleave(self.group, dim=0)
            self.output = self.output * (self.log_sums - log_sums).exp()[:, :, None] + part
            self.log_sums = log_sums
            if step < self.ranks - 1:
                held = self.passed_on(held)

    def backward(self) -> list[Tensor]:
        """Gradients of the own queries, keys and values; the last two went all the way round."""
        held, gathered = torch.stack([self.keys, self.values]), torch.zeros(2, *self.keys.shape)
        to_queries, inner = (
            torch.zeros_like(self.queries),
            (self.output * self.output_gradient).sum(dim=2, keepdim=True),
        )
        for step in range(self.ranks):
            keys, values = (each.repeat_interleave(self.group, dim=0) for each in held)
            weights = (self._scores(step, held[0]) - self.log_sums[:, :, None]).exp()
            to_scores = weights * (self.output_gradient @ values.transpose(1, 2) - inner) * self.scale
            to_queries += to_scores @ keys
            gathered[0] += self._by_kv_head(to_scores.transpose(1, 2) @ self.queries)
            gathered[1] += self._by_kv_head(weights.transpose(1, 2) @ self.output_gradient)
            if step < self.ranks - 1:
                held = self.passed_on(held)
            gathered = self.passed_on(gathered)
        return [to_queries, gathered[0], gathered[1]]

    def _by_kv_head(self, gradient: Tensor) -> Tensor:
        """Query heads that share a KV head add up."""
        return gradient.view(-1, self.group, *gradient.shape[1:]).sum(dim=1)


class Ulysses:
    """One rank that trades its piece of the sequence for all of it in some heads, and trades back."""

    def __init__(self, heads: Heads) -> None:
        self.rank, self.ranks = dist.get_rank(), dist.get_world_size()
        assert dist.group.WORLD is not None
        self.world = dist.group.WORLD
        own = places(heads, rank=self.rank, ranks=self.ranks, zigzag=False)
        *mine, self.output_gradient = (each[:, own] for each in inputs(heads))
        self.mine = [each.requires_grad_() for each in mine]
        self.sent_bytes = 0

    def _traded(self, tensor: Tensor) -> Tensor:
        """An all-to-all: the first dimension is cut into one part per rank, and becomes who a part came from."""
        self.sent_bytes += tensor.numel() // self.ranks * (self.ranks - 1) * FLOAT_BYTES
        return all_to_all_single_autograd(tensor.contiguous(), None, None, self.world)

    def forward(self) -> None:
        whole = []
        for tensor in self.mine:
            # [source, own heads, its tokens, head_dim]
            parts = self._traded(tensor).view(self.ranks, -1, *tensor.shape[1:])
            whole.append(parts.transpose(0, 1).flatten(1, 2))
        queries, keys, values = whole
        done = scaled_dot_product_attention(queries, keys, values, is_causal=True, enable_gqa=True)
        parts = done.unflatten(1, (self.ranks, -1)).transpose(0, 1)  # [destination, own heads, its tokens, head_dim]
        self.output = self._traded(parts.flatten(0, 1))

    def backward(self) -> list[Tensor]:
        self.sent_bytes *= 2  # autograd sends each gradient the way back
        return list(torch.autograd.grad(self.output, self.mine, self.output_gradient))


def _made(way: str, heads: Heads) -> Ring | Ulysses:
    return Ulysses(heads) if way == "ulysses" else Ring(heads, zigzag=way == "zigzag")


def _on_a_rank(heads: Heads, ways: tuple[str, ...]) -> list[tuple[int, int, Tensor, list[Tensor]]]:
    results = []
    for way in ways:
        one = _made(way, heads)
        one.forward()
        forward_bytes = one.sent_bytes
        gradients = one.backward()
        results.append((forward_bytes, one.sent_bytes - forward_bytes, one.output.detach(), gradients))
    return results


def spread(heads: Heads, *, ways: tuple[str, ...], ranks: int, timeout_s: float = 60.0) -> dict[str, Spread]:
    """Attend over real ranks in each of the ways, and compare outputs and gradients with one process.

    Raises:   ValueError for another way, a sequence that 2 * ranks do not divide, or more ranks than Ulysses has KV
              heads for; RankError as run_ranks does
    """
    for way in ways:
        checks.one_of(WAYS, way=way)
    checks.divides(part="2*ranks", part_value=2 * ranks, whole="sequence", whole_value=heads.sequence)
    if "ulysses" in ways:
        checks.divides(part="ranks", part_value=ranks, whole="num_kv_heads", whole_value=heads.num_kv_heads)
    by_rank = run_ranks(_on_a_rank, heads, ways, ranks=ranks, timeout_s=timeout_s)
    queries, keys, values, output_gradient = inputs(heads)
    whole = [tensor.requires_grad_() for tensor in (queries, keys, values)]
    output = scaled_dot_product_attention(queries, keys, values, is_causal=True, enable_gqa=True)
    wanted = [output.detach(), *torch.autograd.grad(output, whole, output_gradient)]
    results = {}
    for number, way in enumerate(ways):
        each = [rank[number] for rank in by_rank]
        order = torch.argsort(
            torch.cat([places(heads, rank=rank, ranks=ranks, zigzag=way == "zigzag") for rank in range(ranks)])
        )
        # outputs of all ranks, gradients of queries, of keys, of values
        parts = zip(*([one[2], *one[3]] for one in each), strict=True)
        got = [torch.cat(part, dim=1)[:, order] for part in parts]
        apart = [float((one - other).abs().max() / other.abs().max()) for one, other in zip(got, wanted, strict=True)]
        results[way] = Spread(
            forward_bytes=tuple(one[0] for one in each),
            backward_bytes=tuple(one[1] for one in each),
            output_difference=apart[0],
            gradient_difference=max(apart[1:]),
        )
    return results
