"""A drill on radar: the cube behind its list of objects."""

from threeloops.drills.engine.drill import Derivation, Draw, Drill, Slip, Taught, drawn
from threeloops.driving import ranging_data
from threeloops.simulate.driving import sensors

TAUGHT = Taught("driving", "The data coming in")


def _cube(p: Draw) -> float:
    return float(p.rate) * float(
        ranging_data.radar_cube_bytes(
            samples=p.samples,
            chirps=p.chirps,
            transmitters=p.transmitters,
            receivers=p.receivers,
            bytes_per_sample=4,
        )
    )


CUBE = Drill(
    key="sensor-radar-cube",
    taught=TAUGHT,
    title="The cube behind a radar's list",
    unit="B/s",
    target_s=100,
    apart=1.06,
    draw=lambda rng: drawn(
        samples=rng.choice((128, 192, 256, 384, 512)),
        chirps=rng.choice((48, 64, 96, 128)),
        transmitters=rng.choice((3, 6, 9, 12)),
        receivers=rng.choice((4, 8, 16)),
        rate=rng.choice((13, 15, 18, 20)),
    ),
    small=lambda rng: drawn(
        samples=rng.choice((8, 16)), chirps=4, transmitters=rng.choice((2, 3)), receivers=4, rate=5
    ),
    prompt=lambda p: (
        f"A radar has {p.transmitters} transmitters that chirp in turn, {p.chirps} chirps each in a frame, and"
        f" {p.receivers} receivers that take {p.samples} complex samples of every chirp, two numbers of two bytes. It"
        f" makes {p.rate} frames per second. How many bytes per second are its data cubes?"
    ),
    derive=lambda p: Derivation(
        value=_cube(p),
        formula="samples × chirps × transmitters × receivers × 4 bytes × frames per second",
        substitution=f"{p.samples} × {p.chirps} × {p.transmitters} × {p.receivers} × 4 × {p.rate}",
        source="Texas Instruments, E2E forum, thread 1398085, read in 2026 (the product of all four)",
    ),
    count=lambda p: float(
        sum(
            sensors.radar_cube(
                samples=p.samples,
                chirps=p.chirps,
                transmitters=p.transmitters,
                receivers=p.receivers,
                bytes_per_sample=4,
            )
            for _frame in range(p.rate)
        )
    ),
    slips=(
        Slip("real", lambda p: _cube(p) / 2) | "You kept one number a sample. A complex sample is two.",
        Slip("one-transmitter", lambda p: _cube(p) / p.transmitters)
        | "You let one transmitter chirp. Each of them makes its own chirps.",
        Slip("one-receiver", lambda p: _cube(p) / p.receivers)
        | "That is one receiver. All of them listen to every chirp.",
        Slip("antennas-added", lambda p: _cube(p) * (p.transmitters + p.receivers) / (p.transmitters * p.receivers))
        | "You added transmitters and receivers. Every pair of them is a channel of its own.",
        Slip("one-frame", lambda p: _cube(p) / p.rate) | "That is one frame, not a second of them.",
    ),
)

DRILLS = (CUBE,)
