"""What an SM has, divided: the registers that a kernel may use if so many blocks are to fit, stages of shared memory,
and registers that copying warps leave to those that multiply.

>>> consumer_registers(registers=65536, producers=1, consumers=2, producer_registers=40)
232
"""

from threeloops import checks
from threeloops.facts.compute_capability import Multiprocessor
from threeloops.inner_loop.occupancy import THREADS_PER_WARP

WARP_GROUP = 128  # threads that change their share together
STEP, MOST = 8, 256  # registers per thread come in multiples of 8, up to 256


def consumer_registers(*, registers: int, producers: int, consumers: int, producer_registers: int) -> int:
    """Registers per thread that warp groups which multiply can have, when those that copy keep few.

    Formula:  min(256, (groups * launched - producers * producer_registers) / consumers, rounded down to a multiple
              of 8), with launched = registers / (128 * groups), rounded down to a multiple of 8
    Units:    registers of 32 bits: of the whole SM, and per thread; producers and consumers are warp groups of 128
              threads, groups are both together
    Assumes:  one block on the SM; it was launched with as many registers as fit, as many for each thread: only those
              are in the pool from which its warp groups take, so what rounding left over stays unused
    Raises:   ValueError where producers keep more than they were launched with
    Source:   NVIDIA, PTX ISA 9.0, setmaxnreg, 2025 (a pool of registers for each block); NVIDIA, Tilus,
              Script.setmaxnreg, documentation, 2026 (a multiple of 8 from 24 to 256, for whole warp groups); NVIDIA,
              CUTLASS, include/cutlass/gemm/kernel/sm90_gemm_tma_warpspecialized_cooperative.hpp, 2025 (40 and 232, or
              24 and 240)
    Counted:  drills.gpu_kernels.pipelines.CONSUMERS

    >>> consumer_registers(registers=65536, producers=1, consumers=2, producer_registers=24)
    240
    """
    checks.count(registers=registers, producers=producers, consumers=consumers, producer_registers=producer_registers)
    groups = producers + consumers
    launched = registers // (WARP_GROUP * groups) // STEP * STEP
    if producer_registers > launched:
        raise ValueError(
            f"producer_registers={producer_registers} are more than the {launched} with which each thread of"
            f" producers={producers} and consumers={consumers} starts; give them fewer"
        )
    return min(MOST, (groups * launched - producers * producer_registers) // consumers // STEP * STEP)


def registers_for_blocks(sm: Multiprocessor, *, blocks: int, threads_per_block: int) -> int:
    """The most registers per thread with which so many blocks live on an SM at a time.

    Formula:  (registers of a partition / warps that share it) rounded down to the allocation unit, over 32; at most
              what a thread may have
    Assumes:  warps spread evenly over the partitions; shared memory does not bind
    Raises:   ValueError where the warps or blocks of the SM do not suffice
    Source:   NVIDIA, CUDA C++ Best Practices Guide 12.9, section 11.1.1 (256 registers for a warp at a time)
    Counted:  simulate.inner_loop.block_scheduler.resident_blocks

    >>> from threeloops.facts import compute_capability, hardware
    >>> h100 = compute_capability.multiprocessor(hardware.part("h100-sxm5"))
    >>> registers_for_blocks(h100, blocks=3, threads_per_block=256)
    80
    """
    checks.count(blocks=blocks, threads_per_block=threads_per_block)
    warps = blocks * -(-threads_per_block // THREADS_PER_WARP)
    if warps > sm.max_warps or blocks > sm.max_blocks:
        raise ValueError(
            f"blocks={blocks} of threads_per_block={threads_per_block} are {warps} warps; an SM takes {sm.max_warps}"
            f" warps and {sm.max_blocks} blocks"
        )
    per_warp = sm.registers // sm.register_partitions // -(-warps // sm.register_partitions)
    return min(sm.max_registers_per_thread, per_warp // sm.register_unit * sm.register_unit // THREADS_PER_WARP)


def stages_for_blocks(sm: Multiprocessor, *, blocks: int, stage_bytes: int) -> int:
    """Stages of shared memory that each block can have, when so many blocks are to live on an SM.

    Formula:  floor((shared bytes of the SM / blocks - reserved bytes of a block) / bytes of a stage)
    Assumes:  registers and warps do not bind; the L1 gives way as far as it can
    Raises:   ValueError where not one stage fits
    Source:   NVIDIA, Ampere and Hopper Tuning Guides, 2025, sections on occupancy (shared memory of an SM) and on
              unified shared memory (1 KB of it for each block)
    Counted:  simulate.inner_loop.block_scheduler.resident_blocks

    >>> from threeloops.facts import compute_capability, hardware
    >>> h100 = compute_capability.multiprocessor(hardware.part("h100-sxm5"))
    >>> stages_for_blocks(h100, blocks=2, stage_bytes=32768)
    3
    """
    checks.count(blocks=blocks, stage_bytes=stage_bytes)
    found = (sm.shared_bytes // blocks - sm.reserved_shared_bytes_per_block) // stage_bytes
    if found < 1:
        raise ValueError(f"stage_bytes={stage_bytes} do not fit {blocks} times; an SM has {sm.shared_bytes:,} bytes")
    return found
