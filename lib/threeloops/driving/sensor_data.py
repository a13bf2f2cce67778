"""What cameras send and what it costs: bytes per second, lanes, the cable, the memory bus, time stamps, storage.

>>> eight = camera_bytes_per_s(cameras=8, width=1920, height=1080, bits_per_pixel=24, frames_per_s=30)
>>> eight / 1e9
1.492992
>>> round(compression_needed(stream_bytes_per_s=eight, link_bits_per_s=10e9, usable_share=0.9), 2)
1.33
"""

import math
from collections.abc import Sequence

from threeloops import checks
from threeloops.units import BITS_PER_BYTE

HEADER_BYTES, FOOTER_BYTES, SHORT_PACKET_BYTES = (
    4,
    2,
    4,
)  # CSI-2: a row is a long packet; two short ones frame a picture


def camera_bytes_per_s(*, cameras: int, width: int, height: int, bits_per_pixel: float, frames_per_s: float) -> float:
    """Bytes per second that uncompressed cameras deliver.

    Formula:  cameras * width * height * bits per pixel / 8 * frames/s
    Assumes:  no compression, no blanking, no protocol overhead. bits_per_pixel says which picture: 24 for 8-bit RGB,
              12 for a raw 12-bit sensor packed tightly and for YUV 4:2:0, 16 for YUV 4:2:2
    Source:   by definition
    Counted:  simulate.driving.sensors.bytes_in_a_second

    >>> camera_bytes_per_s(cameras=1, width=1000, height=1000, bits_per_pixel=12, frames_per_s=30)
    45000000.0
    """
    checks.count(cameras=cameras, width=width, height=height)
    checks.positive(bits_per_pixel=bits_per_pixel, frames_per_s=frames_per_s)
    return cameras * width * height * bits_per_pixel / BITS_PER_BYTE * frames_per_s


def csi_frame_bytes(*, width: int, height: int, bits_per_pixel: int) -> int:
    """Bytes of one picture as packets of MIPI CSI-2.

    Formula:  rows * (bytes of a row + 4 header + 2 footer) + 2 short packets of 4 bytes
    Assumes:  one long packet a row, packed pixels, no lines of embedded data; the pauses between packets are time,
              not bytes
    Raises:   ValueError if a row is no whole number of bytes
    Source:   Texas Instruments, SDAA236, March 2026, section 3.1 (header of 32 bits, footer of 16, short packets of 32)
    Counted:  simulate.driving.sensors.csi_packets

    >>> csi_frame_bytes(width=1920, height=1080, bits_per_pixel=12)
    3116888
    """
    checks.count(height=height)
    return height * _row_packet_bytes(width, bits_per_pixel) + 2 * SHORT_PACKET_BYTES


def _row_packet_bytes(width: int, bits_per_pixel: int) -> int:
    checks.count(width=width, bits_per_pixel=bits_per_pixel)
    if width * bits_per_pixel % BITS_PER_BYTE:
        raise ValueError(f"width={width} times bits_per_pixel={bits_per_pixel} must be whole bytes; make width even")
    return width * bits_per_pixel // BITS_PER_BYTE + HEADER_BYTES + FOOTER_BYTES


def csi_row_bits_per_s(*, width: int, total_height: int, bits_per_pixel: int, frames_per_s: float) -> float:
    """Bits per second of CSI-2 while rows come, which the lanes must carry: more than the mean over a frame.

    Formula:  bits of a row's packet / (1 / (frames/s * rows with blanking))
    Assumes:  one row waits in a buffer and is sent while the next one is read out; packets as csi_frame_bytes
    Raises:   ValueError if a row is no whole number of bytes
    Source:   Texas Instruments, SDAA236, March 2026, section 3.1 (header of 32 bits, footer of 16, short packets of 32)
    Counted:  simulate.driving.sensors.csi_packets

    >>> csi_row_bits_per_s(width=1920, total_height=1220, bits_per_pixel=12, frames_per_s=30)
    845020800.0
    """
    checks.count(total_height=total_height)
    checks.positive(frames_per_s=frames_per_s)
    return float(BITS_PER_BYTE * _row_packet_bytes(width, bits_per_pixel) * total_height * frames_per_s)


def cable_bits_per_s(
    *, total_width: int, total_height: int, bits_per_pixel: int, frames_per_s: float, coded_bits: int, data_bits: int
) -> float:
    """Bits per second on a serial camera cable that carries the pixel clock through the pauses as well.

    Formula:  (width and height with blanking) * bits per pixel * frames/s * coded bits / data bits
    Assumes:  blanking is sent at the rate of pixels; control channel and error correction are left out. GMSL2 codes
              9 data bits as 10
    Source:   Analog Devices, MAX96752 user guide, page 46 (PCLK * bpp * 10/9 * 2048/2047, and 128/120 with error
              correction)
    Counted:  simulate.driving.sensors.cable_bits

    >>> cable_bits_per_s(
    ...     total_width=1000, total_height=900, bits_per_pixel=12, frames_per_s=30, coded_bits=10, data_bits=9
    ... )
    360000000.0
    """
    checks.count(total_width=total_width, total_height=total_height, bits_per_pixel=bits_per_pixel)
    checks.count(coded_bits=coded_bits, data_bits=data_bits)
    checks.positive(frames_per_s=frames_per_s)
    return total_width * total_height * bits_per_pixel * frames_per_s * coded_bits / data_bits


