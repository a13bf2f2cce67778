"""Errors to spot in a vehicle: stopping, cameras, and a pipeline whose rate is not one over its latency."""

import random

from threeloops.drills.engine.bank import DRILLS
from threeloops.drills.engine.drill import Draw, drawn
from threeloops.driving import latency_budget
from threeloops.room.kinds.spots.spot import Line, Misstep, Worked
from threeloops.units import BITS_PER_BYTE, fmt_seconds, fmt_si, hour, kB, ms

KMH = kB / hour  # a kilometre, in metres, per hour

# --- stopping ------------------------------------------------------------------------------------


def _draw_stop(rng: random.Random) -> Draw:
    return drawn(
        kmh=rng.randrange(70, 131, 10),
        reaction_ms=rng.randrange(500, 900, 50),
        braking=rng.choice((4.5, 5.0, 5.5, 6.0)),
    )


STOP = Worked(
    key="spot-stopping-distance",
    title="A colleague's stopping distance",
    topic="latency_budget",
    loop="driving",
    section="A car that must answer in time",
    target_s=60,
    draw=_draw_stop,
    prompt=lambda p: (
        f"A car drives at {p.kmh} km/h. {p.reaction_ms} ms after an obstacle becomes visible the brakes bite; then it"
        f" slows by {p.braking} m/s² until it stands. How far does it travel in all?"
    ),
    lines=(
        Line(name="speed", value=lambda v: v.kmh * KMH, text=lambda v: f"Speed: {v.kmh} km/h = {v.speed:.3g} m/s"),
        Line(
            name="reaction",
            value=lambda v: v.speed * v.reaction_ms * ms,
            text=lambda v: f"Until the brakes bite: {v.speed:.3g} m/s × {v.reaction_ms} ms = {v.reaction:.3g} m",
        ),
        Line(
            name="stopping",
            value=lambda v: v.speed**2 / (2 * v.braking),
            text=lambda v: f"Braking: ({v.speed:.3g} m/s)² / (2 × {v.braking} m/s²) = {v.stopping:.3g} m",
        ),
        Line(
            name="total",
            value=lambda v: v.reaction + v.stopping,
            text=lambda v: f"In all: {v.reaction:.3g} m + {v.stopping:.3g} m = {v.total:.3g} m",
        ),
    ),
    missteps=(
        Misstep(
            key="kmh-as-m-per-s",
            line="speed",
            value=lambda v: v.kmh,
            text=lambda v: f"Speed: {v.speed} m/s",
            story="Kilometres per hour were taken for metres per second.",
        ),
        Misstep(
            key="braking-while-reacting",
            line="reaction",
            value=lambda v: v.speed * v.reaction_ms * ms / 2,
            text=lambda v: f"Until the brakes bite: {v.speed:.3g} m/s × {v.reaction_ms} ms / 2 = {v.reaction:.3g} m",
            story="Before the brakes bite the car keeps its whole speed.",
        ),
        Misstep(
            key="no-half",
            line="stopping",
            value=lambda v: v.speed**2 / v.braking,
            text=lambda v: f"Braking: ({v.speed:.3g} m/s)² / {v.braking} m/s² = {v.stopping:.3g} m",
            story="While it brakes the car is half as fast on average as at first.",
        ),
        Misstep(
            key="reaction-forgotten",
            line="total",
            value=lambda v: v.stopping,
            text=lambda v: f"In all: {v.total:.3g} m",
            story="The road covered before the brakes bite belongs to it.",
        ),
    ),
    answer=lambda p: DRILLS["latency-stopping-distance"].derive(p).value,
    source="AASHTO, A Policy on Geometric Design of Highways and Streets, 7th ed., 2018, section 3.2.2",
    prerequisites=("latency-stopping-distance",),
)

# --- cameras -------------------------------------------------------------------------------------


def _draw_cameras(rng: random.Random) -> Draw:
    width, height = rng.choice(((1920, 1080), (1936, 1220), (2880, 1860), (3840, 2160)))
    return drawn(
        cameras=rng.choice((6, 7, 8, 11)),
        width=width,
        height=height,
        bits=rng.choice((10, 12)),
        rate=rng.choice((24, 30, 36)),
    )


