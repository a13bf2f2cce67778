"""Blocks: a pool of fixed-size blocks of KV cache over real tensors, and the table that finds a token in it.

>>> pool = BlockPool(blocks=4, block_tokens=16)
>>> mine = pool.take(3)
>>> pool.free, pool.take(2), pool.give(mine), pool.free
(1, None, None, 4)
"""

import torch
from torch import Tensor

from threeloops import checks
from threeloops.measure.product_loop.character_decoder import DecoderSizes


class BlockPool:
    """Which blocks are free. It knows nothing of tensors."""

    def __init__(self, *, blocks: int, block_tokens: int) -> None:
        checks.count(blocks=blocks, block_tokens=block_tokens)
        self.blocks, self.block_tokens = blocks, block_tokens
        self._free = list(range(blocks))

    @property
    def free(self) -> int:
        return len(self._free)

    def blocks_for(self, tokens: int) -> int:
        """Whole blocks that hold so many tokens."""
        return -(-tokens // self.block_tokens)

    def take(self, count: int) -> list[int] | None:
        """That many blocks, or none at all."""
        if count > len(self._free):
            return None
        taken, self._free = self._free[:count], self._free[count:]
        return taken

    def give(self, blocks: list[int]) -> None:
        """Back to the pool, exactly once each."""
        assert not set(blocks) & set(self._free), "a block was given back twice"
        self._free += blocks


class PagedCache:
    """Keys and values of all requests, block by block."""

    def __init__(self, sizes: DecoderSizes, *, blocks: int, block_tokens: int) -> None:
        shape = (sizes.layers, blocks, block_tokens, sizes.kv_heads, sizes.head_dim)
        self.keys, self.values = torch.zeros(shape), torch.zeros(shape)
        self.block_tokens = block_tokens

    def step(self, tables: list[list[int]], places: list[int]) -> "StepCache":
        """The cache as the tokens of one step see it: each has its request's block table and its own place in it."""
        longest = max(places) // self.block_tokens + 1
        padded = [(table + [0] * longest)[:longest] for table in tables]  # block 0 is read there, and masked
        return StepCache(self, torch.tensor(padded), torch.tensor(places))


class StepCache:
    """What `Decoder` writes to and reads from. Every token is a row of the batch, also those of one prompt: all of them
    are written before any is read, and a row sees nothing behind its own place.
    """

    def __init__(self, cache: PagedCache, tables: Tensor, places: Tensor) -> None:
        self.cache, self.tables, self.lengths = cache, tables, places
        self._block = tables.gather(1, (places // cache.block_tokens)[:, None])[:, 0]
        self._offset = places % cache.block_tokens

    def extended(self, layer: int, keys: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
        shown = []
        for held, new in ((self.cache.keys[layer], keys), (self.cache.values[layer], values)):
            held[self._block, self._offset] = new[:, 0]
            # a copy, block by block; the kernels of large engines read the blocks where they lie
            shown.append(held[self.tables].flatten(1, 2).transpose(1, 2))
        return shown[0], shown[1]

    def advance(self, counts: Tensor) -> None:
        """The engine counts for itself."""
