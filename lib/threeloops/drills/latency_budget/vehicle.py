"""Drills on a vehicle in motion: what a latency costs in metres, and how far it takes to stop."""

import random

from threeloops.drills.engine.drill import AsFunction, Derivation, Draw, Drill, Slip, Taught, drawn
from threeloops.driving import latency_budget
from threeloops.simulate.driving import vehicle
from threeloops.units import hour, km, mile, ms

KMH, MPH = km / hour, mile / hour  # in metres per second
AASHTO = "AASHTO, A Policy on Geometric Design of Highways and Streets, 7th ed., 2018, section 3.2.2"
TAUGHT = Taught("driving", "A car that must answer in time")

# --- metres per frame ----------------------------------------------------------------------------


def _draw_saved(rng: random.Random) -> Draw:
    return drawn(
        mph=rng.choice((25, 35, 45, 55, 65, 75)), before_ms=rng.randrange(95, 130), after_ms=rng.randrange(20, 26)
    )


def _saved_s(p: Draw) -> float:
    return float((p.before_ms - p.after_ms) * ms)


SAVED = Drill(
    key="latency-metres-saved",
    taught=TAUGHT,
    title="What a faster stack is worth in metres",
    unit="m",
    target_s=75,
    draw=_draw_saved,
    small=_draw_saved,
    prompt=lambda p: (
        f"A car drives at {p.mph} miles per hour (a mile is 1,609 m). Perception takes {p.before_ms} ms from picture to"
        f" decision; a better engine needs {p.after_ms} ms. How much later, in metres of road, did the car react with"
        " the old one?"
    ),
    derive=lambda p: Derivation(
        value=latency_budget.distance_m(speed_m_per_s=p.mph * MPH, seconds=_saved_s(p)),
        formula="speed × (old latency − new latency)",
        substitution=f"{p.mph} × 1609.344 / 3600 × ({p.before_ms} − {p.after_ms}) / 1000",
        source="distance at constant speed; the international mile is 1,609.344 m (agreement of 1959)",
    ),
    count=lambda p: sum(p.mph * MPH * ms for _millisecond in range(p.after_ms, p.before_ms)),
    slips=(
        Slip("km-for-miles", lambda p: p.mph * KMH * _saved_s(p)) | "You read miles per hour as kilometres per hour.",
        Slip("old-latency", lambda p: p.mph * MPH * p.before_ms * ms)
        | "That is the whole of the old latency. The new engine is not free either.",
        Slip("new-latency", lambda p: p.mph * MPH * p.after_ms * ms)
        | "That is the road covered during the new latency, not what it saved.",
        Slip("hours-forgotten", lambda p: p.mph * _saved_s(p))
        | "You multiplied miles per hour by seconds. Both have to speak of the same time and length.",
    ),
)

# --- stopping ------------------------------------------------------------------------------------


def _draw_stop(rng: random.Random) -> Draw:
    return drawn(
        kmh=rng.randrange(70, 131, 5), reaction_ms=rng.randrange(500, 900, 50), braking=rng.choice((4.5, 5.0, 5.5, 6.0))
    )


def _stop(p: Draw, **changes: float) -> float:
    values = {"speed_m_per_s": p.kmh * KMH, "reaction_s": p.reaction_ms * ms, "deceleration_m_per_s2": p.braking}
    return latency_budget.stopping_distance_m(**(values | changes))