def lanes_needed(*, bits_per_s: float, bits_per_s_per_lane: float) -> int:
    """The fewest lanes that carry a stream.

    Formula:  stream / rate of a lane, rounded up
    Assumes:  lanes share the bytes evenly, and any number of them may be used
    Source:   by definition
    Counted:  simulate.driving.sensors.fewest_lanes

    >>> lanes_needed(bits_per_s=2.99e9, bits_per_s_per_lane=2.5e9)
    2
    """
    checks.positive(bits_per_s=bits_per_s, bits_per_s_per_lane=bits_per_s_per_lane)
    return math.ceil(bits_per_s / bits_per_s_per_lane)


def passes_bytes_per_s(*, pixels_per_s: float, pass_bytes_per_pixel: Sequence[float]) -> float:
    """Bytes per second that a picture moves over the memory bus, each write and each read counted.

    Formula:  pixels/s * sum over passes of bytes per pixel
    Assumes:  no pass finds its data in a cache: a picture of several megabytes is larger than most
    Source:   by definition: no cache holds a picture between two passes
    Counted:  simulate.driving.sensors.moved_bytes
    Measured: measure.driving.frame_path.walked

    >>> passes_bytes_per_s(pixels_per_s=1e6, pass_bytes_per_pixel=(2, 2, 1.5, 1.5))
    7000000.0
    """
    checks.positive(pixels_per_s=pixels_per_s)
    if not pass_bytes_per_pixel:
        raise ValueError("pass_bytes_per_pixel is empty; a picture is written once at least")
    for place, size in enumerate(pass_bytes_per_pixel, 1):
        checks.positive(**{f"pass {place}": size})
    return pixels_per_s * sum(pass_bytes_per_pixel)


def rolling_shift_pixels(
    *, rows: int, row_time_s: float, speed_m_per_s: float, focal_pixels: float, range_m: float
) -> float:
    """How far along, in pixels, the last of some rows is drawn when something crosses in front of a rolling shutter.

    Formula:  speed * (rows * row time) * focal length in pixels / distance
    Assumes:  motion across the line of sight at constant speed, a pinhole camera, rows exposed one row time apart
    Source:   by definition of a pinhole camera and a constant speed
    Counted:  simulate.driving.sensors.rows_drawn

    >>> round(rolling_shift_pixels(rows=500, row_time_s=24e-6, speed_m_per_s=20, focal_pixels=1500, range_m=20), 6)
    18.0
    """
    checks.count(rows=rows)
    checks.positive(row_time_s=row_time_s, focal_pixels=focal_pixels, range_m=range_m)
    checks.non_negative(speed_m_per_s=speed_m_per_s)
    return speed_m_per_s * rows * row_time_s * focal_pixels / range_m


def stamp_error_m(*, speed_m_per_s: float, range_m: float, turn_rad_per_s: float, error_s: float) -> float:
    """How far from its place a point is put when its time stamp is wrong: the car's path is used at the wrong moment.

    Formula:  sqrt(speed^2 + (distance * turn rate)^2) * error of the stamp
    Assumes:  the point lies straight ahead, the speed is along the line of sight and the turn across it; short errors
    Source:   by definition: a standing point, seen from a car that drives and turns
    Counted:  simulate.driving.sensors.misplaced_m

    >>> round(stamp_error_m(speed_m_per_s=30, range_m=80, turn_rad_per_s=0.5, error_s=0.01), 6)
    0.5
    """
    checks.non_negative(speed_m_per_s=speed_m_per_s, range_m=range_m, turn_rad_per_s=turn_rad_per_s, error_s=error_s)
    return math.hypot(speed_m_per_s, range_m * turn_rad_per_s) * error_s


def clock_offset_s(*, drift: float, seconds: float) -> float:
    """How far two clocks are apart that agreed so long ago.

    Formula:  drift * seconds since they agreed
    Units:    drift as a share: 50 ppm is 50e-6
    Assumes:  a constant drift; a temperature that changes changes it
    Source:   by definition
    Counted:  simulate.driving.sensors.ticks_apart_s

    >>> round(clock_offset_s(drift=50e-6, seconds=100), 9)
    0.005
    """
    checks.non_negative(drift=drift, seconds=seconds)
    return drift * seconds


def compression_needed(*, stream_bytes_per_s: float, link_bits_per_s: float, usable_share: float) -> float:
    """How many times smaller a stream must become to fit a link; below 1 it fits as it is.

    Formula:  8 * bytes/s / (link rate * usable share)
    Assumes:  usable share is what headers, other traffic and bursts leave of the link: a choice, not a constant
    Source:   by definition
    Counted:  drills.sensor_bandwidth.storing.SQUEEZE

    >>> compression_needed(stream_bytes_per_s=500e6, link_bits_per_s=1e9, usable_share=0.5)
    8.0
    """
    checks.positive(stream_bytes_per_s=stream_bytes_per_s, link_bits_per_s=link_bits_per_s, usable_share=usable_share)
    checks.fraction(usable_share=usable_share)
    return BITS_PER_BYTE * stream_bytes_per_s / (link_bits_per_s * usable_share)


def drive_lasts_s(*, drive_bytes: float, stream_bytes_per_s: float, compression: float) -> float:
    """Seconds until a drive is full.

    Formula:  size / (bytes/s / compression)
    Assumes:  everything is kept, and the drive can write that fast
    Source:   by definition
    Counted:  drills.sensor_bandwidth.storing.DRIVE

    >>> drive_lasts_s(drive_bytes=8e12, stream_bytes_per_s=3e9, compression=1.5) / 3600 > 1.1
    True
    """
    checks.positive(drive_bytes=drive_bytes, stream_bytes_per_s=stream_bytes_per_s, compression=compression)
    return drive_bytes / (stream_bytes_per_s / compression)
