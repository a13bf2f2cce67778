"""Stages placed on the engines of a chip whose memory they share: how long a frame takes, and how often one can come.

>>> backbone = Stage(name="backbone", engine="dla", ops=176e9, moved_bytes=0.4e9, peak_ops_per_s=52.5e12)
>>> heads = Stage(name="heads", engine="gpu", ops=60e9, moved_bytes=0.3e9, peak_ops_per_s=85e12)
>>> bus = 204.8e9
>>> round(frame_latency_s([backbone, heads], memory_bytes_per_s=bus) * 1e3, 2)
4.82
>>> round(period_s([backbone, heads], memory_bytes_per_s=bus) * 1e3, 2)  # the bus: 0.7 GB a frame
3.42
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from threeloops import checks
from threeloops.models.convnets import ConvNet


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """A stage of the pipeline on the engine that it was given."""

    name: str
    engine: str
    ops: float  # two per multiply-add
    moved_bytes: float  # to and from the shared memory
    peak_ops_per_s: float  # of its engine, dense, in its number format and power mode

    def __post_init__(self) -> None:
        checks.non_negative(ops=self.ops, moved_bytes=self.moved_bytes)
        checks.positive(peak_ops_per_s=self.peak_ops_per_s)


def stage_s(stage: Stage, *, memory_bytes_per_s: float, sharers: int) -> float:
    """The least time of one stage while so many engines, its own among them, share the memory all the time.

    Formula:  max(ops / peak, bytes * sharers / bandwidth)
    Assumes:  computing and moving overlap fully; the memory is shared fairly
    Source:   Williams, Waterman, Patterson, CACM 52(4), 2009, doi:10.1145/1498765.1498785, for sharers = 1
    Counted:  simulate.driving.shared_bus.frame_slices

    >>> stage = Stage(name="heads", engine="gpu", ops=60e9, moved_bytes=0.3e9, peak_ops_per_s=85e12)
    >>> [round(stage_s(stage, memory_bytes_per_s=204.8e9, sharers=engines) * 1e3, 2) for engines in (1, 2)]
    [1.46, 2.93]
    """
    checks.positive(memory_bytes_per_s=memory_bytes_per_s)
    checks.count(sharers=sharers)
    return max(stage.ops / stage.peak_ops_per_s, stage.moved_bytes * sharers / memory_bytes_per_s)


def frame_latency_s(stages: Iterable[Stage], *, memory_bytes_per_s: float) -> float:
    """The least time of one frame that has the chip to itself: its stages one after the other.

    Formula:  sum of stage times
    Assumes:  each stage waits for the one before it
    Source:   by definition
    Counted:  simulate.driving.shared_bus.frame_slices
    """
    return sum(stage_s(stage, memory_bytes_per_s=memory_bytes_per_s, sharers=1) for stage in stages)


def period_s(stages: Sequence[Stage], *, memory_bytes_per_s: float) -> float:
    """The least time between two frames when the engines work on different frames.

    Formula:  max(the busiest engine's stage times, bytes of all stages / bandwidth)
    Assumes:  an engine does one stage at a time; frames enough that every engine is kept busy
    Source:   Hennessy and Patterson, Computer Architecture, 6th ed., 2017, appendix C.1 (the slowest resource sets a
              pipeline's rate), with the memory as one of the resources
    Counted:  simulate.driving.shared_bus.frame_slices

    Raises:   ValueError without stages
    """
    checks.count(stages=len(stages))
    busy_s: dict[str, float] = defaultdict(float)
    for stage in stages:
        busy_s[stage.engine] += stage_s(stage, memory_bytes_per_s=memory_bytes_per_s, sharers=1)
    return max(*busy_s.values(), sum(stage.moved_bytes for stage in stages) / memory_bytes_per_s)


def layer_stages(
    net: ConvNet, *, engine: str, images: int, bytes_per_element: float, peak_ops_per_s: float
) -> tuple[Stage, ...]:
    """A convolutional network as a chain of stages, one per layer.

    Assumes:  weights are read once per frame; what a layer writes is written once and read once by whoever comes next

    >>> from threeloops.models import catalogue
    >>> net = catalogue.convnet("resnet-34", height=768, width=1280)
    >>> stages = layer_stages(net, engine="dla", images=1, bytes_per_element=1, peak_ops_per_s=52.5e12)
    >>> round(sum(stage.ops for stage in stages) / 1e9, 1), round(sum(stage.moved_bytes for stage in stages) / 1e6)
    (143.5, 168)
    """
    checks.count(images=images)
    checks.positive(bytes_per_element=bytes_per_element)
    return tuple(
        Stage(
            name=layer.name,
            engine=engine,
            ops=images * layer.flops,
            moved_bytes=(layer.parameters + 2 * images * layer.output_elements) * bytes_per_element,
            peak_ops_per_s=peak_ops_per_s,
        )
        for layer in net.layers
    )


def placed(
    work: Mapping[str, tuple[float, float]], engines: Sequence[str], peaks: Mapping[str, float]
) -> tuple[Stage, ...]:
    """Stages (operations, bytes) by name, each put on the engine that stands in its place of `engines`.

    Raises:   ValueError for an engine without a peak, or if the lengths differ

    >>> [stage.engine for stage in placed({"camera": (1e11, 4e8)}, ["dla"], {"dla": 52.5e12})]
    ['dla']
    """
    for engine in engines:
        checks.one_of(peaks, engine=engine)
    return tuple(
        Stage(name=name, engine=engine, ops=ops, moved_bytes=size, peak_ops_per_s=peaks[engine])
        for engine, (name, (ops, size)) in zip(engines, work.items(), strict=True)
    )


def together(name: str, stages: Sequence[Stage]) -> Stage:
    """A chain of layers on one engine as a single stage.

    Raises:   ValueError for stages on more than one engine or none
    """
    if len({(stage.engine, stage.peak_ops_per_s) for stage in stages}) != 1:
        raise ValueError(f"{name!r} has stages on several engines or none; put them on one")
    return Stage(
        name=name,
        engine=stages[0].engine,
        ops=sum(stage.ops for stage in stages),
        moved_bytes=sum(stage.moved_bytes for stage in stages),
        peak_ops_per_s=stages[0].peak_ops_per_s,
    )
