"""Drills on what carries the pictures: the cable to the computer, and its memory bus."""

import random

from threeloops.drills.engine.drill import Derivation, Draw, Drill, Slip, Taught, drawn
from threeloops.drills.sensor_bandwidth.cameras import SENSORS
from threeloops.driving import sensor_data
from threeloops.simulate.driving import sensors
from threeloops.units import BITS_PER_BYTE, GB

TAUGHT = Taught("driving", "The data coming in")

GBIT = GB  # of bits
RAW, YUV = 2.0, 1.5  # bytes of a pixel in memory
CABLE_GBIT, CODED, DATA = 6, 10, 9

# --- the cable -----------------------------------------------------------------------------------


def _draw_cable(rng: random.Random) -> Draw:
    width, height = rng.choice(SENSORS)
    return drawn(
        width=width,
        height=height,
        total_width=width + rng.randrange(16, 22) * width // 100,
        total_height=height + rng.randrange(13, 20) * height // 100,
        bits=rng.choice((10, 12, 14, 16)),
        rate=rng.choice((30, 36, 45)),
    )


def _cable(p: Draw) -> float:
    return (
        sensor_data.cable_bits_per_s(
            total_width=p.total_width,
            total_height=p.total_height,
            bits_per_pixel=p.bits,
            frames_per_s=p.rate,
            coded_bits=CODED,
            data_bits=DATA,
        )
        / GBIT
        / CABLE_GBIT
    )


CABLE = Drill(
    key="sensor-cable-share",
    taught=TAUGHT,
    title="What one camera takes of its cable",
    unit="",
    target_s=110,
    apart=1.06,
    wanted=lambda p: _cable(p) < 1,
    draw=_draw_cable,
    small=lambda rng: drawn(
        width=12, height=8, total_width=rng.choice((18, 27)), total_height=rng.choice((10, 11)), bits=12, rate=3
    ),
    prompt=lambda p: (
        f"A sensor delivers {p.width} × {p.height} pixels of {p.bits} bits, {p.rate} times a second; with blanking its"
        f" clock ticks {p.total_width} × {p.total_height} times a frame. The serialiser sends every tick as a pixel and"
        f" codes nine bits as ten. What share of a cable of {CABLE_GBIT} Gbit/s does the camera take?"
    ),
    derive=lambda p: Derivation(
        value=_cable(p),
        formula="ticks a frame × bits × frames per second × 10 / 9 / rate of the cable",
        substitution=(
            f"{p.total_width} × {p.total_height} × {p.bits} × {p.rate} × {CODED} / {DATA} / ({CABLE_GBIT} × {GBIT:,})"
        ),
        source="Analog Devices, MAX96752 user guide, page 46, read in 2026 (clock × bits × 10/9; 2048/2047 left out)",
    ),
    count=lambda p: (
        sensors.cable_bits(
            total_width=p.total_width,
            total_height=p.total_height,
            bits_per_pixel=p.bits,
            frames=p.rate,
            coded_bits=CODED,
            data_bits=DATA,
        )
        / GBIT
        / CABLE_GBIT
    ),
    prerequisites=("latency-camera-bandwidth",),
    slips=(
        Slip("no-blanking", lambda p: _cable(p) * p.width * p.height / (p.total_width * p.total_height))
        | "You sent the pixels alone. The pixel clock also ticks through the blanking.",
        Slip("no-coding", lambda p: _cable(p) * DATA / CODED)
        | "You sent the bits as they are. The cable carries ten for every nine.",
        Slip("coded-backwards", lambda p: _cable(p) * DATA * DATA / (CODED * CODED))
        | "Your line code makes the stream smaller. It adds bits.",
        Slip("bytes-for-bits", lambda p: _cable(p) / BITS_PER_BYTE)
        | "You compared bytes with bits. Cables are rated in bits.",
    ),
)

# --- the memory bus ------------------------------------------------------------------------------


def _draw_bus(rng: random.Random) -> Draw:
    width, height = rng.choice(SENSORS)
    return drawn(
        cameras=rng.choice((6, 7, 9, 11)),
        width=width,
        height=height,
        rate=rng.choice((20, 30, 36)),
        readers=rng.choice((2, 3, 4)),
        bus_gb=rng.choice((51.2, 102.4, 136.5, 204.8, 273.0)),
    )


def _passes(p: Draw, *, yuv: float = YUV) -> tuple[float, ...]:
    return (RAW, RAW, yuv, *(yuv for _ in range(p.readers)))


def _bus(p: Draw, passes: tuple[float, ...]) -> float:
    pixels = float(p.cameras * p.width * p.height * p.rate)
    return sensor_data.passes_bytes_per_s(pixels_per_s=pixels, pass_bytes_per_pixel=passes) / float(p.bus_gb * GB)


def _bus_share(p: Draw) -> float:
    return _bus(p, _passes(p))


BUS = Drill(
    key="sensor-bus-share",
    taught=TAUGHT,
    title="What the cameras take of the memory bus",
    unit="",
    target_s=150,
    apart=1.06,
    wanted=lambda p: _bus_share(p) < 0.9,
    draw=_draw_bus,
    small=lambda rng: drawn(
        cameras=2, width=6, height=4, rate=rng.choice((3, 5)), readers=rng.choice((1, 2, 3)), bus_gb=1.0
    ),
    prompt=lambda p: (
        f"{p.cameras} cameras of {p.width} × {p.height} pixels give {p.rate} frames per second. The receiver writes raw"
        " pixels to memory, two bytes each; the image processor reads them and writes YUV 4:2:0, 1.5 bytes a pixel;"
        f" {p.readers} engines read that picture in full. What share of a memory bus of {p.bus_gb:g} GB/s is taken?"
    ),
    derive=lambda p: Derivation(
        value=_bus_share(p),
        formula="pixels per second × (raw written + raw read + YUV written + readers × YUV read) / bus",
        substitution=(
            f"{p.cameras} × {p.width} × {p.height} × {p.rate} × (2 + 2 + 1.5 + {p.readers} × 1.5) /"
            f" ({p.bus_gb:g} × {GB:,})"
        ),
        source="raw in, NV12 out (NXP, AN13712, 2023); no cache holds a picture of several megabytes",
    ),
    count=lambda p: (
        sensors.moved_bytes(pixels=p.cameras * p.width * p.height * p.rate, pass_bytes_per_pixel=_passes(p))
        / (p.bus_gb * GB)
    ),
    prerequisites=("latency-camera-bandwidth",),
    slips=(
        Slip("arrives-once", lambda p: _bus(p, (RAW,)))
        | "You counted the pictures as they arrive. Every read and every further write crosses the bus again.",
        Slip("writes-only", lambda p: _bus(p, (RAW, YUV))) | "You counted the writes. Reads use the same bus.",
        Slip("rgb", lambda p: _bus(p, _passes(p, yuv=3.0)))
        | "You gave a processed pixel three bytes. YUV 4:2:0 shares its colour among four pixels.",
        Slip("one-camera", lambda p: _bus_share(p) / p.cameras) | "That is one camera.",
    ),
)

DRILLS = (CABLE, BUS)
