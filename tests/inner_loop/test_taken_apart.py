"""A record taken apart in many parts says what it says in one, and needs little memory beside its columns."""

import itertools
import random
import tracemalloc
from dataclasses import asdict

import pytest
from tests.inner_loop.kineto_form import Run
from tests.inner_loop.nsys_form import export
from tests.inner_loop.test_profiled_suspects import GEMM, TRUTHS, VECTOR

from threeloops.inner_loop.profiled.nsys_report import read_report
from threeloops.inner_loop.profiled.rank_account import rank_account
from threeloops.inner_loop.profiled.rank_parts import parts
from threeloops.inner_loop.profiled.rank_record import RankRecord, read_record, recorded
from threeloops.inner_loop.profiled.rank_timeline import device_of, window
from threeloops.inner_loop.profiled.span_columns import pairs
from threeloops.inner_loop.profiled.taken_apart import record_time

MOST_BYTES = 60  # of a function in a long pause: its columns have 28, and room to grow


def drawn(rng: random.Random, *, on_device: bool) -> RankRecord:
    """Anything at any time, whole microseconds; short and long pauses, calls over many others."""
    rows = [
        ("cpu_op", "aten::mul", 400),
        ("cuda_runtime", "cudaLaunchKernel", 300),
        ("python_function", "train", 9_000),
    ]
    rows = rows * 4 + [("cuda_runtime", "cudaMalloc", 300), ("user_annotation", "enumerate(DataLoader)#next", 900)]
    rows += [("cuda_runtime", "cudaDeviceSynchronize", 2_000), ("cpu_op", "compile_inner (dynamo_timed)", 900)]
    kernels = [("kernel", "gemm", 500), ("kernel", "ncclAllReduce", 500), ("gpu_memcpy", "Memcpy HtoD", 300)]
    rows = (rows + kernels * 5) if on_device else [row for row in rows if row[0] != "cuda_runtime"]
    events = []
    for _ in range(500):
        cat, name, longest = rng.choice(rows)
        at, dur = rng.randrange(100_000), rng.randrange(longest)
        on = {"pid": 1, "tid": rng.choice((1, 1, 2)), "args": {"device": 0} if cat in ("kernel", "gpu_memcpy") else {}}
        events.append({"ph": "X", "cat": cat, "name": name, "ts": at, "dur": dur, **on})
    return recorded(events, name="t.json")


@pytest.mark.parametrize("on_device", [True, False])
@pytest.mark.parametrize("seed", range(8))
def test_parts_add_up_to_the_whole(seed, on_device) -> None:
    record = drawn(random.Random(seed), on_device=on_device)
    whole, device = window(record), device_of(record)
    assert bool(device) == on_device
    some = list(parts(record, whole, device=device, at_once=20))
    assert len(some) > 5
    assert max(sum(map(len, part.operators.values())) for part, _ in some) < 200
    at_once, apart = (record_time(record, whole, at_once=number) for number in (10**9, 20))
    for one in ("computes_s", "exchanges_s", "copies_s"):
        assert getattr(apart, one) == pytest.approx(getattr(at_once, one), abs=1e-12), one
    for one in ("causes_s", "idle_s"):
        assert getattr(apart, one) == pytest.approx(dict(getattr(at_once, one)), abs=1e-12), one
    assert apart.long_pauses == at_once.long_pauses
    assert [one.number for one in apart.pauses] == [one.number for one in at_once.pauses]


def test_python_between_two_operators_is_asking_at_a_cut_too(tmp_path) -> None:
    run = Run()
    for _ in range(200):
        run.launch(VECTOR, 4, ask=10)
        run.at += 60  # Python, which nobody records
    record = read_record(str(run.write(tmp_path / "run.json")))
    at_once, apart = (record_time(record, window(record), at_once=number).idle_s for number in (10**9, 20))
    assert apart == pytest.approx(dict(at_once), abs=1e-12)
    assert apart["launch-bound"] == pytest.approx(sum(apart.values()), rel=0.01)


@pytest.mark.parametrize("truth", TRUTHS, ids=lambda truth: truth.__name__)
def test_the_suspects_are_the_same_in_however_many_parts(truth, tmp_path) -> None:
    run, _, _ = truth()
    path = str(run.write(tmp_path / "run.json"))
    whole, apart = (rank_account(read_record(path), rank=0, at_once=number) for number in (10**9, 100))
    for one, other in zip(whole.suspects, apart.suspects, strict=True):
        told, as_told = asdict(one), asdict(other)
        assert (told.pop("share"), told.pop("at_most")) == pytest.approx((as_told.pop("share"), as_told.pop("at_most")))
        assert told == as_told


def test_what_a_large_report_needs_beside_its_columns_is_of_one_part(tmp_path) -> None:
    run = Run()
    for number in range(20_000):
        run.launch(GEMM if number % 3 else VECTOR, 4.0 + number % 7)
        run.at += 3
    (record,) = read_report(str(export(tmp_path / "report.sqlite", [run])))
    columns = [record.devices["0"].kernels, *record.calls.values()]
    held = sum(len(spans) * sum(getattr(spans, name).itemsize for name in spans.__slots__) for spans in columns)
    assert sum(map(len, columns)) == 40_000

    def needed(at_once: int) -> int:
        tracemalloc.start()
        found = rank_account(record, rank=0, at_once=at_once)
        most = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert sum(one.kernels for one in found.by_family.values()) == 20_000
        return most

    assert needed(2_000) < held < needed(10**9) / 3


def test_columns_are_picked_whole() -> None:
    record = drawn(random.Random(3), on_device=True)
    kernels = record.devices["0"].kernels
    assert list(pairs(kernels.picked([]))) == []
    assert list(pairs(kernels.picked([4]))) == [list(pairs(kernels))[4]]
    picked = kernels.picked([4, 2, 9])
    assert [*picked.name] == [kernels.name[place] for place in (4, 2, 9)]
    assert [*picked.link] == [kernels.link[place] for place in (4, 2, 9)]


def test_a_long_pause_with_many_functions_needs_their_columns_and_little_else() -> None:
    """What with_stack=True writes: a pause of seconds, and in it functions within functions."""

    def needed(number: int) -> float:
        events = [{"ph": "X", "cat": "cpu_op", "name": "aten::mm", "ts": at, "dur": 9} for at in (0, 9 * number + 20)]
        functions = ({"ph": "X", "cat": "python_function", "name": f"json/encoder.py({place % 7}): f", "ts": 10 + at,
                      "dur": 9} for place, at in enumerate(range(0, 9 * number, 9)))  # fmt: skip
        around = {"ph": "X", "cat": "python_function", "name": "train.py(3): save", "ts": 10, "dur": 9 * number}
        tracemalloc.start()
        record = recorded(itertools.chain(events, [around], functions), name="t.json")
        first = rank_account(record, rank=0, at_once=1000).suspects[0]
        most = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert "longest in train.py(3): save, most of it in json/encoder.py" in first.because
        return most

    few, many = 10_000, 40_000
    assert (needed(many) - needed(few)) / (many - few) < MOST_BYTES
