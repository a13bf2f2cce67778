"""Feed-forward blocks out of plain torch operations: dense, gated, and a mixture of experts that drops no token."""

import functools
import math
from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional

from threeloops.measure.models.block_operations import FusedSwiGlu
from threeloops.models.architecture import DenseMlp, MoeMlp
from threeloops.training_loop.memory.activation_kernels import Kernels

_ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "gelu": functional.gelu,
    "silu": functional.silu,
    "relu": functional.relu,
}


def _activation(name: str, kernels: Kernels) -> Callable[[Tensor], Tensor]:
    if name != "gelu_new":
        return _ACTIVATIONS[name]
    return _gelu_new if kernels.gelu_new == "eager" else functools.partial(functional.gelu, approximate="tanh")


def _gelu_new(x: Tensor) -> Tensor:
    """GELU by its tanh polynomial in plain operations, as transformers writes it under this name."""
    return 0.5 * x * (1 + torch.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * torch.pow(x, 3))))


class Dense(nn.Module):
    """Two matrices, or three with a gate."""

    def __init__(self, mlp: DenseMlp, *, hidden: int, kernels: Kernels, dtype: torch.dtype) -> None:
        super().__init__()
        self.gated, self.fused, self.activation = (
            mlp.gated,
            kernels.gate == "fused",
            _activation(mlp.activation, kernels),
        )
        self.into = nn.ModuleList(
            nn.Linear(hidden, mlp.intermediate, bias=mlp.bias, dtype=dtype) for _ in range(mlp.num_matrices - 1)
        )
        self.out = nn.Linear(mlp.intermediate, hidden, bias=mlp.bias, dtype=dtype)

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.out(self._between(x))
        return out

    def _between(self, x: Tensor) -> Tensor:
        if not self.gated:
            return self.activation(self.into[0](x))
        gate, up = (linear(x) for linear in self.into)
        fused: Tensor = FusedSwiGlu.apply(gate, up) if self.fused else self.activation(gate) * up
        return fused


class Mixture(nn.Module):
    """Tokens are copied in the order of their experts, each expert runs on its rows, and the weighted outputs are
    added up again.
    """

    def __init__(self, mlp: MoeMlp, *, hidden: int, kernels: Kernels, dtype: torch.dtype) -> None:
        super().__init__()
        self.top_k = mlp.top_k
        self.router = nn.Linear(hidden, mlp.num_experts, bias=mlp.router_bias, dtype=dtype)
        self.experts = nn.ModuleList(
            Dense(mlp.expert, hidden=hidden, kernels=kernels, dtype=dtype) for _ in range(mlp.num_experts)
        )
        self.shared = Dense(mlp.shared, hidden=hidden, kernels=kernels, dtype=dtype) if mlp.shared else None
        self.shared_gate = nn.Linear(hidden, 1, bias=False, dtype=dtype) if mlp.shared_gate else None

    def forward(self, x: Tensor) -> Tensor:
        flat = x.flatten(0, 1)
        weights, chosen = torch.softmax(self.router(flat).float(), -1).topk(self.top_k)
        order = chosen.flatten().argsort(stable=True)
        outputs = self._run_experts(flat.index_select(0, order // self.top_k), chosen)
        # Back in the order of tokens, each beside its top_k outputs. (index_add would keep the weighted outputs a
        # second time.)
        per_token = outputs.index_select(0, order.argsort()).view(len(flat), self.top_k, -1)
        mixed = (per_token * weights.to(x.dtype).unsqueeze(-1)).sum(1).view_as(x)
        return mixed + self._run_shared(x) if self.shared else mixed

    def _run_experts(self, dispatched: Tensor, chosen: Tensor) -> Tensor:
        rows = torch.bincount(chosen.flatten(), minlength=len(self.experts)).tolist()
        return torch.cat(
            [expert(part) for expert, part in zip(self.experts, dispatched.split(rows), strict=True) if len(part)]
        )

    def _run_shared(self, x: Tensor) -> Tensor:
        assert self.shared is not None
        out: Tensor = self.shared(x)
        return out * torch.sigmoid(self.shared_gate(x)) if self.shared_gate else out
