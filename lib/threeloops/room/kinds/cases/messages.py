"""A case of messages between processes: a camera's pictures that are old when the network reads them. Its figures are
invented.
"""

import random

from threeloops.drills.engine.drill import Draw, changed, drawn
from threeloops.room.kinds.cases.case import Case, design, requirements
from threeloops.room.kinds.chains.chain import Step
from threeloops.room.kinds.chains.change import Best, Change, redrawn, shown, value_of
from threeloops.units import ms

SEEN_MS = 40  # the age that the team has measured
NEAR_MS = 4  # how near to it copies, queue and camera add up


def _draw_any(rng: random.Random) -> Draw:
    width, height = rng.choice(((1920, 1280), (2880, 1860), (3840, 2160)))
    rate = rng.choice((36, 45, 50, 60, 72, 90))
    p = drawn(
        width=width,
        height=height,
        pixel_bytes=rng.choice((2, 3)),
        more=rng.choice((0, 1)),
        rate_gb=rng.choice((1.6, 2.4, 3.2, 4.5, 6.4)),
        rate=rate,
        depth=rng.choice((2, 3)),
        camera_ms=rng.randrange(4, 12),
        busy_ms=round(rng.uniform(1.15, 1.7) / (rate * ms)),
        mph=rng.choice((30, 45, 60, 75)),
        minutes=rng.choice((30, 45, 90)),
    )
    return changed(p, arrives_ms=round(p.camera_ms + value_of("sensor-message-copies", p) / ms))


_draw_message = redrawn(_draw_any, lambda p: abs(value_of("sensor-message-age", p) / ms - SEEN_MS) <= NEAR_MS)


def _no_copies(p: Draw) -> Draw:
    return changed(p, arrives_ms=p.camera_ms)


def _road(p: Draw) -> Draw:
    return drawn(mph=p.mph, before_ms=SEEN_MS, after_ms=p.camera_ms)


def _narrow(p: Draw) -> Draw:
    return changed(p, pixel_bytes=1.5)


def _lost(p: Draw) -> Draw:
    return drawn(rate=p.rate, latency_ms=p.arrives_ms, lost=2)


MESSAGE = Case(
    key="case-camera-message",
    title="The camera message is 40 ms old",
    loop="driving",
    section="Between the processes",
    draw=_draw_message,
    requirements=requirements(
        lambda p: (
            f"When our network takes a camera message, its picture is about {SEEN_MS} ms old. The camera's driver and"
            " the network run on one computer, in two processes. Where is the time, and what do we change?"
        ),
        (
            "which stamp the age is counted from: exposure, arrival in the driver or sending; and by which clock",
            lambda p: "the middle of the exposure, by the clock that both processes read",
        ),
        (
            "how large a message is, in which format",
            lambda p: f"{p.width} × {p.height} pixels of {p.pixel_bytes} bytes",
        ),
        (
            "what happens to its bytes on the way: serialised, through a socket, shared; how fast a copy is",
            lambda p: (
                "serialised, through a socket, read back"
                + (", then copied to pinned memory" if p.more else "")
                + f"; a copy moves {p.rate_gb:g} GB/s"
            ),
        ),
        (
            "how deep the queue is, which end the reader takes, and what is dropped when it is full",
            lambda p: f"it keeps the newest {p.depth}; the network takes the oldest",
        ),
        (
            "how often messages come, and whether the reader keeps up",
            lambda p: f"{p.rate} a second; the network needs {p.busy_ms} ms for each, so it does not keep up",
        ),
        (
            "how old a message is before it is sent: exposure, readout, driver",
            lambda p: f"{p.camera_ms} ms",
        ),
    ),
    estimates=(
        Step(drill="sensor-message-copies", numbers=lambda p: p),
        Step(drill="sensor-message-age", numbers=_no_copies),
        Step(
            drill="latency-metres-saved",
            numbers=_road,
            text=lambda p: (
                f"The car drives at {p.mph} miles per hour (a mile is 1,609 m). Its network takes pictures that are"
                f" {SEEN_MS} ms old; without copies and queue they would be {p.camera_ms} ms old. How many metres does"
                " the car drive in the difference?"
            ),
        ),
    ),
    design=design(
        lambda p: "Now the design: how does a picture go from the driver to the network, and how do you show its age?",
        (
            "the age taken apart: camera, copies, queue, each by a stamp of its own on the same clock",
            "pictures made in shared memory, and only their place sent; who owns a slot, and when it is free again",
            "a queue of one, or the newest taken and older ones dropped, because the reader is slower than the camera",
            "what needs every frame (a recorder, odometry) on another queue of its own",
            "what the reader does with a message that is too old: predict over its age, or refuse it",
            "the age at the moment of use, with its p99, watched in the car and not on the desk",
        ),
        lambda p: (
            f"Copies take {shown('sensor-message-copies', p)}. Without them, and with the queue as it is, a picture is"
            f" {shown('sensor-message-age', _no_copies(p))} old; the queue alone holds it for {p.depth} periods less a"
            f" half. Without copies and queue the car would drive {shown('latency-metres-saved', _road(p))} less"
            " before the picture is read. So the"
            " driver writes into slots of shared memory and sends their numbers, a queue of one keeps the newest, the"
            " recorder has its own, and each message carries the stamp of its exposure. What would change the design:"
            " a reader that keeps up, since then no queue builds up at all."
        ),
    ),
    trade_off=Best(
        drill="sensor-message-age",
        now=lambda p: p,
        text=lambda p: (
            f"Messages come {p.rate} times a second, each {p.arrives_ms} ms after its exposure, {p.camera_ms} ms of it"
            f" before it is copied. The queue keeps the newest {p.depth}; the network takes the oldest and needs"
            f" {p.busy_ms} ms. Which single change makes the pictures that it takes youngest, on average?"
        ),
        changes=(
            Change(
                key="one",
                text=lambda p: "a queue that keeps the newest message only",
                numbers=lambda p: changed(p, depth=1),
            ),
            Change(
                key="shared",
                text=lambda p: "pictures made in shared memory, so that no byte is copied",
                numbers=_no_copies,
            ),
            Change(
                key="rate",
                text=lambda p: f"a camera of {p.rate * 3 // 2} pictures a second, the network as slow as before",
                numbers=lambda p: changed(p, rate=p.rate * 3 // 2),
            ),
        ),
    ),
    price=(
        "a queue of one drops what a recorder or an odometry may need: they read a queue of their own",
        "shared memory needs an owner of each slot: a reader that crashes must not keep it for ever",
        "more pictures a second are more bytes for every bus and copy behind the camera",
    ),
    follow_ups=(
        Step(drill="sensor-message-copies", numbers=_narrow),
        Step(drill="latency-age-after-drop", numbers=_lost),
    ),
)
