"""Drills on where a stream ends: the Ethernet link that it must fit, the drive that it fills."""

import random

from threeloops.drills.engine.drill import Derivation, Draw, Drill, Slip, Taught, drawn
from threeloops.drills.engine.searches import holds_up_to
from threeloops.drills.sensor_bandwidth.cameras import SENSORS
from threeloops.drills.sensor_bandwidth.carrying import GBIT
from threeloops.driving import sensor_data
from threeloops.simulate.driving import sensors
from threeloops.units import BITS_PER_BYTE, TB, TiB

TAUGHT = Taught("driving", "The data coming in")

# --- compression ---------------------------------------------------------------------------------


def _draw_squeeze(rng: random.Random) -> Draw:
    width, height = rng.choice(SENSORS)
    return drawn(
        cameras=rng.choice((3, 5, 6, 7, 11)),
        width=width,
        height=height,
        bits=rng.choice((10, 12, 14)),
        rate=rng.choice((20, 30, 36)),
        link_gbit=rng.choice((1, 2.5, 5, 10)),
        usable=rng.choice((0.65, 0.7, 0.75, 0.8, 0.85, 0.9)),
    )


def _rate(p: Draw) -> float:
    return sensor_data.camera_bytes_per_s(
        cameras=p.cameras, width=p.width, height=p.height, bits_per_pixel=p.bits, frames_per_s=p.rate
    )


def _squeeze(p: Draw) -> float:
    return sensor_data.compression_needed(
        stream_bytes_per_s=_rate(p), link_bits_per_s=p.link_gbit * GBIT, usable_share=p.usable
    )


def _count_squeeze(p: Draw) -> float:
    """Squeeze harder, halving the interval, until a second of it fits what is usable of the link."""
    bits = BITS_PER_BYTE * sensors.bytes_in_a_second(
        cameras=p.cameras, width=p.width, height=p.height, bits_per_pixel=p.bits, frames_per_s=p.rate
    )
    # 10,000 times smaller is more than any draw needs
    return holds_up_to(lambda times: bits > times * p.usable * p.link_gbit * GBIT, high=10_000)


SQUEEZE = Drill(
    key="sensor-compression",
    taught=TAUGHT,
    title="How much smaller it has to be",
    unit="",
    target_s=110,
    apart=1.06,
    wanted=lambda p: 1.2 < _squeeze(p) < 60,
    draw=_draw_squeeze,
    small=lambda rng: drawn(
        cameras=rng.choice((2, 3)), width=8, height=5, bits=12, rate=5, link_gbit=rng.choice((2e-6, 5e-6)), usable=0.8
    ),
    prompt=lambda p: (
        f"{p.cameras} cameras of {p.width} × {p.height} pixels, {p.bits} bits raw and packed, {p.rate} frames per"
        f" second, share one Ethernet link of {p.link_gbit:g} Gbit/s, of which {100 * p.usable:g} % is theirs. How"
        " many times smaller must compression make the stream?"
    ),
    derive=lambda p: Derivation(
        value=_squeeze(p),
        formula="cameras × pixels × bits × frames per second / (link × usable share)",
        substitution=(
            f"{p.cameras} × {p.width} × {p.height} × {p.bits} × {p.rate} / ({p.link_gbit:g} × {GBIT:,} × {p.usable})"
        ),
        source="bits in over bits out; the links are IEEE 802.3bp (1 Gbit/s) and 802.3ch-2020",
    ),
    count=_count_squeeze,
    prerequisites=("latency-camera-bandwidth",),
    slips=(
        Slip("whole-link", lambda p: _squeeze(p) * p.usable)
        | "You gave the pictures the whole link. Only a part of it is theirs.",
        Slip("bytes-for-bits", lambda p: _squeeze(p) / BITS_PER_BYTE)
        | "You compared bytes with bits. Links are rated in bits.",
        Slip("one-camera", lambda p: _squeeze(p) / p.cameras) | "That is for one camera.",
        Slip("upside-down", lambda p: 1 / _squeeze(p))
        | "That is the share of the stream that may remain, not how many times smaller it must be.",
    ),
)

# --- a drive -------------------------------------------------------------------------------------


def _draw_drive(rng: random.Random) -> Draw:
    width, height = rng.choice(SENSORS)
    return drawn(
        cameras=rng.choice((5, 6, 7, 11)),
        width=width,
        height=height,
        bits=rng.choice((10, 12, 14)),
        rate=rng.choice((20, 30, 36)),
        drive_tb=rng.choice((2, 4, 8, 16)),
        factor=rng.choice((1.5, 1.8, 2.2, 2.5, 3.5)),
    )


def _lasts(p: Draw) -> float:
    return sensor_data.drive_lasts_s(drive_bytes=p.drive_tb * TB, stream_bytes_per_s=_rate(p), compression=p.factor)


def _count_drive(p: Draw) -> float:
    """Write second after second until the next one would not fit; then as much of a second as does."""
    a_second = (
        sensors.bytes_in_a_second(
            cameras=p.cameras, width=p.width, height=p.height, bits_per_pixel=p.bits, frames_per_s=p.rate
        )
        / p.factor
    )
    left, seconds = p.drive_tb * TB, 0
    while left >= a_second:
        left, seconds = left - a_second, seconds + 1
    return float(seconds + left / a_second)


DRIVE = Drill(
    key="sensor-drive-lasts",
    taught=TAUGHT,
    title="How long a drive lasts",
    unit="s",
    target_s=110,
    apart=1.06,
    draw=_draw_drive,
    small=lambda rng: drawn(
        cameras=2, width=8, height=5, bits=12, rate=5, drive_tb=rng.choice((3e-8, 5e-8)), factor=rng.choice((1.5, 2.5))
    ),
    prompt=lambda p: (
        f"A test car logs {p.cameras} cameras of {p.width} × {p.height} pixels, {p.bits} bits raw and packed,"
        f" {p.rate} frames per second, compressed without loss by a factor of {p.factor:g}. After how long is a drive"
        f" of {p.drive_tb} TB full?"
    ),
    derive=lambda p: Derivation(
        value=_lasts(p),
        formula="drive × compression / (cameras × pixels × bits / 8 × frames per second)",
        substitution=(
            f"{p.drive_tb} × {TB:,} × {p.factor} / ({p.cameras} × {p.width} × {p.height} × {p.bits} / 8 × {p.rate})"
        ),
        source="bytes over bytes per second; a terabyte is 10^12 bytes (IEC 80000-13:2008)",
    ),
    count=_count_drive,
    prerequisites=("latency-camera-bandwidth",),
    slips=(
        Slip("uncompressed", lambda p: _lasts(p) / p.factor)
        | "You wrote the raw stream. It is compressed first, so the drive lasts longer.",
        Slip("compressed-backwards", lambda p: _lasts(p) / p.factor**2) | "Your compression makes the stream larger.",
        Slip("bits-for-bytes", lambda p: _lasts(p) / BITS_PER_BYTE) | "You filled a drive of bytes with bits.",
        Slip("binary-drive", lambda p: _lasts(p) * TiB / TB)
        | "You took the drive's terabytes for tebibytes. Drives are sold in decimal units.",
        Slip("one-camera", lambda p: _lasts(p) * p.cameras) | "You logged one camera.",
    ),
)

DRILLS = (SQUEEZE, DRIVE)
