"""Occupancy: how many blocks of a kernel live on one multiprocessor at a time, and in how many waves a grid passes
over all of them.

>>> from threeloops.facts import compute_capability, hardware
>>> h100 = compute_capability.multiprocessor(hardware.part("h100-sxm5"))
>>> resident = occupancy(h100, threads_per_block=256, registers_per_thread=40, shared_bytes_per_block=0)
>>> resident.blocks, resident.share, resident.limited_by
(6, 0.75, ('registers',))
>>> waves(grid_blocks=1000, num_sms=132, blocks_per_sm=resident.blocks).count
2

Source: NVIDIA, CUDA C++ Best Practices Guide 12.9, section 11.1 (occupancy); NVIDIA tuning guides for Ampere, Ada,
        Hopper and Blackwell, section 1.4.1.1
"""

from dataclasses import dataclass

from threeloops import checks
from threeloops.facts.compute_capability import Multiprocessor

THREADS_PER_WARP = 32
MAX_THREADS_PER_BLOCK = 1024  # on every compute capability since 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Occupancy:
    """Resident blocks per multiprocessor, by each limit alone."""

    warps_per_block: int
    max_warps: int
    by_warps: int
    by_blocks: int
    by_registers: int
    by_shared_memory: int

    @property
    def blocks(self) -> int:
        """Resident blocks: the smallest of the four limits."""
        return min(self.by_warps, self.by_blocks, self.by_registers, self.by_shared_memory)

    @property
    def warps(self) -> int:
        return self.blocks * self.warps_per_block

    @property
    def share(self) -> float:
        """Occupancy: resident warps over the most there can be."""
        return self.warps / self.max_warps

    @property
    def limited_by(self) -> tuple[str, ...]:
        """The limits that bind."""
        named = {
            "warps": self.by_warps,
            "blocks": self.by_blocks,
            "registers": self.by_registers,
            "shared memory": self.by_shared_memory,
        }
        return tuple(name for name, blocks in named.items() if blocks == self.blocks)


def occupancy(
    sm: Multiprocessor, *, threads_per_block: int, registers_per_thread: int, shared_bytes_per_block: int
) -> Occupancy:
    """Theoretical occupancy: blocks that fit on an SM together.

    Formula:  min(max_warps // warps, max_blocks, partitions * (registers / partitions // registers per warp) //
              warps, shared_bytes // (shared bytes per block + reserved)), with registers per warp rounded up to the
              allocation unit
    Assumes:  the SM's L1 gives way to as much shared memory as it can; shared memory is not rounded (the driver
              rounds to a small unit of its own)
    Raises:   ValueError if the block breaks a limit, or if not even one fits
    Counted:  simulate.inner_loop.block_scheduler.resident_blocks
    """
    checks.count(threads_per_block=threads_per_block, registers_per_thread=registers_per_thread)
    checks.count(at_least=0, shared_bytes_per_block=shared_bytes_per_block)
    _at_most(threads_per_block=threads_per_block, limit=MAX_THREADS_PER_BLOCK)
    _at_most(registers_per_thread=registers_per_thread, limit=sm.max_registers_per_thread)
    _at_most(shared_bytes_per_block=shared_bytes_per_block, limit=sm.shared_bytes - sm.reserved_shared_bytes_per_block)
    warps = -(-threads_per_block // THREADS_PER_WARP)
    found = Occupancy(
        warps_per_block=warps,
        max_warps=sm.max_warps,
        by_warps=sm.max_warps // warps,
        by_blocks=sm.max_blocks,
        by_registers=_warps_by_registers(sm, registers_per_thread) // warps,
        by_shared_memory=sm.shared_bytes // max(1, shared_bytes_per_block + sm.reserved_shared_bytes_per_block),
    )
    if found.blocks == 0:
        raise ValueError(
            f"threads_per_block={threads_per_block} with registers_per_thread={registers_per_thread} needs {warps}"
            f" warps at once and an SM has registers for {_warps_by_registers(sm, registers_per_thread)}; use smaller"
            " blocks or fewer registers"
        )
    return found


def _warps_by_registers(sm: Multiprocessor, registers_per_thread: int) -> int:
    """Warps whose registers fit: a warp takes whole units, and all of them from one partition."""
    per_warp = -(-registers_per_thread * THREADS_PER_WARP // sm.register_unit) * sm.register_unit
    return sm.register_partitions * (sm.registers // sm.register_partitions // per_warp)


def _at_most(*, limit: int, **values: int) -> None:
    for name, value in values.items():
        if value > limit:
            raise ValueError(f"{name}={value} must be at most {limit}")


def grid_size(*, rows: int, columns: int, block_rows: int, block_columns: int) -> int:
    """Blocks in a grid that covers a matrix, those that reach over its edges included.

    Formula:  ceil(rows / block_rows) * ceil(columns / block_columns)
    Units:    block_rows and block_columns in elements that a block computes: its threads, where each computes one
    Source:   NVIDIA, CUDA C++ Programming Guide, 2025 (thread hierarchy)
    Counted:  tests.inner_loop.test_occupancy.test_a_grid_has_a_block_for_every_element_and_none_without

    >>> grid_size(rows=1000, columns=600, block_rows=16, block_columns=32)
    1197
    """
    checks.count(rows=rows, columns=columns, block_rows=block_rows, block_columns=block_columns)
    return -(-rows // block_rows) * -(-columns // block_columns)


@dataclass(frozen=True, slots=True, kw_only=True)
class Waves:
    """A grid on a device whose multiprocessors take `places` blocks at a time."""

    grid_blocks: int
    places: int

    @property
    def count(self) -> int:
        """Waves, the last one included even if it is nearly empty."""
        return -(-self.grid_blocks // self.places)

    @property
    def tail_blocks(self) -> int:
        """Blocks in the last wave."""
        return self.grid_blocks - (self.count - 1) * self.places

    @property
    def efficiency(self) -> float:
        """Blocks run over places offered until the last wave has ended."""
        return self.grid_blocks / (self.count * self.places)


def waves(*, grid_blocks: int, num_sms: int, blocks_per_sm: int) -> Waves:
    """How a grid is cut into waves.

    Formula:  count = ceil(grid_blocks / (num_sms * blocks_per_sm))
    Assumes:  all blocks take the same time, whoever runs beside them; otherwise waves blur, and the tail with them
    Counted:  simulate.inner_loop.block_scheduler.play

    >>> [waves(grid_blocks=blocks, num_sms=108, blocks_per_sm=1).efficiency for blocks in (108, 109, 216)]
    [1.0, 0.5046296296296297, 1.0]
    """
    checks.count(grid_blocks=grid_blocks, num_sms=num_sms, blocks_per_sm=blocks_per_sm)
    return Waves(grid_blocks=grid_blocks, places=num_sms * blocks_per_sm)
