"""Memory levels: how much each level of a memory holds, and how fast all of it together delivers.

>>> near = Level(chip="A100", name="L2", size_bytes=40 * 2**20, bytes_per_s=7.2e12, latency_cycles=210)
>>> far = Level(chip="A100", name="HBM", size_bytes=80 * 2**30, bytes_per_s=2e12, latency_cycles=None)
>>> print(memory_levels([near, far], title="Larger is slower", caption="Peaks.").alt)
A100: bandwidth falls 3.6 times from L2 to HBM: L2 40.0 MiB at 7.20 TB/s, 210 cycles; HBM 80.0 GiB at 2.00 TB/s.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from threeloops import checks
from threeloops.facts.hardware import Part
from threeloops.figures import labels, look
from threeloops.figures.channels import WORDS, layer, nominal, quantitative
from threeloops.figures.figure import Figure
from threeloops.inner_loop import peak_rates
from threeloops.units import TB, MiB, fmt_bytes, fmt_si

SIZES = [1, 10, 100, 1000, 10_000, 100_000]  # MiB
EDGE = 10_000  # MiB: from here on a name finds no room to the right
RATES = [1, 2, 5, 10, 20, 50, 100, 200, 500]  # TB/s


@dataclass(frozen=True, slots=True, kw_only=True)
class Level:
    """One level of one chip, all its copies together. A latency that nobody measured is None."""

    chip: str
    name: str
    size_bytes: float
    bytes_per_s: float
    latency_cycles: float | None

    def __post_init__(self) -> None:
        checks.positive(size_bytes=self.size_bytes, bytes_per_s=self.bytes_per_s)
        if self.latency_cycles is not None:
            checks.positive(latency_cycles=self.latency_cycles)

    @property
    def label(self) -> str:
        return self.name if self.latency_cycles is None else f"{self.name}, {self.latency_cycles:g} cycles"

    @property
    def sentence(self) -> str:
        wait = "" if self.latency_cycles is None else f", {self.latency_cycles:g} cycles"
        return f"{self.name} {fmt_bytes(self.size_bytes, base=2)} at {fmt_si(self.bytes_per_s, 'B/s')}{wait}"


def levels_of(part: Part, *, chip: str) -> tuple[Level, ...]:
    """Registers, L1 with shared memory, L2 and device memory of a part: all copies together, at their peaks.

    Assumes:  registers deliver what FP32 multiply-adds on all lanes read; 128 bytes per SM and cycle from shared
              memory; the boost clock; of the device memory, what the driver reports
    Raises:   ValueError for a part whose catalogue row lacks one of the facts
    """
    sms, lanes, clock_hz = int(part["sms"]), int(part["fp32_lanes_per_sm"]), part["boost_clock_hz"]
    operands = peak_rates.operand_bytes_per_s(sms=sms, lanes_per_sm=lanes, bytes_per_operand=4, clock_hz=clock_hz)
    shared = peak_rates.shared_bytes_per_s(sms=sms, clock_hz=clock_hz)
    found = (
        ("registers", sms * part["register_file_bytes_per_sm"], operands, None),
        ("shared/L1", sms * part["l1_bytes_per_sm"], shared, part["l1_latency_cycles"]),
        ("L2", part["l2_bytes"], part["l2_bytes_per_cycle"] * clock_hz, part["l2_latency_cycles"]),
        ("HBM", part.capacity_bytes(), part["memory_bytes_per_s"], part["memory_latency_cycles"]),
    )
    return tuple(
        Level(chip=chip, name=name, size_bytes=size, bytes_per_s=rate, latency_cycles=cycles)
        for name, size, rate, cycles in found
    )


def rates_of(part: Part) -> dict[str, float]:
    """Bytes/s of the same levels by name, from HBM to registers; of an NVIDIA part, as levels_of assumes.

    >>> from threeloops.facts import hardware
    >>> [f"{name} {fmt_si(rate, 'B/s')}" for name, rate in rates_of(hardware.part("h100-sxm5")).items()]
    ['HBM 3.35 TB/s', 'L2 10.1 TB/s', 'shared memory 33.5 TB/s', 'registers 401 TB/s']
    """
    found = {level.name.replace("shared/L1", "shared memory"): level for level in levels_of(part, chip=part.name)}
    return {name: level.bytes_per_s for name, level in reversed(found.items())}


def memory_levels(levels: Sequence[Level], *, title: str, caption: str) -> Figure:
    """One line per chip from its fastest level to its slowest; both axes logarithmic. The first chip's names stand
    above right, the second's below left; of a level near the right edge all names stand to the left.

    Raises:   ValueError for more than two chips: their labels would cover each other
    """
    chips = list(dict.fromkeys(level.chip for level in levels))
    if not 0 < len(chips) <= 2:
        raise ValueError(f"{len(chips)} chips were given; 1 or 2 can be drawn side by side")
    rows = [_row(level) for level in levels]
    series = nominal("chip", sort=chips)
    legend = {"orient": "top", "title": None, "symbolStrokeWidth": 0.5}
    colour = {**series, "scale": {"domain": chips, "range": list(look.SERIES_COLOURS[: len(chips)])}, "legend": legend}
    dash = {**series, "scale": {"domain": chips, "range": list(look.SERIES_DASHES[: len(chips)])}, "legend": None}
    shape = {**series, "scale": {"domain": chips, "range": list(look.SERIES_SHAPES[: len(chips)])}, "legend": legend}
    return Figure(
        title=title,
        caption=caption,
        alt=" ".join(_told([level for level in levels if level.chip == chip]) for chip in chips),
        body={
            "width": look.PLOT_WIDTH,
            "height": look.PLOT_HEIGHT,
            "data": {"values": rows},
            "encoding": {
                "x": _axis("size", "size of the level, all copies together (MiB)", SIZES),
                "y": _axis("rate", "bandwidth (TB/s)", RATES),
            },
            "layer": [
                layer(
                    {"type": "line", "strokeWidth": 1.5, "aria": False},
                    color=colour,
                    strokeDash=dash,
                    order=quantitative("rate"),
                ),
                layer({"type": "point", "filled": True, "size": 90, "opacity": 1}, color=colour, shape=shape, **WORDS),
                *(
                    _names(chip, above=index == 0, edge=edge)
                    for index, chip in enumerate(chips)
                    for edge in (False, True)
                ),
            ],
        },
    )


def _told(levels: Sequence[Level]) -> str:
    """One chip's levels in words, the fall from the first to the last before all others."""
    fall = levels[0].bytes_per_s / levels[-1].bytes_per_s
    return (
        f"{levels[0].chip}: bandwidth falls {fall:.3g} times from {levels[0].name} to {levels[-1].name}:"
        f" {'; '.join(level.sentence for level in levels)}."
    )


def _row(level: Level) -> dict[str, Any]:
    words = f"{level.chip}: {level.sentence}"
    return {
        "chip": level.chip,
        "size": level.size_bytes / MiB,
        "rate": level.bytes_per_s / TB,
        "label": level.label,
        "words": words,
    }


def _names(chip: str, *, above: bool, edge: bool) -> dict[str, Any]:
    """The names of a chip's levels: those near the right edge, or the others."""
    right = above and not edge
    near, far = (-0.5, -2.7) if above else (0.5, 0.8)  # far: clear of the line, which comes down from the left
    aside = {
        "align": "left" if right else "right",
        "dx": 9 if right else -9,
        "dy": labels.ROW * (far if edge else near),
    }
    return {
        "transform": [{"filter": f"datum.chip === {chip!r} && (datum.size > {EDGE}) === {str(edge).lower()}"}],
        **layer({"type": "text", "baseline": "middle", "color": look.GREY, "aria": False, **aside}, text="label"),
    }


def _axis(field: str, title: str, ticks: list[int]) -> dict[str, Any]:
    scale = {"type": "log", "domain": [ticks[0], ticks[-1]], "nice": False}
    return quantitative(field, title=title, scale=scale, axis={"values": ticks, "format": ",~r"})
