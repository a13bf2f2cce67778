"""Processors: peaks against what makers print, and cycles and misses against machines that know no formula."""

import math
import re

import pytest
from tests.each import each

from threeloops.facts import hardware
from threeloops.foundations import caches, instruction_pipelines, processor_peak
from threeloops.simulate.foundations import instruction_pipeline, processor_cache

# --- peaks ---


def test_published_peaks() -> None:
    # AMD sold the EPYC 7742 with 2.3 TFLOP/s in FP64 (64 cores, two 256-bit FMA units, 2.25 GHz); 40 cores of a Xeon
    # 8380 with two 512-bit FMA units make 2.94 TFLOP/s at 2.3 GHz.
    zen_2 = processor_peak.flops_per_cycle(vector_bits=256, element_bits=64, fma_units=2)
    assert processor_peak.peak_flops_per_s(cores=64, flops_per_cycle_per_core=zen_2, clock_hz=2.25e9) == pytest.approx(
        2.3e12, rel=0.005
    )
    ice_lake = processor_peak.flops_per_cycle(vector_bits=512, element_bits=64, fma_units=2)
    assert processor_peak.peak_flops_per_s(
        cores=40, flops_per_cycle_per_core=ice_lake, clock_hz=2.3e9
    ) == pytest.approx(2.94e12, rel=0.005)


def test_published_memory_rates() -> None:
    # Eight channels of DDR4-3200: 204.8 GB/s, as printed for EPYC 7002 and 7003.
    assert processor_peak.memory_bytes_per_s(channels=8, transfers_per_s=3200e6, bytes_per_transfer=8) == pytest.approx(
        204.8e9
    )


def test_a_channel_fills_bytes_transfer_by_transfer() -> None:
    received = bytearray()
    for _transfer in range(500):
        for _channel in range(3):
            received += bytes(8)
    rate = processor_peak.memory_bytes_per_s(channels=3, transfers_per_s=500, bytes_per_transfer=8)
    assert rate == len(received)


CPUS = [part for part in map(hardware.part, hardware.part_keys()) if part.family == "cpus"]


@pytest.mark.parametrize("part", CPUS, ids=[part.key for part in CPUS])
def test_every_processor_of_the_catalogue_agrees_with_itself(part: hardware.Part) -> None:
    for dtype in part.peaks:
        per_cycle = part[f"flops_per_cycle_per_core_{dtype}"]
        assert part.peak_flops_per_s(dtype) == pytest.approx(
            processor_peak.peak_flops_per_s(
                cores=int(part["cores"]), flops_per_cycle_per_core=per_cycle, clock_hz=part["base_clock_hz"]
            ),
            rel=1e-3,
        )
    if "memory_channels" in part.facts:
        rate = processor_peak.memory_bytes_per_s(
            channels=int(part["memory_channels"]), transfers_per_s=part["memory_transfers_per_s"], bytes_per_transfer=8
        )
        assert part["memory_bytes_per_s"] == pytest.approx(rate)


def test_a_core_that_starts_as_much_as_it_can_reaches_its_peak() -> None:
    # Independent FMAs on 4 lanes: 2 × 4 FLOP each. Over many, the simulated core comes within its latency of the
    # rate.
    operations, units, lanes = 4000, 2, 4
    ran = instruction_pipeline.issue([[()] * operations], latency_cycles=4, units=units, window=16)
    per_cycle = operations * lanes * 2 / ran.cycles
    peak = processor_peak.flops_per_cycle(vector_bits=256, element_bits=64, fma_units=units)
    assert 0.99 * peak < per_cycle <= peak


# --- stages and chains ---


@pytest.mark.parametrize(
    ("instructions", "stages", "width"), [(1, 5, 1), (10, 5, 1), (10, 5, 2), (11, 5, 2), (7, 14, 4), (100, 3, 6)]
)
def test_stages_overlap_as_predicted(instructions: int, stages: int, width: int) -> None:
    places = instruction_pipeline.flow(instructions=instructions, stages=stages, width=width)
    assert max(place.cycle for place in places) + 1 == instruction_pipelines.pipelined_cycles(
        instructions=instructions, stages=stages, width=width
    )
    assert len(places) == instructions * stages  # everyone passed every stage once


@each(
    ("latency", "units", "operations", "chains"),
    [
        (latency, units, operations, chains)
        for latency in (1, 3, 4, 5)
        for units in (1, 2, 3)
        for operations, chains in (*((72, chains) for chains in (1, 2, 3, 4, 6, 8, 9, 12, 18)), (35, 35), (49, 7))
    ],
)
def test_chains_take_as_many_cycles_as_predicted(latency: int, units: int, operations: int, chains: int) -> None:
    ran = instruction_pipeline.issue(
        [instruction_pipeline.chain(operations, chains=chains)], latency_cycles=latency, units=units, window=operations
    )
    predicted = instruction_pipelines.chained_cycles(
        operations=operations, chains=chains, latency_cycles=latency, units=units
    )
    assert ran.cycles == predicted


@pytest.mark.parametrize("latency", [1, 3, 4])
@pytest.mark.parametrize("units", [1, 2, 3])
def test_one_chain_too_few_leaves_a_unit_without_work(latency: int, units: int) -> None:
    """Played with more and more chains, until every cycle but those of the last results starts all it can."""
    chains = 0
    while True:
        chains += 1
        operations = 60 * chains
        program = instruction_pipeline.chain(operations, chains=chains)
        ran = instruction_pipeline.issue([program], latency_cycles=latency, units=units, window=operations)
        if ran.cycles - latency + 1 == math.ceil(operations / units):
            break
    assert instruction_pipelines.chains_to_fill(latency_cycles=latency, units=units) == chains


