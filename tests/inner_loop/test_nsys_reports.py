"""Nsight Systems' reports: what is read of them is what torch's profiler says of the same run; others are refused."""

import sqlite3
import tracemalloc
from contextlib import closing

import pytest
from tests.inner_loop.kineto_form import Run
from tests.inner_loop.nsys_form import export, insert
from tests.inner_loop.test_profiled_suspects import GEMM, TRUTHS, VECTOR

from threeloops.inner_loop.profiled.nsys_report import is_report, read_report
from threeloops.inner_loop.profiled.rank_account import held_together, rank_account
from threeloops.inner_loop.profiled.rank_record import read_record

# What only operators of torch say: Nsight Systems records no Python, unless it is marked.
SEEN_BY_NSIGHT = [truth for truth in TRUTHS if truth.__name__ not in ("at_work", "at_work_after_a_read", "compiling")]


@pytest.mark.parametrize("truth", SEEN_BY_NSIGHT, ids=lambda truth: truth.__name__)
def test_a_report_says_what_the_profiler_of_torch_says_of_the_same_run(truth, tmp_path) -> None:
    run, illness, _ = truth()
    (record,) = read_report(str(export(tmp_path / "report.sqlite", [run])))
    found = rank_account(record, rank=0)
    other = rank_account(read_record(str(run.write(tmp_path / "run.json"))), rank=0)
    assert found.suspects[0].illness == illness
    assert not any(one.record_next.startswith(("with_stack", "their roof: --hardware")) for one in found.suspects)
    assert found.suspects[0].share == pytest.approx(other.suspects[0].share, abs=0.002)
    assert found.gauges.busy == pytest.approx(other.gauges.busy, abs=1e-6)
    assert found.gauges.causes == pytest.approx(other.gauges.causes, abs=0.002)
    assert {name: one.kernels for name, one in found.by_family.items()} == {
        name: one.kernels for name, one in other.by_family.items()
    }
    assert [step for step, _, _ in record.steps] == [step for step, _, _ in other.record.steps]
    assert (record.hardware, found.launches_per_step) == ("NVIDIA H100 80GB HBM3", other.launches_per_step)


def test_a_report_of_several_processes_is_one_of_ranks(tmp_path) -> None:
    runs = [Run(rank=rank) for rank in range(3)]
    for step in range(1, 6):
        ends = [run.launch(GEMM, 1600 if rank == 1 else 1000) for rank, run in enumerate(runs)]
        for run, end in zip(runs, ends, strict=True):
            run.exchange(max(ends) - end + 100, after=end)
            run.wait()
            run.step(step)
    names = ("NVIDIA H100 80GB HBM3", "NVIDIA A100-SXM4-80GB", "NVIDIA H100 80GB HBM3")
    records = read_report(str(export(tmp_path / "report.sqlite", runs, hardware=names)))
    assert [(one.rank, one.hardware) for one in records] == list(enumerate(names))
    waits, accounts = held_together([rank_account(one, rank=one.rank) for one in records])
    assert (waits.slowest, waits.since, waits.matched) == (1, "1", 5)
    assert accounts[0].suspects[0].illness == "straggling rank"
    assert accounts[0].suspects[0].share == pytest.approx(600 * 5 / (accounts[0].gauges.span_s * 1e6), rel=0.02)


def test_ranges_say_what_steps_loaders_and_operators_are(tmp_path) -> None:
    run = Run()
    run.launch(GEMM, 10)
    path = export(tmp_path / "report.sqlite", [run])
    thread = (4000 << 24) + 4000
    told = ["step", "iteration 7", "Iter_8", "train_step 9", "forward", "optimizer step", "data loading", "get_batch"]
    told += ["aten::mm, op_id = 3, sizes = [[4, 8], [8, 2]]", "autograd::engine::evaluate_function: MmBackward0"]
    with closing(sqlite3.connect(path)) as made:
        for place, text in enumerate(told):
            start = 1_000_000 + 100 * place
            insert(made, "NVTX_EVENTS", (start, start + 50, 59, None, text, thread, None))
        made.commit()
    (record,) = read_report(str(path))
    assert [step for step, _, _ in record.steps] == ["1", "7", "8", "9"]
    assert len(record.loader) == 2
    (operators,) = record.operators.values()
    assert [record.names[one] for one in operators.name] == [
        "aten::mm",
        "autograd::engine::evaluate_function: MmBackward0",
    ]
    assert not record.remarks


def test_graphs_without_their_kernels_and_an_unknown_host_are_said(tmp_path) -> None:
    path = tmp_path / "report.sqlite"
    with closing(sqlite3.connect(path)) as made:
        made.executescript(
            "CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT NOT NULL);"
            "CREATE TABLE CUPTI_ACTIVITY_KIND_GRAPH_TRACE (start INT, end INT, deviceId INT, graphId INT)"
        )
        for start in range(0, 1000, 100):
            insert(made, "CUPTI_ACTIVITY_KIND_GRAPH_TRACE", (start, start + 90, 0, 5))
        made.commit()
    (record,) = read_report(str(path))
    found = rank_account(record, rank=0)
    assert list(found.by_family) == ["whole graphs"]
    first = found.suspects[0]
    assert (first.illness, first.of) == ("kernels of unknown roof", "kernels")
    assert "--cuda-graph-trace=node" in first.record_next
    assert [remark.split(",")[0].split(":")[0] for remark in record.remarks] == [
        "no range of NVTX is named step or iteration",
        "no call of the driver was recorded",
        "CUDA graphs were recorded as wholes",
    ]
    assert record.hardware == ""


