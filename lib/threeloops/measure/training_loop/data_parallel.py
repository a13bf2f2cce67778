"""Data parallelism on the wire: the bytes of one training step under DDP and under FSDP, as gloo really sends them.

gloo has no reduce-scatter of its own (torch runs all-reduces in its place), so FSDP's gradients cost twice what they
would on NCCL.
"""

import torch
import torch.distributed as dist
from torch import nn

from threeloops import checks
from threeloops.measure.processes.wire import FLOAT_BYTES, Step, WireTraffic, step_traffic


def _model(width: int, num_layers: int) -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(*(nn.Linear(width, width, bias=False) for _ in range(num_layers)))


def _train(model: nn.Module, width: int) -> Step:
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)

    def step() -> None:
        model(torch.ones(2, width) + dist.get_rank()).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()

    return step


def prepared_ddp(width: int, num_layers: int) -> Step:
    """On a rank: a step of a replicated model, its gradients averaged by DistributedDataParallel."""
    return _train(nn.parallel.DistributedDataParallel(_model(width, num_layers)), width)


def prepared_fsdp(width: int, num_layers: int, reshard_after_forward: bool) -> Step:
    """On a rank: a step of a model whose every layer is sharded by fully_shard (FSDP2)."""
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard  # two seconds to import: only where it is wanted

    mesh = init_device_mesh("cpu", (dist.get_world_size(),))
    model = _model(width, num_layers)
    for layer in model:
        fully_shard(layer, mesh=mesh, reshard_after_forward=reshard_after_forward)
    return _train(model, width)


def data_parallel_wire(*, width: int, num_layers: int, ranks: int, timeout_s: float = 120.0) -> dict[str, WireTraffic]:
    """Bytes of one float32 training step of num_layers square matrices: "ddp", "fsdp", and "fsdp-kept"
    (reshard_after_forward=False).

    Raises:   ValueError off Linux, and for a width that the ranks do not divide (FSDP would pad)

    The model has num_layers * width**2 parameters.
    """
    checks.count(width=width, num_layers=num_layers)
    checks.divides(part="ranks", part_value=ranks, whole="width", whole_value=width)
    ddp, fsdp, kept = step_traffic(
        (prepared_ddp, (width, num_layers)),
        (prepared_fsdp, (width, num_layers, True)),
        (prepared_fsdp, (width, num_layers, False)),
        ranks=ranks,
        timeout_s=timeout_s,
    )
    return {"ddp": ddp, "fsdp": fsdp, "fsdp-kept": kept}


def model_bytes(*, width: int, num_layers: int) -> int:
    """Bytes of the model's parameters, which are also those of its gradients."""
    return num_layers * width**2 * FLOAT_BYTES
