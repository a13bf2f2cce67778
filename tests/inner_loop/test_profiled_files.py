"""Files of a profiler: read as far as they go, whatever their size; refused in one sentence."""

import gzip
import io
import json
import math
import random
import tracemalloc

import pytest
from tests.inner_loop.kineto_form import Run

from threeloops.inner_loop.profiled import event_stream
from threeloops.inner_loop.profiled.event_stream import EventStream
from threeloops.inner_loop.profiled.rank_record import read_record, recorded


def stream(data: bytes) -> EventStream:
    return EventStream(io.BytesIO(data), name="run.json")


def events_of(number: int) -> list[dict]:
    rng = random.Random(number)
    words = ["gemm", 'a "quoted" name', "path\\with\\slashes", "operator()<µ>", "ends in a brace }]"]
    return [{"ph": "X", "name": rng.choice(words), "ts": rng.random() * 1e6, "args": {"n": n}} for n in range(number)]


@pytest.mark.parametrize("indent", [None, 2])
def test_a_stream_yields_what_the_whole_file_holds(indent, monkeypatch) -> None:
    whole = {"schemaVersion": 1, "deviceProperties": [{"name": "x"}], "traceEvents": events_of(300), "traceName": "t"}
    for chunk in (7, 100, 1 << 20):  # events lie across the edges of chunks
        monkeypatch.setattr(event_stream, "CHUNK", chunk)
        for data in (json.dumps(whole, indent=indent).encode(), gzip.compress(json.dumps(whole).encode())):
            read = stream(data)
            assert list(read) == whole["traceEvents"]
            assert {"traceEvents": whole["traceEvents"], **read.head} == whole
            assert not read.cut
    assert list(stream(json.dumps(events_of(5)).encode())) == events_of(5)


def test_a_file_that_was_cut_anywhere_is_read_until_there() -> None:
    data = json.dumps({"a": [1, 2], "traceEvents": events_of(12), "b": 1}).encode()
    first = data.index(b'}, {"ph"') + 1  # here the first event is whole
    for end in range(len(data) - 1):
        read = stream(data[:end])
        if end < first:
            with pytest.raises(ValueError, match=r"^run\.json (ends before its first|is no trace)"):
                list(read)
            continue
        found = list(read)
        assert found == events_of(12)[: len(found)]
        assert f"until its event {len(found):,}" in read.cut
    read = stream(gzip.compress(data)[:-30])
    assert 3 < len(list(read)) < 12
    assert "ends in the middle" in read.cut


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"", "is no trace: it is empty"),
        (b"step,seconds\n1,2\n", "is no trace: it begins with 'step,seconds"),
        (b'{"traceEvents": [{"a": 1}, {"b" 2}, {"c": 3}]}', "is no JSON after its event 1 (Expecting ':' delimiter)"),
        (b'{"traceEvents": [3, 4]}', "is no trace: its event 1 is '3', and no object"),
        (b'{"traceEvents": [{"ts": ' + b"1" * 5000 + b"}]}", "is no JSON after its event 0 (a number of thousands of"),
        (b"[" * 100_000, "is no JSON after its event 0 (it nests too deeply)"),
        (b'{"schema": "1.0.1", "nodes": []}', "has no traceEvents; give what torch.profiler's export_chrome_trace"),
        (b'{"traceEvents": [', "ends before its first event"),
        (gzip.compress(b"{}", mtime=0)[:10] + b"\xff" * 40, "cannot be unpacked"),
    ],
)
def test_what_is_no_trace_is_refused_in_a_sentence(data, says) -> None:
    with pytest.raises(ValueError, match=r"^run\.json ") as refusal:
        list(stream(data))
    assert says in str(refusal.value)
    assert "\n" not in str(refusal.value)


def test_a_trace_without_anything_of_torch_is_refused() -> None:
    with pytest.raises(ValueError, match="holds no kernel, operator or call of a driver"):
        recorded([{"ph": "X", "cat": "v8", "name": "draw", "ts": 1, "dur": 2}], name="chrome.json")
    step = {"ph": "X", "cat": "user_annotation", "name": "ProfilerStep#6", "ts": 1, "dur": 2}
    with pytest.raises(ValueError, match="only marks of steps: a schedule without repeat=1 begins again"):
        recorded([step], name="t.json")
    with pytest.raises(ValueError, match="event 1 is none that torch's profiler writes"):
        recorded([{"ph": "X", "cat": "kernel", "name": "gemm", "dur": 2}], name="t.json")


def test_numbers_that_no_clock_and_no_memory_has_are_refused_in_a_sentence() -> None:
    kernel = {"ph": "X", "cat": "kernel", "name": "gemm", "ts": 1, "dur": 2}
    reading = {"ph": "i", "name": "[memory]", "ts": 2, "args": {"Device Type": 1, "Total Allocated": 10**400}}
    large = {"External id": 10**30}
    for event in (kernel | {"dur": 10**400}, kernel | {"ts": math.inf}, kernel | {"args": large}, reading):
        with pytest.raises(ValueError, match=r"t\.json: event 2 is none that torch's profiler writes") as refusal:
            recorded([kernel, event], name="t.json")
        assert len(str(refusal.value)) < 200
    for said in (10**30, True, -1, "3"):
        assert recorded([kernel], name="t.json", head={"distributedInfo": {"rank": said}}).rank is None


