"""Decode step: the layers of one decode step in plain torch, beside a cache that is already full, to be run eagerly,
compiled or from a graph.

>>> layer = Layer(
...     attention=Attention(num_heads=4, num_kv_heads=2, head_dim=8),
...     mlp=DenseMlp(intermediate=48, gated=True, activation="silu"),
...     norm="rmsnorm",
...     num_norms=2,
... )
>>> step = DecodeStep(layer, layers=3, hidden=32, batch=2, context=10, dtype=torch.float32, device="cpu")
>>> step(torch.ones(2, 32)).shape
torch.Size([2, 32])
"""

import torch
from torch import Tensor, nn
from torch.nn import functional

from threeloops import checks
from threeloops.models.architecture import Attention, DenseMlp, Layer

BASE = 10_000.0  # of rotary positions


class DecodeStep(nn.Module):
    """Layers of grouped-query attention and gated MLP, for one new token per request; the context counts that
    token.
    """

    def __init__(
        self, layer: Layer, *, layers: int, hidden: int, batch: int, context: int, dtype: torch.dtype, device: str
    ) -> None:
        super().__init__()
        checks.count(layers=layers, hidden=hidden, batch=batch)
        checks.count(at_least=2, context=context)
        attention, mlp = layer.attention, layer.mlp
        if (
            not isinstance(attention, Attention)
            or not isinstance(mlp, DenseMlp)
            or not mlp.gated
            or layer.norm != "rmsnorm"
        ):
            raise ValueError(
                "a decode step is made of ordinary attention, a gated MLP and RMSNorm; describe such a layer"
            )
        self.layers = nn.ModuleList(
            DecodeLayer(attention, mlp, hidden=hidden, batch=batch, context=context, dtype=dtype, device=device)
            for _ in range(layers)
        )

    @torch.no_grad()
    def forward(self, x: Tensor) -> Tensor:
        for layer in self.layers:
            x = layer(x)
        return x


class DecodeLayer(nn.Module):
    """One of them; its keys and values stand in the last place of a cache of its own."""

    keys: Tensor
    values: Tensor
    cosine: Tensor
    sine: Tensor

    def __init__(
        self,
        attention: Attention,
        mlp: DenseMlp,
        *,
        hidden: int,
        batch: int,
        context: int,
        dtype: torch.dtype,
        device: str,
    ) -> None:
        super().__init__()
        self.heads, self.kv_heads, self.head_dim = attention.num_heads, attention.num_kv_heads, attention.head_dim

        def linear(into: int, out: int) -> nn.Linear:
            return nn.Linear(into, out, bias=False, dtype=dtype, device=device)

        self.qkv, self.output = (
            linear(hidden, attention.query_dim + 2 * attention.kv_dim),
            linear(attention.query_dim, hidden),
        )
        self.gate_up, self.down = linear(hidden, 2 * mlp.intermediate), linear(mlp.intermediate, hidden)
        self.norms = nn.ModuleList(nn.RMSNorm(hidden, eps=1e-6, dtype=dtype, device=device) for _ in range(2))
        shape = (batch, self.kv_heads, context, self.head_dim)
        self.register_buffer("keys", torch.randn(shape, dtype=dtype, device=device))
        self.register_buffer("values", torch.randn(shape, dtype=dtype, device=device))
        angles = (context - 1) / BASE ** (torch.arange(0, self.head_dim, 2) / self.head_dim)
        self.register_buffer("cosine", torch.cat([angles.cos(), angles.cos()]).to(device, dtype))
        self.register_buffer("sine", torch.cat([-angles.sin(), angles.sin()]).to(device, dtype))

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.output(self._attention(self.qkv(self.norms[0](x))))
        gate, up = self.gate_up(self.norms[1](x)).chunk(2, dim=-1)
        return x + self.down(functional.silu(gate) * up)

    def _attention(self, qkv: Tensor) -> Tensor:
        heads = qkv.view(len(qkv), self.heads + 2 * self.kv_heads, self.head_dim)
        query, key, value = heads.split([self.heads, self.kv_heads, self.kv_heads], dim=1)
        self.keys[:, :, -1], self.values[:, :, -1] = self._turned(key), value
        found = functional.scaled_dot_product_attention(
            self._turned(query)[:, :, None], self.keys, self.values, enable_gqa=True
        )
        return found.reshape(len(qkv), -1)

    def _turned(self, x: Tensor) -> Tensor:
        """Rotary position of the last place."""
        return x * self.cosine + x.roll(self.head_dim // 2, dims=-1) * self.sine