def test_order_costs_what_a_window_gives_back() -> None:
    program = instruction_pipeline.one_after_another(32, chains=4)
    in_order = instruction_pipeline.issue([program], latency_cycles=4, units=1, window=1).cycles
    reordered = instruction_pipeline.issue([program], latency_cycles=4, units=1, window=32).cycles
    dealt = instruction_pipelines.chained_cycles(operations=32, chains=4, latency_cycles=4, units=1)
    assert reordered == dealt == 35
    assert in_order > 3 * reordered


def test_a_second_thread_fills_the_gaps_of_the_first() -> None:
    one = instruction_pipeline.issue([instruction_pipeline.chain(40)], latency_cycles=4, units=1, window=1).cycles
    two = instruction_pipeline.issue([instruction_pipeline.chain(40)] * 2, latency_cycles=4, units=1, window=1).cycles
    assert one == 160
    assert two <= one + 1  # twice the work


def test_a_second_thread_adds_nothing_to_a_full_unit() -> None:
    full = [()] * 100
    one = instruction_pipeline.issue([full], latency_cycles=4, units=1, window=4).cycles
    two = instruction_pipeline.issue([full, full], latency_cycles=4, units=1, window=4).cycles
    assert (one, two) == (103, 203)


# --- caches ---


@each(
    ("stride", "lines", "sets", "ways"),
    [
        (stride, lines, sets, ways)
        for stride in (1, 2, 3, 8, 16, 24)
        for lines in (1, 15, 16, 17, 60, 64, 65, 80, 200)
        for sets, ways in ((1, 64), (16, 4), (32, 1))
    ],
)
def test_misses_of_a_walk_are_as_predicted(stride: int, lines: int, sets: int, ways: int) -> None:
    cache = processor_cache.Cache(sets=sets, ways=ways, line_bytes=64)
    for address in processor_cache.walk(lines=lines, stride_lines=stride, passes=5, line_bytes=64):
        cache.read(address)
    assert cache.misses == caches.walk_misses(lines=lines, stride_lines=stride, passes=5, sets=sets, ways=ways)
    assert cache.accesses == 5 * lines


@pytest.mark.parametrize(("stride", "sets"), [(1, 16), (2, 16), (3, 16), (8, 16), (16, 16), (24, 36), (7, 1)])
def test_a_walk_turns_to_as_many_sets_as_keep_a_line_of_it(stride: int, sets: int) -> None:
    """Each set has room for one line, the last that came: asked for backwards, only these are found."""
    cache = processor_cache.Cache(sets=sets, ways=1, line_bytes=64)
    addresses = list(processor_cache.walk(lines=3 * sets, stride_lines=stride, passes=1, line_bytes=64))
    for address in addresses:
        cache.read(address)
    kept = sum(cache.read(address) for address in reversed(addresses))
    assert caches.sets_touched(stride_lines=stride, sets=sets) == kept


@pytest.mark.parametrize(("sets", "ways", "line"), [(1, 1, 32), (4, 3, 64), (16, 2, 128)])
def test_a_cache_holds_the_longest_stretch_that_is_found_again(sets: int, ways: int, line: int) -> None:
    def missed_again(length: int) -> int:
        cache = processor_cache.Cache(sets=sets, ways=ways, line_bytes=line)
        return processor_cache.read_through([cache], [*range(length), *range(length)])[0] - length

    held = caches.size_bytes(sets=sets, ways=ways, line_bytes=line)
    assert missed_again(held) == 0
    assert missed_again(held + line) > line


def test_bytes_of_one_line_share_a_miss() -> None:
    cache = processor_cache.Cache(sets=8, ways=2, line_bytes=64)
    hits = sum(cache.read(address) for address in range(0, 1024, 4))
    assert (cache.misses, hits) == (16, 256 - 16)


def test_levels_pass_on_what_they_do_not_have() -> None:
    # A walk of 32 lines, 8 times: too long for 16 lines, short enough for 64.
    levels = [
        processor_cache.Cache(sets=4, ways=4, line_bytes=64),
        processor_cache.Cache(sets=8, ways=8, line_bytes=64),
    ]
    passed = processor_cache.read_through(
        levels, processor_cache.walk(lines=32, stride_lines=1, passes=8, line_bytes=64)
    )
    assert passed == [8 * 32 * 64, 32 * 64]


def test_a_step_of_a_whole_way_is_the_worst_step() -> None:
    # 48 KiB in 64 sets of 12: sixteen lines 4 KiB apart share one set, although they would fill one part in 48 of the
    # cache.
    assert caches.size_bytes(sets=64, ways=12, line_bytes=64) == 48 * 1024
    assert caches.walk_misses(lines=16, stride_lines=64, passes=100, sets=64, ways=12) == 1600
    assert caches.walk_misses(lines=16, stride_lines=65, passes=100, sets=64, ways=12) == 16


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: processor_peak.flops_per_cycle(vector_bits=256, element_bits=48, fma_units=2),
            "element_bits=48 must divide vector_bits=256",
        ),
        (
            lambda: processor_peak.peak_flops_per_s(cores=0, flops_per_cycle_per_core=16, clock_hz=1e9),
            "cores=0 must be a whole number of at least 1",
        ),
        (
            lambda: instruction_pipelines.chained_cycles(operations=10, chains=3, latency_cycles=4, units=1),
            "chains=3 must divide operations=10",
        ),
        (
            lambda: caches.walk_misses(lines=0, stride_lines=1, passes=1, sets=1, ways=1),
            "lines=0 must be a whole number of at least 1",
        ),
        (
            lambda: processor_peak.memory_bytes_per_s(channels=2, transfers_per_s=math.inf, bytes_per_transfer=8),
            "transfers_per_s=inf must be finite",
        ),
    ],
)
def test_impossible_machines_are_refused(call, message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        call()
