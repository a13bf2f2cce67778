"""Occupancy, grids, waves, coalescing and branches: published examples, a scheduler that admits blocks one by one,
warps that are played, and limits.
"""

import random
from dataclasses import replace

import numpy as np
import pytest

from threeloops.facts import compute_capability, hardware
from threeloops.facts.compute_capability import Multiprocessor
from threeloops.inner_loop import coalescing, occupancy
from threeloops.simulate.inner_loop import block_scheduler, simt

A100 = compute_capability.multiprocessor(hardware.part("a100-sxm4-80gb"))
H100 = compute_capability.multiprocessor(hardware.part("h100-sxm5"))
RTX_4090 = compute_capability.multiprocessor(hardware.part("rtx-4090"))
PARTS = {"A100": A100, "H100": H100, "RTX 4090": RTX_4090}
# The best practices guide's example speaks of compute capability 7.0: 64 warps, 65,536 registers; the other limits do
# not bind in it.
VOLTA = replace(A100, shared_bytes=98_304, reserved_shared_bytes_per_block=0)


def resident(sm, threads, registers, shared=0):
    return occupancy.occupancy(
        sm, threads_per_block=threads, registers_per_thread=registers, shared_bytes_per_block=shared
    )


def test_the_best_practices_guide():
    # "128-thread blocks using 37 registers per thread results in an occupancy of 75% with 12 active 128-thread
    # blocks", and "320-thread blocks using the same 37 registers per thread results in an occupancy of 63% because
    # only four 320-thread blocks can reside"
    assert (resident(VOLTA, 128, 37).blocks, resident(VOLTA, 128, 37).share) == (12, 0.75)
    assert (resident(VOLTA, 320, 37).blocks, resident(VOLTA, 320, 37).share) == (4, 0.625)
    # "to have 100% occupancy, each thread can use at most 32 registers"
    assert resident(VOLTA, 256, 32).share == 1
    assert resident(VOLTA, 256, 33).share < 1


def test_the_tuning_guides():
    # "the A100 GPU enables a single thread block to address up to 163 KB", H100 227 KB, compute capability 8.9 99 KB
    for sm, kib in ((A100, 163), (H100, 227), (RTX_4090, 99)):
        assert resident(sm, 128, 32, kib * 1024).blocks == 1
        with pytest.raises(ValueError, match=f"shared_bytes_per_block={kib * 1024 + 1} must be at most {kib * 1024}"):
            resident(sm, 128, 32, kib * 1024 + 1)


def test_the_reserved_kilobyte_counts():
    # A worked example that circulates divides 228 KB by 12 KB and admits 19 blocks.
    assert resident(H100, 32, 8, 12 * 1024).blocks == 17
    assert resident(replace(H100, reserved_shared_bytes_per_block=0), 32, 8, 12 * 1024).blocks == 19


@pytest.mark.parametrize("sm", PARTS.values(), ids=PARTS)
def test_a_scheduler_that_admits_blocks_one_by_one_agrees(sm):
    rng = random.Random(7)
    for _ in range(150):
        kernel = {
            "threads_per_block": rng.choice((32, 64, 96, 128, 160, 256, 320, 384, 512, 768, 1024)),
            "registers_per_thread": rng.randint(8, 64),
            "shared_bytes_per_block": rng.choice((0, 1024, 8192, 20_000, 49_152)),
        }
        assert occupancy.occupancy(sm, **kernel).blocks == block_scheduler.resident_blocks(sm, **kernel), kernel


def test_each_limit_binds_where_it_should():
    assert resident(H100, 1024, 32).limited_by == ("warps", "registers")
    assert resident(H100, 1024, 16).limited_by == ("warps",)
    assert resident(H100, 32, 16).limited_by == ("blocks",)
    assert resident(H100, 256, 100).limited_by == ("registers",)
    assert resident(H100, 256, 32, 60_000).limited_by == ("shared memory",)


