"""Drills on cameras that take turns, and how old the oldest view is then."""

import random
from fractions import Fraction
from typing import Any

from threeloops.drills.engine.drill import Derivation, Draw, Drill, Slip, Taught, drawn
from threeloops.drills.latency_budget.savings import AMDAHL
from threeloops.driving import latency_budget, perception_cost
from threeloops.simulate.driving import perception_frames
from threeloops.units import hour, km, ms

TAUGHT = Taught("driving", "Making it fast")

KMH = km / hour  # in metres per second

# --- cameras that take turns ---------------------------------------------------------------------


def _draw_turns(rng: random.Random) -> Draw:
    cameras = rng.choice((6, 7, 8))
    return drawn(
        cameras=cameras,
        reused=cameras // 2 + rng.choice((1, 2)),
        camera=rng.randrange(20, 30) / 10,
        align=rng.randrange(10, 16) / 10,
        others=rng.randrange(9, 14),
    )


def _turn_s(p: Draw, **changes: float) -> float:
    values: dict[str, Any] = {
        "cameras": p.cameras,
        "reused": p.reused,
        "camera_s": p.camera * ms,
        "align_s": p.align * ms,
        "others_s": p.others * ms,
    }
    return perception_cost.reused_frame_s(**(values | changes))


def _whole(p: Draw) -> float:
    return _turn_s(p, reused=0, align_s=0)


def _count_turns(p: Draw) -> float:
    """All cameras in every frame, against turns, over three rounds of all of them."""
    costs = {name: Fraction(str(getattr(p, name))) for name in ("camera", "align", "others")}
    times = {
        fresh: perception_frames.seconds_with_turns(cameras=p.cameras, fresh=fresh, frames=3 * p.cameras + 1, **costs)
        for fresh in (p.cameras, p.cameras - p.reused)
    }
    return float(sum(times[p.cameras]) / sum(times[p.cameras - p.reused]))


TURNS = Drill(
    key="latency-cameras-in-turn",
    taught=TAUGHT,
    title="Cameras that take turns",
    unit="",
    target_s=90,
    apart=1.06,
    draw=_draw_turns,
    small=_draw_turns,
    prompt=lambda p: (
        f"An encoder takes {p.camera:g} ms for each of {p.cameras} cameras, one after the other; the rest of the chain"
        f" takes {p.others} ms. Now {p.reused} of the cameras are left out of each frame in turn, and their last"
        f" features are moved along with the car, which takes {p.align:g} ms. How many times faster is a frame?"
    ),
    derive=lambda p: Derivation(
        value=_whole(p) / _turn_s(p),
        formula="(cameras × camera + others) / ((cameras − reused) × camera + align + others)",
        substitution=(
            f"({p.cameras} × {p.camera} + {p.others}) / (({p.cameras} − {p.reused}) × {p.camera} + {p.align} +"
            f" {p.others})"
        ),
        source=AMDAHL,
    ),
    count=_count_turns,
    slips=(
        Slip("no-align", lambda p: _whole(p) / _turn_s(p, align_s=0))
        | "Moving the old features along with the car takes time, too.",
        Slip("cameras-only", lambda p: p.cameras / (p.cameras - p.reused))
        | "You made the whole chain faster. Only the encoder has less to do.",
        Slip("the-others", lambda p: _whole(p) / _turn_s(p, reused=p.cameras - p.reused))
        | "You looked at those that are left out.",
        Slip("share-left", lambda p: _turn_s(p) / _whole(p))
        | "That share of the time is left. Asked is how many times faster it is.",
    ),
)

# --- how old the oldest view is ------------------------------------------------------------------


def _draw_old(rng: random.Random) -> Draw:
    cameras, reused = rng.choice(((6, 3), (6, 4), (8, 6), (9, 6), (8, 4), (12, 9)))
    return drawn(cameras=cameras, reused=reused, rate=rng.choice((10, 12, 15, 20)), kmh=rng.randrange(50, 125, 5))


def _moved_m(p: Draw, *, frames: float) -> float:
    return latency_budget.distance_m(speed_m_per_s=p.kmh * KMH, seconds=frames / p.rate)


def _oldest(p: Draw) -> int:
    return perception_cost.oldest_view_frames(cameras=p.cameras, reused=p.reused)


