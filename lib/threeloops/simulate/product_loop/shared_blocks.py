"""Shared blocks: a page table whose blocks are shared between requests, copied when somebody writes into a shared one,
and kept after a request has ended for the next one that begins alike.

Blocks are real lists of token numbers. A full block is known by all tokens up to its end; a request that begins with
the same tokens finds it. Blocks that nobody uses wait in the order in which they were last used, and the one that has
waited longest is taken when room is needed.

>>> pool = SharedBlocks(num_blocks=8, block_tokens=4)
>>> pool.admit("a", [1, 2, 3, 4, 5, 6, 7, 8, 9]), pool.admit("b", [1, 2, 3, 4, 5, 6, 7, 8, 10])
(0, 8)
>>> pool.table("a"), pool.table("b")
([0, 1, 2], [0, 1, 3])

Source: Kwon et al., 2023, arXiv:2309.06180, section 4.4; vLLM, v1/core/block_pool.py (hashed blocks, a queue of free
        ones, the last block of a request first)
"""

from collections import OrderedDict
from collections.abc import Sequence

from threeloops import checks


class NoRoomError(ValueError):
    """Every block is in use."""


class SharedBlocks:
    """A pool of equal blocks. `copies` and `evictions` count what happened; `found_tokens` of `asked_tokens` is the
    hit rate.
    """

    def __init__(self, *, num_blocks: int, block_tokens: int, keeps_prefixes: bool = True) -> None:
        checks.count(num_blocks=num_blocks, block_tokens=block_tokens)
        self.num_blocks, self.block_tokens, self.keeps_prefixes = num_blocks, block_tokens, keeps_prefixes
        self.tables: dict[str, list[int]] = {}
        self.texts: dict[str, list[int]] = {}
        self.users: dict[int, int] = {}  # block -> tables that name it
        self.held: dict[int, list[int]] = {}  # block -> its tokens
        self.empty = list(range(num_blocks))
        self.waiting: OrderedDict[int, None] = OrderedDict()  # used by nobody, still full; the longest wait first
        self.known: dict[tuple[int, ...], int] = {}  # all tokens up to a block's end -> that block
        self.copies = self.evictions = self.found_tokens = self.asked_tokens = 0

    def admit(self, request: str, text: Sequence[int]) -> int:
        """Give a request blocks for its prompt; returns how many of its tokens were there already.

        Raises: NoRoomError, and changes nothing, if the blocks that it needs are not there
        """
        if request in self.tables:
            raise ValueError(f"{request!r} is there already; give each request a name of its own")
        found = self._found(text)
        needed = -(-len(text) // self.block_tokens) - len(found)
        if needed > len(self.empty) + len([block for block in self.waiting if block not in found]):
            raise NoRoomError(f"{request!r} needs {needed} blocks; release a request first")
        for block in found:
            self._use(block)
        self.tables[request], self.texts[request] = list(found), list(text[: len(found) * self.block_tokens])
        self.asked_tokens += len(text)
        self.found_tokens += len(self.texts[request])
        hit = len(self.texts[request])
        for token in text[hit:]:
            self.append(request, token)
        return hit

    def append(self, request: str, token: int) -> None:
        """One more token. A last block that others use too is copied first: they must not see the new token."""
        table, text = self.tables[request], self.texts[request]
        if len(text) % self.block_tokens == 0:
            table.append(self._take())
        elif self.users[table[-1]] > 1:
            copy, shared = self._take(), table[-1]
            self.held[copy] = list(self.held[shared])
            self.users[shared] -= 1
            table[-1] = copy
            self.copies += 1
        self.held[table[-1]].append(token)
        text.append(token)
        if self.keeps_prefixes and len(text) % self.block_tokens == 0:
            self.known.setdefault(tuple(text), table[-1])

    def fork(self, request: str, branch: str) -> None:
        """A second answer to the same prompt: another table that names the same blocks."""
        self.tables[branch], self.texts[branch] = list(self.tables[request]), list(self.texts[request])
        for block in self.tables[branch]:
            self.users[block] += 1

    def release(self, request: str) -> None:
        """A request has ended. Its last blocks begin to wait first: they go before the ones that they follow."""
        table, text = self.tables.pop(request), self.texts.pop(request)
        for place in reversed(range(len(table))):
            block = table[place]
            self.users[block] -= 1
            if self.users[block]:
                continue
            if self.known.get(tuple(text[: (place + 1) * self.block_tokens])) == block and self._full(block):
                self.waiting[block] = None
            else:
                self._clear(block)

    def table(self, request: str) -> list[int]:
        """The request's blocks in order."""
        return list(self.tables[request])

    @property
    def used_blocks(self) -> int:
        """Blocks that some table names."""
        return sum(users > 0 for users in self.users.values())

    @property
    def hit_rate(self) -> float:
        """Share of all prompt tokens that were found."""
        return self.found_tokens / self.asked_tokens if self.asked_tokens else 0.0

    def _found(self, text: Sequence[int]) -> list[int]:
        """Blocks of the longest beginning that is there, never the whole prompt: its last token must be computed."""
        found: list[int] = []
        for end in range(self.block_tokens, len(text), self.block_tokens):
            block = self.known.get(tuple(text[:end]))
            if block is None:
                break
            found.append(block)
        return found

    def _use(self, block: int) -> None:
        self.waiting.pop(block, None)
        self.users[block] = self.users.get(block, 0) + 1

    def _full(self, block: int) -> bool:
        return len(self.held[block]) == self.block_tokens

    def _take(self) -> int:
        if not self.empty:
            if not self.waiting:
                raise NoRoomError(f"all {self.num_blocks} blocks are in use; release a request or preempt one")
            self._clear(self.waiting.popitem(last=False)[0])
            self.evictions += 1
        block = self.empty.pop(0)
        self.held[block], self.users[block] = [], 1
        return block

    def _clear(self, block: int) -> None:
        for text in [text for text, known in self.known.items() if known == block]:
            del self.known[text]
        del self.held[block], self.users[block]
        self.empty.append(block)
