"""Character decoder: a whole decoder in one screen (RMSNorm, rotary positions, grouped-query attention, SwiGLU), with a
KV cache in which every request of a batch has a length of its own.

>>> sizes = DecoderSizes(hidden=32, layers=2, heads=4, kv_heads=2, head_dim=8, intermediate=48)
>>> decoder = Decoder(sizes).eval()
>>> cache = KvCache(sizes, batch=2, capacity=16)
>>> text = torch.tensor([[5, 6, 7], [8, 9, 0]])  # the second request has two tokens; its third place is padding
>>> decoder(text, cache=cache, counts=torch.tensor([3, 2])).shape, cache.lengths.tolist()
(torch.Size([2, 3, 96]), [3, 2])
"""

from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor, nn
from torch.nn import functional

from threeloops import checks
from threeloops.measure.product_loop.character_text import SYMBOLS

BASE = 10_000.0  # of rotary positions
MOST_POSITIONS = 4096
FP32_BYTES = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class DecoderSizes:
    """What decides a decoder's parameters and the bytes of its cache."""

    hidden: int
    layers: int
    heads: int
    kv_heads: int
    head_dim: int
    intermediate: int
    tied: bool = True  # the last matmul uses the embedding's table

    def __post_init__(self) -> None:
        checks.count(
            hidden=self.hidden,
            layers=self.layers,
            heads=self.heads,
            kv_heads=self.kv_heads,
            head_dim=self.head_dim,
            intermediate=self.intermediate,
        )
        if self.heads % self.kv_heads or self.head_dim % 2:
            raise ValueError(
                f"heads={self.heads} must be a multiple of kv_heads={self.kv_heads}, and head_dim={self.head_dim} even"
            )

    @property
    def cache_bytes_per_token(self) -> int:
        """K and V of one token in every layer, in fp32."""
        return 2 * self.layers * self.kv_heads * self.head_dim * FP32_BYTES


