"""Sensors, row by row and pulse by pulse: rows become packets, bytes are dealt to lanes, a LiDAR turns while its car
drives on. Nothing here knows a formula for how much comes out.
"""

import itertools
import math
from collections.abc import Iterator, Sequence
from fractions import Fraction

from threeloops.units import million

BITS = 8


def bytes_in_a_second(*, cameras: int, width: int, height: int, bits_per_pixel: int, frames_per_s: int) -> float:
    """Read every row of every frame of every camera, and add up what comes over the cable.

    >>> bytes_in_a_second(cameras=2, width=8, height=4, bits_per_pixel=12, frames_per_s=10)
    960.0
    """
    bits = 0
    for _camera, _frame, _row in itertools.product(range(cameras), range(frames_per_s), range(height)):
        bits += sum(bits_per_pixel for _pixel in range(width))
    return bits / BITS


def csi_packets(*, width: int, height: int, bits_per_pixel: int) -> Iterator[int]:
    """Bytes of each packet of a picture: frame start, a header, the pixels and a footer for every row, frame end.

    >>> list(csi_packets(width=8, height=2, bits_per_pixel=12))
    [4, 18, 18, 4]
    """
    yield 4
    for _row in range(height):
        bits = 32
        for _pixel in range(width):
            bits += bits_per_pixel
        bits += 16
        yield bits // BITS
    yield 4


def cable_bits(
    *, total_width: int, total_height: int, bits_per_pixel: int, frames: int, coded_bits: int, data_bits: int
) -> int:
    """Tick the pixel clock through pictures and blanking; whenever a group of data bits is full, send its code.

    >>> cable_bits(total_width=10, total_height=4, bits_per_pixel=12, frames=1, coded_bits=40, data_bits=32)
    600
    """
    waiting, sent = 0, 0
    for _tick in range(frames * total_height * total_width):
        waiting += bits_per_pixel
        while waiting >= data_bits:
            waiting -= data_bits
            sent += coded_bits
    return sent


def busiest_lane_bytes(num_bytes: int, *, lanes: int) -> int:
    """Deal bytes to lanes in turn, as CSI-2 does; what the fullest lane has to carry.

    >>> busiest_lane_bytes(10, lanes=4)
    3
    """
    carried = [0] * lanes
    for byte in range(num_bytes):
        carried[byte % lanes] += 1
    return max(carried)


def fewest_lanes(num_bytes: int, *, lane_bytes: int) -> int:
    """Add lanes until the fullest one carries no more than a lane can.

    >>> fewest_lanes(10, lane_bytes=4)
    3
    """
    return next(lanes for lanes in itertools.count(1) if busiest_lane_bytes(num_bytes, lanes=lanes) <= lane_bytes)


def moved_bytes(*, pixels: int, pass_bytes_per_pixel: Sequence[float]) -> float:
    """Carry every pixel over the bus, pass after pass.

    >>> moved_bytes(pixels=100, pass_bytes_per_pixel=(2, 1.5, 3))
    650.0
    """
    moved = 0.0
    for size in pass_bytes_per_pixel:
        for _pixel in range(pixels):
            moved += size
    return moved


def rows_drawn(
    *, rows: int, row_time_s: float, speed_m_per_s: float, focal_pixels: float, range_m: float
) -> list[float]:
    """Where, in pixels, each row sees something that crosses: it moves on while the rows are exposed in turn."""
    drawn, place_m = [], 0.0
    for _row in range(rows + 1):
        drawn.append(focal_pixels * place_m / range_m)
        place_m += speed_m_per_s * row_time_s
    return drawn


def misplaced_m(
    *, speed_m_per_s: float, range_m: float, turn_rad_per_s: float, error_s: float, steps: int = 1000
) -> float:
    """Move the car along and turn it in short steps for as long as the stamp is wrong; how far the point goes in its
    eyes.

    >>> round(misplaced_m(speed_m_per_s=30, range_m=50, turn_rad_per_s=0, error_s=0.01), 3)
    0.3
    """
    ahead, aside, tick = 0.0, 0.0, error_s / steps  # of where it was
    angle = -turn_rad_per_s * tick
    cos, sin, less = math.cos(angle), math.sin(angle), -2 * math.sin(angle / 2) ** 2  # less: cos - 1, exactly
    for _ in range(steps):
        ahead, aside = (
            ahead * cos - aside * sin + range_m * less - speed_m_per_s * tick,
            (range_m + ahead) * sin + aside * cos,
        )
    return math.hypot(ahead, aside)


def ticks_apart_s(*, ticks_per_s: int, extra_ppm: int, seconds: int) -> float:
    """Two counters, one of which gets some ticks of each million twice: how far their times are apart in the end.

    >>> ticks_apart_s(ticks_per_s=1000, extra_ppm=50_000, seconds=3)
    0.15
    """
    slow = fast = 0
    for _ in range(ticks_per_s * seconds):
        slow += 1
        fast += 1 + (slow * extra_ppm // million - (slow - 1) * extra_ppm // million)
    return (fast - slow) / ticks_per_s


def lidar_second(*, beams: int, firing_s: Fraction, sweeps_per_s: int, returns: int) -> tuple[int, Fraction]:
    """(points, turns) of a second: fire all beams, turn on a little, fire again.

    >>> lidar_second(beams=4, firing_s=Fraction(1, 1000), sweeps_per_s=10, returns=1)
    (4000, Fraction(10, 1))
    """
    points, now = 0, Fraction(0)
    while now < 1:
        points += sum(returns for _beam in range(beams))
        now += firing_s
    return points, now * sweeps_per_s


def lidar_packets(
    *, beams: int, point_bytes: int, firings: int, other_bytes: int, seconds: Fraction, firing_s: Fraction
) -> int:
    """Bytes sent in that time: fill a packet point by point, close it when it holds its firings."""
    sent, held, fired, now = 0, 0, 0, Fraction(0)
    while now < seconds:
        held += sum(point_bytes for _beam in range(beams))
        fired, now = fired + 1, now + firing_s
        if fired == firings:
            sent, held, fired = sent + held + other_bytes, 0, 0
    return sent


def swept_wall(
    *, speed_m_per_s: float, sweeps_per_s: float, columns: int, ahead_m: float, widest_deg: float
) -> list[tuple[float, float, float, float]]:
    """(share of the turn, metres aside, metres ahead, metres ahead as put) of every column that meets a wall across
    the road: the LiDAR turns once while the car drives on, and every range is laid off from where the turn began.
    """
    points = []
    for column in range(columns):
        turned = column / columns
        angle = math.tau * (turned if turned < 0.5 else turned - 1)
        if abs(angle) > math.radians(widest_deg):
            continue
        driven = speed_m_per_s * turned / sweeps_per_s
        measured = (ahead_m - driven) / math.cos(angle)  # along the ray, from where the car is now
        aside, seen = measured * math.sin(angle), measured * math.cos(angle)
        points.append((turned, aside, seen + driven, seen))
    return points


def radar_cube(*, samples: int, chirps: int, transmitters: int, receivers: int, bytes_per_sample: int) -> int:
    """Let every transmitter chirp in turn and every receiver take its samples; add up what has to be kept.

    >>> radar_cube(samples=256, chirps=128, transmitters=3, receivers=4, bytes_per_sample=4)
    1572864
    """
    kept = 0
    for _chirp, _transmitter, _receiver in itertools.product(range(chirps), range(transmitters), range(receivers)):
        kept += sum(bytes_per_sample for _sample in range(samples))
    return kept
