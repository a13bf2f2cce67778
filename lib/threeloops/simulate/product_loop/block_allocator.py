"""Block allocator: one layer's KV cache in pages, with a free list and a block table per request, grown token by
token.

Every block remembers the positions written into it. Slots are counted by looking at the tables and the blocks, never
from a length.

>>> pages = BlockAllocator(num_blocks=100, block_tokens=4, window=6)
>>> pages.grow("a", tokens=9)
>>> pages.table("a"), pages.reserved_slots, pages.written_slots
([0, 1, 2], 12, 9)
>>> for _ in range(3):
...     pages.grow("a")
>>> (
...     pages.table("a"),
...     pages.reserved_slots,
...     pages.readable_slots,
... )  # block 0 held tokens 0 to 3, which nobody can read any more
([None, 1, 2], 8, 6)

Source: Kwon et al., 2023, arXiv:2309.06180, sections 4.2 and 4.3. No sharing between requests.
"""

from collections.abc import Sequence

from threeloops import checks


class BlockAllocator:
    """A pool of equal blocks for one layer. A windowed layer gives back blocks that no coming token can read."""

    def __init__(self, *, num_blocks: int, block_tokens: int, window: int | None = None) -> None:
        checks.count(num_blocks=num_blocks, block_tokens=block_tokens)
        if window is not None:
            checks.count(window=window)
        self.block_tokens = block_tokens
        self.window = window
        self.free_blocks = list(range(num_blocks))
        self.written: dict[int, list[int]] = {}  # block -> positions of the tokens in it
        self.tables: dict[str, list[int | None]] = {}  # request -> its blocks in order; None where one was given back
        self.lengths: dict[str, int] = {}

    def grow(self, request: str, *, tokens: int = 1) -> None:
        """One step that computes `tokens` new tokens: drop what its first token cannot read, then find a slot for
        each.

        Raises: ValueError if the free list runs out; the request then keeps the tokens that found a slot
        """
        checks.count(tokens=tokens)
        table = self.tables.setdefault(request, [])
        first = self.lengths.setdefault(request, 0)
        self._drop_unreadable(table, newest=first)
        for position in range(first, first + tokens):
            if position % self.block_tokens == 0:
                table.append(self._take_block())
            block = table[-1]
            assert block is not None
            self.written[block].append(position)
            self.lengths[request] = position + 1

    def release(self, request: str) -> None:
        """The request has ended: all its blocks return to the free list."""
        for block in self.tables.pop(request):
            if block is not None:
                self._give_back(block)
        del self.lengths[request]

    def table(self, request: str) -> list[int | None]:
        """The request's blocks in order, None for those given back."""
        return list(self.tables[request])

    @property
    def reserved_slots(self) -> int:
        """Slots of all blocks that some table names."""
        return sum(self.block_tokens for table in self.tables.values() for block in table if block is not None)

    @property
    def written_slots(self) -> int:
        """Slots that hold a token, readable or not."""
        return sum(len(positions) for positions in self.written.values())

    @property
    def readable_slots(self) -> int:
        """Slots that the newest token of each request reads."""
        return sum(
            self._reads(newest=self.lengths[request] - 1, position=position)
            for request, table in self.tables.items()
            for block in table
            if block is not None
            for position in self.written[block]
        )

    def _reads(self, *, newest: int, position: int) -> bool:
        return self.window is None or newest - position < self.window

    def _drop_unreadable(self, table: list[int | None], *, newest: int) -> None:
        for index, block in enumerate(table):
            if block is None or len(self.written[block]) < self.block_tokens:
                continue  # given back already, or the next token goes here
            if not any(self._reads(newest=newest, position=position) for position in self.written[block]):
                self._give_back(block)
                table[index] = None

    def _take_block(self) -> int:
        if not self.free_blocks:
            raise ValueError(
                f"no free block is left of {len(self.written)}; release a request or give the pool more blocks"
            )
        block = self.free_blocks.pop(0)
        self.written[block] = []
        return block

    def _give_back(self, block: int) -> None:
        del self.written[block]
        self.free_blocks.append(block)


def requests_that_fit(
    *, layers: Sequence[tuple[int | None, float]], block_tokens: int, tokens: int, budget_bytes: float
) -> int:
    """Most requests that grow side by side to `tokens` tokens without ever exceeding the budget, found by trying 1,
    2, 3 and so on.

    `layers` holds one (window, bytes per slot) pair per layer; each layer has its own pages.

    >>> requests_that_fit(layers=[(None, 2.0)] * 4, block_tokens=16, tokens=20, budget_bytes=1000)
    3
    """
    fits = 0
    while _stays_within(layers, block_tokens=block_tokens, tokens=tokens, requests=fits + 1, budget_bytes=budget_bytes):
        fits += 1
    return fits


def _stays_within(
    layers: Sequence[tuple[int | None, float]], *, block_tokens: int, tokens: int, requests: int, budget_bytes: float
) -> bool:
    pages = [
        BlockAllocator(num_blocks=requests * tokens, block_tokens=block_tokens, window=window) for window, _ in layers
    ]
    for _ in range(tokens):
        for request in range(requests):
            for layer in pages:
                layer.grow(str(request))
        if (
            sum(layer.reserved_slots * slot_bytes for layer, (_, slot_bytes) in zip(pages, layers, strict=True))
            > budget_bytes
        ):
            return False
    return True