def test_rows_whose_time_was_not_taken_are_left_out_and_said(tmp_path) -> None:
    run = Run()
    run.launch(VECTOR, 10)
    path = export(tmp_path / "report.sqlite", [run])
    with closing(sqlite3.connect(path)) as made:
        on = (0, 0, 0, 1, 7, 3, 4000 << 24)
        insert(made, "CUPTI_ACTIVITY_KIND_KERNEL", (*on, 1, 1))
        made.commit()
    (record,) = read_report(str(path))
    assert len(record.devices["0"].kernels) == 1
    assert "1 row of kernels and copies without a time left out" in record.remarks
    with closing(sqlite3.connect(path)) as made:
        made.execute("UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET start = 0, end = 0")
        made.commit()
    with pytest.raises(ValueError, match="holds no kernel with a time"):
        read_report(str(path))


def test_kernels_of_older_versions_name_no_process(tmp_path) -> None:
    runs = [Run(), Run()]
    for run in runs:
        run.launch(VECTOR, 10)
        run.wait()
    path = export(tmp_path / "report.sqlite", runs)
    with closing(sqlite3.connect(path)) as made:
        for table in ("KERNEL", "MEMCPY"):
            made.execute(f"ALTER TABLE CUPTI_ACTIVITY_KIND_{table} DROP COLUMN globalPid")
        made.commit()
    (record,) = read_report(str(path))
    assert sorted(record.devices) == ["0", "1"]
    assert record.num_launches == 2
    assert any("kernels do not name their process" in remark for remark in record.remarks)


def small(path, *statements: str):
    with closing(sqlite3.connect(path)) as made:
        made.executescript(";".join(statements))
    return path


STRINGS = "CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT NOT NULL)"
KERNELS = "CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INT, end INT, deviceId INT, demangledName INT)"

TWO_DEVICES = "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (1, 2, 0, 3), (1, 2, 'a', 3)"
NO_END = "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (1, NULL, 0, 3)"


@pytest.mark.parametrize(
    ("statements", "says"),
    [
        (["CREATE TABLE places (id INT)"], "is a file of SQLite, but none of Nsight Systems: it has no StringIds"),
        ([STRINGS], "holds no kernel: it has no table CUPTI_ACTIVITY_KIND_KERNEL"),
        ([STRINGS, KERNELS], "holds no kernel: its tables of them are empty"),
        (
            [STRINGS, "CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INT, name INT)"],
            "table CUPTI_ACTIVITY_KIND_KERNEL has no column deviceId, end",
        ),
        ([STRINGS, KERNELS, "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (1, 2, 0, 3)"], "row 1 of CUPTI_ACTIVITY"),
        (
            [STRINGS, KERNELS, "INSERT INTO StringIds VALUES (3, 'a')", NO_END],
            "is none that Nsight Systems writes",
        ),
        (
            [STRINGS, KERNELS, "INSERT INTO StringIds VALUES (3, 'a')", TWO_DEVICES],
            "row 2 of CUPTI_ACTIVITY_KIND_KERNEL is none that Nsight Systems writes (TypeError(\"its device is 'a'\"))",
        ),
        (["CREATE TABLE StringIds (number INT)", KERNELS], "table StringIds has no column id, value"),
    ],
)
def test_what_is_no_report_is_refused_in_a_sentence(tmp_path, statements, says) -> None:
    path = small(tmp_path / "other.sqlite", *statements)
    with pytest.raises(ValueError, match=r"^other\.sqlite") as refusal:
        read_report(str(path))
    assert says in str(refusal.value)
    assert "\n" not in str(refusal.value)


def test_a_table_of_any_name_beside_them_is_passed_over(tmp_path) -> None:
    named = [STRINGS, KERNELS, "INSERT INTO StringIds VALUES (3, 'gemm')", 'CREATE TABLE "by ""day""" (a INT)']
    path = small(tmp_path / "other.sqlite", *named, "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (1, 2, 0, 3)")
    assert [record.names for record in read_report(str(path))] == [["gemm"]]


def test_a_report_that_was_cut_or_damaged_is_refused(tmp_path) -> None:
    run = Run()
    for _ in range(2000):
        run.launch(VECTOR, 4)
    whole = export(tmp_path / "whole.sqlite", [run]).read_bytes()
    path = tmp_path / "report.sqlite"
    for end in (20, 99, 100, 5000, len(whole) // 2, len(whole) - 1):
        path.write_bytes(whole[:end])
        with pytest.raises(ValueError, match=r"^report\.sqlite (was cut|ends in its first)"):
            read_report(str(path))
    path.write_bytes(whole[:4096] + bytes(len(whole) - 4096))
    with pytest.raises(ValueError, match=r"^report\.sqlite is damaged"):
        read_report(str(path))


def test_files_are_told_by_what_they_begin_with(tmp_path) -> None:
    run = Run()
    run.launch(VECTOR, 4)
    assert is_report(export(tmp_path / "report.json", [run]))
    assert not is_report(run.write(tmp_path / "run.sqlite"))
    (own := tmp_path / "report.nsys-rep").touch()
    with pytest.raises(ValueError, match=r"`nsys export --type sqlite report.nsys-rep` makes"):
        is_report(own)


def test_a_large_report_needs_little_memory(tmp_path) -> None:
    run = Run()
    for _ in range(5_000):
        run.launch(VECTOR, 4)
    path = export(tmp_path / "report.sqlite", [run])
    seen: list[int] = []
    tracemalloc.start()
    (record,) = read_report(str(path), told=seen.append)
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert len(record.devices["0"].kernels) == 5_000
    assert most < 1.5 * path.stat().st_size
    assert seen == sorted(seen)
    assert seen[-1] == path.stat().st_size
