"""Measured collectives: NCCL on others' nodes, rows that no table has seen, what the ring's bound says, and played
latencies.
"""

from statistics import median

import pytest

from threeloops.facts.kernel_times import EXCHANGES, kernel_table, timed_parts
from threeloops.operations.expected_times import errors
from threeloops.simulate.training_loop.collectives import simulated
from threeloops.training_loop.network.collectives import bus_factor
from threeloops.training_loop.network.measured_collectives import (
    collective_expected,
    expected_collective,
    step_latency_s,
)

LARGE_BYTES = 1e6


@pytest.mark.parametrize("op", EXCHANGES)
def test_large_exchanges_that_no_table_has_seen(op: str) -> None:
    off = []
    for part in timed_parts():
        table = kernel_table(part, op, "bf16")
        for (ranks, size_bytes), took_s in table.kept_back:
            if size_bytes > LARGE_BYTES:
                sizes = {"ranks": ranks, "size_bytes": size_bytes}
                off.append(abs(collective_expected(table, sizes).seconds / took_s - 1))
    assert len(off) > 20
    assert median(off) <= 0.10


@pytest.mark.parametrize("part", timed_parts())
@pytest.mark.parametrize("op", EXCHANGES)
def test_all_sizes_that_no_table_has_seen(part: str, op: str) -> None:
    table = kernel_table(part, op, "bf16")
    assert errors(table, table.kept_back, collective_expected).median <= 0.10


@pytest.mark.parametrize("part", timed_parts())
def test_a_small_all_reduce_is_start_up_alone(part: str) -> None:
    """A thousand times the bytes, and not twice the time."""
    small, larger = (expected_collective(part, op="all_reduce", ranks=2, size_bytes=size) for size in (512, 16_384))
    assert larger.seconds < 2 * small.seconds


def test_an_h100_node_s_published_bus_bandwidth() -> None:
    """NVIDIA's node of 8 H100 is known for some 480 GB/s of bus bandwidth at large sizes; the table's largest is half a
    gigabyte.
    """
    size = 512 * 2**20
    found = expected_collective("h100-sxm5", op="all_reduce", ranks=8, size_bytes=size)
    busbw = bus_factor(op="all_reduce", ranks=8) * size / found.seconds
    assert 400e9 < busbw < 490e9


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"op": "broadcast", "ranks": 8}, "op='broadcast' is not known"),
        ({"op": "all_reduce", "ranks": 16}, "ranks=16: all_reduce was measured on h100-sxm5 for ranks 2, 4, 8"),
    ],
)
def test_what_was_not_measured_is_refused(given: dict[str, object], told: str) -> None:
    with pytest.raises(ValueError, match=told.replace("'", ".")):
        expected_collective("h100-sxm5", size_bytes=1e6, **given)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("op", "algorithm", "ranks"),
    [
        ("all_reduce", "ring", 6),
        ("all_gather", "ring", 5),
        ("all_reduce", "halving-doubling", 8),
        ("broadcast", "binomial-tree", 7),
    ],
)
def test_a_played_latency_is_found_again_in_two_timings(op: str, algorithm: str, ranks: int) -> None:
    few, many = (simulated(op=op, algorithm=algorithm, ranks=ranks, elements=elements) for elements in (840, 2520))
    few_s, many_s = (run.seconds(alpha_s=3.7e-6, bytes_per_s_one_way=2e9) for run in (few, many))
    found = step_latency_s(
        op=op, algorithm=algorithm, ranks=ranks, few_bytes=840, few_s=few_s, many_bytes=2520, many_s=many_s
    )
    assert found == pytest.approx(3.7e-6)


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"ranks": 1}, "ranks=1 must be a whole number of at least 2"),
        ({"many_bytes": 1e6}, r"few_bytes=1e\+06 must be less than many_bytes=1e\+06"),
        ({"many_s": 0.031}, "many_s=0.031 must lie between few_s=0.01 and 0.03, where nothing is left"),
        ({"many_s": 0.009}, "many_s=0.009 must lie between few_s=0.01 and 0.03"),
    ],
)
def test_two_timings_without_a_latency_are_refused(given: dict[str, float], told: str) -> None:
    timings = {"ranks": 4, "few_bytes": 1e6, "few_s": 0.01, "many_bytes": 3e6, "many_s": 0.02}
    with pytest.raises(ValueError, match=told):
        step_latency_s(op="all_reduce", algorithm="ring", **timings | given)  # type: ignore[arg-type]
