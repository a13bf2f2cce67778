"""Drills on LiDAR: points, packets, and the turn of a real one."""

import functools
import random
from fractions import Fraction

from threeloops.drills.engine.drill import AsFunction, Derivation, Draw, Drill, Slip, Taught, drawn
from threeloops.driving import ranging_data
from threeloops.facts import hardware
from threeloops.simulate.driving import sensors
from threeloops.units import BITS_PER_BYTE, minute, us

TAUGHT = Taught("driving", "The data coming in")

POINT_BYTES = 3
VELODYNE = "Velodyne, VLS-128 user manual, sections 8.2 and 9.3, read in 2026"


def _exact_firing(firing_us: float) -> Fraction:
    return Fraction(str(firing_us)) / round(1 / us)


# --- points --------------------------------------------------------------------------------------


def _points(p: Draw) -> float:
    return ranging_data.lidar_points_per_sweep(
        beams=p.beams, firing_s=p.firing_us * us, sweeps_per_s=p.rpm / minute, returns=p.returns
    )


def _count_points(p: Draw) -> float:
    points, turns = sensors.lidar_second(
        beams=p.beams, firing_s=_exact_firing(p.firing_us), sweeps_per_s=p.rpm // minute, returns=p.returns
    )
    return float(points / turns)


POINTS = Drill(
    key="sensor-lidar-points",
    taught=TAUGHT,
    title="Points of a turn",
    unit="",
    target_s=90,
    apart=1.06,
    draw=lambda rng: drawn(
        beams=rng.choice((32, 40, 64, 80, 128)),
        firing_us=rng.choice((41.7, 46.1, 50.4, 53.3, 55.3, 61.5)),
        rpm=rng.choice((300, 480, 600, 720, 900, 1200)),
        returns=rng.choice((2, 3)),
    ),
    small=lambda rng: drawn(beams=4, firing_us=rng.choice((800.0, 1500.0)), rpm=rng.choice((300, 600)), returns=2),
    prompt=lambda p: (
        f"A LiDAR fires its {p.beams} beams once every {p.firing_us} µs and turns {p.rpm} times a minute. It reports"
        f" {p.returns} returns of every pulse. How many points has one turn at most?"
    ),
    derive=lambda p: Derivation(
        value=_points(p),
        formula="beams × returns / (firing time × turns per second)",
        substitution=f"{p.beams} × {p.returns} / ({p.firing_us} / 1000000 × {p.rpm} / 60)",
        source=VELODYNE,
    ),
    count=_count_points,
    slips=(
        Slip("one-return", lambda p: _points(p) / p.returns) | "You let each pulse come back once.",
        Slip("a-second", lambda p: _points(p) * p.rpm / minute)
        | "That is a second of points. The question asks for one turn.",
        Slip("one-beam", lambda p: _points(p) / p.beams)
        | "That is one beam. All of them fire at every step of the turn.",
        Slip("per-minute", lambda p: _points(p) / minute) | "You took turns per minute for turns per second.",
    ),
)

# --- packets -------------------------------------------------------------------------------------


def _packets(p: Draw, *, firings: int, other: int) -> float:
    return ranging_data.lidar_bytes_per_s(
        beams=p.beams, point_bytes=POINT_BYTES, firings=firings, other_bytes=other, firing_s=p.firing_us * us
    )


def _packet_rate(p: Draw) -> float:
    return _packets(p, firings=p.firings, other=p.other)


def _count_packets(p: Draw) -> float:
    firing = _exact_firing(p.firing_us)
    seconds = 50 * p.firings * firing
    return float(
        sensors.lidar_packets(
            beams=p.beams,
            point_bytes=POINT_BYTES,
            firings=p.firings,
            other_bytes=p.other,
            seconds=seconds,
            firing_s=firing,
        )
        / seconds
    )


