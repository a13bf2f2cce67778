"""Tensor parallelism: one transformer block cut over ranks by torch's DTensor, its numbers held against one process
and its collectives counted.

Three ways to cut the same block, all of them column then row:
    apart       every linear layer on its own, as the shortest plan does it
    joint       queries, keys and values read one input, and so do gate and up: what comes back to it is added up
                before it is sent
    sequence    joint, and between the two halves of the block each rank has its own part of every sequence (sequence
                parallelism)

Wherever a way is asked for, a plan of your own may stand in its place: a mapping from module names to what
parallelize_module takes.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import torch
import torch.distributed as dist
from torch import nn

from threeloops import checks
from threeloops.measure.models.transformer_block import TransformerBlock
from threeloops.measure.processes import fake_ranks
from threeloops.measure.processes.ranks import run_ranks
from threeloops.measure.processes.wire import FLOAT_BYTES, Step, WireTraffic, step_traffic
from threeloops.models.architecture import Attention, DenseMlp, Layer

PLANS = ("apart", "joint", "sequence")
BATCH, SEQUENCE, HIDDEN, HEADS, KV_HEADS = 2, 256, 96, 24, 8
HALVES = ("attention", "mlp")  # the halves of a block, which are cut
_SEQUENCE_DIM = 1  # of [batch, sequence, hidden]
Way = str | Mapping[str, Any]


def layer(*, gated: bool) -> Layer:
    """The block that is cut: biases and GELU as in GPT, or a gate as in Llama."""
    attention = Attention(num_heads=HEADS, num_kv_heads=KV_HEADS, head_dim=HIDDEN // HEADS)
    mlp = DenseMlp(intermediate=4 * HIDDEN, gated=gated, activation="silu" if gated else "gelu", bias=not gated)
    return Layer(attention=attention, mlp=mlp, norm="layernorm", num_norms=2)


def block(*, gated: bool) -> TransformerBlock:
    """The whole block, the same on every rank."""
    torch.manual_seed(0)
    return TransformerBlock(layer(gated=gated), hidden=HIDDEN, kernels="sdpa", dropout=0.0, dtype=torch.float32)


def tokens() -> torch.Tensor:
    """The stream that enters it."""
    return torch.randn(BATCH, SEQUENCE, HIDDEN, generator=torch.Generator().manual_seed(1))


def plan(name: str) -> Mapping[str, Any]:
    """What DTensor's parallelize_module is told, by module."""
    from torch.distributed.tensor import Replicate, Shard
    from torch.distributed.tensor.parallel import ColwiseParallel, PrepareModuleInput, RowwiseParallel, SequenceParallel

    checks.one_of(PLANS, plan=name)
    along = Shard(_SEQUENCE_DIM) if name == "sequence" else Replicate()
    by_columns = dict.fromkeys(("attention.query", "attention.key", "attention.value", "mlp.into.*"), ColwiseParallel())
    by_rows = {place: RowwiseParallel(output_layouts=along) for place in ("attention.output", "mlp.out")}
    if name == "apart":
        return {**by_columns, **by_rows}
    shared_inputs = {
        half: PrepareModuleInput(input_layouts=along, desired_input_layouts=Replicate()) for half in HALVES
    }
    norms = {"norms.*": SequenceParallel(use_local_output=True)} if name == "sequence" else {}
    return {**by_columns, **by_rows, **shared_inputs, **norms}


def _cut(mesh: Any, way: Way, *, gated: bool) -> tuple[nn.Module, torch.Tensor]:
    """A rank's share of the block, and what enters it there."""
    from torch.distributed.tensor.parallel import parallelize_module

    entering = tokens()
    if way == "sequence":
        entering = entering.chunk(mesh.size(), dim=_SEQUENCE_DIM)[mesh.get_local_rank()].contiguous()
    return parallelize_module(
        block(gated=gated), mesh, dict(plan(way) if isinstance(way, str) else way)
    ), entering.requires_grad_()


@dataclass(frozen=True, slots=True, kw_only=True)
class Collectives:
    """Exchanges of one pass through one block, by what they are."""

    all_reduces: int
    all_gathers: int
    reduce_scatters: int


