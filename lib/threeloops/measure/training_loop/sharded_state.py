"""Sharded state: what each rank really holds after a training step, under DDP, ZeRO stage 1 and FSDP2, and which
weights stand whole meanwhile.

The model is a stack of blocks of two matrices (hidden to 4 hidden and back) between an embedding table and a head;
optimiser AdamW, fp32.
"""

from dataclasses import dataclass

import torch
import torch.distributed as dist
from torch import nn

from threeloops import checks
from threeloops.measure.processes.ranks import run_ranks

WAYS = ("ddp", "zero-1", "fsdp", "fsdp-root", "fsdp-mixed", "fsdp-tp")
STEPS = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """How large the model is."""

    hidden: int
    num_layers: int
    vocab: int

    @property
    def block_parameters(self) -> int:
        return 8 * self.hidden**2

    @property
    def parameters(self) -> int:
        return self.num_layers * self.block_parameters + 2 * self.vocab * self.hidden


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """Bytes on one rank."""

    parameter_bytes: int
    gradient_bytes: int
    optimiser_bytes: int  # without the step counters, which are 4 bytes per tensor
    whole_bytes: tuple[int, ...]  # weights that stood whole while each block ran forward
    losses: tuple[float, ...]
    up_shape: tuple[int, ...]  # of the first block's first matrix, this rank's part of it


class Block(nn.Module):
    def __init__(self, hidden: int) -> None:
        super().__init__()
        self.up = nn.Linear(hidden, 4 * hidden, bias=False)
        self.down = nn.Linear(4 * hidden, hidden, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.down(torch.relu(self.up(x)))


class Stack(nn.Module):
    def __init__(self, sizes: Sizes) -> None:
        super().__init__()
        self.table = nn.Embedding(sizes.vocab, sizes.hidden)
        self.blocks = nn.ModuleList(Block(sizes.hidden) for _ in range(sizes.num_layers))
        self.head = nn.Linear(sizes.hidden, sizes.vocab, bias=False)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        x = self.table(tokens)
        for block in self.blocks:
            x = block(x)
        return self.head(x)


def held_bytes(*ways: str, sizes: Sizes, ranks: int, timeout_s: float = 120.0) -> dict[str, tuple[Held, ...]]:
    """What each rank holds, for each way of training: way -> rank -> bytes.

    "zero-1" shards the optimiser whole tensors at a time (torch's ZeroRedundancyOptimizer); "fsdp" wraps every block
    and the rest; "fsdp-root" wraps the whole model as one; "fsdp-mixed" computes and gathers in bf16; "fsdp-tp"
    splits blocks over pairs of ranks first

    Raises:   ValueError for an unknown way, and for "fsdp-tp" on an odd number of ranks; RankError when a rank fails
    """
    for way in ways:
        checks.one_of(WAYS, way=way)
    if "fsdp-tp" in ways:
        checks.divides(part="tp", part_value=2, whole="ranks", whole_value=ranks)
    by_rank = run_ranks(_trained, ways, sizes, ranks=ranks, timeout_s=timeout_s)
    return {way: tuple(results[place] for results in by_rank) for place, way in enumerate(ways)}


def _trained(ways: tuple[str, ...], sizes: Sizes) -> list[Held]:
    return [_train(way, sizes) for way in ways]


def _train(way: str, sizes: Sizes) -> Held:
    """On a rank: two steps on data of its own, then weigh what is left."""
    torch.manual_seed(0)
    plain = Stack(sizes)
    model = _prepared(plain, way)
    optimizer = _optimizer(model, way)
    whole: list[int] = []
    for block in plain.blocks:
        assert isinstance(block, Block)
        block.up.register_forward_pre_hook(lambda *_: whole.append(_whole(plain)))
    # tensor-parallel ranks work on the same tokens
    pair = dist.get_rank() // 2 if way == "fsdp-tp" else dist.get_rank()
    losses = []
    for step in range(STEPS):
        tokens = torch.randint(sizes.vocab, (2, 8), generator=torch.Generator().manual_seed(100 * pair + step))
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(tokens).float().flatten(0, 1), tokens.flatten())
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    parameters = list(plain.parameters())
    return Held(
        parameter_bytes=sum(_local(parameter).nbytes for parameter in parameters),
        gradient_bytes=sum(_local(parameter.grad).nbytes for parameter in parameters if parameter.grad is not None),
        optimiser_bytes=_moments(optimizer),
        whole_bytes=tuple(whole[-sizes.num_layers :]),
        losses=tuple(losses),
        up_shape=tuple(_local(plain.get_parameter("blocks.0.up.weight")).shape),
    )


def _prepared(model: Stack, way: str) -> nn.Module:
    if way in ("ddp", "zero-1"):
        return nn.parallel.DistributedDataParallel(model)
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
    from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module

    ranks = dist.get_world_size()
    policy = (
        MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
        if way == "fsdp-mixed"
        else MixedPrecisionPolicy()
    )
    mesh = init_device_mesh("cpu", (ranks,))
    if way == "fsdp-tp":
        grid = init_device_mesh("cpu", (ranks // 2, 2), mesh_dim_names=("dp", "tp"))
        for block in model.blocks:
            parallelize_module(block, grid["tp"], {"up": ColwiseParallel(), "down": RowwiseParallel()})
        mesh = grid["dp"]
    if way != "fsdp-root":
        for block in model.blocks:
            fully_shard(block, mesh=mesh, mp_policy=policy)
    fully_shard(model, mesh=mesh, mp_policy=policy)
    return model


def _optimizer(model: nn.Module, way: str) -> torch.optim.Optimizer:
    if way == "zero-1":
        from torch.distributed.optim import ZeroRedundancyOptimizer

        return ZeroRedundancyOptimizer(model.parameters(), optimizer_class=torch.optim.AdamW, lr=1e-3)
    return torch.optim.AdamW(model.parameters(), lr=1e-3)


def _local(tensor: torch.Tensor | None) -> torch.Tensor:
    """This rank's part of a tensor."""
    from torch.distributed.tensor import DTensor

    assert tensor is not None
    return tensor.to_local() if isinstance(tensor, DTensor) else tensor


def _moments(optimizer: torch.optim.Optimizer) -> int:
    inner = getattr(optimizer, "optim", optimizer)  # ZeroRedundancyOptimizer keeps a rank's own optimiser inside
    return sum(
        _local(value).nbytes
        for state in inner.state.values()
        for name, value in state.items()
        if torch.is_tensor(value) and name != "step"
    )


def _whole(model: nn.Module) -> int:
    """Bytes of the weights that stand whole at this moment: fully_shard swaps its shards for them while they are
    gathered.
    """
    from torch.distributed.tensor import DTensor

    return sum(parameter.nbytes for parameter in model.parameters() if not isinstance(parameter, DTensor))
