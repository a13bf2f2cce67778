"""KV blocks while a server runs, counted rather than listed: own blocks of each sequence, shared blocks of each prefix,
and how many of the decoding sequences stand just before a block's end.

A prefix is cached once a request has computed it. While nobody uses it, it stays until its blocks are needed: the one
that was used longest ago loses its last blocks first. Who has computed a prefix that somebody else has cached meanwhile
gives its own copy back.
"""

from collections import OrderedDict
from collections.abc import Hashable

from threeloops.simulate.product_loop.serving_policies import KVBlocks
from threeloops.simulate.product_loop.serving_requests import Moments, Sequence


class Prefix:
    """The cached beginning that several requests share."""

    __slots__ = ("blocks", "users")

    def __init__(self) -> None:
        self.blocks = 0
        self.users = 0


class NoLimit:
    """A server whose memory never runs out."""

    def refuse(self, moments: Moments) -> None:
        """Refuse a request that is too long; here none is."""

    def admit(self, sequence: Sequence, *, at: int) -> bool:
        """Whether a sequence gets its blocks; here each does."""
        return True

    def read(self, sequence: Sequence) -> None:
        """A prompt has been computed."""

    def release(self, sequence: Sequence, *, context: int) -> None:
        """A sequence is gone."""

    def grow(self, context: int, *, at: int) -> None:
        """A sequence begins to decode."""

    def stop(self, context: int, *, at: int) -> None:
        """A sequence decodes no more."""

    def crowded(self, at: int) -> bool:
        """Whether blocks run short; here they never do."""
        return False

    def steps(self, at: int, most: int) -> int:
        """How many of the next steps have blocks; here all."""
        return most

    def decoded(self, at: int, steps: int) -> None:
        """Everybody who decodes has so many tokens more."""

    def swap_s(self, context: int) -> float:
        """Seconds to swap a context out and in; here nothing is swapped."""
        return 0.0

    swaps = False