def counted_collectives(way: Way, *, gated: bool, world: int, tp: int) -> tuple[Collectives, Collectives]:
    """Exchanges of one block forward and backward, as rank 0 of `world` ranks would call them, without the other
    ranks (measure/processes/fake_ranks.py).

    Raises:   ValueError where tp does not divide world, and for a process that is in a group already
    """
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor.debug import CommDebugMode

    _check((way,), tp)
    checks.count(world=world)
    checks.divides(part="tp", part_value=tp, whole="world", whole_value=world)
    with fake_ranks.rank_zero_of(world):
        mesh = init_device_mesh("cpu", (world // tp, tp), mesh_dim_names=("others", "tp"))["tp"]
        module, entering = _cut(mesh, way, gated=gated)
        with CommDebugMode() as forward:
            left = module(entering)
        with CommDebugMode() as backward:
            left.sum().backward()
    return _collectives(forward), _collectives(backward)


def _collectives(seen: Any) -> Collectives:
    called = fake_ranks.counts(seen)
    return Collectives(
        all_reduces=called["all_reduce"],
        all_gathers=called["all_gather"],
        reduce_scatters=called["reduce_scatter"],
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Agreement:
    """How far a cut block is from a whole one: the largest differences of any element, beside the largest
    elements.
    """

    output_difference: float
    largest_output: float
    gradient_difference: float  # of any weight, bias or norm
    largest_gradient: float
    local_parameters: int  # on rank 0
    parameters: int


def _loss(left: torch.Tensor) -> torch.Tensor:
    """A sum over tokens, so that each rank may add up its own; not linear, so that gradients depend on the output."""
    return left.square().sum() / (BATCH * SEQUENCE)


def agreement_on_rank(ways: tuple[Way, ...], gated: bool) -> list[Agreement]:
    """On a rank: every way to cut, against the whole block."""
    from torch.distributed.device_mesh import init_device_mesh

    mesh = init_device_mesh("cpu", (dist.get_world_size(),), mesh_dim_names=("tp",))
    whole = block(gated=gated)
    expected = whole(tokens())
    _loss(expected).backward()
    found = []
    for way in ways:
        module, entering = _cut(mesh, way, gated=gated)
        left = module(entering)
        _loss(left).backward()
        here = expected.chunk(mesh.size(), dim=_SEQUENCE_DIM)[mesh.get_local_rank()] if way == "sequence" else expected
        found.append(_agreement(whole, module, here.detach(), left.detach()))
        dist.barrier()
    return found


def _agreement(whole: nn.Module, module: nn.Module, expected: torch.Tensor, left: torch.Tensor) -> Agreement:
    pairs = [(a.grad, _full(b.grad)) for a, b in zip(whole.parameters(), module.parameters(), strict=True)]
    return Agreement(
        output_difference=float((expected - left).abs().max()),
        largest_output=float(expected.abs().max()),
        gradient_difference=max(float((a - b).abs().max()) for a, b in pairs if a is not None),
        largest_gradient=max(float(a.abs().max()) for a, _ in pairs if a is not None),
        local_parameters=sum(_local(parameter).numel() for parameter in module.parameters()),
        parameters=sum(parameter.numel() for parameter in whole.parameters()),
    )


def _full(tensor: Any) -> torch.Tensor:
    whole: torch.Tensor = tensor.full_tensor() if hasattr(tensor, "full_tensor") else tensor
    return whole


def _local(tensor: Any) -> torch.Tensor:
    own: torch.Tensor = tensor.to_local() if hasattr(tensor, "to_local") else tensor
    return own


def agreement(*ways: Way, tp: int, gated: bool = False, timeout_s: float = 60.0) -> dict[str, Agreement]:
    """Output and gradients of the block cut over tp real processes, against one process that holds all of it; the
    worst of all ranks, by the way's name ("own" for a plan of your own).

    Raises:   ValueError for an unknown way to cut or a tp that the KV heads do not allow; RankError as run_ranks does
    """
    _check(ways, tp)
    ranks = run_ranks(agreement_on_rank, ways, gated, ranks=tp, timeout_s=timeout_s)
    return {
        way if isinstance(way, str) else "own": _worst([rank[place] for rank in ranks])
        for place, way in enumerate(ways)
    }


def _worst(by_rank: list[Agreement]) -> Agreement:
    return replace(
        by_rank[0],
        output_difference=max(one.output_difference for one in by_rank),
        gradient_difference=max(one.gradient_difference for one in by_rank),
    )


def _check(ways: tuple[Way, ...], tp: int) -> None:
    for way in ways:
        if isinstance(way, str):
            checks.one_of(PLANS, plan=way)
    checks.count(at_least=2, tp=tp)
    checks.divides(part="tp", part_value=tp, whole="KV heads", whole_value=KV_HEADS)


def prepared_block(name: str, gated: bool, backward: bool) -> Step:
    """On a rank: one pass through the cut block, forward or both ways."""
    from torch.distributed.device_mesh import init_device_mesh

    mesh = init_device_mesh("cpu", (dist.get_world_size(),), mesh_dim_names=("tp",))
    module, entering = _cut(mesh, name, gated=gated)

    def step() -> None:
        left = module(entering)
        _loss(left).item()  # waits for the exchange
        if backward:
            _loss(left).backward()
            assert entering.grad is not None
            entering.grad.sum().item()

    return step


def block_wire(
    *names: str, tp: int, gated: bool = False, timeout_s: float = 60.0
) -> dict[str, tuple[WireTraffic, WireTraffic]]:
    """Bytes on the wire of one block, (forward, forward and backward), for each way to cut it.

    gloo has no reduce-scatter of its own and sends an all-reduce in its place, so "sequence" costs more here than it
    would on NCCL.

    Raises:   ValueError off Linux, and as agreement does
    """
    _check(names, tp)
    work = [(prepared_block, (name, gated, backward)) for name in names for backward in (False, True)]
    seen = step_traffic(*work, ranks=tp, timeout_s=timeout_s)
    return {name: (seen[2 * place], seen[2 * place + 1]) for place, name in enumerate(names)}


def stream_bytes() -> int:
    """Bytes of the tensor that one exchange is about: every token of the micro-batch, float32."""
    return BATCH * SEQUENCE * HIDDEN * FLOAT_BYTES
