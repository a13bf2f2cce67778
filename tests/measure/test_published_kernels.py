"""Published kernels: tables made of rows whose truth is known, and what is kept back."""

from itertools import product
from pathlib import Path

import pytest

from threeloops.facts import kernel_times
from threeloops.facts.kernel_times import MATMUL, TimedRow
from threeloops.measure import published_kernels, published_rows
from threeloops.measure.published_kernels import kept_back, made, packed
from threeloops.operations.expected_times import kernel_work

AXES = {"m": (1, 16, 256, 4096), "n": (256, 1024, 4096), "k": (256, 1024, 4096)}
PEAK, BANDWIDTH, SHORTEST_S, TRUE = 1e15, 3e12, 2e-6, 1.5
GRID = list(product((1, 3, 16, 20, 200, 256, 3000, 4096), (256, 500, 1024, 4096), (256, 900, 1024, 4096)))


def bound_s(sizes: dict[str, float]) -> float:
    work = kernel_work(MATMUL, sizes, "bf16")
    return max(work.flops / PEAK, work.moved_bytes / BANDWIDTH)


def took(sizes: tuple[int, ...], stretch: float = TRUE) -> TimedRow:
    return sizes, stretch * (bound_s(dict(zip("mnk", sizes, strict=True))) + SHORTEST_S)


def cells(rows: list[TimedRow]) -> list[list[float | None]]:
    return made(rows, family=MATMUL, axes=AXES, bound_s=bound_s)["percents"]  # type: ignore[no-any-return]


def test_cells_hold_the_stretch_that_the_rows_have() -> None:
    """The shortest is read from the rows as well, so that the ratio is known to the share of it that this is off."""
    found = made([took(sizes) for sizes in GRID], family=MATMUL, axes=AXES, bound_s=bound_s)
    large = found["percents"][-1][-1]  # m and n at their last: the shortest is nothing beside the bound
    assert large == pytest.approx(100 * TRUE, rel=0.02)


def test_a_row_that_is_kept_back_changes_no_cell() -> None:
    rows = [took(sizes) for sizes in GRID]
    spoilt = [took(sizes, stretch=99) if kept_back(sizes) else took(sizes) for sizes in GRID]
    assert sum(map(kept_back, GRID)) > 10
    assert cells(rows) == cells(spoilt)


def test_a_row_in_use_does() -> None:
    rows = [took(sizes) for sizes in GRID]
    spoilt = [took(sizes) if kept_back(sizes) else took(sizes, stretch=99) for sizes in GRID]
    assert cells(rows) != cells(spoilt)


def test_rows_outside_the_axes_are_in_no_cell() -> None:
    rows = [took(sizes) for sizes in GRID]
    assert cells(rows) == cells([*rows, *(took((m, 32, 64), stretch=99) for m in range(1, 50))])


@pytest.mark.parametrize("part", kernel_times.timed_parts())
def test_what_stands_in_the_files_as_kept_back_is(part: str) -> None:
    for table in kernel_times.kernel_times(part).tables:
        assert table.kept_back
        assert all(kept_back(sizes) for sizes, _ in table.kept_back)


def test_the_files_are_as_the_script_would_write_them() -> None:
    made_of = {device.part: as_a_document(device.part) for device in published_kernels.DEVICES}
    files = {path.name: path.read_text(encoding="utf-8") for path in published_kernels.INTO.iterdir()}
    assert packed(made_of) == files


def as_a_document(part: str) -> dict[str, object]:
    """What the script had in hand before it packed a device's tables, from what is read of them."""
    told = kernel_times.kernel_times(part)
    tables = []
    for table in told.tables:
        width = len([*table.axes.values()][-1])
        cells = [None if one is None else round(100 * one) for one in table.stretches]
        lines = [cells[first : first + width] for first in range(0, len(cells), width)]
        names = ("family", "format", "kernels", "engine", "peak_flops_per_s", "rate_bytes_per_s", "rows", "shortest_s")
        tables.append(
            {name: getattr(table, name) for name in names}
            | {"axes": {name: list(steps) for name, steps in table.axes.items()}}
            | {"percents": [[] if line[0] is None else line for line in lines]}
            | {"kept_back": [[*sizes, seconds] for sizes, seconds in table.kept_back]}
            | {name: [list(one) for one in getattr(table, name)] for name in ("fifth", "of_roof")}
        )
    return {name: getattr(told, name) for name in ("device", "source", "licence", "timed")} | {"tables": tables}


def test_a_clone_is_read_where_a_reader_of_such_files_is_installed(tmp_path: Path) -> None:
    pyarrow = pytest.importorskip("pyarrow", reason="reading the published files needs pyarrow: pip install pyarrow")
    from pyarrow import parquet

    device = published_kernels.DEVICES[1]
    file = tmp_path / published_rows.SYSTEMS / device.folder / f"gemm/{device.engine}/gemm_perf.parquet"
    file.parent.mkdir(parents=True)
    parquet.write_table(pyarrow.Table.from_pylist([{"m": 1, "latency": 0.5}]), file)
    assert published_rows.read(tmp_path, device, f"gemm/{device.engine}/gemm_perf.parquet") == [
        {"m": 1, "latency": 0.5}
    ]
