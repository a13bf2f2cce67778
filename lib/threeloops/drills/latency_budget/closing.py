"""Drills on closing in: metres of age, what a cut-in rule leaves for computing, a brake light seen too late."""

import random

from threeloops.drills.engine.drill import Derivation, Draw, Drill, Slip, Taught, drawn
from threeloops.drills.engine.searches import holds_up_to
from threeloops.drills.latency_budget.vehicle import AASHTO
from threeloops.driving import closing, latency_budget
from threeloops.facts import road_rules
from threeloops.simulate.driving import closing as moved
from threeloops.simulate.driving import vehicle
from threeloops.units import hour, km, ms

KMH = km / hour  # in metres per second
TAUGHT = Taught("driving", "A car that must answer in time")

# --- metres of age -------------------------------------------------------------------------------


def _draw_oncoming(rng: random.Random) -> Draw:
    return drawn(own=rng.randrange(50, 101, 5), other=rng.randrange(40, 91, 5), age_ms=rng.randrange(60, 240))


def _oncoming(p: Draw) -> float:
    return latency_budget.distance_m(speed_m_per_s=(p.own + p.other) * KMH, seconds=p.age_ms * ms)


def _count_oncoming(p: Draw) -> float:
    """Move both cars, millisecond by millisecond, and see how much nearer they have come."""
    here, there = 0.0, 0.0
    for _ in range(p.age_ms):
        here, there = here + p.own * KMH * ms, there - p.other * KMH * ms
    return here - there


ONCOMING = Drill(
    key="latency-oncoming-metres",
    taught=TAUGHT,
    title="How far off is the oncoming car?",
    unit="m",
    target_s=75,
    apart=1.05,
    wanted=lambda p: p.own != p.other,
    draw=_draw_oncoming,
    small=_draw_oncoming,
    prompt=lambda p: (
        f"A car drives at {p.own} km/h towards another that comes at {p.other} km/h. The newest box of the other car"
        f" was seen {p.age_ms} ms ago, and it has not been moved on since. By how many metres is the distance between"
        " the two shorter than the box says?"
    ),
    derive=lambda p: Derivation(
        value=_oncoming(p),
        formula="(own speed + the other's) × age",
        substitution=f"({p.own} + {p.other}) / 3.6 × {p.age_ms} / 1000",
        source="distance at constant speed; km/h in m/s: BIPM, The International System of Units, 9th ed., 2019",
    ),
    count=_count_oncoming,
    slips=(
        Slip("own-only", lambda p: p.own * KMH * (p.age_ms * ms))
        | "You moved only your own car. The other one comes towards you meanwhile.",
        Slip("difference", lambda p: abs(p.own - p.other) * KMH * (p.age_ms * ms))
        | "You subtracted the speeds: that is for a car that drives your way.",
        Slip("kmh-as-m-per-s", lambda p: (p.own + p.other) * (p.age_ms * ms)) | "You put km/h where m/s belong.",
        Slip("mean-speed", lambda p: (p.own + p.other) / 2 * KMH * (p.age_ms * ms))
        | "You took the mean of the two speeds. The gap closes at their sum.",
    ),
)

# --- what the cut-in rule leaves -----------------------------------------------------------------


def _draw_cut_in(rng: random.Random) -> Draw:
    kmh = rng.choice(sorted(road_rules.CUT_IN_TTC_S))
    return drawn(kmh=kmh, ttc=road_rules.CUT_IN_TTC_S[kmh], braking=rng.randrange(58, 96) / 10)


def _cut_in(p: Draw) -> float:
    return closing.before_braking_s(
        time_to_collision_s=p.ttc, closing_m_per_s=p.kmh * KMH, deceleration_m_per_s2=p.braking
    )


def _count_cut_in(p: Draw) -> float:
    """Try reaction times, halving the interval, until the two just do not touch."""
    speed, braking = p.kmh * KMH, p.braking

    def stops(reaction_s: float) -> bool:
        car = {"speed_m_per_s": speed, "gap_m": p.ttc * speed, "deceleration_m_per_s2": braking}
        return moved.speed_at_obstacle(**car, reaction_s=reaction_s, steps=20) <= 0

    return holds_up_to(stops, high=p.ttc)


CUT_IN = Drill(
    key="latency-cut-in-budget",
    taught=TAUGHT,
    title="What a rule leaves for the chain",
    unit="s",
    target_s=120,
    apart=1.05,
    draw=_draw_cut_in,
    small=_draw_cut_in,
    prompt=lambda p: (
        "A car cuts in ahead and keeps its speed. By the cut-in rule of Regulation (EU) 2022/1426, as the Kraftfahrt-"
        f"Bundesamt prints it, at a closing speed of {p.kmh} km/h no collision may happen if the time to collision was"
        f" {p.ttc} s or more. Your car slows by {p.braking} m/s² once its brakes bite. At exactly that time to"
        " collision, how long may sensing, deciding and the brakes' build-up take together?"
    ),
    derive=lambda p: Derivation(
        value=_cut_in(p),
        formula="time to collision − closing speed / (2 × deceleration)",
        substitution=f"{p.ttc} − {p.kmh} / 3.6 / (2 × {p.braking})",
        source=f"{road_rules.CUT_IN} (opened 2026)",
    ),
    count=_count_cut_in,
    slips=(
        Slip("no-braking", lambda p: p.ttc)
        | "That is when they touch if neither brakes. Braking takes its part of it.",
        Slip("braking-only", lambda p: p.kmh * KMH / (2 * p.braking))
        | "That is what braking takes of the time to collision. What is left of it is asked for.",
        Slip("time-to-slow", lambda p: p.kmh * KMH / p.braking)
        | "That is how long the brakes must work until both are equally fast.",
        Slip("added", lambda p: p.ttc + p.kmh * KMH / (2 * p.braking))
        | "You added what braking needs. It comes out of the time to collision.",
    ),
)