def test_a_mark_of_the_encoding_is_no_part_of_a_trace() -> None:
    assert list(stream(b'\xef\xbb\xbf{"traceEvents": [{"ph": "X"}]}')) == [{"ph": "X"}]


def test_a_large_file_needs_little_memory(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(event_stream, "CHUNK", 1 << 16)
    path = tmp_path / "large.json"
    run = Run()
    for _ in range(100):
        run.launch("void at::native::vectorized_elementwise_kernel<4>", 8.0)
    lines = ",\n".join(json.dumps(event, indent=2) for event in run.events)
    path.write_text('{"traceEvents": [\n' + ",\n".join([lines] * 60) + "\n]}")
    tracemalloc.start()
    record = read_record(str(path))
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert len(record.devices["0"].kernels) == 6_000
    assert most < path.stat().st_size / 2  # columns and a few chunks, not objects of all events


def test_what_a_record_holds_is_what_was_written(tmp_path) -> None:
    run = Run(rank=3)
    run.host("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", 50, cat="user_annotation")
    run.launch("Memcpy HtoD (Pinned -> Device)", 20, cat="gpu_memcpy", op="aten::copy_")
    run.launch("Memcpy DtoD (Device -> Device)", 20, cat="gpu_memcpy", op="aten::copy_")
    run.launch("sm90_xmma_gemm_bf16", 30, op="aten::mm", dims=[[64, 128], [128, 256]])
    run.exchange(10)
    run.host("cudaMalloc", 40, cat="cuda_runtime")
    run.wait()
    run.step(9)
    record = read_record(str(run.write(tmp_path / "rank3.json.gz")))
    rows = record.devices["0"]
    assert (record.rank, record.hardware, [step for step, _, _ in record.steps]) == (3, "NVIDIA H100 80GB HBM3", ["9"])
    assert (len(rows.kernels), len(rows.exchanges), len(rows.copies)) == (2, 1, 1)
    assert (len(record.waits), len(record.allocations), len(record.loader), record.num_launches) == (1, 1, 1, 2)
    (product,) = record.products.values()
    assert (product.m, product.n, product.k, product.batch) == (64, 256, 128, 1)


def test_categories_and_calls_of_other_times_and_makers() -> None:
    """Names as they stand in files of torch 1.8 (NVIDIA) and of 2024 (AMD)."""
    old = [("Operator", "aten::mm", 1), ("Runtime", "cudaLaunchKernel", 1), ("Kernel", "volta_sgemm_128x64_nn", 0)]
    old += [("Memcpy", "Memcpy HtoD (Pinned -> Device)", 0), ("Memset", "Memset (Device)", 0)]
    amd = [
        ("cpu_op", "aten::mm", 1),
        ("cuda_runtime", "hipExtModuleLaunchKernel", 1),
        ("kernel", "Cijk_Alik_Bljk_SB", 0),
    ]
    amd += [("gpu_memcpy", "Memcpy HtoD (Host -> Device)", 0), ("cuda_runtime", "hipMemcpyWithStream", 1)]
    for told, counts in ((old, (2, 1, 0)), (amd, (1, 1, 1))):
        events = [
            {"ph": "X", "cat": cat, "name": name, "pid": pid, "tid": 7, "ts": 1623143089861000 + 9 * n, "dur": 5}
            for n, (cat, name, pid) in enumerate(told)
        ]
        record = recorded([*events, {"ph": "s", "cat": "async", "name": "launch", "ts": 1}], name="t.json")
        rows = record.devices["0"]
        assert (len(rows.kernels), len(rows.copies), len(record.waits)) == counts
        assert record.num_launches == 1
        assert not record.unread


def test_events_that_nobody_knows_are_counted() -> None:
    events = [{"ph": "X", "cat": cat, "name": "a", "ts": 1, "dur": 5} for cat in ("cpu_op", "ac2g", "hpu_op")]
    assert recorded(events, name="t.json").unread == {"hpu_op": 1}


def test_mtia_s_one_category_is_kernels_copies_and_waits() -> None:
    """The form of facebookresearch/HolisticTraceAnalysis at f4d0062c, tests/data/mtia_trace_single_rank."""
    bars = [
        ("mtia_runtime", "runFunction - job_prep_and_submit_for_execution", 0, 10),
        ("mtia_ccp_events", "fc-dtype_Float", 10, 40),
        ("mtia_ccp_events", "dma_request", 50, 5),
        ("mtia_ccp_events", "event_wait", 0, 100),
        ("mtia_ccp_events", "event_record", 99, 1),
        ("mtia_runtime", "synchronizeStream", 10, 50),
    ]
    record = recorded(
        (
            {"ph": "X", "cat": cat, "name": name, "pid": 9, "tid": 4, "ts": ts, "dur": dur}
            for cat, name, ts, dur in bars
        ),
        name="run.json",
    )
    rows = record.devices["9"]
    assert (len(rows.kernels), len(rows.copies), len(record.waits), record.num_launches) == (1, 1, 1, 1)
    assert rows.kernels.seconds == pytest.approx(40e-6)
    assert not record.unread
