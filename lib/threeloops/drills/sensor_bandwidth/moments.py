"""Drills on moments: a wrong time stamp, the rows of a rolling shutter, the columns of a sweep."""

import math
import random

from threeloops.drills.engine.drill import AsFunction, Derivation, Draw, Drill, Slip, Taught, drawn
from threeloops.driving import ranging_data, sensor_data
from threeloops.simulate.driving import sensors
from threeloops.units import hour, km, million, minute, ms, thousand, us

TAUGHT = Taught("driving", "The data coming in")

KMH = km / hour  # in metres per second
SLOWEST_READOUT_S = 1 / 30  # of a picture: the next one follows
PPM = 1e-6
FASTEST_TURN = 5.0  # metres per second squared, across: more throws passengers about

# --- a wrong stamp -------------------------------------------------------------------------------


def _stamp(p: Draw, **changes: float) -> float:
    values = {
        "speed_m_per_s": p.kmh * KMH,
        "range_m": p.range_m,
        "turn_rad_per_s": math.radians(p.turn_deg),
        "error_s": p.error_ms * ms,
    }
    return sensor_data.stamp_error_m(**(values | changes))


STAMP = Drill(
    key="sensor-time-stamp",
    taught=TAUGHT,
    title="What a wrong time stamp costs",
    unit="m",
    target_s=130,
    apart=1.06,
    wanted=lambda p: p.kmh * KMH * math.radians(p.turn_deg) < FASTEST_TURN,
    draw=lambda rng: drawn(
        kmh=rng.randrange(30, 131, 5),
        range_m=rng.randrange(30, 101, 5),
        turn_deg=rng.randrange(8, 31),
        error_ms=rng.randrange(4, 31),
    ),
    small=lambda rng: drawn(
        kmh=rng.choice((36, 72)), range_m=rng.choice((20, 40)), turn_deg=rng.choice((10, 30)), error_ms=1e-7
    ),
    prompt=lambda p: (
        f"A car drives at {p.kmh} km/h and turns at {p.turn_deg}° per second. Its camera's time stamps are"
        f" {p.error_ms} ms late. A standing object is {p.range_m} m straight ahead. How far does the stamp move it from"
        " its place, the drive along and the turn across taken together?"
    ),
    derive=lambda p: Derivation(
        value=_stamp(p),
        formula="√(speed² + (distance × turn rate)²) × error",
        substitution=(
            f"(({p.kmh} / 3.6)² + ({p.range_m} × {p.turn_deg} × {math.pi} / 180)²)**0.5 × {p.error_ms} / 1000"
        ),
        source="the motion of a standing point in the frame of a car that drives and turns; stepped through in 2026",
    ),
    count=lambda p: sensors.misplaced_m(
        speed_m_per_s=p.kmh * KMH,
        range_m=p.range_m,
        turn_rad_per_s=math.radians(p.turn_deg),
        error_s=p.error_ms * ms,
        steps=100,
    ),
    slips=(
        Slip("straight-only", lambda p: _stamp(p, turn_rad_per_s=0))
        | "You only drove on. While the car turns, what is far ahead sweeps sideways.",
        Slip("turn-only", lambda p: _stamp(p, speed_m_per_s=0))
        | "You only turned. The car also drives towards the point.",
        Slip("added", lambda p: _stamp(p, turn_rad_per_s=0) + _stamp(p, speed_m_per_s=0))
        | "You added two shifts that stand at right angles to each other.",
        Slip("degrees", lambda p: _stamp(p, turn_rad_per_s=p.turn_deg)) | "You used degrees where radians belong.",
        Slip("kmh", lambda p: _stamp(p, speed_m_per_s=p.kmh)) | "You put km/h where m/s belong.",
    ),
    function=AsFunction(
        takes=("kmh", "range_m", "turn_deg", "error_ms"),
        limit={"turn_deg": 0},
        limit_case="a car that drives straight on",
    ),
)

# --- a rolling shutter ---------------------------------------------------------------------------


def _draw_rows(rng: random.Random) -> Draw:
    return drawn(
        height=rng.choice((1080, 1280, 1536, 2160)),
        rows=rng.randrange(140, 620, 20),
        row_us=rng.choice((11, 13, 14, 17, 22, 24)),
        speed=rng.randrange(8, 31),
        focal=rng.randrange(1000, 2600, 100),
        range_m=rng.randrange(8, 31),
    )


