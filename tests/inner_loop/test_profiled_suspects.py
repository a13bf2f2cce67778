"""Known truths: runs whose illness somebody put there, and what is suspected of them."""

import random

import pytest
from tests.inner_loop.kineto_form import Run

from threeloops.facts import hardware
from threeloops.inner_loop.profiled.rank_account import RankAccount, rank_account
from threeloops.inner_loop.profiled.rank_record import read_record, recorded
from threeloops.inner_loop.profiled.rank_timeline import moments_in, window
from threeloops.inner_loop.profiled.trace_suspects import ALLOCATOR, DRIVER_CALLS, HOST_WORK, idle_seconds
from threeloops.inner_loop.profiled.written_trace import write_trace
from threeloops.inner_loop.trace import COMPUTE, HOST, Interval, Trace
from threeloops.inner_loop.trace_gauges import blamed, gauges, length, moments
from threeloops.operations.expected_times import expected_product
from threeloops.simulate.inner_loop import ill_jobs

GEMM, VECTOR = "nvjet_tst_128x256_64x4_1x2_h_bz_coopA_NTN", "void at::native::vectorized_elementwise_kernel<8>"
STEPS = range(1, 6)
H100 = hardware.part("h100-sxm5")


def account(run: Run, tmp_path, **asked) -> RankAccount:
    return rank_account(read_record(str(run.write(tmp_path / "run.json.gz"))), rank=0, **asked)


# --- the book's own jobs, as files ---


@pytest.mark.parametrize("kind", ill_jobs.KINDS)
def test_a_simulated_job_is_read_from_its_file_as_from_memory(kind, tmp_path) -> None:
    trace = ill_jobs.trace(kind, seed=7)
    write_trace(trace, path := tmp_path / "job.json.gz")
    found = rank_account(record := read_record(str(path)), rank=0)
    own = gauges(trace)
    assert [found.gauges.busy, *found.gauges.causes.values()] == pytest.approx([own.busy, *own.causes.values()])
    assert found.gauges.growth_bytes_per_step == pytest.approx(own.growth_bytes_per_step)
    assert (found.gauges.memory_bus, found.gauges.tensor_cores) == pytest.approx((own.memory_bus, own.tensor_cores))
    assert len(record.devices["0"].kernels) == len(trace.of(COMPUTE))
    illnesses = [one.illness for one in found.suspects]
    assert illnesses[0] == kind if kind != "healthy" else illnesses[:2] == ["kernels of unknown roof", "vector kernels"]


# --- runs written down by hand in a GPU's form ---


def starved() -> tuple[Run, str, float]:
    run = Run()
    for step in STEPS:
        run.host("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", 3000, cat="user_annotation")
        run.launch(GEMM, 1000)
        run.wait()
        run.step(step)
    return run, "starved loader", 3000 / 4004


def read_back() -> tuple[Run, str, float]:
    """Ten times a step the program reads a value, and takes 200 µs until it goes on."""
    run = Run()
    for step in STEPS:
        for _ in range(10):
            for _ in range(3):
                run.launch(GEMM, 100)
            run.wait(back=200)
        run.step(step)
    return run, "hidden syncs", 204 / 504


def asked_slowly() -> tuple[Run, str, float]:
    """A kernel runs for 3 µs, and asking for it takes 12."""
    run = Run()
    for step in STEPS:
        for _ in range(200):
            run.launch(VECTOR, 3, ask=12)
        run.step(step)
    return run, "launch-bound", 9 / 12


def allocating() -> tuple[Run, str, float]:
    """The calls for memory come while the device waits to be read: the read is what comes first."""
    run = Run()
    for step in STEPS:
        for _ in range(5):
            run.launch(GEMM, 300)
            run.wait(back=10)
            run.host("cudaFree", 100, cat="cuda_runtime")
            run.host("cudaMalloc", 300, cat="cuda_runtime")
        run.step(step)
    return run, "hidden syncs", 410 / 714


def allocating_without_sync() -> tuple[Run, str, float]:
    run = Run()
    for step in STEPS:
        for _ in range(5):
            run.launch(GEMM, 300)
            run.host("cudaMalloc", 700, cat="cuda_runtime")
        run.step(step)
    return run, "allocator calls", 399 / 705


