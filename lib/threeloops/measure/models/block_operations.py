"""Operations of a transformer block, written so that on a CPU they keep for backward what their GPU versions keep.

A fused kernel that a CPU lacks is one autograd operation here, with its own backward pass.
"""

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from threeloops.training_loop.memory.activation_kernels import Kernels


class FusedRmsNorm(torch.autograd.Function):
    """RMSNorm as one operation: keeps its input and one number per row."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, eps: float) -> Tensor:
        inverse_rms = torch.rsqrt(x.float().pow(2).mean(-1, keepdim=True) + eps)
        ctx.save_for_backward(x, weight, inverse_rms)
        return (x.float() * inverse_rms).to(x.dtype) * weight

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor, None]:
        x, weight, inverse_rms = ctx.saved_tensors
        normalised = x.float() * inverse_rms
        weighted = grad.float() * weight.float()
        grad_x = inverse_rms * (weighted - normalised * (weighted * normalised).mean(-1, keepdim=True))
        return grad_x.to(x.dtype), (grad.float() * normalised).flatten(0, -2).sum(0).to(weight.dtype), None


class FusedSwiGlu(torch.autograd.Function):
    """silu(gate) * up as one operation: keeps its two inputs and computes the activation again."""

    @staticmethod
    def forward(ctx: Any, gate: Tensor, up: Tensor) -> Tensor:
        ctx.save_for_backward(gate, up)
        return functional.silu(gate) * up

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor]:
        gate, up = ctx.saved_tensors
        sigmoid = torch.sigmoid(gate.float())
        slope = sigmoid * (1 + gate.float() * (1 - sigmoid))
        return (grad * up * slope).to(gate.dtype), (grad * gate.float() * sigmoid).to(up.dtype)


class RmsNorm(nn.Module):
    def __init__(self, width: int, *, fused: bool, dtype: torch.dtype) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width, dtype=dtype))
        self.fused, self.eps = fused, 1e-6

    def forward(self, x: Tensor) -> Tensor:
        if self.fused:
            fused: Tensor = FusedRmsNorm.apply(x, self.weight, self.eps)
            return fused
        wide = x.float()
        normalised = (wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + self.eps)).to(x.dtype)
        return self.weight * normalised


def norm(width: int, kind: str, kernels: Kernels, dtype: torch.dtype) -> nn.Module:
    """The norm that a layer of this kind would use."""
    if kind == "rmsnorm":
        return RmsNorm(width, fused=kernels.rmsnorm == "fused", dtype=dtype)
    # On a CPU, 16-bit weights would bring 16-bit statistics; a GPU keeps them in fp32 whatever the weights are.
    return nn.LayerNorm(width, dtype=torch.float32)


def dropped(x: Tensor, share: float) -> Tensor:
    """Dropout with a mask of one byte per value, as on a GPU; functional.dropout on a CPU keeps a mask as wide as
    x.
    """
    return torch.native_dropout(x, share, True)[0] if share else x