def _rows_shift(p: Draw, *, rows: int, range_m: float) -> float:
    return sensor_data.rolling_shift_pixels(
        rows=rows, row_time_s=p.row_us * us, speed_m_per_s=p.speed, focal_pixels=p.focal, range_m=range_m
    )


ROWS = Drill(
    key="sensor-rolling-shutter",
    taught=TAUGHT,
    title="A car that leans",
    unit="",
    target_s=110,
    apart=1.06,
    wanted=lambda p: p.height * p.row_us * us < SLOWEST_READOUT_S,
    draw=_draw_rows,
    small=_draw_rows,
    prompt=lambda p: (
        f"A rolling shutter of {p.height} rows exposes a row every {p.row_us} µs, from the top. A car crosses at"
        f" {p.speed} m/s, {p.range_m} m away; the focal length is {p.focal} pixels, and the car covers {p.rows} rows."
        " By how many pixels is its lower edge drawn ahead of its upper one?"
    ),
    derive=lambda p: Derivation(
        value=_rows_shift(p, rows=p.rows, range_m=p.range_m),
        formula="speed × rows × row time × focal length / distance",
        substitution=f"{p.speed} × {p.rows} × {p.row_us} / 1000000 × {p.focal} / {p.range_m}",
        source="a pinhole camera; NVIDIA, DriveOS 7.0.3 reference, dwImageTimestamps, read in 2026 (a time per row)",
    ),
    count=lambda p: sensors.rows_drawn(
        rows=p.rows, row_time_s=p.row_us * us, speed_m_per_s=p.speed, focal_pixels=p.focal, range_m=p.range_m
    )[-1],
    slips=(
        Slip("whole-picture", lambda p: _rows_shift(p, rows=p.height, range_m=p.range_m))
        | "You let it move during the whole picture. It covers only some of the rows.",
        Slip("one-row", lambda p: _rows_shift(p, rows=1, range_m=p.range_m))
        | "That is the shift from one row to the next.",
        Slip("no-distance", lambda p: _rows_shift(p, rows=p.rows, range_m=1))
        | "You drew it as if it were a metre away. What is farther off moves fewer pixels.",
        Slip("metres", lambda p: p.speed * p.rows * p.row_us * us)
        | "That is the shift on the road, in metres. The question asks for pixels.",
    ),
)

# --- a sweep -------------------------------------------------------------------------------------


def _sweep(p: Draw, *, degrees: float) -> float:
    return ranging_data.sweep_shift_m(
        speed_m_per_s=p.kmh * KMH, sweeps_per_s=p.rpm / minute, turned_share=degrees / 360
    )


def _count_sweep(p: Draw) -> float:
    """Drive at a wall, a column every degree; how far the point of that column is put from where the wall is."""
    wall = sensors.swept_wall(
        speed_m_per_s=p.kmh * KMH, sweeps_per_s=p.rpm / minute, columns=360, ahead_m=60, widest_deg=70
    )
    return next(place - put for turned, _, place, put in wall if round(360 * turned) == p.degrees)


SWEEP = Drill(
    key="sensor-sweep-shift",
    taught=TAUGHT,
    title="A sweep is not a moment",
    unit="m",
    target_s=90,
    apart=1.06,
    draw=lambda rng: drawn(
        kmh=rng.randrange(40, 131, 5), rpm=rng.choice((300, 480, 600, 900, 1200)), degrees=rng.randrange(50, 320, 5)
    ),
    small=lambda rng: drawn(kmh=rng.choice((36, 90)), rpm=600, degrees=rng.choice((40, 60, 310))),
    prompt=lambda p: (
        f"A LiDAR turns {p.rpm} times a minute on a car that drives at {p.kmh} km/h. Its driver stamps the whole sweep"
        f" with the time of the first column. How far from its place is a point put that was measured {p.degrees}°"
        " later?"
    ),
    derive=lambda p: Derivation(
        value=_sweep(p, degrees=p.degrees),
        formula="speed × degrees / 360 / turns per second",
        substitution=f"{p.kmh} / 3.6 × {p.degrees} / 360 / ({p.rpm} / 60)",
        source="constant speed, a scene that stands still; MathWorks, undistortEgoMotion, R2023a",
    ),
    count=_count_sweep,
    slips=(
        Slip("whole-turn", lambda p: _sweep(p, degrees=360))
        | "That is a whole turn. This point is measured before the turn is over.",
        Slip("rest-of-turn", lambda p: _sweep(p, degrees=360 - p.degrees))
        | "You counted what is left of the turn. The stamp is the turn's beginning.",
        Slip("per-minute", lambda p: _sweep(p, degrees=p.degrees) / minute)
        | "You took turns per minute for turns per second.",
        Slip("kmh", lambda p: _sweep(p, degrees=p.degrees) / KMH) | "You put km/h where m/s belong.",
    ),
)