def test_doubling_everything_an_sm_has_doubles_its_blocks():
    twice = replace(A100, max_warps=128, max_blocks=64, registers=131_072, shared_bytes=2 * A100.shared_bytes)
    for kernel in ((128, 37, 0), (256, 64, 9000), (1024, 40, 48_000)):
        one, two = resident(A100, *kernel), resident(twice, *kernel)
        assert two.by_warps == 2 * one.by_warps
        assert two.by_blocks == 2 * one.by_blocks
        assert two.blocks >= 2 * one.blocks


def test_refusals_of_occupancy():
    with pytest.raises(ValueError, match="threads_per_block=1025 must be at most 1024"):
        resident(H100, 1025, 32)
    with pytest.raises(ValueError, match="registers_per_thread=256 must be at most 255"):
        resident(H100, 32, 256)
    with pytest.raises(
        ValueError, match="needs 32 warps at once and an SM has registers for 28; use smaller blocks or fewer registers"
    ):
        resident(H100, 1024, 72)  # 72 x 1,024 = 73,728 registers
    assert resident(H100, 1024, 64).blocks == 1
    with pytest.raises(ValueError, match="register_partitions=3 must divide registers=65536"):
        replace(H100, register_partitions=3)
    with pytest.raises(ValueError, match=r"part='mi300x' is not known"):
        compute_capability.multiprocessor(hardware.part("mi300x"))


def test_every_limit_of_a_part_has_its_source():
    for part in ("a100-sxm4-40gb", "h200-sxm", "b200-hgx", "l4"):
        for name, fact in compute_capability.limits(part).items():
            assert fact.url.startswith("https://docs.nvidia.com/"), name
            assert len(fact.printed.split()) <= 8


def test_multiprocessors_of_one_capability_are_alike():
    assert compute_capability.multiprocessor(hardware.part("h200-sxm")) == H100
    assert isinstance(H100, Multiprocessor)


@pytest.mark.parametrize("grid_blocks", [1, 5, 6, 7, 12, 13, 100])
@pytest.mark.parametrize(("num_sms", "blocks_per_sm"), [(6, 1), (3, 2), (7, 3)])
def test_waves_are_what_the_scheduler_plays(grid_blocks, num_sms, blocks_per_sm):
    placed = block_scheduler.play(num_sms=num_sms, blocks_per_sm=blocks_per_sm, durations_s=[1.0] * grid_blocks)
    waves = occupancy.waves(grid_blocks=grid_blocks, num_sms=num_sms, blocks_per_sm=blocks_per_sm)
    ends = max(block.end_s for block in placed)
    assert waves.count == ends
    assert waves.tail_blocks == sum(block.end_s == ends for block in placed)
    assert waves.efficiency == pytest.approx(
        sum(block.end_s - block.start_s for block in placed) / (ends * waves.places)
    )


def test_blocks_spread_over_all_multiprocessors_before_any_gets_a_second():
    placed = block_scheduler.play(num_sms=4, blocks_per_sm=2, durations_s=[1.0] * 5)
    assert [block.sm for block in placed] == [0, 1, 2, 3, 0]


def test_one_block_more_than_fits_halves_the_efficiency():
    assert occupancy.waves(grid_blocks=132, num_sms=132, blocks_per_sm=1).efficiency == 1
    assert occupancy.waves(grid_blocks=133, num_sms=132, blocks_per_sm=1).efficiency == pytest.approx(0.5, abs=0.01)


def test_the_guide_on_aligned_and_misaligned_reads():
    # Best practices guide, 10.2.1.1 and 10.2.1.2: four coalesced 32-byte transactions; misaligned, "five 32-byte
    # segments will be requested"
    assert coalescing.sectors_per_request(stride_elements=1, bytes_per_element=4) == 4
    assert coalescing.sectors_per_request(stride_elements=1, bytes_per_element=4, first_byte=4) == 5
    # 10.2.1.4: "a stride of 2 results in a 50% of load/store efficiency"
    assert coalescing.used_share(stride_elements=2, bytes_per_element=4) == 0.5


