"""A caching allocator at work: segments taken from the device, blocks cut off, returned, merged with their neighbours
and found again.

It follows the rules of PyTorch's allocator for one stream, default settings, and counts what it asks of the device.

>>> device = CachingAllocator(capacity_bytes=100 * MiB)
>>> tensor = device.allocate(3 * MiB)
>>> device.free(tensor)
>>> device.allocated_bytes, device.reserved_bytes // MiB, device.peak_allocated_bytes // MiB
(0, 20, 3)

Source: PyTorch, c10/cuda/CUDACachingAllocator.cpp, 2025
"""

from dataclasses import dataclass, field

from threeloops.units import MiB

UNIT, SMALL, SMALL_SEGMENT, MIDDLE, MIDDLE_SEGMENT, LARGE_UNIT = 512, 1 * MiB, 2 * MiB, 10 * MiB, 20 * MiB, 2 * MiB


class OutOfMemoryError(RuntimeError):
    """No free block fits, and the device has no room for another segment."""


@dataclass(eq=False, slots=True)
class Block:
    """A piece of a segment; `used` while a tensor lives in it."""

    start: int
    size: int
    used: bool = False


@dataclass(eq=False, slots=True)
class Segment:
    """A piece of the device's memory, cut into blocks that lie side by side."""

    size: int
    small: bool
    blocks: list[Block] = field(default_factory=list)

    def place(self, block: Block, size: int) -> None:
        """Use a free block for `size` bytes; what is left over is cut off if somebody else could use it."""
        left = block.size - size
        if left >= UNIT if self.small else left > SMALL:
            self.blocks.insert(self.blocks.index(block) + 1, Block(block.start + size, left))
            block.size = size
        block.used = True

    def merge(self) -> None:
        """Free neighbours become one block."""
        merged = self.blocks[:1]
        for block in self.blocks[1:]:
            if block.used or merged[-1].used:
                merged.append(block)
            else:
                merged[-1].size += block.size
        self.blocks = merged


class CachingAllocator:
    """One device's memory, as a program sees it."""

    def __init__(self, *, capacity_bytes: int) -> None:
        self.capacity_bytes = capacity_bytes
        self.segments: list[Segment] = []
        self.device_allocations = self.device_frees = 0
        self.peak_allocated_bytes = self.peak_reserved_bytes = 0

    @property
    def allocated_bytes(self) -> int:
        return sum(block.size for segment in self.segments for block in segment.blocks if block.used)

    @property
    def reserved_bytes(self) -> int:
        return sum(segment.size for segment in self.segments)

    @property
    def largest_free_bytes(self) -> int:
        """The largest request that could be met without asking the device."""
        return max((block.size for segment in self.segments for block in segment.blocks if not block.used), default=0)

    def allocate(self, requested_bytes: int) -> Block:
        """The smallest free block that is large enough, else a block of a new segment."""
        if requested_bytes < 1:
            raise ValueError(f"requested_bytes={requested_bytes} must be at least 1")
        size = -(-requested_bytes // UNIT) * UNIT
        segment, block = self._best(size) or self._grown(size)
        segment.place(block, size)
        self.peak_allocated_bytes = max(self.peak_allocated_bytes, self.allocated_bytes)
        return block

    def free(self, block: Block) -> None:
        """The block stays with the allocator; the device is not told."""
        block.used = False
        next(segment for segment in self.segments if block in segment.blocks).merge()

    def empty_cache(self) -> None:
        """Give back every segment of which no byte is used; one that holds a single living tensor stays whole."""
        kept = [segment for segment in self.segments if any(block.used for block in segment.blocks)]
        self.device_frees += len(self.segments) - len(kept)
        self.segments = kept

    def _best(self, size: int) -> tuple[Segment, Block] | None:
        free = [
            (block.size, number, segment, block)
            for number, segment in enumerate(self.segments)
            for block in segment.blocks
            if not block.used
        ]
        fitting = [found for found in free if found[0] >= size and found[2].small == (size <= SMALL)]
        return min(fitting, key=lambda found: found[:2])[2:] if fitting else None

    def _grown(self, size: int) -> tuple[Segment, Block]:
        wanted = (
            SMALL_SEGMENT if size <= SMALL else MIDDLE_SEGMENT if size < MIDDLE else -(-size // LARGE_UNIT) * LARGE_UNIT
        )
        if self.reserved_bytes + wanted > self.capacity_bytes:
            self.empty_cache()  # the last thing it tries
        if self.reserved_bytes + wanted > self.capacity_bytes:
            asked, free = f"{size / MiB:.1f} MiB", f"{(self.reserved_bytes - self.allocated_bytes) / MiB:.1f} MiB"
            raise OutOfMemoryError(
                f"asked for {asked}; {free} are reserved and not used, the largest free piece is"
                f" {self.largest_free_bytes / MiB:.1f} MiB"
            )
        segment = Segment(size=wanted, small=size <= SMALL, blocks=[Block(0, wanted)])
        self.segments.append(segment)
        self.device_allocations += 1
        self.peak_reserved_bytes = max(self.peak_reserved_bytes, self.reserved_bytes)
        return segment, segment.blocks[0]
