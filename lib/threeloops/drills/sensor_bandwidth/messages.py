"""Drills on messages between processes: the time that copies take, and the age of what a full queue hands out."""

import random
from fractions import Fraction

from threeloops.drills.engine.drill import Derivation, Draw, Drill, Slip, Taught, drawn
from threeloops.driving import messages
from threeloops.simulate.driving import message_queue
from threeloops.units import GB, ms

TAUGHT = Taught("driving", "Between the processes")
SENSORS = ((1920, 1080), (1920, 1280), (2880, 1860), (3840, 2160), (1936, 1220))
KERNEL = "the copies between user and kernel memory that splice(2) of the Linux man-pages avoids; read in 2026"
SERIAL = 4  # copies: serialised, into the kernel, out of it, read back

# --- copies --------------------------------------------------------------------------------------


def _draw_copies(rng: random.Random) -> Draw:
    width, height = rng.choice(SENSORS)
    return drawn(
        width=width,
        height=height,
        pixel_bytes=rng.choice((1.5, 2, 3)),
        more=rng.choice((0, 1)),
        rate_gb=rng.choice((1.6, 2.4, 3.2, 4.5, 6.4, 8.5)),
    )


def _small_copies(rng: random.Random) -> Draw:
    width, height = rng.choice(SENSORS)
    return drawn(width=width // 16, height=height // 4, pixel_bytes=3, more=rng.choice((0, 1)), rate_gb=4.5)


def _copies(p: Draw, *, copies: float, pixel_bytes: float | None = None) -> float:
    size = p.width * p.height * (p.pixel_bytes if pixel_bytes is None else pixel_bytes)
    return float(copies * messages.handed_over_s(message_bytes=size, copies=1, copy_bytes_per_s=p.rate_gb * GB))


def _right_copies(p: Draw) -> float:
    size = p.width * p.height * p.pixel_bytes
    return messages.handed_over_s(message_bytes=size, copies=SERIAL + p.more, copy_bytes_per_s=p.rate_gb * GB)


def _count_copies(p: Draw) -> float:
    size = int(p.width * p.height * p.pixel_bytes)
    return float((message_queue.copied_bytes(message_bytes=size, serialised=True) + p.more * size) / (p.rate_gb * GB))


COPIES = Drill(
    key="sensor-message-copies",
    taught=TAUGHT,
    title="A picture goes through a socket",
    unit="s",
    target_s=90,
    apart=1.06,
    draw=_draw_copies,
    small=_small_copies,
    prompt=lambda p: (
        f"The camera's process has a picture of {p.width} × {p.height} pixels, {p.pixel_bytes:g} bytes each. It"
        " serialises it, which copies it into a buffer, and sends the buffer through a socket: the kernel copies it"
        " in, and the network's process copies it out. Reading it back makes a copy"
        + (", and one more puts it into pinned memory" if p.more else "")
        + f". Every copy moves {p.rate_gb:g} GB of message per second, and they follow each other. How long do all"
        " copies of one picture take?"
    ),
    derive=lambda p: Derivation(
        value=_right_copies(p),
        formula="copies × bytes of the picture / rate of a copy: serialise, in, out, read back"
        + (", pin" if p.more else ""),
        substitution=f"{SERIAL + p.more} × {p.width} × {p.height} × {p.pixel_bytes} / ({p.rate_gb} × {GB:,})",
        source=KERNEL,
    ),
    count=_count_copies,
    slips=(
        Slip("one-copy", lambda p: _copies(p, copies=1))
        | "That is one copy. Count them from the first buffer to the last.",
        Slip("socket-copies-once", lambda p: _copies(p, copies=SERIAL + p.more - 1))
        | "You let the socket copy once. The bytes go into the kernel and come out of it.",
        Slip("read-and-written", lambda p: _copies(p, copies=2 * (SERIAL + p.more)))
        | "You counted what is read and what is written. The rate is of the message's bytes, copied.",
        Slip("a-byte-a-pixel", lambda p: _copies(p, copies=SERIAL + p.more, pixel_bytes=1))
        | "You gave each pixel one byte. The picture has more.",
        Slip("socket-alone", lambda p: _copies(p, copies=2))
        | "That is the socket alone. Before it the picture is serialised, and after it read back.",
    ),
)

# --- a full queue --------------------------------------------------------------------------------


def _draw_age(rng: random.Random) -> Draw:
    rate = rng.choice((15, 20, 25, 30, 36, 45, 60))
    return drawn(
        rate=rate,
        depth=rng.choice((2, 3, 4, 5, 6, 8)),
        arrives_ms=rng.randrange(4, 38),
        busy_ms=round(rng.uniform(1.15, 1.7) / (rate * ms)),
    )


def _waited(p: Draw, *, periods: float) -> float:
    return float(p.arrives_ms * ms + periods / p.rate)


def _age(p: Draw) -> float:
    return float(p.arrives_ms * ms + messages.age_from_full_queue_s(depth=p.depth, period_s=1 / p.rate))


def _count_age(p: Draw) -> float:
    """Every phase of the reader within a period is met equally often, because its period shares no factor."""
    period, phases = 1000, 1000
    found = message_queue.ages(depth=p.depth, period=period, busy=1000 + 337, takes=40 * p.depth + phases)
    waited = sum(found[-phases:], Fraction(0)) / phases / period
    # a moment between two ticks lies half a tick later, on average
    return float(p.arrives_ms * ms + float(waited + Fraction(1, 2 * period)) / p.rate)


AGE = Drill(
    key="sensor-message-age",
    taught=TAUGHT,
    title="What a full queue hands out",
    unit="s",
    target_s=100,
    draw=_draw_age,
    small=_draw_age,
    prompt=lambda p: (
        f"A camera's messages come {p.rate} times a second, each {p.arrives_ms} ms after its exposure, into a queue"
        f" that keeps the newest {p.depth} and drops older ones. The network takes the oldest of them and needs"
        f" {p.busy_ms} ms for it, longer than a period, so the queue is full at every take. How old is the picture when"
        " the network takes it, on average?"
    ),
    derive=lambda p: Derivation(
        value=_age(p),
        formula="arrival + (depth − 1/2) × period: the newest is half a period old, the oldest depth − 1 periods more",
        substitution=f"{p.arrives_ms} / 1000 + ({p.depth} − 1 / 2) / {p.rate}",
        source="age as in Kaul, Yates and Gruteser, Real-time status: how often should one update?, INFOCOM, 2012",
    ),
    count=_count_age,
    slips=(
        Slip("no-queue", lambda p: p.arrives_ms * ms)
        | "That is how old it is when it arrives. It waits in the queue until it is the oldest.",
        Slip("newest", lambda p: _waited(p, periods=0.5))
        | "You took the newest message. The network takes the oldest that is kept.",
        Slip("half-a-queue", lambda p: _waited(p, periods=p.depth / 2))
        | "You let it wait for half of the queue. The queue is full at every take.",
        Slip("at-most", lambda p: _waited(p, periods=p.depth))
        | "That is the largest age. On average the newest message came half a period ago.",
        Slip("just-arrived", lambda p: _waited(p, periods=p.depth - 1))
        | "You let the take fall just after an arrival, which gives the smallest age.",
        Slip("readers-period", lambda p: (p.arrives_ms + (p.depth - 0.5) * p.busy_ms) * ms)
        | "You let it wait through the network's work on every message. Most messages are dropped.",
    ),
)

DRILLS = (COPIES, AGE)