def at_work() -> tuple[Run, str, float]:
    run = Run()
    for step in STEPS:
        run.launch(GEMM, 1000)
        run.host("tokenizer::encode", 4000)
        run.step(step)
    return run, "host at work", 3000 / 4005


def starting() -> tuple[Run, str, float]:
    """Asking for a kernel takes 6 ms, as the first of a kind does: the host works on nothing of its own."""
    run = Run()
    for step in STEPS:
        run.launch(GEMM, 1000)
        run.launch(VECTOR, 1000, ask=6000)
        run.step(step)
    return run, "long driver calls", 4005 / 6005


def a_copy_that_waits() -> tuple[Run, str, float]:
    """A blocking copy of 4 ms begins 100 µs after the device has nothing left to do, and holds the host."""
    run = Run()
    for step in STEPS:
        run.launch(GEMM, 1000)
        run.at = run.free[7] + 100
        run.wait("hipMemcpyWithStream", back=4000)
        run.step(step)
    return run, "long driver calls", 4000 / 5104


def at_work_after_a_read() -> tuple[Run, str, float]:
    """The pause begins in a read, but it is not the read that makes it long."""
    run = Run()
    for step in STEPS:
        run.launch(GEMM, 1000)
        run.wait(back=10)
        run.host("tokenizer::encode", 4000)
        run.step(step)
    return run, "host at work", 4000 / 5014


def in_the_dark() -> tuple[Run, str, float]:
    """Something keeps the program for 4 ms, and nobody recorded what."""
    run = Run()
    for step in STEPS:
        run.launch(GEMM, 1000)
        run.at += 4000
        run.step(step)
    return run, "unexplained pauses", 3000 / 4005


def compiling() -> tuple[Run, str, float]:
    """Every step has a shape of its own, and torch.compile makes a graph of each."""
    run = Run()
    for step in STEPS:
        run.host("Torch-Compiled Region: 0/0", 10)
        run.host("_compile.compile_inner (dynamo_timed)", 6000)
        run.launch(GEMM, 1500)
        run.wait()
        run.step(step)
    return run, "compilation", 6000 / 7514


def copying() -> tuple[Run, str, float]:
    run = Run()
    for step in STEPS:
        copied = run.launch("Memcpy HtoD (Pageable -> Device)", 2000, cat="gpu_memcpy", op="aten::copy_")
        run.launch(GEMM, 1500, after=copied)
        run.wait()
        run.step(step)
    return run, "exposed copies", 2000 / 3504


def exchanging() -> tuple[Run, str, float]:
    run = Run()
    for step in STEPS:
        run.exchange(1800, after=run.launch(GEMM, 2000))
        run.wait()
        run.step(step)
    return run, "exposed communication", 1800 / 3804


def hiding() -> tuple[Run, str, float]:
    """Exchanges as long as in the run before, all of them behind kernels, most of which are no products."""
    run = Run()
    for step in STEPS:
        run.exchange(1800)
        for _ in range(20):
            run.launch(VECTOR, 80)
        run.launch(GEMM, 500)
        run.wait()
        run.step(step)
    return run, "vector kernels", 1600 / 2110


TRUTHS = (
    starved,
    read_back,
    asked_slowly,
    allocating,
    allocating_without_sync,
    at_work,
    starting,
    a_copy_that_waits,
    at_work_after_a_read,
    in_the_dark,
    compiling,
    copying,
    exchanging,
    hiding,
)


@pytest.mark.parametrize("truth", TRUTHS, ids=lambda truth: truth.__name__)
def test_the_first_suspect_is_what_was_put_there(truth, tmp_path) -> None:
    run, illness, share = truth()
    found = account(run, tmp_path)
    first = found.suspects[0]
    assert first.illness == illness
    assert first.share == pytest.approx(share, rel=0.02)
    assert first.at_most == pytest.approx(1 / (1 - share), rel=0.06)
    assert first.first_try
    shares = found.gauges.busy + sum(found.idle.values())
    assert shares == pytest.approx(1)
    assert all(one.share <= first.share for one in found.suspects if one.of == first.of)


