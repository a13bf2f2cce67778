"""A profile as data, on real operations; and what autograd still holds after a step."""

import pytest
import torch
from torch import nn
from torch.profiler import ProfilerActivity

from threeloops.measure.inner_loop import profile
from threeloops.measure.training_loop.saved_tensors import saved_bytes
from threeloops.measure.training_loop.waiting_tensors import watched
from threeloops.units import us


def recorded(step):
    step()  # the first call is slow
    with profile.quiet(), torch.profiler.profile(activities=[ProfilerActivity.CPU]) as recorder:
        for _ in range(4):
            step()
    return recorder


def test_own_times_add_up_to_the_time_of_what_was_called_first() -> None:
    a = torch.ones(128, 128)
    recorder = recorded(lambda: (a @ a).sum())
    top_s = sum(interval.length_s for interval in profile.trace(recorder).of("depth 0"))
    own_s = sum(row.self_cpu_time_total for row in recorder.key_averages()) * us
    assert own_s == pytest.approx(top_s, rel=0.05)
    assert 0 < profile.share(recorder, "mm") + profile.share(recorder, "sum") <= 1.001
    assert profile.share(recorder, "aten::") == pytest.approx(1, abs=0.001)
    assert profile.share(recorder, "softmax") == 0


def test_nested_operations_lie_within_those_that_call_them() -> None:
    a = torch.ones(32, 32)

    def step() -> None:
        with torch.profiler.record_function("phase"):
            torch.nn.functional.linear(a, a)

    trace = profile.trace(recorded(step))
    outers = trace.of("ranges", name="phase")
    assert len(outers) == 4
    for inner in trace.of("depth 0", "depth 1"):
        assert any(outer.start_s <= inner.start_s and inner.end_s <= outer.end_s for outer in outers), inner


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
