"""Drills on what a fleet sends home: how long it drives until it has met a rare case, what its labels cost, how many
GPUs learn from them, and what trying the result in simulation costs.
"""

import math
import random
from decimal import Decimal, localcontext

from threeloops.drills.engine.drill import Derivation, Draw, Drill, Slip, Taught, drawn
from threeloops.driving import data_engine, rare_cases
from threeloops.units import GFLOP, TFLOP, day, hour, km, million, thousand

TAUGHT = Taught("driving", "The data coming in")
RAND = "Kalra and Paddock, Driving to Safety, RAND RR-1478, 2016"

# --- until it is met -----------------------------------------------------------------------------


def _draw_met(rng: random.Random) -> Draw:
    return drawn(
        one_in_km=rng.randrange(200_000, 9_000_000, 50_000),
        cars=rng.randrange(300, 4000, 50),
        km_a_day=rng.randrange(60, 240, 10),
        found_percent=rng.randrange(25, 80, 5),
        confidence=rng.choice((0.9, 0.95)),
    )


def _fleet_km_a_day(p: Draw) -> float:
    return float(p.cars * p.km_a_day)


def _met(p: Draw, *, found: float | None = None, cars: float | None = None) -> float:
    share = p.found_percent / 100 if found is None else found
    driven = rare_cases.metres_to_see(events_per_m=share / (p.one_in_km * km), confidence=p.confidence)
    return driven / (_fleet_km_a_day(p) * km if cars is None else cars * p.km_a_day * km) * day


def _count_met(p: Draw) -> float:
    """Cut the drive into 2^60 steps with the same small chance in each, and halve the interval of its length until it
    is just as likely as asked that one of them has met the case.
    """
    with localcontext() as exact:
        exact.prec = 60
        low, high = Decimal(0), Decimal(60)  # in drives that meet it once on average
        for _ in range(70):
            middle = (low + high) / 2
            none = 1 - middle / 2**60
            for _square in range(60):
                none *= none
            low, high = (middle, high) if 1 - none < Decimal(str(p.confidence)) else (low, middle)
        return float(float(low) * p.one_in_km * 100 / p.found_percent / _fleet_km_a_day(p) * day)


MET = Drill(
    key="sensor-rare-case",
    taught=TAUGHT,
    title="When the fleet has met it",
    unit="s",
    target_s=110,
    apart=1.05,
    draw=_draw_met,
    small=_draw_met,
    prompt=lambda p: (
        f"A rare case comes once in {p.one_in_km:,} km on average, independently. {p.cars} cars drive"
        f" {p.km_a_day} km a day each, and their trigger notices {p.found_percent} % of the cases that they meet. After"
        f" how many days has the fleet noticed at least one with {100 * p.confidence:g} % confidence?"
    ),
    derive=lambda p: Derivation(
        value=_met(p),
        formula="-ln(1 − confidence) × km per case / share noticed / (cars × km a day)",
        substitution=(
            f"-log2(1 − {p.confidence}) / log2({math.e!r}) × {p.one_in_km} / ({p.found_percent} / 100)"
            f" / ({p.cars} × {p.km_a_day}) × {day}"
        ),
        source=RAND,
    ),
    count=_count_met,
    slips=(
        Slip("expected", lambda p: _met(p) / -math.log1p(-p.confidence))
        | "By then one is expected. With a chance of more than a third there has been none.",
        Slip("all-noticed", lambda p: _met(p, found=1.0))
        | "You counted the cases that are met. The trigger misses some of them.",
        Slip("linear", lambda p: _met(p) / -math.log1p(-p.confidence) * p.confidence)
        | "You took that share of the mean distance. Chances of independent cases do not add up like that.",
        Slip("one-car", lambda p: _met(p, cars=1.0)) | "You let one car drive. The whole fleet does.",
    ),
)

# --- labels --------------------------------------------------------------------------------------


def _labels(p: Draw) -> float:
    return rare_cases.label_cost(
        found=p.wanted,
        events_per_m=1 / (p.one_in_km * km),
        found_share=p.found_percent / 100,
        false_per_m=1 / (p.false_one_in_km * km),
        clip_cost=p.clip_cents / 100,
    )


def _count_labels(p: Draw) -> float:
    """Drive kilometre by kilometre: a case, a miss and a false alarm come as regularly as they come on average. Pay for
    each clip, over a stretch after which all begins again.
    """
    every, clips, right, met = 100 // p.found_percent, 0, 0, 0
    for at in range(1, p.one_in_km * p.false_one_in_km * every + 1):
        clips += at % p.false_one_in_km == 0
        if at % p.one_in_km == 0:
            met += 1
            right += met % every == 0
            clips += met % every == 0
    return float(clips * p.clip_cents / 100 * p.wanted / right)