def test_what_the_pauses_and_the_file_say_stands_with_the_suspect(tmp_path) -> None:
    known = starved, at_work, in_the_dark, starting
    told = {truth.__name__: account(truth()[0], tmp_path).suspects[0] for truth in known}
    assert "longest in cudaLaunchKernel" in told["starting"].because
    assert "the loader has no workers" in told["starved"].because
    assert "longest in tokenizer::encode" in told["at_work"].because
    assert "with_stack=True" in told["in_the_dark"].record_next


def test_launches_without_their_kernels_are_no_computing_on_a_cpu(tmp_path) -> None:
    """As CUPTI's counters leave a file: facebookresearch/HolisticTraceAnalysis at f4d0062c, tests/data/cupti_profiler,
    has 77 calls of cudaLaunchKernel, a range of the counters for each, and no kernel.
    """
    run = at_work()[0]
    run.events = [event | ({"cat": "cuda_profiler_range"} if event["cat"] == "kernel" else {}) for event in run.events]
    with pytest.raises(ValueError, match=r"launches 5 kernels and holds none"):
        account(run, tmp_path)
    run.events = [event for event in run.events if event["cat"] != "cuda_runtime"]
    assert not account(run, tmp_path).device  # nothing was asked of a device: the operators are the CPU's


def test_with_stacks_the_function_of_a_pause_is_named(tmp_path) -> None:
    """What with_stack=True adds to a run in the dark: the line, in place of a pause that nothing explains."""
    run, share = in_the_dark()[0], in_the_dark()[2]
    dark = account(run, tmp_path)
    whole = run.at - 1000.0
    run._add("python_function", "train.py(3): <module>", 1000.0, whole)
    for step in range(5):
        run._add("python_function", "words.py(12): encode", 1000.0 + step * 4005 + 5, 3995.0)
    named = account(run, tmp_path)
    assert (dark.suspects[0].illness, named.suspects[0].illness) == ("unexplained pauses", "host at work")
    assert named.suspects[0].share == pytest.approx(share, rel=0.02)
    assert "longest in words.py(12): encode" in named.suspects[0].because
    assert named.suspects[0].record_next == ""


def test_what_small_operators_take_is_their_asking_and_what_large_ones_take_is_not() -> None:
    def of(length: float) -> RankAccount:
        bars = [("aten::add", place * (length + 1), length) for place in range(1000)]
        events = [{"ph": "X", "cat": "cpu_op", "name": name, "ts": ts, "dur": dur} for name, ts, dur in bars]
        return rank_account(recorded(events, name="t.json"), rank=0)

    small, large = of(9.0), of(11.0)
    assert (small.suspects[0].illness, large.suspects[0].illness) == ("small operators", "vector kernels")
    assert small.suspects[0].share == pytest.approx(1.0, abs=0.001)  # 0.9 in them, 0.1 between
    assert "1,000 operators of 9.00 µs each" in small.suspects[0].because
    assert "vector kernels" not in [one.illness for one in small.suspects]


def test_a_compilation_is_no_computing_where_operators_stand_for_kernels() -> None:
    bars = [("_compile.compile_inner (dynamo_timed)", 0, 700), ("aten::relu", 100, 50), ("aten::mm", 710, 290)]
    events = [{"ph": "X", "cat": "cpu_op", "name": name, "ts": ts, "dur": dur} for name, ts, dur in bars]
    found = rank_account(recorded(events, name="t.json"), rank=0)
    assert found.gauges.busy == pytest.approx(0.29)
    assert (found.suspects[0].illness, found.suspects[0].share) == ("compilation", pytest.approx(0.7))
    assert "1 graph made" in found.suspects[0].because
    assert list(found.by_name) == ["aten::mm"]


def test_an_exchange_behind_kernels_costs_nothing(tmp_path) -> None:
    hidden, seen = (account(truth()[0], tmp_path) for truth in (hiding, exchanging))
    assert hidden.exchanges > 0.8
    assert hidden.gauges.exposed_communication < 0.01
    assert seen.exchanges == pytest.approx(seen.gauges.exposed_communication)
    assert "exposed communication" not in [one.illness for one in hidden.suspects]


def test_memory_of_the_driver_behind_a_read_belongs_to_the_read(tmp_path) -> None:
    assert account(allocating()[0], tmp_path).idle[ALLOCATOR] < 0.001


# --- products and their roof ---