def test_sectors_by_hand():
    for size in (1, 2, 4, 8, 16):
        for stride in range(40):
            for first in (0, size, 48, 1024 - size):
                sectors = {(first + lane * stride * size + byte) // 32 for lane in range(32) for byte in range(size)}
                asked = {"stride_elements": stride, "bytes_per_element": size, "first_byte": first}
                assert coalescing.sectors_per_request(**asked) == len(sectors)
                bytes_asked = len({lane * stride for lane in range(32)}) * size
                assert coalescing.used_share(**asked) == bytes_asked / (32 * len(sectors))


def test_banks_by_hand():
    for stride in range(1, 130):
        words = [lane * stride for lane in range(32)]
        assert coalescing.passes_per_request(stride_words=stride) == max(
            sum(word % 32 == bank for word in words) for bank in range(32)
        )
    assert coalescing.passes_per_request(stride_words=0) == 1


def test_refusals_of_coalescing():
    with pytest.raises(ValueError, match="bytes_per_element=3 must be 1, 2, 4, 8 or 16"):
        coalescing.sectors_per_request(stride_elements=1, bytes_per_element=3)
    with pytest.raises(ValueError, match="first_byte=2 must be a multiple of bytes_per_element=4"):
        coalescing.sectors_per_request(stride_elements=1, bytes_per_element=4, first_byte=2)
    with pytest.raises(ValueError, match="lanes=33 must be at most 32"):
        coalescing.sectors_per_request(stride_elements=1, bytes_per_element=4, lanes=33)
    assert coalescing.sectors_per_request(stride_elements=1, bytes_per_element=4, lanes=9) == 2


@pytest.mark.parametrize(
    ("rows", "columns", "block"), [(37, 50, (8, 16)), (64, 48, (16, 12)), (3, 90, (7, 9)), (1, 1, (5, 4))]
)
def test_a_grid_has_a_block_for_every_element_and_none_without(rows, columns, block):
    owners = {(row // block[0], column // block[1]) for row in range(rows) for column in range(columns)}
    size = {"rows": rows, "columns": columns, "block_columns": block[1]}
    assert occupancy.grid_size(**size, block_rows=block[0]) == len(owners)
    with pytest.raises(ValueError, match="block_rows=0 must be a whole number of at least 1"):
        occupancy.grid_size(**size, block_rows=0)


def parted(w, common, sides, x):
    """A kernel that issues `common` instructions in all lanes, then those of each side in the lanes that take it."""
    value = w.load(x, 0)
    for _ in range(common - 1):  # the load was the first
        value = w.add(value, 1.0)
    for side, instructions in enumerate(sides):
        with w.where(w.thread.x % len(sides) == side):
            for _ in range(instructions):
                value = w.add(value, 1.0)


@pytest.mark.parametrize(("warps", "common", "sides"), [(3, 4, (11, 6)), (2, 7, (5, 0, 9)), (5, 1, (2, 3, 4, 8))])
def test_sides_of_a_branch_are_issued_one_after_another(warps, common, sides):
    run = simt.launch(parted, common, sides, np.zeros(1, dtype=np.float32), grid=(warps,), block=(32,))
    assert coalescing.issued_instructions(warps=warps, common=common, sides=sides) == run.issued


def test_refusals_of_branches():
    assert coalescing.issued_instructions(warps=3, common=0, sides=[2, 1]) == 9
    with pytest.raises(ValueError, match="side=-1 must be a whole number of at least 0"):
        coalescing.issued_instructions(warps=1, common=1, sides=[2, -1])
    with pytest.raises(ValueError, match="warps=0"):
        coalescing.issued_instructions(warps=0, common=1, sides=[2, 1])
