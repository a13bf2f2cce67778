"""Measured collectives: NCCL on others' nodes, rows that no table has seen, and what the ring's bound says."""

from statistics import median

import pytest

from threeloops.facts.kernel_times import EXCHANGES, kernel_table, timed_parts
from threeloops.operations.expected_times import errors
from threeloops.training_loop.network.collectives import bus_factor
from threeloops.training_loop.network.measured_collectives import collective_expected, expected_collective

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