STOP = Drill(
    key="latency-stopping-distance",
    taught=TAUGHT,
    title="From seeing to standing still",
    unit="m",
    target_s=100,
    draw=_draw_stop,
    small=_draw_stop,
    prompt=lambda p: (
        f"A car drives at {p.kmh} km/h. From the moment an obstacle is visible, {p.reaction_ms} ms pass until the"
        f" brakes bite; from then on it slows by {p.braking} m/s² until it stands. How far does it travel in all?"
    ),
    derive=lambda p: Derivation(
        value=_stop(p),
        formula="v × reaction time + v² / (2 × deceleration)",
        substitution=f"({p.kmh} / 3.6) × {p.reaction_ms} / 1000 + ({p.kmh} / 3.6)² / (2 × {p.braking})",
        source=AASHTO,
    ),
    count=lambda p: vehicle.metres_to_standstill(
        speed_m_per_s=p.kmh * KMH, reaction_s=p.reaction_ms * ms, deceleration_m_per_s2=p.braking
    ),
    slips=(
        Slip("no-reaction", lambda p: _stop(p, reaction_s=0))
        | "You let the brakes bite at once. While the car computes it drives on at full speed.",
        Slip("no-half", lambda p: 2 * _stop(p, reaction_s=0) + _stop(p) - _stop(p, reaction_s=0))
        | "You braked at full speed all the way. The car slows, so on average it is half as fast.",
        Slip("reaction-only", lambda p: _stop(p) - _stop(p, reaction_s=0))
        | "You stopped counting when the brakes bit. That is where braking begins.",
        Slip("kmh-as-m-per-s", lambda p: _stop(p, speed_m_per_s=p.kmh)) | "You put km/h where m/s belong.",
    ),
    function=AsFunction(
        takes=("kmh", "reaction_ms", "braking"), limit={"reaction_ms": 0}, limit_case="brakes that bite at once"
    ),
)


def _draw_sight(rng: random.Random) -> Draw:
    return drawn(
        sight_m=rng.randrange(60, 160, 5),
        reaction_ms=rng.randrange(500, 900, 50),
        braking=rng.choice((4.5, 5.0, 5.5, 6.0)),
    )


def _fastest_kmh(p: Draw, **changes: float) -> float:
    values = {"sight_m": p.sight_m, "reaction_s": p.reaction_ms * ms, "deceleration_m_per_s2": p.braking}
    return latency_budget.highest_speed_m_per_s(**(values | changes)) / KMH


SIGHT = Drill(
    key="latency-highest-speed",
    taught=TAUGHT,
    title="As fast as one can see",
    unit="",
    target_s=150,
    draw=_draw_sight,
    small=_draw_sight,
    prompt=lambda p: (
        f"A car's perception is reliable up to {p.sight_m} m. From there {p.reaction_ms} ms pass until the brakes bite,"
        f" and it slows by {p.braking} m/s². Up to which speed, in km/h, can it stop within what it sees?"
    ),
    derive=lambda p: Derivation(
        value=_fastest_kmh(p),
        formula="3.6 × (√((a t)² + 2 a × sight) − a t), the positive root of v t + v² / (2 a) = sight",
        substitution=(
            f"3.6 × ((({p.braking} × {p.reaction_ms} / 1000)² + 2 × {p.braking} × {p.sight_m})**0.5 − {p.braking} ×"
            f" {p.reaction_ms} / 1000)"
        ),
        source=AASHTO,
    ),
    count=lambda p: (
        vehicle.fastest_that_stops(sight_m=p.sight_m, reaction_s=p.reaction_ms * ms, deceleration_m_per_s2=p.braking)
        / KMH
    ),
    prerequisites=("latency-stopping-distance",),
    slips=(
        Slip("no-reaction", lambda p: _fastest_kmh(p, reaction_s=0))
        | "You let the brakes bite at the edge of sight. Some of what is seen is used up by reacting.",
        Slip("no-two", lambda p: _fastest_kmh(p, deceleration_m_per_s2=p.braking / 2))
        | "Your braking distance is twice too long: a car that slows evenly is on average half as fast.",
        Slip("m-per-s", lambda p: _fastest_kmh(p) * KMH) | "That is in metres per second.",
        Slip("reaction-only", lambda p: p.sight_m / (p.reaction_ms * ms) / KMH)
        | "At that speed the car is only told of the obstacle when it reaches it. Leave room to brake.",
    ),
)

DRILLS = (SAVED, STOP, SIGHT)