# --- two clocks ----------------------------------------------------------------------------------


def _small_clocks(rng: random.Random) -> Draw:
    own, oncoming = rng.choice(((36, 54), (72, 72)))  # 25 and 40 m/s: ticks in whole numbers
    return drawn(
        drift_ppm=rng.choice((20_000, 40_000, 50_000, 80_000)),
        oncoming_kmh=oncoming,
        own_kmh=own,
        off_cm=rng.randrange(150, 400, 50),
    )


def _clocks(p: Draw, *, closing_kmh: float | None = None, ppm: float | None = None) -> float:
    closing = (p.own_kmh + p.oncoming_kmh if closing_kmh is None else closing_kmh) * KMH
    offset = p.off_cm / 100 / closing
    apart_each_s = sensor_data.clock_offset_s(drift=(p.drift_ppm if ppm is None else ppm) * PPM, seconds=1.0)
    return float(offset / apart_each_s)


def _count_clocks(p: Draw) -> float:
    """Let two counters tick, and move the other car by what they are apart, until it is that far off."""
    closing, ticks, slow, fast = p.own_kmh + p.oncoming_kmh, 20_000, 0, 0
    while (fast - slow) * closing * thousand < p.off_cm * 36 * ticks:  # km/h are 1000/36 cm/s
        slow += 1
        fast += 1 + (slow * p.drift_ppm // million - (slow - 1) * p.drift_ppm // million)
    return slow / ticks


CLOCKS = Drill(
    key="sensor-clock-drift",
    taught=Taught("driving", "Between the processes"),
    title="Two clocks that no longer agree",
    unit="s",
    target_s=120,
    apart=1.05,
    draw=lambda rng: drawn(
        drift_ppm=rng.randrange(12, 96),
        oncoming_kmh=rng.randrange(35, 131, 5),
        own_kmh=rng.randrange(30, 121, 5),
        off_cm=rng.randrange(15, 61, 5),
    ),
    small=_small_clocks,
    prompt=lambda p: (
        f"A LiDAR has lost PTP. Its clock runs {p.drift_ppm} ppm faster than the cameras', with which it agreed when"
        f" PTP stopped. Your car drives {p.own_kmh} km/h, another comes towards it at {p.oncoming_kmh} km/h. How long"
        f" does it take until LiDAR and cameras place that car {p.off_cm} cm apart along the road?"
    ),
    derive=lambda p: Derivation(
        value=_clocks(p),
        formula="distance / (own + oncoming speed) / drift",
        substitution=(f"{p.off_cm} / 100 / (({p.own_kmh} + {p.oncoming_kmh}) / 3.6) / ({p.drift_ppm} / 1000000)"),
        source="by definition: speeds that close, times a clock's offset at a constant drift; two counters, 2026",
    ),
    count=_count_clocks,
    slips=(
        Slip("own-speed", lambda p: _clocks(p, closing_kmh=p.own_kmh))
        | "You moved your own car only. The other one moves, too.",
        Slip("other-speed", lambda p: _clocks(p, closing_kmh=p.oncoming_kmh))
        | "You moved the other car only. Your sensors move, too.",
        Slip("kmh", lambda p: _clocks(p) / 3.6)
        | "The speeds are in km/h. A distance in metres and a time in seconds want m/s.",
        Slip("both-clocks", lambda p: _clocks(p, ppm=2 * p.drift_ppm))
        | "You counted the drift twice. The ppm given are between the two clocks.",
    ),
)

DRILLS = (STAMP, ROWS, SWEEP, CLOCKS)