LABELS = Drill(
    key="sensor-label-cost",
    taught=TAUGHT,
    title="What a rare case costs in labels",
    unit="dollar",
    target_s=120,
    draw=lambda rng: drawn(
        wanted=rng.randrange(200, 1500, 50),
        one_in_km=rng.randrange(20_000, 90_000, 1_000),
        found_percent=rng.choice((25, 40, 50, 60, 75, 80)),
        false_one_in_km=rng.randrange(2_000, 15_000, 500),
        clip_cents=rng.randrange(40, 500, 5),
    ),
    small=lambda rng: drawn(
        wanted=rng.randrange(3, 9),
        one_in_km=rng.choice((6, 10, 12)),
        found_percent=rng.choice((25, 50)),
        false_one_in_km=rng.choice((3, 4, 5)),
        clip_cents=rng.randrange(40, 500, 5),
    ),
    prompt=lambda p: (
        f"A case comes once in {p.one_in_km:,} km. The trigger in the cars notices {p.found_percent} % of them, and"
        f" without one it fires once in {p.false_one_in_km:,} km. Each time a clip is uploaded, and a person looks"
        f" at it for {p.clip_cents / 100:.2f} dollars. What do {p.wanted} clips of the case cost?"
    ),
    derive=lambda p: Derivation(
        value=_labels(p),
        formula="wanted × (noticed per km + false alarms per km) / noticed per km × cost of a clip",
        substitution=(
            f"{p.wanted} × ({p.found_percent} / 100 / {p.one_in_km} + 1 / {p.false_one_in_km})"
            f" / ({p.found_percent} / 100 / {p.one_in_km}) × {p.clip_cents} / 100"
        ),
        source="Manning, Raghavan and Schütze, Introduction to Information Retrieval, 2008, section 8.3 (precision)",
    ),
    count=_count_labels,
    slips=(
        Slip("only-right", lambda p: p.wanted * p.clip_cents / 100)
        | "You paid for the clips that show the case. Those that do not must be looked at, too.",
        Slip("all-noticed", lambda p: p.wanted * (1 + p.one_in_km / p.false_one_in_km) * p.clip_cents / 100)
        | "You let the trigger notice every case. It misses some, and false alarms go on meanwhile.",
        Slip("false-only", lambda p: _labels(p) - p.wanted * p.clip_cents / 100)
        | "You paid for false alarms only. The right clips are looked at, too.",
        Slip("divided-again", lambda p: _labels(p) / (p.found_percent / 100))
        | "You divided by the share noticed twice. The clips that are wanted were noticed already.",
    ),
)

# --- one retraining a week -----------------------------------------------------------------------


def _week(p: Draw, *, flops: float = 1.0, utilisation: float | None = None) -> float:
    return data_engine.retraining_gpus(
        examples=p.million * million,
        passes=p.passes,
        forward_flops=p.gflop * GFLOP * flops,
        peak_flops_per_s=p.peak_tflops * TFLOP,
        utilisation=p.percent / 100 if utilisation is None else utilisation,
        seconds=p.days * day,
    )


def _count_week(p: Draw) -> float:
    """Pass by pass and million by million, forward once and back as two: the GPUs whose hours are used up by then."""
    gpu_hours = 0.0
    for _pass in range(p.passes):
        for _million in range(p.million):
            for _part in ("forward", "gradients of activations", "gradients of weights"):
                gpu_hours += p.gflop * million / (p.peak_tflops * thousand * p.percent / 100) / 3600
    return float(gpu_hours / (24 * p.days))


