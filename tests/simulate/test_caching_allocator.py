"""The caching allocator: formula against blocks that are really cut and filed, and the rules that PyTorch
documents.
"""

import itertools
import random

import pytest

from threeloops.inner_loop import allocator_segments
from threeloops.simulate.inner_loop.caching_allocator import CachingAllocator, OutOfMemoryError
from threeloops.units import KiB, MiB


def device(capacity=10**12):
    return CachingAllocator(capacity_bytes=capacity)


def filled(sizes):
    made = device()
    return made, [made.allocate(size) for size in sizes]


@pytest.mark.parametrize("seed", range(40))
def test_tensors_of_one_size_reserve_what_the_formula_says(seed):
    rng = random.Random(seed)
    size = rng.choice((rng.randrange(1, 1 * MiB), rng.randrange(1 * MiB, 10 * MiB), rng.randrange(10 * MiB, 70 * MiB)))
    number = rng.randrange(1, 120)
    made, _ = filled([size] * number)
    assert made.reserved_bytes == allocator_segments.reserved_bytes(num_tensors=number, requested_bytes=size)


# "Small requests are packed into 2MB buffers ... requests between 1MB and 10MB will allocate and split a 20MB block"
# (CUDACachingAllocator.cpp); kRoundLarge is 2 MiB, kMinBlockSize 512.
@pytest.mark.parametrize(
    ("asked", "segment"),
    [
        (1, 2 * MiB),
        (1 * MiB, 2 * MiB),
        (1 * MiB + 1, 20 * MiB),
        (10 * MiB - 512, 20 * MiB),
        (10 * MiB, 10 * MiB),
        (10 * MiB + 1, 12 * MiB),
        (33 * MiB, 34 * MiB),
    ],
)
def test_the_first_request_takes_a_segment_of_the_documented_size(asked, segment):
    made, _ = filled([asked])
    assert made.reserved_bytes == segment == allocator_segments.segment_bytes(requested_bytes=asked)


@pytest.mark.parametrize(("asked", "held"), [(1, 512), (512, 512), (513, 1024), (100_000, 100_352)])
def test_requests_are_rounded_up_to_512(asked, held):
    made, _ = filled([asked])
    assert made.allocated_bytes == held == allocator_segments.block_bytes(requested_bytes=asked)


def test_what_is_not_worth_cutting_off_stays_with_the_block():
    made, _ = filled([19 * MiB])  # a segment of its own, of 20 MiB
    assert (made.allocated_bytes, made.largest_free_bytes) == (20 * MiB, 0)
    made, _ = filled([18 * MiB + 2 * MiB - 512 * KiB])
    assert made.allocated_bytes == 20 * MiB


@pytest.mark.parametrize("seed", range(20))
def test_nothing_overlaps_nothing_is_lost_and_freed_neighbours_merge(seed):
    rng, made, living = random.Random(seed), device(), []
    for _ in range(300):
        if living and rng.random() < 0.5:
            made.free(living.pop(rng.randrange(len(living))))
        else:
            living.append(made.allocate(int(2 ** rng.uniform(4, 25))))
        for segment in made.segments:
            assert sum(block.size for block in segment.blocks) == segment.size
            ends = [(block.start, block.start + block.size) for block in segment.blocks]
            assert all(one[1] == two[0] for one, two in itertools.pairwise(ends))
            assert not any(not one.used and not two.used for one, two in itertools.pairwise(segment.blocks))
        assert made.allocated_bytes == sum(block.size for block in living)
    for block in living:
        made.free(block)
    reserved = made.reserved_bytes
    assert (made.allocated_bytes, all(len(segment.blocks) == 1 for segment in made.segments)) == (0, True)
    made.empty_cache()
    assert (made.reserved_bytes, made.peak_reserved_bytes) == (0, reserved)


def test_a_freed_block_is_found_again_without_asking_the_device():
    made, (block, _) = filled([30 * MiB, 40 * MiB])
    made.free(block)
    again = made.allocate(29 * MiB)
    assert again is block
    assert made.device_allocations == 2


def test_the_smallest_block_that_fits_is_taken():
    made, blocks = filled([60 * MiB, 30 * MiB, 40 * MiB])
    for block in blocks:
        made.free(block)
    assert made.allocate(29 * MiB) is blocks[1]


def test_emptying_the_cache_costs_requests_and_saves_no_peak():
    counts = []
    for emptied in (False, True):
        made = device()
        for _ in range(30):
            blocks = [made.allocate(size * MiB) for size in (48, 24, 96)]
            for block in blocks:
                made.free(block)
            if emptied:
                made.empty_cache()
        counts.append((made.device_allocations, made.peak_allocated_bytes, made.peak_reserved_bytes))
    assert [count[0] for count in counts] == [3, 90]
    assert counts[0][1:] == counts[1][1:]


def test_a_segment_with_one_living_tensor_cannot_be_given_back():
    made, (_, gone) = filled([2 * MiB, 9 * MiB])
    made.free(gone)
    made.empty_cache()
    assert made.reserved_bytes == 20 * MiB


def test_out_of_memory_gives_back_what_it_can_first_and_then_says_what_is_free():
    made = device(capacity=50 * MiB)
    made.free(made.allocate(40 * MiB))
    kept = made.allocate(44 * MiB)  # fits only once the first segment has gone back
    assert (made.device_frees, made.reserved_bytes) == (1, 44 * MiB)
    made.free(kept)
    made.allocate(9 * MiB)
    with pytest.raises(
        OutOfMemoryError,
        match=r"asked for 48.0 MiB; 35.0 MiB are reserved and not used, the largest free piece is 35.0 MiB",
    ):
        made.allocate(48 * MiB)


def test_refusals():
    with pytest.raises(ValueError, match="requested_bytes=0"):
        device().allocate(0)
    with pytest.raises(ValueError, match="requested_bytes"):
        allocator_segments.block_bytes(requested_bytes=0)
    with pytest.raises(ValueError, match="num_tensors"):
        allocator_segments.reserved_bytes(num_tensors=0, requested_bytes=1)