PACKETS = Drill(
    key="sensor-lidar-bytes",
    taught=TAUGHT,
    title="What a LiDAR sends",
    unit="B/s",
    target_s=110,
    apart=1.06,
    draw=lambda rng: drawn(
        beams=rng.choice((32, 40, 64, 80, 128)),
        firings=rng.choice((2, 3)),
        other=rng.randrange(86, 121, 2),
        firing_us=rng.choice((41.7, 46.1, 50.4, 53.3, 55.3, 61.5)),
    ),
    small=lambda rng: drawn(
        beams=rng.choice((4, 8)), firings=rng.choice((2, 3)), other=20, firing_us=rng.choice((50.0, 53.3))
    ),
    prompt=lambda p: (
        f"A LiDAR fires its {p.beams} beams every {p.firing_us} µs. A packet holds {p.firings} such firings, one point"
        f" of {POINT_BYTES} bytes a beam, and {p.other} bytes of headers, angles and time besides. How many bytes per"
        " second does it send?"
    ),
    derive=lambda p: Derivation(
        value=_packet_rate(p),
        formula="(beams × firings × bytes of a point + the rest of a packet) / (firings × firing time)",
        substitution=(
            f"({p.beams} × {p.firings} × {POINT_BYTES} + {p.other}) / ({p.firings} × {p.firing_us} / 1000000)"
        ),
        source=VELODYNE,
    ),
    count=_count_packets,
    slips=(
        Slip("points-only", lambda p: _packets(p, firings=p.firings, other=0))
        | "You sent points alone. Every packet has headers and angles, too.",
        Slip("packet-a-firing", lambda p: _packets(p, firings=1, other=p.other))
        | "You sent a packet for every firing. A packet waits for several.",
        Slip("bits", lambda p: _packet_rate(p) * BITS_PER_BYTE) | "That is in bits.",
        Slip("one-beam", lambda p: _packet_rate(p) / p.beams)
        | "You shared the packets among the beams. They hold all of them.",
    ),
    function=AsFunction(
        takes=("beams", "firings", "other", "firing_us"), limit={"firings": 1}, limit_case="a packet for every firing"
    ),
)

# --- a real one ----------------------------------------------------------------------------------


@functools.cache
def _vls() -> dict[str, float]:
    """The catalogue's figures, read when first asked for."""
    part = hardware.part("velodyne-vls-128")
    return {name: part[name] for name in ("beams", "firings_per_packet", "packet_bytes", "packets_per_s")}


def _draw_turn(rng: random.Random) -> Draw:
    return drawn(rpm=rng.randrange(300, 1201, 10))


def _turn(p: Draw) -> float:
    return ranging_data.lidar_bytes_per_sweep(
        packets_per_s=_vls()["packets_per_s"],
        packet_bytes=round(_vls()["packet_bytes"]),
        returns=2,
        sweeps_per_s=p.rpm / minute,
    )


def _count_turn(p: Draw) -> float:
    """Send every packet of a minute twice, each put together from its parts; share the minute among the turns."""
    points, blocks = int(_vls()["beams"] * _vls()["firings_per_packet"]), 12
    packet = 42 + sum(POINT_BYTES for _point in range(points)) + sum(4 for _block in range(blocks)) + 6
    minute_bytes = sum(2 * packet for _packet in range(round(_vls()["packets_per_s"] * minute)))
    return minute_bytes / float(p.rpm)


TURN = Drill(
    key="sensor-vls-128",
    taught=TAUGHT,
    title="A turn of a real LiDAR",
    unit="B",
    target_s=90,
    apart=1.06,
    draw=_draw_turn,
    small=_draw_turn,
    prompt=lambda p: (
        f"Velodyne's VLS-128 sends {_vls()['packets_per_s']:,.0f} data packets of {_vls()['packet_bytes']:,.0f} bytes a"
        f" second with one return a pulse, {_vls()['beams']:.0f} × {_vls()['firings_per_packet']:.0f} points in each,"
        f" and twice as many packets with two. With two returns and {p.rpm} turns a minute, how many bytes are one"
        " turn?"
    ),
    derive=lambda p: Derivation(
        value=_turn(p),
        formula="2 × packets per second × bytes of a packet / turns per second",
        substitution=f"2 × {_vls()['packets_per_s']} × {_vls()['packet_bytes']:.0f} / ({p.rpm} / 60)",
        source=VELODYNE,
    ),
    count=_count_turn,
    prerequisites=("sensor-lidar-bytes",),
    slips=(
        Slip("one-return", lambda p: _turn(p) / 2) | "That is one return. Two returns double the packets.",
        Slip("a-second", lambda p: _turn(p) * p.rpm / minute) | "That is a second. The question asks for one turn.",
        Slip("per-minute", lambda p: _turn(p) / minute) | "You took turns per minute for turns per second.",
        Slip(
            "points-only",
            lambda p: _turn(p) * _vls()["beams"] * _vls()["firings_per_packet"] * POINT_BYTES / _vls()["packet_bytes"],
        )
        | "You sent points alone. Every packet has headers and angles, too.",
    ),
)

DRILLS = (POINTS, PACKETS, TURN)
