"""Follow-ups on what a change gains: a faster part of a step, a car that must stop."""

import random

from threeloops.drills.engine.drill import Draw, changed, drawn
from threeloops.drills.engine.searches import wanted
from threeloops.room.kinds.chains.chain import Chain, Decision, Step, best, clear
from threeloops.room.kinds.chains.change import value_of
from threeloops.room.letters import Option
from threeloops.units import ms


def _gains_told(gains: dict[str, float], options: tuple[Option, ...], unit: str, scale: float = 1) -> str:
    texts = {option.key: option.text for option in options}
    return "; ".join(f"{texts[key]}: saves {gain / scale:.3g} {unit}" for key, gain in gains.items()) + "."


# --- a speed-up, and what to repair next --------------------------------------------------------


def _draw_parts(rng: random.Random) -> Draw:
    def draw() -> Draw:
        p = drawn(
            products=rng.choice((50, 60, 70, 80)),
            waiting=rng.choice((5, 10, 15)),
            factor=rng.choice((2, 2.5, 4)),
            better=10,
        )
        p.speedup = 1.5 if p.products < 60 else 2
        return p

    return wanted(draw, lambda p: clear(_part_gains(p)))


def _part_gains(p: Draw) -> dict[str, float]:
    """Saved shares of the first step, after the library."""
    return {"again": p.products / p.factor / 2, "waiting": p.waiting, "small": (100 - p.products - p.waiting) / 2}


def _part_options(p: Draw) -> tuple[Option, ...]:
    return (
        Option(key="again", text="matmuls twice as fast once more"),
        Option(key="waiting", text="no more waiting for other GPUs"),
        Option(key="small", text="everything that is neither, twice as fast"),
    )


PARTS = Chain(
    key="parts",
    title="A speed-up",
    draw=_draw_parts,
    steps=(
        Step(drill="amdahl-one-part", numbers=lambda p: p),
        Step(
            drill="amdahl-one-part",
            numbers=lambda p: changed(p, factor=p.better),
            text=lambda p: (
                f"Now the library makes matmuls {p.better} times faster ({p.products} % of the time before, nothing"
                " overlaps). How many times faster is the step?"
            ),
        ),
        Step(
            drill="amdahl-needed-factor",
            numbers=lambda p: p,
            text=lambda p: (
                f"Suppose that the step must become {p.speedup:g} times faster, by the matmuls alone ({p.products} %)."
                " How many times faster must they become?"
            ),
        ),
    ),
    decision=Decision(
        drill="amdahl-one-part",
        text=lambda p: (
            f"Back to the first library: matmuls, {p.products} % of the old step, are {p.factor:g} times faster;"
            f" {p.waiting} % was waiting, the rest small kernels. So what would you do next?"
        ),
        options=_part_options,
        right=lambda p: best(_part_gains(p)),
        because=lambda p: _gains_told(_part_gains(p), _part_options(p), "% of the old step"),
    ),
)

# --- a car, and what makes it stop sooner --------------------------------------------------------


def _draw_car(rng: random.Random) -> Draw:
    def draw() -> Draw:
        p = drawn(
            rate=rng.choice((10, 15, 20)),
            latency_ms=rng.choice((100, 150, 200)),
            kmh=rng.choice((50, 60)),
            fast=rng.choice((100, 120, 130)),
            braking=6.0,
        )
        p.saved_ms, p.harder, p.slower = rng.choice((30, 50, 80)), rng.choice((0.2, 0.5, 1.0)), rng.choice((2, 5))
        return p

    return wanted(draw, lambda p: clear(_car_gains(p)))


def _stopping(p: Draw, kmh: float) -> Draw:
    """From event to standstill; the brakes take 300 ms after a command."""
    return drawn(kmh=kmh, braking=p.braking, reaction_ms=value_of("latency-oldest-picture", p) / ms + 300)


def _car_gains(p: Draw) -> dict[str, float]:
    now = value_of("latency-stopping-distance", _stopping(p, p.fast))
    changes = {
        "camera": _stopping(changed(p, rate=2 * p.rate), p.fast),
        "network": _stopping(changed(p, latency_ms=p.latency_ms - p.saved_ms), p.fast),
        "brakes": _stopping(changed(p, braking=p.braking + p.harder), p.fast),
        "speed": _stopping(p, p.fast - p.slower),
    }
    return {key: now - value_of("latency-stopping-distance", q) for key, q in changes.items()}


def _car_options(p: Draw) -> tuple[Option, ...]:
    return (
        Option(key="camera", text=f"a camera with {2 * p.rate} pictures per second"),
        Option(key="network", text=f"a network that answers {p.saved_ms} ms sooner"),
        Option(key="brakes", text=f"brakes that slow by {p.harder:g} m/s² more"),
        Option(key="speed", text=f"driving {p.slower} km/h slower"),
    )


CAR = Chain(
    key="car",
    title="A car that must stop",
    draw=_draw_car,
    steps=(
        Step(drill="latency-oldest-picture", numbers=lambda p: p),
        Step(
            drill="latency-stopping-distance",
            numbers=lambda p: _stopping(p, p.kmh),
            text=lambda p: (
                f"300 ms after that command the brakes bite, and the car slows by {p.braking} m/s² ({p.rate} pictures"
                f" per second, command {p.latency_ms} ms after each). At {p.kmh} km/h, how far does it travel from the"
                " event to standstill, at worst?"
            ),
        ),
        Step(
            drill="latency-stopping-distance",
            numbers=lambda p: _stopping(p, p.fast),
            text=lambda p: (
                f"Now at {p.fast} km/h ({p.braking} m/s², {p.rate} pictures per second, {p.latency_ms} ms, then 300"
                " ms). How far?"
            ),
        ),
    ),
    decision=Decision(
        drill="latency-stopping-distance",
        text=lambda p: f"You may change one thing. So what saves most metres at {p.fast} km/h?",
        options=_car_options,
        right=lambda p: best(_car_gains(p)),
        because=lambda p: _gains_told(_car_gains(p), _car_options(p), "m"),
    ),
)