# --- later by some milliseconds ------------------------------------------------------------------


def _draw_impact(rng: random.Random) -> Draw:
    return drawn(
        kmh=rng.randrange(40, 101, 5), later_ms=rng.randrange(40, 220), braking=rng.choice((5.0, 6.0, 7.0, 8.0))
    )


REACTION_S = 0.5  # of the old software; it cancels


def _impact(p: Draw) -> float:
    car = {"speed_m_per_s": p.kmh * KMH, "deceleration_m_per_s2": p.braking}
    gap = latency_budget.stopping_distance_m(**car, reaction_s=REACTION_S)
    return closing.impact_speed_m_per_s(**car, gap_m=gap, reaction_s=REACTION_S + p.later_ms * ms) / KMH


def _count_impact(p: Draw) -> float:
    car = {"speed_m_per_s": p.kmh * KMH, "deceleration_m_per_s2": p.braking}
    gap = vehicle.metres_to_standstill(**car, reaction_s=REACTION_S)
    return moved.speed_at_obstacle(**car, gap_m=gap, reaction_s=REACTION_S + p.later_ms * ms) / KMH


IMPACT = Drill(
    key="latency-impact-speed",
    taught=TAUGHT,
    title="A tenth of a second later",
    unit="",
    target_s=150,
    apart=1.05,
    wanted=lambda p: 1.1 * _impact(p) <= p.kmh,  # not so late that the brakes hardly bite
    draw=_draw_impact,
    small=_draw_impact,
    prompt=lambda p: (
        f"At {p.kmh} km/h a car, slowing by {p.braking} m/s², comes to stand just in front of an obstacle. With new"
        f" software the same car brakes {p.later_ms} ms later, just as hard. How fast is it, in km/h, when it hits?"
    ),
    derive=lambda p: Derivation(
        value=_impact(p),
        formula="√(2 × deceleration × speed × delay): the braking distance that the delay has used up, as speed",
        substitution=f"3.6 × (2 × {p.braking} × {p.kmh} / 3.6 × {p.later_ms} / 1000)**0.5",
        source=f"uniform deceleration, v² = 2 a s, as in {AASHTO}",
    ),
    count=_count_impact,
    prerequisites=("latency-stopping-distance",),
    slips=(
        Slip("linear", lambda p: p.braking * (p.later_ms * ms) / KMH)
        | "That is how much faster it is at the same moment. At the same place it is faster by much more: it"
        " has had less road to brake on.",
        Slip("no-two", lambda p: (p.braking * (p.kmh * KMH) * (p.later_ms * ms)) ** 0.5 / KMH)
        | "The two is missing: v² = 2 a s.",
        Slip("m-per-s", lambda p: (2 * p.braking * (p.kmh * KMH) * (p.later_ms * ms)) ** 0.5)
        | "That is in metres per second.",
        Slip("metres", lambda p: p.kmh * KMH * (p.later_ms * ms) / KMH)
        | "You turned the metres that were driven too far into a speed as if they took a second.",
    ),
)

# --- a prediction that does not know of the brakes -----------------------------------------------


def _draw_ahead(rng: random.Random) -> Draw:
    return drawn(
        kmh=rng.randrange(60, 131, 5), braking=rng.choice((4.0, 5.0, 6.0, 7.0)), age_ms=rng.randrange(120, 400)
    )


def _ahead(p: Draw) -> float:
    return closing.missed_by_prediction_m(acceleration_m_per_s2=-p.braking, age_s=p.age_ms * ms)


AHEAD = Drill(
    key="latency-braking-ahead",
    taught=TAUGHT,
    title="The tracker does not see the brake light",
    unit="m",
    target_s=90,
    draw=_draw_ahead,
    small=_draw_ahead,
    prompt=lambda p: (
        f"The car ahead drives at {p.kmh} km/h. At the moment of a picture it begins to slow by {p.braking} m/s². Its"
        f" box is used {p.age_ms} ms later, moved on by the tracker at the speed that the car had in the picture. How"
        " far is the box from the car?"
    ),
    derive=lambda p: Derivation(
        value=_ahead(p),
        formula="deceleration × age² / 2",
        substitution=f"{p.braking} × ({p.age_ms} / 1000)² / 2",
        source=f"uniform deceleration, s = a t² / 2, as in {AASHTO}",
    ),
    count=lambda p: moved.apart_after(acceleration_m_per_s2=-p.braking, age_s=p.age_ms * ms, speed_m_per_s=p.kmh * KMH),
    slips=(
        Slip("not-predicted", lambda p: p.kmh * KMH * p.age_ms * ms)
        | "That is the box that was not moved on. The tracker did move this one.",
        Slip("no-half", lambda p: p.braking * (p.age_ms * ms) ** 2)
        | "You let the car be as slow from the beginning as it is at the end. Halve it.",
        Slip("speed-lost", lambda p: p.braking * p.age_ms * ms)
        | "That is how much slower the car has become, in metres per second.",
        Slip("half-the-speed-lost", lambda p: p.braking * p.age_ms * ms / 2)
        | "That is by how much it is slower on average. For how long?",
    ),
)

DRILLS = (ONCOMING, CUT_IN, IMPACT, AHEAD)
