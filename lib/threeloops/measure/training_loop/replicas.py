"""Replicas: a small model trained on several ranks at once, with everything that can be compared between them
afterwards.

The network is tiny on purpose: what is looked at is whether the copies stay equal, and which buckets
DistributedDataParallel makes.
"""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from threeloops import checks
from threeloops.measure.processes.ranks import run_ranks

WAYS = ("averaged", "not averaged", "other start", "ddp", "ddp, touched")
_SAMPLES, _WIDTH, _RATE = 48, 6, 0.1


@dataclass(frozen=True, slots=True, kw_only=True)
class Replicas:
    """The weights of every rank after every step, each as one flat list."""

    weights: tuple[tuple[tuple[float, ...], ...], ...]  # [rank][step]

    def spread(self, step: int) -> float:
        """The largest difference of any weight between any two ranks; 0 means equal to the last bit."""
        return max(max(values) - min(values) for values in zip(*(rank[step] for rank in self.weights), strict=True))


def _model(seed: int) -> nn.Sequential:
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(_WIDTH, 8), nn.Tanh(), nn.Linear(8, 1))


def _samples(rank: int, ranks: int) -> tuple[torch.Tensor, torch.Tensor]:
    """This rank's share of a batch that is the same for any number of ranks."""
    x = torch.randn(_SAMPLES, _WIDTH, generator=torch.Generator().manual_seed(7))
    return x[rank::ranks], x.sum(1, keepdim=True)[rank::ranks]


def _flat(model: nn.Module) -> tuple[float, ...]:
    return tuple(torch.cat([parameter.detach().flatten() for parameter in model.parameters()]).tolist())


def _trained(way: str, steps: int) -> list[tuple[float, ...]]:
    """On a rank: gradient descent on its share of the batch; the weights after each step."""
    rank, ranks = dist.get_rank(), dist.get_world_size()
    # DDP copies rank 0's weights to all when it wraps a model
    model = _model(rank if way in ("other start", "ddp") else 0)
    net: nn.Module = DistributedDataParallel(model) if way.startswith("ddp") else model
    if way == "ddp, touched" and rank == 0:
        nn.init.zeros_(model[2].bias)  # type: ignore[arg-type]  # "a small fix on the main process"
    x, y = _samples(rank, ranks)
    seen = []
    for _ in range(steps):
        model.zero_grad()
        (net(x) - y).square().mean().backward()
        for parameter in model.parameters():
            if way in ("averaged", "other start") and parameter.grad is not None:
                dist.all_reduce(parameter.grad)
                parameter.grad /= ranks
        with torch.no_grad():
            for parameter in model.parameters():
                if parameter.grad is not None:
                    parameter.sub_(parameter.grad, alpha=_RATE)
        seen.append(_flat(model))
    return seen


def _ways(ways: tuple[str, ...], steps: int) -> dict[str, list[tuple[float, ...]]]:
    return {way: _trained(way, steps) for way in ways}


def replicas(ways: Sequence[str], *, ranks: int, steps: int, timeout_s: float = 60.0) -> dict[str, Replicas]:
    """Train the same task in each way: gradients averaged by hand or not, from equal weights or not, by DDP, by DDP
    with a weight touched afterwards.

    Raises:   ValueError for an unknown way, and for ranks that do not divide the batch
    """
    for way in ways:
        checks.one_of(WAYS, way=way)
    checks.count(steps=steps)
    checks.divides(part="ranks", part_value=ranks, whole="samples", whole_value=_SAMPLES)
    by_rank = run_ranks(_ways, tuple(ways), steps, ranks=ranks, timeout_s=timeout_s)
    return {way: Replicas(weights=tuple(tuple(rank[way]) for rank in by_rank)) for way in ways}


@dataclass(frozen=True, slots=True, kw_only=True)
class Buckets:
    """What DDP handed over for one backward pass: the bytes of each bucket, in the order in which they left."""

    sizes_bytes: tuple[int, ...]
    parameters: tuple[int, ...]  # tensors in each


def _bucketed(widths: tuple[int, ...], cap_mib: float | None, passes: int) -> list[Buckets]:
    """On a rank: which buckets go out in each backward pass."""
    layers = [nn.Linear(before, after, bias=False) for before, after in itertools.pairwise(widths)]
    net = DistributedDataParallel(nn.Sequential(*layers), bucket_cap_mb=cap_mib)
    seen: list[tuple[int, int]] = []

    def hook(state: object, bucket: dist.GradBucket) -> torch.futures.Future[torch.Tensor]:  # type: ignore[name-defined]
        seen.append((bucket.buffer().nbytes, len(bucket.parameters())))
        work = dist.all_reduce(bucket.buffer().div_(dist.get_world_size()), async_op=True)
        return work.get_future().then(lambda done: done.value()[0])

    net.register_comm_hook(None, hook)
    found = []
    for _ in range(passes):
        seen.clear()
        net(torch.ones(1, widths[0])).sum().backward()
        found.append(Buckets(sizes_bytes=tuple(size for size, _ in seen), parameters=tuple(count for _, count in seen)))
    return found


def ddp_buckets(
    widths: Sequence[int], *, cap_mib: float | None, ranks: int = 2, passes: int = 2, timeout_s: float = 60.0
) -> list[Buckets]:
    """The buckets of each backward pass of a chain of matrices without biases (widths[0] x widths[1], …), float32,
    under DDP.

    Units:    cap_mib is bucket_cap_mb, which counts MiB; None leaves the default
    """
    checks.count(ranks=ranks, passes=passes)
    return list(run_ranks(_bucketed, tuple(widths), cap_mib, passes, ranks=ranks, timeout_s=timeout_s)[0])