WEEK = Drill(
    key="sensor-weekly-retraining",
    taught=TAUGHT,
    title="One retraining a week",
    unit="",
    target_s=120,
    draw=lambda rng: drawn(
        million=rng.randrange(14, 90),
        passes=rng.randrange(11, 40),
        gflop=rng.randrange(350, 1300, 25),
        peak_tflops=rng.choice((989, 1979, 312)),
        percent=rng.randrange(22, 46),
        days=rng.choice((3, 5, 7)),
    ),
    small=lambda rng: drawn(
        million=rng.randrange(2, 5),
        passes=rng.randrange(2, 5),
        gflop=rng.randrange(350, 1300, 25),
        peak_tflops=rng.choice((989, 312)),
        percent=rng.randrange(22, 46),
        days=rng.choice((3, 5)),
    ),
    prompt=lambda p: (
        f"A detector is trained again on {p.million} million scenes, {p.passes} passes. One scene takes"
        f" {p.gflop} GFLOP forward. A GPU's dense peak is {p.peak_tflops} TFLOP/s, of which training reaches"
        f" {p.percent} %. The run must end after {p.days} days. How many GPUs does that take on average, before"
        " rounding up?"
    ),
    derive=lambda p: Derivation(
        value=_week(p),
        formula="3 × FLOPs forward × scenes × passes / (share × peak × seconds)",
        substitution=(
            f"3 × {p.gflop}e9 × {p.million}e6 × {p.passes}"
            f" / ({p.percent} / 100 × {p.peak_tflops}e12 × {p.days} × {day})"
        ),
        source="Kaplan et al., 2020, arXiv:2001.08361, section 2.1 (a backward pass is two forward passes)",
    ),
    count=_count_week,
    slips=(
        Slip("forward-only", lambda p: _week(p, flops=1 / 3)) | "You only went forward. Training also goes back.",
        Slip("back-as-one", lambda p: _week(p, flops=2 / 3))
        | "You took the backward pass for one forward pass. It computes two kinds of gradients.",
        Slip("whole-peak", lambda p: _week(p, utilisation=1.0)) | "You let the GPU reach its whole peak.",
        Slip("one-pass", lambda p: _week(p) / p.passes) | "You passed over the scenes once.",
    ),
)

# --- and tried in simulation ---------------------------------------------------------------------


def _simulated(p: Draw, *, slow: float | None = None, kmh: float | None = None) -> float:
    gpu_s = data_engine.simulation_gpu_s(
        metres=p.million_km * million * km,
        speed_m_per_s=(p.kmh if kmh is None else kmh) * km / hour,
        gpu_s_per_s=p.gpu_tenths / 10 if slow is None else slow,
    )
    return float(gpu_s / hour * p.cents / 100)


def _count_simulated(p: Draw) -> float:
    """Kilometre by kilometre: so many seconds of the world, each of so many tenths of a GPU-second, paid one by one."""
    cents = 0.0
    for _km in range(round(p.million_km * million)):
        cents += 3600 / p.kmh * p.gpu_tenths / 10 * (p.cents / 3600)
    return cents / 100


SIMULATED = Drill(
    key="sensor-simulation-bill",
    taught=TAUGHT,
    title="What simulating a fleet's year costs",
    unit="dollar",
    target_s=110,
    draw=lambda rng: drawn(
        million_km=rng.randrange(3, 60),
        kmh=rng.randrange(25, 75),
        gpu_tenths=rng.choice((4, 5, 6, 7, 15, 17, 22, 25, 35)),
        cents=rng.randrange(150, 420, 5),
    ),
    small=lambda rng: drawn(
        million_km=rng.randrange(1, 4) / thousand,
        kmh=rng.choice((25, 40, 50)),
        gpu_tenths=rng.choice((4, 15, 22)),
        cents=rng.randrange(150, 420, 5),
    ),
    prompt=lambda p: (
        f"A release is driven {p.million_km} million km in simulation, at {p.kmh} km/h on average. One simulated second"
        f" takes {p.gpu_tenths / 10:g} seconds of one GPU, which costs {p.cents / 100:.2f} dollars an hour. What does"
        " that cost?"
    ),
    derive=lambda p: Derivation(
        value=_simulated(p),
        formula="km / speed × GPU-seconds of a second × dollars of a GPU-hour",
        substitution=f"{p.million_km} × 1000000 / {p.kmh} × {p.gpu_tenths} / 10 × {p.cents} / 100",
        source="by definition: hours driven, GPU-hours for each, and a price; driven kilometre by kilometre in 2026",
    ),
    count=_count_simulated,
    slips=(
        Slip("real-time", lambda p: _simulated(p, slow=1.0))
        | "You paid one GPU-hour an hour driven. A simulated second has its own price.",
        Slip("upside-down", lambda p: _simulated(p, slow=10 / p.gpu_tenths))
        | "You divided by the GPU-seconds of a simulated second.",
        Slip("metres-a-second", lambda p: _simulated(p, kmh=p.kmh * 3.6))
        | "You multiplied a speed in km/h by 3.6. Kilometres over km/h are hours already.",
        Slip("seconds", lambda p: _simulated(p, kmh=p.kmh / 3.6))
        | "You divided by a speed in m/s and took what came out for hours.",
    ),
)

DRILLS = (MET, LABELS, WEEK, SIMULATED)