@pytest.mark.parametrize("old_links", [False, True])
def test_products_stand_beside_their_roof(tmp_path, old_links) -> None:
    sizes = {"m": 8192, "n": 4096, "k": 4096}
    bound_us = 2 * 8192 * 4096 * 4096 / 989.4e12 * 1e6  # by hand: NVIDIA's dense bf16 rate
    run = Run(old_links=old_links)
    for step in STEPS:
        for _ in range(4):
            run.launch(GEMM, 2 * bound_us, op="aten::addmm", dims=[[4096], [8192, 4096], [4096, 4096]])
            run.launch(VECTOR, 20)
        run.wait()
        run.step(step)
    found = account(run, tmp_path, part=H100)
    (row,) = found.roofs
    assert (row.timed.calls, row.timed.format) == (20, "bf16")
    assert row.share == pytest.approx(0.5, rel=0.001)
    assert row.expected_s == pytest.approx(20 * expected_product("h100-sxm5", **sizes, format="bf16").seconds)
    first = found.suspects[0]
    assert (first.illness, first.record_next) == ("below the roof", "")
    products = 2 * bound_us / (2 * bound_us + 20)
    assert first.at_most == pytest.approx(1 / (1 - products / 2), rel=0.02)  # half of their time is left
    assert not account(run, tmp_path).roofs
    unknown = account(run, tmp_path).suspects[0]
    assert unknown.record_next == "their roof: --hardware"
    assert unknown.at_most > first.at_most


def test_a_product_of_floats_has_a_roof_where_its_kernel_says_in_which_format(tmp_path) -> None:
    run = Run()
    dims = [[2048, 1024], [1024, 512]]
    for kernel in ("cutlass_80_tensorop_s1688gemm_128x128", "ampere_sgemm_128x64_tn", "some_gemm"):
        run.launch(kernel, 100, op="aten::mm", dims=dims, type="float")
    run.launch("nvjet_bmm", 100, op="aten::bmm", dims=[[7, 64, 128], [7, 128, 32]])
    found = account(run, tmp_path, part=H100)
    assert sorted(one.format for one in found.products) == ["", "bf16", "fp32", "tf32"]
    roofs = {one.timed.format: one for one in found.roofs}
    assert set(roofs) == {"bf16", "fp32", "tf32"}
    assert roofs["fp32"].bound_s > roofs["tf32"].bound_s
    assert roofs["bf16"].expected_s is None  # seven small products: those are not timed
    assert all(one.share < 1 for one in found.roofs)


@pytest.mark.parametrize("name", ["my_kernel(float*)", "void ns::stage_one<4>(Params)", "kernel_0d1d2d", "fusion_12"])
def test_of_a_kernel_whose_name_tells_nothing_nothing_is_asserted(name, tmp_path) -> None:
    run = Run()
    for step in STEPS:
        for _ in range(20):
            run.launch(name, 90)
            run.launch(VECTOR, 10)
        run.wait()
        run.step(step)
    found = account(run, tmp_path)
    assert list(found.by_family) == ["not told by their names", "other vector work"]
    first, second = found.suspects[:2]
    assert (first.illness, second.illness) == ("kernels of unknown kind", "vector kernels")
    assert first.share == pytest.approx(9 * second.share)
    assert first.share + second.share == pytest.approx(found.gauges.busy)


@pytest.mark.parametrize(
    ("call", "hardware", "tool"),
    [
        ("hipLaunchKernel", "AMD Instinct MI300X", "`rocprof-compute profile`"),
        ("hipExtModuleLaunchKernel", "", "`rocprof-compute profile`"),
        ("cudaLaunchKernel", "NVIDIA H100 80GB HBM3", "`ncu`"),
        ("cuLaunchKernelEx", "", "`ncu`"),
        ("urEnqueueKernelLaunch", "Intel(R) Data Center GPU Max 1550", "the device maker's profiler of single kernels"),
    ],
)
def test_counters_are_read_by_the_maker_s_own_tool(call, hardware, tool) -> None:
    events = [{"ph": "X", "cat": "cuda_runtime", "name": call, "pid": 1, "tid": 1, "ts": 1, "dur": 2}]
    names = "void at::native::vectorized_elementwise_kernel", "one", "fmha_fwd"
    events += [
        {"ph": "X", "cat": "kernel", "name": name, "ts": 3 + 40 * place, "dur": 40, "args": {"device": 0}}
        for place, name in enumerate(names)
    ]
    head = {"deviceProperties": [{"name": hardware}]}
    found = rank_account(recorded(events, name="t.json", head=head), rank=0)
    assert [one.record_next.startswith(tool) for one in found.suspects if one.of == "kernels"] == [True] * 3
    assert sum("ncu" in one.record_next for one in found.suspects) == (3 if tool == "`ncu`" else 0)


