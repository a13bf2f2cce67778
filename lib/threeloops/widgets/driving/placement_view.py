"""Placement view: what the placement explorer shows for a state, as figure, sentences and table. No widget in here: it
is computed and tested without a browser.

The camera stage is six ResNet-50 of 704 x 256 in INT8, counted layer by layer; fusion with heads and the planner are
invented, as in the chapter.

>>> print(view(State(chip="AGX Orin 64GB", camera="gpu", in_memory=1.0)).summary)
AGX Orin 64GB, camera stage on the GPU, 100 % of its bytes in memory: a frame takes 6.42 ms at least, results come 4.51 ms apart, and the memory is the bottleneck. At most 0.27 J per frame at 60 W.
"""  # noqa: E501

import functools
from collections import defaultdict
from dataclasses import dataclass

from threeloops import checks
from threeloops.driving import soc_fit
from threeloops.facts import hardware
from threeloops.figures.training_loop.step_bars import step_bars
from threeloops.models import catalogue
from threeloops.units import GFLOP, MB, fmt_seconds, ms
from threeloops.widgets.view import View

# name -> (part, power mode, watts that the mode or module may draw; 0 where nobody prints it)
CHIPS = {
    "AGX Orin 64GB": ("jetson-agx-orin-64gb", "maxn", 60),
    "AGX Orin 64GB, 50 W": ("jetson-agx-orin-64gb", "50w", 50),
    "AGX Orin 64GB, 30 W": ("jetson-agx-orin-64gb", "30w", 30),
    "AGX Orin 64GB, 15 W": ("jetson-agx-orin-64gb", "15w", 15),
    "AGX Orin 32GB": ("jetson-agx-orin-32gb", "maxn", 40),
    "DRIVE Orin": ("drive-orin", "default", 0),
    "Thor T5000": ("jetson-thor", "maxn", 130),
}
SLOW_MEMORY = ("AGX Orin 64GB, 15 W",)  # the mode that lowers the memory's clock, too
CAMERA_ON = ("gpu", "dla")
IN_MEMORY = (1.0, 0.5, 0.25)
LONGEST_S = 14 * ms  # of the axis; one mode with few watts goes beyond
COLUMNS = ("chip", "latency", "period", "bottleneck")


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """Where the controls stand."""

    chip: str
    camera: str  # engine of the camera stage
    in_memory: float  # share of the camera stage's bytes that go through the memory

    def __post_init__(self) -> None:
        checks.one_of(CHIPS, chip=self.chip)
        checks.one_of(CAMERA_ON, camera=self.camera)
        if self.in_memory not in IN_MEMORY:
            raise ValueError(f"in_memory={self.in_memory!r} must be one of {', '.join(map(str, IN_MEMORY))}")


@functools.cache
def _camera() -> soc_fit.Stage:
    net = catalogue.convnet("resnet-50", height=256, width=704)
    layers = soc_fit.layer_stages(net, engine="gpu", images=6, bytes_per_element=1, peak_ops_per_s=1.0)
    return soc_fit.together("camera", layers)


def engine_of(state: State) -> str:
    """Where the camera stage really runs: on the GPU if the chip has no DLA."""
    return state.camera if state.camera in hardware.part(CHIPS[state.chip][0]).engines else "gpu"


def memory_bytes_per_s(state: State) -> float:
    """The memory's rate in this power mode."""
    fact = "capped_memory_bytes_per_s" if state.chip in SLOW_MEMORY else "memory_bytes_per_s"
    return float(hardware.part(CHIPS[state.chip][0])[fact])


def stages_of(state: State) -> tuple[soc_fit.Stage, ...]:
    """The pipeline on this chip."""
    key, mode, _ = CHIPS[state.chip]
    part = hardware.part(key)
    peaks = {
        engine: part.peak_flops_per_s("int8", engine=engine, power_mode=mode)
        for engine in CAMERA_ON
        if engine in part.engines
    }
    work = {
        "camera": (_camera().ops, _camera().moved_bytes * state.in_memory),
        "fusion": (60 * GFLOP, 400 * MB),
        "planner": (2 * ms, 20 * MB),  # operations of a CPU that does one second per second
    }
    return soc_fit.placed(work, (engine_of(state), "gpu", "cpu"), {**peaks, "cpu": 1.0})


def bars(state: State) -> dict[str, dict[str, float]]:
    """Seconds of a frame on every engine and on the memory, by stage: the longest bar is the period."""
    bandwidth = memory_bytes_per_s(state)
    found: dict[str, dict[str, float]] = defaultdict(dict)
    for stage in stages_of(state):
        found[stage.engine][stage.name] = soc_fit.stage_s(stage, memory_bytes_per_s=bandwidth, sharers=1)
    memory = {stage.name: stage.moved_bytes / bandwidth for stage in stages_of(state)}  # first: has all stages in order
    names = (("GPU", "gpu"), ("DLAs", "dla"), ("CPU", "cpu"))
    return {"memory": memory, **{name: found[engine] for name, engine in names if engine in found}}


def _bounds(state: State) -> tuple[float, float, str]:
    """(latency, period, which bar is the longest)"""
    bandwidth = memory_bytes_per_s(state)
    stages, rows = stages_of(state), bars(state)
    pace = max(rows, key=lambda row: sum(rows[row].values()))
    return (
        soc_fit.frame_latency_s(stages, memory_bytes_per_s=bandwidth),
        soc_fit.period_s(stages, memory_bytes_per_s=bandwidth),
        pace,
    )


def view(state: State) -> View:
    """Bars of engines and memory, the words, and the same placement on every chip."""
    latency, period, pace = _bounds(state)
    watts = CHIPS[state.chip][2]
    where = "GPU" if engine_of(state) == "gpu" else "DLAs"
    energy = f" At most {watts * period:.2f} J per frame at {watts} W." if watts else " Its power is not printed."
    missing = f" No DLA is listed for {state.chip}." if engine_of(state) != state.camera else ""
    summary = (
        f"{state.chip}, camera stage on the {where}, {100 * state.in_memory:.0f} % of its bytes in"
        f" memory: a frame takes {fmt_seconds(latency)} at least, results come {fmt_seconds(period)} apart, and the"
        f" {pace} {'are' if pace == 'DLAs' else 'is'} the bottleneck.{missing}{energy}"
    )
    figure = step_bars(
        bars(state),
        title=f"{state.chip}: a frame {fmt_seconds(latency)}, results {fmt_seconds(period)} apart",
        caption="Least times of one frame on every engine and on the memory; INT8, dense, at full bandwidth.",
        upto_s=LONGEST_S,
    )
    rows = []
    for chip in CHIPS:
        other = State(chip=chip, camera=state.camera, in_memory=state.in_memory)
        one, apart, slowest = _bounds(other)
        rows.append((chip, fmt_seconds(one), fmt_seconds(apart), slowest))
    return View(columns=COLUMNS, figure=figure, summary=summary, rows=tuple(rows))