CAMERAS = Worked(
    key="spot-camera-bandwidth",
    title="A colleague's cameras",
    topic="sensor_bandwidth",
    loop="driving",
    section="The data coming in",
    target_s=60,
    draw=_draw_cameras,
    prompt=lambda p: (
        f"A car has {p.cameras} cameras of {p.width} × {p.height} pixels, {p.rate} pictures per second each, sent raw:"
        f" {p.bits} bits a pixel, one value per pixel, packed. How many bytes per second arrive in all?"
    ),
    lines=(
        Line(
            name="pixels",
            value=lambda v: v.width * v.height,
            text=lambda v: f"Pixels of a picture: {v.width} × {v.height} = {v.pixels:,}",
        ),
        Line(
            name="bits_each",
            value=lambda v: v.pixels * v.bits,
            text=lambda v: f"Bits of a picture: {v.pixels:,} × {v.bits} = {v.bits_each:,}",
        ),
        Line(
            name="bytes_each",
            value=lambda v: v.bits_each / BITS_PER_BYTE,
            text=lambda v: f"Bytes of a picture: {v.bits_each:,} / 8 = {fmt_si(v.bytes_each, 'B')}",
        ),
        Line(
            name="one",
            value=lambda v: v.bytes_each * v.rate,
            text=lambda v: f"One camera: {v.rate} × {fmt_si(v.bytes_each, 'B')} = {fmt_si(v.one, 'B/s')}",
        ),
        Line(
            name="all",
            value=lambda v: v.cameras * v.one,
            text=lambda v: f"All cameras: {v.cameras} × {fmt_si(v.one, 'B/s')} = {fmt_si(v.all, 'B/s')}",
        ),
    ),
    missteps=(
        Misstep(
            key="three-colours",
            line="bits_each",
            value=lambda v: 3 * v.pixels * v.bits,
            text=lambda v: f"Bits of a picture: {v.pixels:,} × 3 colours × {v.bits} = {v.bits_each:,}",
            story=(
                "A raw sensor gives one value per pixel; three colours come later. The 1.4 GB/s that circulate for"
                " eight cameras are RGB."
            ),
        ),
        Misstep(
            key="whole-bytes",
            line="bytes_each",
            value=lambda v: 2 * v.pixels,
            text=lambda v: f"Bytes of a picture: 2 × {v.pixels:,} = {fmt_si(v.bytes_each, 'B')}",
            story="Packed pixels do not take two whole bytes each.",
        ),
        Misstep(
            key="one-picture",
            line="one",
            value=lambda v: v.bytes_each,
            text=lambda v: f"One camera: {fmt_si(v.one, 'B/s')}",
            story="A camera takes more than one picture a second.",
        ),
        Misstep(
            key="one-camera",
            line="all",
            value=lambda v: v.one,
            text=lambda v: f"In all: {fmt_si(v.all, 'B/s')}",
            story="That is one camera.",
        ),
    ),
    answer=lambda p: DRILLS["latency-camera-bandwidth"].derive(p).value,
    source="the geometry of the picture; a raw sensor gives one value per pixel (Bayer, US patent 3,971,065, 1976)",
    prerequisites=("latency-camera-bandwidth",),
)

# --- a pipeline ----------------------------------------------------------------------------------


def _draw_pipeline(rng: random.Random) -> Draw:
    stages = rng.sample((rng.randrange(5, 10), rng.randrange(11, 16), rng.randrange(36, 50)), 3)
    return drawn(stages=tuple(stages), camera=rng.choice((40, 50, 60)))


def _pipeline_answer(p: Draw) -> float:
    stages = [stage * ms for stage in p.stages]
    rate = latency_budget.pipeline_frames_per_s(stages, camera_frames_per_s=p.camera)
    return latency_budget.oldest_picture_s(latency_s=latency_budget.pipeline_latency_s(stages), frames_per_s=rate)


PIPELINE = Worked(
    key="spot-pipeline-age",
    title="A colleague's pipeline",
    topic="latency_budget",
    loop="driving",
    section="A car that must answer in time",
    target_s=90,
    draw=_draw_pipeline,
    prompt=lambda p: (
        f"Pictures go through three stages on three processors: {', '.join(str(stage) for stage in p.stages)} ms. Each"
        f" stage works on one picture while the others work on theirs; the camera gives {p.camera} pictures per second,"
        " of these as many are let in, evenly spaced, as can go through without ever waiting between stages; the others"
        " are dropped. What is the longest time from an event to the first command that knows of it?"
    ),
    lines=(
        Line(
            name="latency",
            value=lambda v: sum(v.stages) * ms,
            text=lambda v: f"Latency: {' + '.join(map(str, v.stages))} ms = {fmt_seconds(v.latency)}",
        ),
        Line(
            name="slowest",
            value=lambda v: max(v.stages) * ms,
            text=lambda v: f"Slowest stage: {fmt_seconds(v.slowest)}",
        ),
        Line(
            name="rate",
            value=lambda v: min(v.camera, 1 / v.slowest),
            text=lambda v: (
                f"Pictures per second: the camera's {v.camera}, but no more than one per slowest stage: {v.rate:.3g}"
            ),
        ),
        Line(
            name="between",
            value=lambda v: 1 / v.rate,
            text=lambda v: f"From picture to picture: 1 / {v.rate:.3g} per second = {fmt_seconds(v.between)}",
        ),
        Line(
            name="oldest",
            value=lambda v: v.between + v.latency,
            text=lambda v: (
                f"An event just missed by one picture: {fmt_seconds(v.between)} + {fmt_seconds(v.latency)} ="
                f" {fmt_seconds(v.oldest)}"
            ),
        ),
    ),
    missteps=(
        Misstep(
            key="rate-from-latency",
            line="rate",
            value=lambda v: min(v.camera, 1 / v.latency),
            text=lambda v: f"Pictures per second: 1 / {fmt_seconds(v.latency)} = {v.rate:.3g}",
            story="A pipeline's rate is not one over its latency: three pictures are on their way at once.",
        ),
        Misstep(
            key="latency-of-one-stage",
            line="latency",
            value=lambda v: max(v.stages) * ms,
            text=lambda v: f"Latency: the slowest stage, {fmt_seconds(v.latency)}",
            story="One picture goes through all stages. The slowest sets the rate, not the latency.",
        ),
        Misstep(
            key="average-stage",
            line="slowest",
            value=lambda v: sum(v.stages) / len(v.stages) * ms,
            text=lambda v: f"A stage takes {fmt_seconds(v.slowest)} on average",
            story="Pictures cannot come out faster than the slowest stage lets them through.",
        ),
        Misstep(
            key="just-in-time",
            line="oldest",
            value=lambda v: v.latency,
            text=lambda v: f"From an event to its command: {fmt_seconds(v.oldest)}",
            story="An event just after a picture has to wait for the next one.",
        ),
    ),
    answer=_pipeline_answer,
    source=(
        "Kopetz, Real-Time Systems, 2nd ed., 2011, chapter 5; Hennessy and Patterson, Computer Architecture, 6th ed.,"
        " 2017, appendix C.1"
    ),
    prerequisites=("latency-pipeline-rate", "latency-oldest-picture"),
)

WORKED = (STOP, CAMERAS, PIPELINE)
