"""Attention sub-blocks out of plain torch operations: grouped-query (and so multi-head and multi-query), and
latent.
"""

import math

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.checkpoint import checkpoint

from threeloops.measure.models.block_operations import dropped, norm
from threeloops.models.architecture import Attention, LatentAttention
from threeloops.training_loop.memory.activation_kernels import Kernels


class Core(nn.Module):
    """Softmax attention over [batch, sequence, heads, dim], causal. With recompute, only queries, keys and values
    wait for the backward pass.
    """

    def __init__(self, *, kernels: Kernels, dropout: float, recompute: bool) -> None:
        super().__init__()
        if dropout and kernels.attention == "flash":
            raise ValueError(
                f"dropout={dropout} with kernels={kernels.name!r}: torch's CPU flash attention has no dropout; try"
                " dropout=0"
            )
        self.kernels, self.dropout, self.recompute = kernels, dropout, recompute

    def forward(self, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        attend = self._flash if self.kernels.attention == "flash" else self._explicit
        group = query.shape[2] // key.shape[2]
        if self.kernels.repeats_kv and self.kernels.attention == "explicit" and group > 1:
            key, value = key.repeat_interleave(group, dim=2), value.repeat_interleave(group, dim=2)
        mixed: Tensor = (
            checkpoint(attend, query, key, value, use_reentrant=False) if self.recompute else attend(query, key, value)
        )
        return mixed

    def _flash(self, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        query, key, value = (t.transpose(1, 2) for t in (query, key, value))
        mixed = functional.scaled_dot_product_attention(query, key, value, is_causal=True, enable_gqa=True)
        return mixed.transpose(1, 2).flatten(2)

    def _explicit(self, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        batch, sequence, heads, dim = query.shape
        kv_heads, value_dim = value.shape[2:]
        # Query heads of one group stand under one another, so that grouped keys are read without being copied.
        grouped = (
            query.view(batch, sequence, kv_heads, -1, dim).permute(0, 2, 3, 1, 4).reshape(batch * kv_heads, -1, dim)
        )
        key, value = (t.transpose(1, 2).reshape(batch * kv_heads, sequence, -1) for t in (key, value))
        future = torch.full((sequence, sequence), -math.inf, dtype=query.dtype).triu(1).repeat(heads // kv_heads, 1)
        scores = torch.baddbmm(future, grouped, key.transpose(1, 2), alpha=dim**-0.5)
        weights = torch.softmax(scores, -1, dtype=torch.float32 if self.kernels.softmax == "fp32" else None).to(
            query.dtype
        )
        mixed = torch.bmm(dropped(weights, self.dropout), value).view(batch, heads, sequence, value_dim)
        return mixed.transpose(1, 2).flatten(2)


class GroupedQuery(nn.Module):
    """Projections around the core; rotary embedding is left out, as it keeps nothing that is not shared by all
    layers.
    """

    def __init__(self, attention: Attention, core: Core, *, hidden: int, dtype: torch.dtype) -> None:
        super().__init__()
        self.head_dim, self.core = attention.head_dim, core
        self.query = nn.Linear(hidden, attention.query_dim, bias=attention.qkv_bias, dtype=dtype)
        self.key, self.value = (
            nn.Linear(hidden, attention.kv_dim, bias=attention.qkv_bias, dtype=dtype) for _ in range(2)
        )
        self.output = nn.Linear(attention.query_dim, hidden, bias=attention.output_bias, dtype=dtype)
        norms = (
            norm(attention.head_dim, "rmsnorm", core.kernels, dtype) if attention.qk_norm else nn.Identity()
            for _ in range(2)
        )
        self.query_norm, self.key_norm = norms

    def forward(self, x: Tensor) -> Tensor:
        query, key, value = (
            linear(x).unflatten(-1, (-1, self.head_dim)) for linear in (self.query, self.key, self.value)
        )
        out: Tensor = self.output(self.core(self.query_norm(query), self.key_norm(key), value))
        return out


class Latent(nn.Module):
    """Latent attention as it is trained: heads are expanded out of the latent vectors before attention."""

    def __init__(self, attention: LatentAttention, core: Core, *, hidden: int, dtype: torch.dtype) -> None:
        super().__init__()
        self.num_heads, self.core = attention.num_heads, core
        kernels, heads, q_rank, kv_rank = core.kernels, attention.num_heads, attention.q_rank, attention.kv_rank

        def linear(width_in: int, width_out: int) -> nn.Linear:
            return nn.Linear(width_in, width_out, bias=False, dtype=dtype)

        self.compress_query = (
            nn.Sequential(linear(hidden, q_rank), norm(q_rank, "rmsnorm", kernels, dtype)) if q_rank else nn.Identity()
        )
        self.query = linear(q_rank or hidden, heads * attention.head_dim)
        self.compress = nn.Sequential(linear(hidden, kv_rank), norm(kv_rank, "rmsnorm", kernels, dtype))
        self.position_key = linear(hidden, attention.rope_head_dim)
        self.key, self.value = (
            linear(kv_rank, heads * attention.nope_head_dim),
            linear(kv_rank, heads * attention.value_head_dim),
        )
        self.output = linear(heads * attention.value_head_dim, hidden)

    def forward(self, x: Tensor) -> Tensor:
        latent = self.compress(x)
        query, key, value = (
            linear(t).unflatten(-1, (self.num_heads, -1))
            for linear, t in ((self.query, self.compress_query(x)), (self.key, latent), (self.value, latent))
        )
        position = self.position_key(x).unsqueeze(2).expand(-1, -1, self.num_heads, -1)
        out: Tensor = self.output(self.core(query, torch.cat([key, position], dim=-1), value))
        return out
