"""Scans of recurrent layers: their bytes against arrays of their shapes, and expected times against rows that no table
has seen.
"""

from statistics import median

import numpy as np
import pytest

from threeloops.facts.kernel_times import (
    DELTA_SCAN,
    SIZES,
    STATE_SCAN,
    KernelTable,
    kernel_table,
    kernel_times,
    timed_parts,
)
from threeloops.operations.expected_times import expected_scan, scan_timed_on
from threeloops.operations.scan_kernels import delta_scan, state_scan

MAMBA = {"num_heads": 12, "head_dim": 64, "state_dim": 128, "groups": 3, "chunk": 128}
TABLES = [
    table for part in timed_parts() for table in kernel_times(part).tables if table.family in (DELTA_SCAN, STATE_SCAN)
]


def array_bytes(*shapes: tuple[int, ...], dtype: type) -> int:
    return sum(np.empty(shape, dtype).nbytes for shape in shapes)


def test_bytes_are_those_of_its_tensors() -> None:
    batch, tokens = 3, 700
    heads = {"key_heads": 4, "value_heads": 8, "key_head_dim": 128, "value_head_dim": 64}
    rows = (batch, tokens)
    streams = [(*rows, 4, 128), (*rows, 4, 128), (*rows, 8, 64), (*rows, 8, 64)]  # queries, keys, values, output
    state = array_bytes((batch, 8, 128, 64), dtype=np.float32)
    work = delta_scan(batch=batch, tokens=tokens, **heads)
    assert work.moved_bytes == array_bytes(*streams, dtype=np.float16) + state
    streams = [(*rows, 12, 64), (*rows, 12, 64), (*rows, 3, 128), (*rows, 3, 128)]  # input, output, both vectors
    state = array_bytes((batch, 12, 64, 128), dtype=np.float32)
    work = state_scan(batch=batch, tokens=tokens, **MAMBA)
    assert work.moved_bytes == array_bytes(*streams, dtype=np.float16) + state


def test_a_last_chunk_is_filled_up() -> None:
    one, most, next_one = (state_scan(batch=1, tokens=tokens, **MAMBA).flops for tokens in (1, 128, 129))
    assert one == most
    assert next_one == 2 * one


@pytest.mark.parametrize("table", TABLES, ids=lambda table: f"{table.part}-{table.family}")
def test_scans_that_no_table_has_seen(table: KernelTable) -> None:
    off = [
        expected_scan(table.part, family=table.family, **dict(zip(SIZES[table.family], sizes, strict=True))).seconds
        / took_s
        - 1
        for sizes, took_s in table.kept_back
    ]
    assert median(map(abs, off)) <= 0.10
    assert abs(median(off)) <= 0.05


def test_where_no_scan_was_timed_another_parts_share_of_the_roof_stands_in() -> None:
    assert scan_timed_on("h100-sxm5", family=STATE_SCAN) == "b200-hgx"
    assert scan_timed_on("a100-sxm4-80gb", family=DELTA_SCAN) == "h100-sxm5"
    assert scan_timed_on("mi300x", family=DELTA_SCAN) == "h100-sxm5"
    one, other = (
        expected_scan(part, family=STATE_SCAN, batch=6, tokens=8192, **MAMBA) for part in ("b200-hgx", "h100-sxm5")
    )
    assert one.table == other.table == kernel_table("b200-hgx", STATE_SCAN, "bf16")
    shortest = one.table.shortest_s
    assert other.seconds / one.seconds == pytest.approx((other.bound_s + shortest) / (one.bound_s + shortest))


def test_what_is_no_scan_is_refused() -> None:
    with pytest.raises(ValueError, match="family='prefill'"):
        expected_scan("b200-hgx", family="prefill", batch=1, tokens=8)
    with pytest.raises(ValueError, match="scanned=12: state_scan was measured on b200-hgx for scanned from 64 on"):
        expected_scan("b200-hgx", family=STATE_SCAN, batch=1, tokens=8192, **MAMBA)
