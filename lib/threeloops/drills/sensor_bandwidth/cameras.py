"""Drills on cameras: what they deliver, and on how many lanes."""

import random

from threeloops.drills.engine.drill import AsFunction, Derivation, Draw, Drill, Slip, Taught, drawn
from threeloops.driving import sensor_data
from threeloops.simulate.driving import sensors
from threeloops.units import BITS_PER_BYTE, MB

TAUGHT = Taught("driving", "The data coming in")
SENSORS = ((1920, 1080), (1920, 1280), (2880, 1860), (3840, 2160), (1936, 1220))
MBIT = MB  # of bits

# --- cameras -------------------------------------------------------------------------------------


def _draw_camera(rng: random.Random) -> Draw:
    width, height = rng.choice(SENSORS)
    return drawn(
        cameras=rng.choice((5, 6, 7, 11)),
        width=width,
        height=height,
        bits=rng.choice((10, 12, 14)),
        rate=rng.choice((30, 36, 45)),
    )


def _camera(p: Draw) -> float:
    return sensor_data.camera_bytes_per_s(
        cameras=p.cameras, width=p.width, height=p.height, bits_per_pixel=p.bits, frames_per_s=p.rate
    )


CAMERA = Drill(
    key="latency-camera-bandwidth",
    taught=TAUGHT,
    title="What the cameras deliver",
    unit="B/s",
    target_s=90,
    draw=_draw_camera,
    small=lambda rng: drawn(
        cameras=rng.choice((2, 3)),
        width=rng.choice((4, 6)),
        height=rng.choice((3, 5)),
        bits=rng.choice((12, 24)),
        rate=rng.choice((5, 10)),
    ),
    prompt=lambda p: (
        f"A car has {p.cameras} cameras of {p.width} × {p.height} pixels, {p.rate} frames per second each. The raw"
        f" pictures are sent uncompressed, {p.bits} bits a pixel, packed without gaps. How many bytes per second arrive"
        " in all?"
    ),
    derive=lambda p: Derivation(
        value=_camera(p),
        formula="cameras × width × height × bits per pixel / 8 × frames per second",
        substitution=f"{p.cameras} × {p.width} × {p.height} × {p.bits} / 8 × {p.rate}",
        source="the geometry of the picture; a raw sensor gives one value per pixel (Bayer, US patent 3,971,065, 1976)",
    ),
    count=lambda p: sensors.bytes_in_a_second(
        cameras=p.cameras, width=p.width, height=p.height, bits_per_pixel=p.bits, frames_per_s=p.rate
    ),
    slips=(
        Slip("one-camera", lambda p: _camera(p) / p.cameras) | "That is one camera.",
        Slip("rgb", lambda p: _camera(p) * 3 * BITS_PER_BYTE / p.bits)
        | "You sent three bytes per pixel. A raw sensor has one value per pixel; colour is worked out later.",
        Slip("two-bytes", lambda p: _camera(p) * 2 * BITS_PER_BYTE / p.bits)
        | "You gave each pixel two whole bytes. Packed without gaps, they take less.",
        Slip("one-frame", lambda p: _camera(p) / p.rate) | "That is one picture of each camera, not a second of them.",
    ),
)

# --- lanes ---------------------------------------------------------------------------------------


def _draw_lanes(rng: random.Random) -> Draw:
    width, height = rng.choice(SENSORS)
    return drawn(
        width=width,
        height=height,
        bits=rng.choice((10, 12, 14, 16, 20)),
        rate=rng.choice((30, 36, 40, 45, 60)),
        lane_mbit=rng.choice((800, 1200, 1500, 1700, 2000, 2500)),
    )


def _stream(p: Draw) -> float:
    return float(p.width * p.height * p.bits * p.rate)


def _lanes(p: Draw) -> int:
    return sensor_data.lanes_needed(bits_per_s=_stream(p), bits_per_s_per_lane=p.lane_mbit * MBIT)


def _lane_share(p: Draw) -> float:
    return _stream(p) / float(_lanes(p) * p.lane_mbit * MBIT)


def _count_lanes(p: Draw) -> float:
    lane_bytes = round(p.lane_mbit * MBIT / BITS_PER_BYTE)
    sent = round(
        sensors.bytes_in_a_second(cameras=1, width=p.width, height=p.height, bits_per_pixel=p.bits, frames_per_s=p.rate)
    )
    return sent / float(sensors.fewest_lanes(sent, lane_bytes=lane_bytes) * lane_bytes)


LANES = Drill(
    key="sensor-csi-lanes",
    taught=TAUGHT,
    title="As few lanes as will do",
    unit="",
    target_s=110,
    apart=1.06,
    wanted=lambda p: _lanes(p) in (2, 3),
    draw=_draw_lanes,
    small=lambda rng: drawn(
        width=rng.choice((40, 60)), height=rng.choice((20, 30)), bits=12, rate=10, lane_mbit=rng.choice((0.04, 0.064))
    ),
    prompt=lambda p: (
        f"A camera sends {p.width} × {p.height} pixels of {p.bits} bits, {p.rate} times a second. A CSI-2 lane carries"
        f" {p.lane_mbit} Mbit/s. Headers and blanking left out: with as few lanes as carry it, what share of their rate"
        " is used?"
    ),
    derive=lambda p: Derivation(
        value=_lane_share(p),
        formula="stream / (lanes × rate of a lane), lanes = stream / rate of a lane, rounded up",
        substitution=f"{p.width} × {p.height} × {p.bits} × {p.rate} / ({_lanes(p)} × {p.lane_mbit} × {MBIT:,})",
        source="MIPI CSI-2 deals the bytes of a packet to its lanes in turn (Texas Instruments, SDAA236, 2026)",
    ),
    count=_count_lanes,
    prerequisites=("latency-camera-bandwidth",),
    slips=(
        Slip("one-lane", lambda p: _stream(p) / (p.lane_mbit * MBIT))
        | "That is how many lanes the stream would fill. Lanes are whole: round up, then ask how full they are.",
        Slip("four-lanes", lambda p: _stream(p) / (4 * p.lane_mbit * MBIT))
        | "You took four lanes. The question asks for as few as carry the stream.",
        Slip("bytes-for-bits", lambda p: _lane_share(p) / BITS_PER_BYTE)
        | "You compared bytes with bits. Links are rated in bits.",
        Slip("free", lambda p: 1 - _lane_share(p)) | "That is the share that stays free.",
    ),
    function=AsFunction(
        takes=("width", "height", "bits", "rate", "lane_mbit"),
        limit={"rate": 1},
        limit_case="one picture a second, which a single lane carries",
    ),
)

DRILLS = (CAMERA, LANES)