OLD = Drill(
    key="latency-oldest-view",
    taught=TAUGHT,
    title="How far the car has driven since it last looked there",
    unit="m",
    target_s=90,
    draw=_draw_old,
    small=_draw_old,
    prompt=lambda p: (
        f"Of {p.cameras} cameras, {p.reused} are left out of each frame; all take turns. There are {p.rate} frames a"
        f" second and the car drives at {p.kmh} km/h. Over how many metres must the oldest features in use be moved to"
        " fit the newest ones?"
    ),
    derive=lambda p: Derivation(
        value=_moved_m(p, frames=_oldest(p)),
        formula="speed × (ceil(cameras / cameras looked at) − 1) / frames per second",
        substitution=f"{p.kmh} × 1000 / 3600 × (ceil({p.cameras} / ({p.cameras} − {p.reused})) − 1) / {p.rate}",
        source="distance at constant speed; turns as in Tanenbaum and Bos, Modern Operating Systems, 4th ed., 2014",
    ),
    count=lambda p: _moved_m(
        p,
        frames=max(
            max(ages)
            for ages in perception_frames.turns(cameras=p.cameras, fresh=p.cameras - p.reused, frames=3 * p.cameras)[
                p.cameras :
            ]
        ),
    ),
    slips=(
        Slip("newest-too", lambda p: _moved_m(p, frames=_oldest(p) + 1))
        | "You counted the round once more. Those looked at in this frame are not old yet.",
        Slip("all-left-out", lambda p: _moved_m(p, frames=p.reused)) | "You let one camera a frame look. Several do.",
        Slip("kmh-as-m-per-s", lambda p: _moved_m(p, frames=_oldest(p)) / KMH) | "You put km/h where m/s belong.",
        Slip("half", lambda p: _moved_m(p, frames=_oldest(p) / 2))
        | "That is the average age of the oldest. Asked is the oldest.",
    ),
)

# --- heads by driving mode -----------------------------------------------------------------------


def _draw_mode(rng: random.Random) -> Draw:
    return drawn(
        always=rng.randrange(180, 320) / 10, head=rng.randrange(70, 140) / 10, percent=rng.choice((15, 20, 30, 35))
    )


def _mode(p: Draw, *, percent: float | None = None) -> float:
    return perception_cost.mean_frame_s(
        always_s=p.always * ms, sometimes_s=p.head * ms, share=(p.percent if percent is None else percent) / 100
    )


def _count_mode(p: Draw) -> float:
    """A hundred frames, one after the other, and their mean."""
    always, sometimes = (Fraction(str(taken)) for taken in (p.always, p.head))
    needed = [number < p.percent for number in range(100)]
    frames = perception_frames.seconds_of_frames(always=always, sometimes=sometimes, needed=needed)
    return float(sum(frames) / len(frames)) * ms


MODE = Drill(
    key="latency-head-by-mode",
    taught=TAUGHT,
    title="A head that parks",
    unit="s",
    target_s=60,
    draw=_draw_mode,
    small=_draw_mode,
    prompt=lambda p: (
        f"A frame takes {p.always:g} ms without the parking head, which takes another {p.head:g} ms. The head runs in"
        f" {p.percent} % of the frames, those of slow driving. How long does a frame take on average?"
    ),
    derive=lambda p: Derivation(
        value=_mode(p),
        formula="always + share × sometimes; the longest frame stays at always + sometimes",
        substitution=f"({p.always} + {p.percent} / 100 × {p.head}) × 1e-3",
        source="Ross, A First Course in Probability, 10th ed., 2019, section 4.3 (expected value)",
    ),
    count=_count_mode,
    slips=(
        Slip("longest", lambda p: (p.always + p.head) * ms)
        | "That is the longest frame, which a deadline asks about. Asked is the mean.",
        Slip("the-other-frames", lambda p: _mode(p, percent=100 - p.percent)) | "You ran the head in the other frames.",
        Slip("never", lambda p: p.always * ms) | "You left the head out of every frame. Some still run it.",
        Slip("share-of-all", lambda p: (p.always + p.head) * p.percent / 100 * ms)
        | "You gave the whole frame that share. What always runs does so in every frame.",
    ),
)

DRILLS = (TURNS, OLD, MODE)
