"""A profile as data, on real operations; and what autograd still holds after a step."""

import pytest
import torch
from torch import nn

from threeloops.measure.inner_loop import profile
from threeloops.measure.training_loop.saved_tensors import saved_bytes
from threeloops.measure.training_loop.waiting_tensors import watched


def test_calls_are_counted_over_the_recorded_steps_only() -> None:
    a = torch.ones(64, 64)
    calls = []

    def step() -> None:
        calls.append(0)
        for _ in range(5):
            a @ a

    shown = profile.profiled(step, wait=2, warmup=1, active=3)
    assert len(calls) == 6
    assert shown.op("aten::mm").calls == 15
    assert shown.op("aten::matmul").total_s >= shown.op("aten::mm").total_s
    assert shown.op("aten::matmul").self_s < shown.op("aten::matmul").total_s


def test_own_times_add_up_to_the_time_of_what_was_called_first() -> None:
    a = torch.ones(128, 128)
    shown = profile.profiled(lambda: (a @ a).sum(), active=4)
    top = sum(i.length_s for i in shown.trace.of("depth 0"))
    assert shown.self_s == pytest.approx(top, rel=0.05)
    assert shown.share("mm") + shown.share("sum") <= 1.001
    with pytest.raises(ValueError, match="op='aten::mmm' is not known"):
        shown.op("aten::mmm")


def test_nested_operations_lie_within_those_that_call_them() -> None:
    a = torch.ones(32, 32)

    def step() -> None:
        with torch.profiler.record_function("phase"):
            torch.nn.functional.linear(a, a)

    trace = profile.profiled(step, active=2).trace
    first, second = trace.of("ranges", name="phase")
    for inner in trace.of("depth 0", "depth 1"):
        assert any(outer.start_s <= inner.start_s and inner.end_s <= outer.end_s for outer in (first, second)), inner


def test_a_schedule_of_two_two_six_records_steps_five_to_ten() -> None:
    doing = profile.phases(wait=2, warmup=2, active=6, steps=14)
    assert [number + 1 for number, what in enumerate(doing) if what == "recording"][:6] == [5, 6, 7, 8, 9, 10]
    assert doing[:4] == ("idle", "idle", "warming up", "warming up")


def test_recording_costs_something_per_operation() -> None:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    small = torch.ones(8)
    # Steps shorter than a turn of the scheduler, and many: some of either kind run undisturbed, whoever else is at
    # work.
    bare, seen = profile.overhead_s(lambda: [torch.add(small, 1) for _ in range(200)], repeats=40)
    torch.set_num_threads(before)
    assert seen > 1.05 * bare


def test_what_a_graph_holds_is_let_go_with_it() -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(10, 20), nn.ReLU(), nn.Linear(20, 5))
    x = torch.ones(7, 10)
    # Both inputs of the linear layers; ReLU keeps its output, which is the second of them.
    expected = saved_bytes(model, x.clone().requires_grad_())
    with watched(model) as waiting:
        losses = [model(x.clone()).sum() for _ in range(3)]
        assert waiting.bytes == 3 * expected == 3 * (7 * 10 + 7 * 20) * 4
        losses[0].backward()
        assert waiting.bytes == 2 * expected
        losses.pop()
        assert waiting.bytes == expected
        losses[1] = losses[1].detach()
        assert waiting.bytes == 0