def test_of_operators_no_profiler_of_a_device_is_named(tmp_path) -> None:
    events = [{"ph": "X", "cat": "cpu_op", "name": name, "pid": 1, "tid": 1, "ts": at, "dur": 400}
              for name, at in (("aten::relu", 0), ("mine::step", 400))]  # fmt: skip
    found = rank_account(recorded(events, name="t.json"), rank=0)
    assert {one.illness for one in found.suspects} == {"vector kernels", "kernels of unknown kind"}
    assert not any("ncu" in one.record_next for one in found.suspects)


# --- idle time against looking at every tick ---


TICK_S = 1.1e-4  # ten of them are a long pause, and nine are none


def looked_at(trace: Trace, ticks: int) -> tuple[float, float, float]:
    """Shares of a trace's time in the allocator's calls, and of long pauses in the driver's and out of them: by looking
    at every tick.
    """

    def running(at: float, row: str, name: str) -> bool:
        return any(one.start_s <= at < one.end_s for one in trace.of(row, name=name))

    asking = calling = working = 0
    pause = [not running((tick + 0.5) * TICK_S, COMPUTE, "kernel") for tick in range(ticks)]
    for tick in range(ticks):
        at = (tick + 0.5) * TICK_S
        if not pause[tick] or not running(at, HOST, "launch"):
            continue
        first = max((n + 1 for n in range(tick) if not pause[n]), default=0)
        last = min((n for n in range(tick, ticks) if not pause[n]), default=ticks)
        asking += running(at, HOST, "allocate")
        long = not running(at, HOST, "allocate") and last - first >= 10
        calling += long and running(at, HOST, "long call")
        working += long and not running(at, HOST, "long call")
    return asking / ticks, calling / ticks, working / ticks


@pytest.mark.parametrize("seed", range(6))
def test_the_host_taken_apart_agrees_with_looking_at_every_tick(seed) -> None:
    rng, ticks = random.Random(seed), 150

    def bar(row: str, name: str, start: int, length: int) -> Interval:
        return Interval(row=row, name=name, start_s=start * TICK_S, end_s=min(start + length, ticks) * TICK_S)

    bars = [bar(COMPUTE, "kernel", rng.randrange(ticks), rng.randrange(1, 9)) for _ in range(12)]
    for _ in range(12):
        start, length = rng.randrange(ticks), rng.randrange(4, 20)
        bars.append(bar(HOST, "launch", start, length))
        bars.append(bar(HOST, "allocate", start, rng.randrange(1, length)))
        bars.append(bar(HOST, "long call", start + rng.randrange(length), 1))
    trace = Trace(intervals=(*bars, bar("step", "step 1", 0, ticks)))
    when = moments(trace)
    found = idle_seconds(when, blamed(when), operators=False)
    shares = [found[illness] / (ticks * TICK_S) for illness in (ALLOCATOR, DRIVER_CALLS, HOST_WORK)]
    assert shares == pytest.approx(looked_at(trace, ticks), abs=1e-9)
    assert sum(found.values()) / (ticks * TICK_S) == pytest.approx(gauges(trace).idle)


def test_python_between_operators_is_asking_and_what_is_longer_is_not(tmp_path) -> None:
    run = Run()
    for step in STEPS:
        for _ in range(50):
            run.launch(VECTOR, 4, ask=10)
            run.at += 60  # Python, which nobody records
        run.step(step)
    assert account(run, tmp_path).suspects[0].illness == "launch-bound"
    record = read_record(str(tmp_path / "run.json.gz"))
    start_s, end_s = window(record)
    assert length(moments_in(record, (start_s, end_s)).on_host("launch")) == pytest.approx(end_s - start_s, rel=0.01)