class HoldsKeys(Protocol):
    """What a decoder asks of a cache, contiguous or paged."""

    lengths: Tensor  # [batch]: tokens that each request has in the cache

    def extended(self, layer: int, keys: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
        """Store [batch, new, kv_heads, head_dim] behind each request's length; show everything, as [batch, kv_heads,
        longest, head_dim]. What stands behind a request's own length is anything: the decoder masks it.
        """

    def advance(self, counts: Tensor) -> None:
        """So many of the new tokens count; the rest was padding."""


class KvCache:
    """A contiguous cache: one row of `capacity` places for each request. Lowering `lengths` forgets the last tokens,
    which is how speculation takes back what was refused.
    """

    def __init__(self, sizes: DecoderSizes, *, batch: int, capacity: int) -> None:
        checks.count(batch=batch, capacity=capacity)
        shape = (sizes.layers, batch, capacity, sizes.kv_heads, sizes.head_dim)
        self.keys, self.values = torch.zeros(shape), torch.zeros(shape)
        self.capacity, self.lengths = capacity, torch.zeros(batch, dtype=torch.long)

    def extended(self, layer: int, keys: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
        longest = int(self.lengths.max()) + keys.shape[1]
        if longest > self.capacity:
            raise ValueError(f"{longest} tokens do not fit into a cache of capacity={self.capacity}; make a larger one")
        rows = torch.arange(len(keys))[:, None]
        places = self.lengths[:, None] + torch.arange(keys.shape[1])
        self.keys[layer][rows, places], self.values[layer][rows, places] = keys, values
        return tuple(held[layer][:, :longest].transpose(1, 2) for held in (self.keys, self.values))  # type: ignore[return-value]

    def advance(self, counts: Tensor) -> None:
        self.lengths = self.lengths + counts


class Decoder(nn.Module):
    """From characters to a score for each next character."""

    cosine: Tensor
    sine: Tensor

    def __init__(self, sizes: DecoderSizes) -> None:
        super().__init__()
        self.sizes = sizes
        self.embedding = nn.Embedding(len(SYMBOLS), sizes.hidden)
        nn.init.normal_(self.embedding.weight, std=0.02)
        self.blocks = nn.ModuleList(Block(sizes) for _ in range(sizes.layers))
        self.norm = nn.RMSNorm(sizes.hidden, eps=1e-6)
        self.scores = nn.Linear(sizes.hidden, len(SYMBOLS), bias=False)
        if sizes.tied:
            self.scores.weight = self.embedding.weight
        angles = torch.arange(MOST_POSITIONS)[:, None] / BASE ** (torch.arange(0, sizes.head_dim, 2) / sizes.head_dim)
        self.register_buffer("cosine", torch.cat([angles.cos(), angles.cos()], dim=-1), persistent=False)
        self.register_buffer("sine", torch.cat([-angles.sin(), angles.sin()], dim=-1), persistent=False)

    def forward(self, tokens: Tensor, *, cache: HoldsKeys | None = None, counts: Tensor | None = None) -> Tensor:
        """Scores [batch, new, symbols] for tokens [batch, new], which follow what the cache holds. With `counts`, only
        the first so many of a row are tokens and the rest is padding, whose scores mean nothing.
        """
        new = torch.arange(tokens.shape[1])
        positions = (cache.lengths[:, None] if cache else 0) + new.expand(len(tokens), -1)
        turn = self.cosine[positions][:, :, None], self.sine[positions][:, :, None]
        x = self.embedding(tokens)
        for layer, block in enumerate(self.blocks):
            x = block(x, turn, positions, cache, layer)
        if cache:
            cache.advance(torch.full((len(tokens),), tokens.shape[1]) if counts is None else counts)
        scores: Tensor = self.scores(self.norm(x))
        return scores


class Block(nn.Module):
    """Attention and MLP, each behind an RMSNorm and beside a residual path."""

    def __init__(self, sizes: DecoderSizes) -> None:
        super().__init__()
        self.sizes = sizes
        hidden, inner = sizes.hidden, sizes.heads * sizes.head_dim
        self.norms = nn.ModuleList(nn.RMSNorm(hidden, eps=1e-6) for _ in range(2))
        self.qkv = nn.Linear(hidden, inner + 2 * sizes.kv_heads * sizes.head_dim, bias=False)
        self.output = nn.Linear(inner, hidden, bias=False)
        self.gate_up = nn.Linear(hidden, 2 * sizes.intermediate, bias=False)
        self.down = nn.Linear(sizes.intermediate, hidden, bias=False)

    def forward(
        self, x: Tensor, turn: tuple[Tensor, Tensor], positions: Tensor, cache: HoldsKeys | None, layer: int
    ) -> Tensor:
        x = x + self.output(self._attention(self.qkv(self.norms[0](x)), turn, positions, cache, layer))
        gate, up = self.gate_up(self.norms[1](x)).chunk(2, dim=-1)
        return x + self.down(functional.silu(gate) * up)

    def _attention(
        self, qkv: Tensor, turn: tuple[Tensor, Tensor], positions: Tensor, cache: HoldsKeys | None, layer: int
    ) -> Tensor:
        heads, kv_heads = self.sizes.heads, self.sizes.kv_heads
        parts = qkv.unflatten(-1, (heads + 2 * kv_heads, self.sizes.head_dim))
        query, key, value = parts.split([heads, kv_heads, kv_heads], dim=2)
        query, key = _turned(query, turn), _turned(key, turn)
        if cache is None:
            keys, values, visible = key.transpose(1, 2), value.transpose(1, 2), None
        else:
            keys, values = cache.extended(layer, key, value)
            visible = (torch.arange(keys.shape[2]) <= positions[:, :, None])[:, None]  # [batch, 1, new, longest]
        found = functional.scaled_dot_product_attention(
            query.transpose(1, 2), keys, values, attn_mask=visible, is_causal=cache is None, enable_gqa=True
        )
        return found.transpose(1, 2).flatten(2)


def _turned(x: Tensor, turn: tuple[Tensor, Tensor]) -> Tensor:
    """Rotary positions."""
    cosine, sine = turn
    return x * cosine + x.roll(x.shape[-1] // 2, dims=-1) * sine
