"""Sensor data view: what the sensor explorer shows for a state, as figure, sentences and table. No widget in here: it
is computed and tested without a browser.

>>> print(view(State(cameras=8, size="3840 × 2160", bits=12, rate=30)).summary)
8 cameras of 3840 × 2160 pixels, 12 bits, 30 frames/s: 2.99 GB/s. Fullest: 10GBASE-T1, 299 %: it does not fit.
"""

from dataclasses import dataclass

from threeloops.driving import sensor_data
from threeloops.facts import hardware
from threeloops.figures.product_loop.bound_bars import bound_bars
from threeloops.units import BITS_PER_BYTE, fmt_percent, fmt_si
from threeloops.widgets.view import View

SIZES = {
    "1920 × 1080": (1920, 1080),
    "1920 × 1280": (1920, 1280),
    "2880 × 1860": (2880, 1860),
    "3840 × 2160": (3840, 2160),
}
BITS, RATES, MOST_CAMERAS = (8, 10, 12, 16, 20, 24), (10, 15, 20, 30, 36, 45, 60), 12
BLANKING = (115, 113)  # percent of width and height: together the 1.3 that Analog Devices takes for cameras
USABLE_ETHERNET = 0.8  # of the link's rate, given: frames have headers and gaps, and a full link queues
NETWORK_PIXELS, NETWORK_BYTES = 704 * 256, 3 * 2  # FP16 in three colours
RAW, YUV, FULL = 2.0, 1.5, 12.0  # bytes of a pixel in memory: raw, YUV 4:2:0, RGB in FP32
COLUMNS = ("what carries it", "has to carry", "can carry", "full")


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """Where the controls stand."""

    cameras: int
    size: str
    bits: int
    rate: int

    def __post_init__(self) -> None:
        for name, value, known in (
            ("cameras", self.cameras, tuple(range(1, MOST_CAMERAS + 1))),
            ("size", self.size, tuple(SIZES)),
            ("bits", self.bits, BITS),
            ("rate", self.rate, RATES),
        ):
            if value not in known:
                raise ValueError(f"{name}={value!r} must be one of {', '.join(map(str, known))}")


def arriving_bytes_per_s(state: State) -> float:
    """What all cameras deliver."""
    width, height = SIZES[state.size]
    return sensor_data.camera_bytes_per_s(
        cameras=state.cameras, width=width, height=height, bits_per_pixel=state.bits, frames_per_s=state.rate
    )


def loads(state: State) -> dict[str, tuple[float, float]]:
    """Name -> bits per second that it has to carry, and that it can."""
    width, height = SIZES[state.size]
    cable = sensor_data.cable_bits_per_s(
        total_width=width * BLANKING[0] // 100,
        total_height=height * BLANKING[1] // 100,
        bits_per_pixel=state.bits,
        frames_per_s=state.rate,
        coded_bits=10,
        data_bits=9,
    )
    lane, link = hardware.part("mipi-dphy-1-2-x4"), hardware.part("ethernet-10gbase-t1")
    row = sensor_data.csi_row_bits_per_s(
        width=width,
        total_height=height * BLANKING[1] // 100,
        bits_per_pixel=state.bits,
        frames_per_s=state.rate,
    )
    bus = BITS_PER_BYTE * hardware.part("jetson-agx-orin-64gb")["memory_bytes_per_s"]
    small = NETWORK_PIXELS * NETWORK_BYTES / (width * height)
    few = (RAW, RAW, YUV, YUV, small, small)
    many = (RAW, RAW, YUV, YUV, FULL, FULL, FULL, FULL, small, small)
    pixels = float(state.cameras * width * height * state.rate)

    def moved(passes: tuple[float, ...]) -> float:
        return BITS_PER_BYTE * sensor_data.passes_bytes_per_s(pixels_per_s=pixels, pass_bytes_per_pixel=passes)

    return {
        "cable (GMSL2)": (cable, hardware.part("gmsl2")["bits_per_s_per_lane"]),
        "CSI-2, 4 lanes": (row, lane["lanes"] * lane["bits_per_s_per_lane"]),
        "10GBASE-T1": (BITS_PER_BYTE * arriving_bytes_per_s(state), USABLE_ETHERNET * link["bits_per_s_per_lane"]),
        "bus, small first": (moved(few), bus),
        "bus, large first": (moved(many), bus),
    }


def view(state: State) -> View:
    """How full each carrier is."""
    carried = loads(state)
    full = {name: 100 * load / most for name, (load, most) in carried.items()}
    fullest = max(full, key=lambda name: full[name])
    said = f"{state.cameras} camera{'s' if state.cameras > 1 else ''} of {state.size} pixels, {state.bits} bits"
    fits = "it does not fit" if full[fullest] > 100 else "everything fits"
    summary = (
        f"{said}, {state.rate} frames/s: {fmt_si(arriving_bytes_per_s(state), 'B/s')}. Fullest: {fullest},"
        f" {fmt_percent(full[fullest] / 100)}: {fits}."
    )
    figure = bound_bars(
        {"": full},
        what="percent full",
        title=f"{said}, {state.rate}/s: {fits}",
        caption="Cable and CSI-2: one camera; the rest: all. Blanking 1.3, line code 10/9, Ethernet 80 %.",
    )
    rows = tuple(
        (name, fmt_si(load, "bit/s"), fmt_si(most, "bit/s"), fmt_percent(load / most))
        for name, (load, most) in carried.items()
    )
    return View(columns=COLUMNS, figure=figure, summary=summary, rows=rows)
