"""Drills on two clocks and on a window of frames: how old a slow plan is when it steers, and what is computed twice."""

import random
from fractions import Fraction

from threeloops.drills.engine.drill import Derivation, Draw, Drill, Slip, Taught, drawn
from threeloops.driving import frame_window
from threeloops.driving.slow_fast import SlowFast
from threeloops.simulate.driving import slow_fast_clocks
from threeloops.units import GFLOP, ms

TAUGHT = Taught("driving", "End to end")

# --- the age of a slow plan ----------------------------------------------------------------------


def _draw_age(rng: random.Random) -> Draw:
    slow_period = rng.randrange(410, 700, 20)
    return drawn(
        slow_period=slow_period,
        slow_latency=round(slow_period * rng.randrange(70, 91) / 100),
        fast_period=rng.randrange(55, 85),
        fast_latency=rng.randrange(38, 52),
    )


def _pair(p: Draw) -> SlowFast:
    return SlowFast(
        slow_latency_s=p.slow_latency * ms,
        slow_period_s=p.slow_period * ms,
        fast_latency_s=p.fast_latency * ms,
        fast_period_s=p.fast_period * ms,
    )


AGE = Drill(
    key="joint-oldest-plan",
    taught=TAUGHT,
    title="The picture behind the slow plan",
    unit="s",
    target_s=120,
    draw=_draw_age,
    small=_draw_age,
    prompt=lambda p: (
        f"A slow planner takes a picture every {p.slow_period} ms and needs {p.slow_latency} ms for a plan. A fast one"
        f" begins every {p.fast_period} ms, uses the newest plan that is there, and gives a command after"
        f" {p.fast_latency} ms, which holds until its next command. The clocks are not aligned. How old can the"
        " slow planner's picture get while a command that rests on it is in force?"
    ),
    derive=lambda p: Derivation(
        value=_pair(p).oldest_s,
        formula="slow latency + slow period + fast latency + fast period",
        substitution=f"({p.slow_latency} + {p.slow_period} + {p.fast_latency} + {p.fast_period}) / 1000",
        source="Kopetz, Real-Time Systems, 2nd ed., 2011, chapter 5 (how old an observation is when it is used)",
    ),
    count=lambda p: float(
        slow_fast_clocks.oldest(
            slow_latency=Fraction(p.slow_latency, 1000),
            slow_period=Fraction(p.slow_period, 1000),
            fast_latency=Fraction(p.fast_latency, 1000),
            fast_period=Fraction(p.fast_period, 1000),
        )
    ),
    slips=(
        Slip("latency-only", lambda p: (p.slow_latency + p.fast_latency) * ms)
        | "That is its age when it is used for the first time. It is used until the next plan is there.",
        Slip("no-fast-loop", lambda p: (p.slow_latency + p.slow_period) * ms)
        | "You stopped when the fast loop picks the plan up. It still computes, and its command holds.",
        Slip("mean", lambda p: _pair(p).mean_age_s) | "That is the age on average. The question asks for the oldest.",
        Slip("fast-only", lambda p: (p.fast_latency + p.fast_period) * ms)
        | "That is how old the fast loop's own picture gets.",
    ),
)

# --- work done again -----------------------------------------------------------------------------


def _count_again(p: Draw) -> float:
    """Let decisions pass, remember which pictures have been encoded, and add up those that come again."""
    seen: set[tuple[int, int]] = set()
    again = whole = 0
    for decision in range(p.window, p.window + 2):  # the first one sees everything for the first time
        again, whole = 0, p.other
        for camera in range(p.cameras):
            for frame in range(decision - p.window, decision):
                whole += p.image
                again += p.image * ((camera, frame) in seen)
                seen.add((camera, frame))
    return again / whole


def _total(p: Draw) -> float:
    return float(p.cameras * p.window * p.image + p.other)


AGAIN = Drill(
    key="joint-repeated-flops",
    taught=TAUGHT,
    title="Four pictures, three of them known",
    unit="",
    target_s=110,
    draw=lambda rng: drawn(
        cameras=rng.choice((7, 8)),
        window=rng.choice((3, 4)),
        image=rng.randrange(60, 140, 5),
        other=rng.randrange(3000, 5000, 50),
    ),
    small=lambda rng: drawn(cameras=rng.choice((2, 3)), window=rng.choice((3, 4)), image=5, other=rng.choice((7, 20))),
    prompt=lambda p: (
        f"At every decision a model encodes the last {p.window} pictures of each of {p.cameras} cameras,"
        f" {p.image} GFLOP a picture, and spends {p.other:,} GFLOP on everything else. Between two decisions every"
        " camera takes one picture. What share of all its FLOPs goes into pictures that it had encoded at the decision"
        " before?"
    ),
    derive=lambda p: Derivation(
        value=frame_window.repeated_flops_share(
            cameras=p.cameras,
            window=p.window,
            new=1,
            flops_per_image=p.image * GFLOP,
            other_flops=p.other * GFLOP,
        ),
        formula="cameras × (window − 1) × picture / (cameras × window × picture + everything else)",
        substitution=(
            f"{p.cameras} × ({p.window} − 1) × {p.image} / ({p.cameras} × {p.window} × {p.image} + {p.other})"
        ),
        source="Hennessy and Patterson, Computer Architecture, 6th ed., 2017, section 1.9 (a share of the whole)",
    ),
    count=_count_again,
    slips=(
        Slip("of-the-encoding", lambda p: frame_window.repeated_share(window=p.window, new=1))
        | "That is the share of the encoding. The question asks for the share of everything.",
        Slip("all-encoding", lambda p: p.cameras * p.window * p.image / _total(p))
        | "You counted the new pictures, too. They are seen for the first time.",
        Slip("one-camera", lambda p: (p.window - 1) * p.image / (p.window * p.image + p.other))
        | "You encoded the pictures of one camera.",
        Slip("one-known", lambda p: p.cameras * p.image / _total(p))
        | "You let one picture of each camera come again. How many of the window did the last decision see?",
    ),
)

DRILLS = (AGE, AGAIN)