class BlockCount(NoLimit):
    """A pool: how many blocks are free, and who has the others."""

    def __init__(self, blocks: KVBlocks) -> None:
        self.rules, self.size = blocks, blocks.block_tokens
        self.swaps = blocks.preemption == "swap"
        self.free = blocks.num_blocks
        self.idle = 0  # in prefixes that nobody uses: free as soon as somebody needs them
        self.prefixes: OrderedDict[Hashable, Prefix] = OrderedDict()  # used longest ago first
        # how many decoding sequences begin a block at a count of decode steps, modulo the size of a block
        self.begins = [0] * self.size
        self.growing = 0

    @property
    def available(self) -> int:
        """Blocks that could be had now."""
        return self.free + self.idle

    def of(self, tokens: int) -> int:
        """Blocks that so many tokens take."""
        return -(-tokens // self.size)

    def refuse(self, moments: Moments) -> None:
        """Refuse a request that the whole pool could not hold."""
        whole = self.of(moments.request.prompt_tokens + moments.request.output_tokens - 1)
        if whole > self.rules.num_blocks:
            raise ValueError(
                f"request {moments.place} needs {whole} blocks by its end; the pool has {self.rules.num_blocks}. Give"
                " the pool more, or the request fewer tokens"
            )

    # one sequence -------------------------------------------------------------------------------------------------

    def admit(self, sequence: Sequence, *, at: int) -> bool:
        """Take a sequence's blocks, if they leave enough for the next token of everyone who decodes, itself included if
        it need not read, and the watermark.
        """
        request = sequence.moments.request
        sharing = self.rules.prefix_cache and request.prefix is not None and sequence.unread
        prefix = self.prefixes.get(request.prefix) if sharing else None
        hit = lost = 0
        if prefix:
            # at least one token of a prompt is always computed: the answer begins there
            hit = min(prefix.blocks, min(request.shared_tokens, sequence.prompt - 1) // self.size)
            lost = 0 if prefix.users else prefix.blocks
        own = self.of(sequence.context) - hit
        room = self.needed(at) + self.of(sequence.context + (not sequence.unread)) - hit
        if self.available < self.rules.num_blocks:  # somebody else is here
            room += int(self.rules.watermark * self.rules.num_blocks)
        if prefix and room > self.available - lost and lost > hit:
            self._shorten(prefix, to=hit)
            lost = hit
        if room > self.available - lost:
            return False
        sequence.member, sequence.shared = sharing, hit
        if sharing:
            self._use(request.prefix)
            sequence.done = hit * self.size
            sequence.moments.reused_tokens += sequence.done
        self._take(own)
        return True

    def read(self, sequence: Sequence) -> None:
        """Its prompt is computed: the blocks of its prefix are the cache's from now on."""
        if not sequence.member:
            return
        request = sequence.moments.request
        prefix = self.prefixes[request.prefix]
        blocks = request.shared_tokens // self.size
        new = max(0, blocks - prefix.blocks)
        prefix.blocks += new
        self.free += blocks - sequence.shared - new  # copies of what somebody else had cached meanwhile
        sequence.shared = blocks

    def release(self, sequence: Sequence, *, context: int) -> None:
        """Its own blocks are free again, and it leaves its prefix."""
        self.free += self.of(context) - sequence.shared
        if sequence.member:
            self._leave(sequence.moments.request.prefix)
        sequence.member, sequence.shared = False, 0

    def swap_s(self, context: int) -> float:
        """Seconds to move a sequence's blocks out or in."""
        return self.of(context) * self.rules.swap_s_per_block

    # all that decode ----------------------------------------------------------------------------------------------

    def grow(self, context: int, *, at: int) -> None:
        """A sequence with so many cached tokens begins to decode when `at` decode steps have been done."""
        self.begins[(at - context) % self.size] += 1
        self.growing += 1

    def stop(self, context: int, *, at: int) -> None:
        """A sequence that now has so many cached tokens decodes no more."""
        self.begins[(at - context) % self.size] -= 1
        self.growing -= 1

    def needed(self, at: int, steps: int = 1) -> int:
        """Blocks that the decoding sequences begin in the coming steps."""
        rounds, rest = divmod(steps, self.size)
        return rounds * self.growing + sum(self.begins[(at + step) % self.size] for step in range(rest))

    def crowded(self, at: int) -> bool:
        """Are there too few blocks for the next token of everyone who decodes?"""
        return self.needed(at) > self.available

    def steps(self, at: int, most: int) -> int:
        """Decode steps, up to `most`, before the pool would run out."""
        left = self.available
        if self.needed(at, most) <= left:
            return most
        rounds = left // self.growing
        steps, left = rounds * self.size, left - rounds * self.growing
        while steps < most and self.begins[(at + steps) % self.size] <= left:
            left -= self.begins[(at + steps) % self.size]
            steps += 1
        return steps

    def decoded(self, at: int, steps: int) -> None:
        """Everybody who decodes has so many tokens more, from the count `at` on."""
        self._take(self.needed(at, steps))

    # the pool -----------------------------------------------------------------------------------------------------

    def _take(self, blocks: int) -> None:
        while blocks > self.free:
            self._evict(blocks - self.free)
        self.free -= blocks

    def _evict(self, blocks: int) -> None:
        oldest = next(name for name, prefix in self.prefixes.items() if not prefix.users)
        prefix = self.prefixes[oldest]
        self._shorten(prefix, to=max(0, prefix.blocks - blocks))
        if not prefix.blocks:
            del self.prefixes[oldest]

    def _shorten(self, prefix: Prefix, *, to: int) -> None:
        """Give up what an unused prefix has beyond these blocks: whoever shares only its beginning needs the room."""
        self.idle -= prefix.blocks - to
        self.free += prefix.blocks - to
        prefix.blocks = to

    def _use(self, name: Hashable) -> None:
        prefix = self.prefixes.setdefault(name, Prefix())
        if not prefix.users:
            self.idle -= prefix.blocks
        prefix.users += 1

    def _leave(self, name: Hashable) -> None:
        prefix = self.prefixes[name]
        prefix.users -= 1
        if prefix.users:
            return
        self.idle += prefix.blocks
        self.prefixes.move_to_end(name)
        if not prefix.blocks:
            del self.prefixes[name]
