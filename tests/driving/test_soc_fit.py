"""Stages on engines that share a memory: the formulas against work and bytes moved in slices of time."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from threeloops.driving import soc_fit
from threeloops.driving.soc_fit import Stage
from threeloops.models import catalogue
from threeloops.simulate.driving import shared_bus
from threeloops.simulate.driving.shared_bus import Job

BUS = 200e9
SLICE_S = 20e-6

stages = some.builds(
    Stage,
    name=some.just("stage"),
    engine=some.sampled_from(["gpu", "dla", "cpu"]),
    ops=some.floats(1e10, 2e11),
    moved_bytes=some.floats(0, 6e8),
    peak_ops_per_s=some.sampled_from([20e12, 50e12, 85e12]),
)


def ends_s(chains: list[list[Stage]]) -> list[float]:
    ends = shared_bus.frame_slices(
        [shared_bus.jobs_of(chain, slice_s=SLICE_S) for chain in chains], bus_bytes_per_slice=BUS * SLICE_S
    )
    return [end * SLICE_S for end in ends]


@settings(max_examples=30, deadline=None)
@given(some.lists(stages, min_size=1, max_size=4))
def test_a_frame_alone_takes_the_sum_of_its_stages(chain: list[Stage]) -> None:
    """A stage ends with a slice, so each may take up to one slice more."""
    (end,) = ends_s([chain])
    least = soc_fit.frame_latency_s(chain, memory_bytes_per_s=BUS)
    assert least - 1e-9 <= end <= least + len(chain) * SLICE_S


@settings(max_examples=30, deadline=None)
@given(some.lists(stages, min_size=1, max_size=4))
def test_frames_never_come_faster_than_the_busiest_engine_or_the_bus(chain: list[Stage]) -> None:
    frames = 12
    end = ends_s([chain] * frames)[-1]
    least = soc_fit.period_s(chain, memory_bytes_per_s=BUS)
    assert end >= frames * least * (1 - 1e-9)
    assert end <= frames * sum(soc_fit.stage_s(s, memory_bytes_per_s=BUS, sharers=3) + SLICE_S for s in chain)


@settings(max_examples=20, deadline=None)
@given(some.lists(some.floats(1e8, 6e8), min_size=2, max_size=3))
def test_engines_that_only_move_bytes_are_as_fast_as_the_bus(sizes: list[float]) -> None:
    chain = [
        Stage(name=f"{place}", engine=f"engine {place}", ops=0, moved_bytes=size, peak_ops_per_s=1e12)
        for place, size in enumerate(sizes)
    ]
    frames = 40
    end = ends_s([chain] * frames)[-1]
    least = soc_fit.period_s(chain, memory_bytes_per_s=BUS)
    filling = soc_fit.frame_latency_s(chain, memory_bytes_per_s=BUS)
    assert frames * least * (1 - 1e-9) <= end <= frames * least + filling + len(chain) * frames * SLICE_S


def test_engines_that_only_compute_are_as_fast_as_the_slowest() -> None:
    chain = [
        Stage(name=name, engine=name, ops=ops, moved_bytes=0, peak_ops_per_s=50e12)
        for name, ops in (("gpu", 1e11), ("dla", 3e11), ("cpu", 5e10))
    ]
    ends = ends_s([chain] * 10)
    period = soc_fit.period_s(chain, memory_bytes_per_s=BUS)
    assert period == pytest.approx(6e-3)
    assert ends[-1] - ends[-2] == pytest.approx(period, abs=2 * SLICE_S)


@settings(max_examples=30, deadline=None)
@given(stages, stages)
def test_a_neighbour_slows_a_stage_at_most_as_if_it_never_stopped(mine: Stage, other: Stage) -> None:
    mine = Stage(name="mine", engine="gpu", ops=mine.ops, moved_bytes=mine.moved_bytes, peak_ops_per_s=85e12)
    other = Stage(name="other", engine="dla", ops=other.ops, moved_bytes=other.moved_bytes, peak_ops_per_s=50e12)
    end, _ = ends_s([[mine], [other]])
    alone, worst = (soc_fit.stage_s(mine, memory_bytes_per_s=BUS, sharers=sharers) for sharers in (1, 2))
    assert alone - 1e-9 <= end <= worst + SLICE_S


def test_layers_add_up_to_the_network() -> None:
    net = catalogue.convnet("resnet-50", height=256, width=704)
    layers = soc_fit.layer_stages(net, engine="gpu", images=6, bytes_per_element=2, peak_ops_per_s=42.5e12)
    whole = soc_fit.together("backbone", layers)
    assert whole.ops == 6 * net.flops
    assert whole.moved_bytes == 2 * net.parameters + 6 * 2 * 2 * net.output_elements
    # layer by layer some wait for memory and some for arithmetic; as one stage they help each other
    assert soc_fit.stage_s(whole, memory_bytes_per_s=BUS, sharers=1) <= soc_fit.frame_latency_s(
        layers, memory_bytes_per_s=BUS
    )
    with pytest.raises(ValueError, match="several engines or none"):
        soc_fit.together("nothing", [])


def test_work_lands_on_the_engine_it_was_given() -> None:
    placed = soc_fit.placed({"a": (1e9, 2e6), "b": (3e9, 4e6)}, ("dla", "gpu"), {"gpu": 5e12, "dla": 6e12})
    assert [(s.name, s.engine, s.ops, s.moved_bytes, s.peak_ops_per_s) for s in placed] == [
        ("a", "dla", 1e9, 2e6, 6e12),
        ("b", "gpu", 3e9, 4e6, 5e12),
    ]
    with pytest.raises(ValueError, match="engine='npu' is not known"):
        soc_fit.placed({"a": (1e9, 2e6)}, ("npu",), {"gpu": 5e12})


def test_a_simulation_that_does_not_end_says_so() -> None:
    with pytest.raises(RuntimeError, match="not done after 10 slices"):
        shared_bus.frame_slices(
            [[Job(engine="gpu", ops=100, moved_bytes=0, ops_per_slice=1)]], bus_bytes_per_slice=1, most_slices=10
        )
