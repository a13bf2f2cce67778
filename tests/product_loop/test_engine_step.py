"""An engine's switches: the formula for a step against launches that are played one by one."""

import pytest

from threeloops.models import catalogue
from threeloops.product_loop import engine_step
from threeloops.product_loop.engine_step import PRECISIONS, Device, Switches
from threeloops.simulate.inner_loop import launch_queue

DEVICE = Device(
    matrix_flops_per_s={"bf16": 900e12, "int8": 1700e12, "int4": 900e12},
    vector_flops_per_s=60e12,
    memory_bytes_per_s=3e12,
    issue_s=7e-6,
    gap_s=0.4e-6,
    graph_launch_s=40e-6,
)
MODEL = catalogue.model("llama-3-8b")


def kernels(switches: Switches, *, batch: int, context: int) -> list[float]:
    """Seconds of every launch, in order: layer after layer, each row of the table as often as it is launched."""
    ops = engine_step.launched(MODEL, switches, batch=batch, context=context)
    return [engine_step.kernel_s(op, DEVICE, switches) for op in ops for _ in range(op.count)]


@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("fused", [False, True])
@pytest.mark.parametrize(("batch", "context"), [(1, 500), (3, 2048), (200, 3000)])
def test_a_recorded_step_takes_what_the_replay_takes(precision: str, fused: bool, batch: int, context: int) -> None:
    switches = Switches(precision=precision, fused=fused, captured=True)
    step = engine_step.engine_step(MODEL, DEVICE, switches, batch=batch, context=context)
    run = kernels(switches, batch=batch, context=context)
    played = launch_queue.replay(run, launch_s=DEVICE.graph_launch_s, gap_s=DEVICE.gap_s)
    assert step.num_kernels == len(run)
    assert step.total_s == pytest.approx(played.finished_s)


@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("fused", [False, True])
@pytest.mark.parametrize(("batch", "context"), [(1, 500), (3, 2048), (200, 3000)])
def test_launching_one_by_one_is_bounded_by_the_longer_of_host_and_device(
    precision: str, fused: bool, batch: int, context: int
) -> None:
    """The formula takes the longer of the two sums; what is played can only be longer, by what short kernels wait for
    the host after long ones have used up its lead.
    """
    switches = Switches(precision=precision, fused=fused, captured=False)
    step = engine_step.engine_step(MODEL, DEVICE, switches, batch=batch, context=context)
    run = kernels(switches, batch=batch, context=context)
    played = launch_queue.play(run, issue_s=DEVICE.issue_s, queue=1000).finished_s
    assert step.total_s <= played <= len(run) * DEVICE.issue_s + sum(run)
    alternating = [run[place % len(run)] for place in range(0, len(run) * 7, 7)]  # long and short mixed, as in layers
    mixed = launch_queue.play(alternating, issue_s=DEVICE.issue_s, queue=1000).finished_s
    assert mixed == pytest.approx(step.total_s, rel=0.35)


def test_what_a_switch_brings_depends_on_the_others() -> None:
    def seconds(batch: int, **switches: bool | str) -> float:
        chosen = Switches(**{"precision": "bf16", "fused": False, "captured": False, **switches})  # type: ignore[arg-type]
        return engine_step.engine_step(MODEL, DEVICE, chosen, batch=batch, context=2048).total_s

    assert seconds(1, precision="int8") == pytest.approx(seconds(1)), (
        "launches set the pace: narrow products bring nothing"
    )
    assert seconds(1, fused=True, precision="int8") < 0.6 * seconds(1, fused=True)
    assert seconds(256, fused=True, precision="int8") > 0.85 * seconds(256, fused=True), "the cache sets the pace"


def test_an_unknown_precision_is_refused() -> None:
    with pytest.raises(ValueError, match="int4"):
        Switches(precision="fp6", fused=True, captured=True)
    few = Device(
        matrix_flops_per_s={"bf16": 1e12},
        vector_flops_per_s=1e12,
        memory_bytes_per_s=1e12,
        issue_s=0,
        gap_s=0,
        graph_launch_s=0,
    )
    with pytest.raises(ValueError, match="bf16"):
        engine_step.engine_step(MODEL, few, Switches(precision="int8", fused=True, captured=True), batch=1, context=1)
