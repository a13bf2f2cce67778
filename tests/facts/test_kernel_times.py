"""Kernel times: every table stands on the catalogue's rates, answers where it was measured and refuses elsewhere."""

from pathlib import Path

import pytest
from tests.each import each

from threeloops import dtypes
from threeloops.facts import hardware, kernel_times
from threeloops.facts.kernel_times import DECODE, EXCHANGES, PREFILL, KernelTable

LARGEST_FILE_BYTES = 60_000
TABLES = [table for part in kernel_times.timed_parts() for table in kernel_times.kernel_times(part).tables]


@each("table", {f"{table.part}-{table.family}-{table.format}": table for table in TABLES})
def test_a_table_was_made_with_the_rates_of_the_catalogue(table: KernelTable) -> None:
    part = hardware.part(table.part)
    if table.family in EXCHANGES:
        links = [value for name, value in part.facts.items() if name.endswith("link_bytes_per_s_one_way")]
        assert table.rate_bytes_per_s in [link.value for link in links]
        return
    assert table.rate_bytes_per_s == part["memory_bytes_per_s"]
    in_16_bits = table.family in (PREFILL, DECODE) or table.format == "mxfp4"
    peak = "bf16" if in_16_bits else dtypes.peak_format(table.format)
    assert table.peak_flops_per_s == part.peaks[peak].value


@each("table", {f"{table.part}-{table.family}-{table.format}": table for table in TABLES})
def test_a_cell_s_own_value_is_what_the_table_says_there(table: KernelTable) -> None:
    last = list(table.axes)[-1]
    first = {name: values[0] for name, values in table.axes.items()}
    row = table.stretches[: len(table.axes[last])]
    said = [table.stretch(**first | {last: value}) for value, known in zip(table.axes[last], row, strict=True) if known]
    assert said == pytest.approx([known for known in row if known])


@each("table", {f"{table.part}-{table.family}-{table.format}": table for table in TABLES})
def test_between_two_cells_lies_neither_less_nor_more_than_both(table: KernelTable) -> None:
    last = list(table.axes)[-1]
    middle = {name: values[len(values) // 2] for name, values in table.axes.items()}
    low, high = table.axes[last][2:4]
    ends = sorted(table.stretch(**middle | {last: value}) for value in (low, high))
    assert ends[0] <= table.stretch(**middle | {last: (low * high) ** 0.5}) * (1 + 1e-9) <= ends[1] * (1 + 2e-9)


def test_beyond_the_last_cell_an_open_axis_goes_on() -> None:
    table = kernel_times.kernel_table("h100-sxm5", "matmul", "bf16")
    assert table.stretch(m=10**6, n=8192, k=8192) == table.stretch(m=table.axes["m"][-1], n=8192, k=8192)


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (lambda: kernel_times.kernel_times("rtx-4090"), "part='rtx-4090' is not known"),
        (lambda: kernel_times.kernel_table("h100-sxm5", "matmul", "nvfp4"), "Known: bf16, fp8, fp8-block"),
        (lambda: kernel_times.kernel_table("h100-sxm5", "softmax", "bf16"), "family='softmax' is not known"),
        (lambda: TABLES[0].stretch(m=16, n=32, k=4096), "n=32: matmul was measured on a100-sxm4-80gb for n from 64"),
        (lambda: TABLES[0].stretch(m=16, n=64), "must name m, n, k"),
        (
            lambda: kernel_times.kernel_table("gb200", "all_reduce", "bf16").stretch(ranks=8, size_bytes=4096),
            "ranks=8: all_reduce was measured on gb200 for ranks 2, 4",
        ),
        (
            lambda: kernel_times.kernel_table("h200-sxm", "decode", "fp8").stretch(head_dim=96, heads=8, tokens=4096),
            "head_dim=96: decode was measured on h200-sxm for head_dim 64, 128, 256",
        ),
    ],
)
def test_what_was_not_measured_is_refused_with_what_was(call: object, told: str) -> None:
    with pytest.raises(ValueError, match=told.replace("'", ".")):
        call()  # type: ignore[operator]


def test_files_stay_small_and_say_where_they_come_from() -> None:
    folder = Path(kernel_times.__file__).with_name("timed_kernels")
    assert max(path.stat().st_size for path in folder.iterdir()) < LARGEST_FILE_BYTES
    for part in kernel_times.timed_parts():
        told = kernel_times.kernel_times(part)
        assert "aiconfigurator at commit" in told.source
        assert told.licence == "Apache-2.0"
        assert "NVIDIA" in told.device
