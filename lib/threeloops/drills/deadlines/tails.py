"""Drills on tails: how many frames a percentile needs, what a deadline allows, and what is late in an hour."""

import random
from fractions import Fraction

from threeloops.drills.engine.drill import AsFunction, Derivation, Draw, Drill, Slip, Taught, drawn
from threeloops.drills.engine.searches import holds_up_to
from threeloops.driving import tail_samples
from threeloops.simulate.driving import tail_draws
from threeloops.units import hour, minute, ms

TAUGHT = Taught("driving", "Tails and schedules")
WILKS = "Wilks, Annals of Mathematical Statistics 12(1), 1941, doi:10.1214/aoms/1177731788"
TAILS = "Dean and Barroso, The Tail at Scale, Communications of the ACM 56(2), 2013, doi:10.1145/2408776.2408794"

# --- frames for a percentile ---------------------------------------------------------------------


def _frames(p: Draw) -> int:
    return tail_samples.frames_to_see(share=1 - 1 / p.one_in, confidence=p.confidence)


FRAMES = Drill(
    key="deadlines-frames",
    taught=TAUGHT,
    title="How many frames for that tail",
    unit="",
    whole="up",
    loose="bound",
    target_s=110,
    draw=lambda rng: drawn(one_in=rng.randrange(150, 2001, 10), confidence=rng.choice((0.9, 0.95, 0.99))),
    small=lambda rng: drawn(one_in=rng.randrange(5, 60), confidence=rng.choice((0.9, 0.95, 0.99))),
    prompt=lambda p: (
        f"You want to have seen at least one of the slowest 1 in {p.one_in} frames, with {100 * p.confidence:g} %"
        " confidence. Frames are independent and alike. How many must you measure?"
    ),
    derive=lambda p: Derivation(
        value=float(_frames(p)),
        formula="smallest n with (1 − 1 / k)^n <= 1 − confidence: ceil(log(1 − confidence) / log(1 − 1 / k))",
        substitution=f"ceil(log2(1 − {p.confidence}) / log2(1 − 1 / {p.one_in}))",
        source=WILKS,
    ),
    count=lambda p: float(
        tail_draws.frames_until(share=1 - Fraction(1, p.one_in), confidence=Fraction(str(p.confidence)))
    ),
    slips=(
        Slip("expected", lambda p: float(p.one_in))
        | "In so many frames one is expected. In more than a third of such tests there is none.",
        Slip("half", lambda p: float(tail_samples.frames_to_see(share=1 - 1 / p.one_in, confidence=0.5)))
        | "That many frames show it in every second test only.",
        Slip("linear", lambda p: p.one_in / (1 - p.confidence))
        | "You divided by the doubt. The chance of seeing none falls with every frame, and faster than that.",
        Slip("twice", lambda p: 2.0 * p.one_in)
        | "You doubled what is expected, to be safe. The chance of seeing none falls slower than that.",
    ),
    function=AsFunction(
        takes=("one_in", "confidence"),
        limit={"one_in": 2, "confidence": 0.5},
        limit_case="the slower half, as likely as not",
    ),
)

# --- the allowed ratio ---------------------------------------------------------------------------


def _draw_ratio(rng: random.Random) -> Draw:
    return drawn(rate=rng.choice((15, 20, 24, 30)), fixed_ms=rng.randrange(4, 12), median_ms=rng.randrange(14, 40))


def _deadline_ms(p: Draw) -> float:
    return float(1 / p.rate / ms)


def _left_ms(p: Draw) -> float:
    """What the fixed part leaves of the deadline."""
    return float(_deadline_ms(p) - p.fixed_ms)


def _count_ratio(p: Draw) -> float:
    """Stretch the stage, halving the interval, until the frame is just in time."""
    return holds_up_to(lambda times: (p.fixed_ms * ms + p.median_ms * ms * times) * p.rate < 1, high=100)


RATIO = Drill(
    key="deadlines-tail-ratio",
    taught=TAUGHT,
    title="How long the tail may be",
    unit="",
    target_s=75,
    apart=1.06,
    wanted=lambda p: 1.15 < _left_ms(p) / p.median_ms < 3,
    draw=_draw_ratio,
    small=_draw_ratio,
    prompt=lambda p: (
        f"A chain must be done before the next frame comes, at {p.rate} frames per second. Reading and sending take"
        f" {p.fixed_ms} ms, always. The network takes {p.median_ms} ms in the median. How many times its median may the"
        " network take at p99, if 99 % of the frames are to be in time?"
    ),
    derive=lambda p: Derivation(
        value=tail_samples.allowed_tail_ratio(
            deadline_s=1 / p.rate, median_s=p.median_ms * ms, fixed_s=p.fixed_ms * ms
        ),
        formula="(1 / rate − fixed part) / median",
        substitution=f"(1000 / {p.rate} − {p.fixed_ms}) / {p.median_ms}",
        source=f"{TAILS} (the deadline sets the percentile, not a rule of thumb)",
    ),
    count=_count_ratio,
    slips=(
        Slip("whole-deadline", lambda p: _deadline_ms(p) / p.median_ms)
        | "You gave the network the whole time. Reading and sending take theirs in every frame.",
        Slip("whole-chain", lambda p: _deadline_ms(p) / (p.median_ms + p.fixed_ms))
        | "You stretched the whole chain. Reading and sending always take the same.",
        Slip("inverted", lambda p: p.median_ms / _left_ms(p))
        | "You divided the median by what may be taken. The ratio is the other way round.",
        Slip("fixed-twice", lambda p: _left_ms(p) / (p.median_ms + p.fixed_ms))
        | "You charged the fixed part twice, once to the deadline and once to the network.",
    ),
)

# --- misses in a drive ---------------------------------------------------------------------------


def _misses(p: Draw) -> float:
    in_an_hour = tail_samples.misses_per_hour(late_share=p.per_ten_thousand / 10_000, frames_per_s=p.rate)
    return float(p.chains * in_an_hour * p.minutes * minute / hour)


def _count_misses(p: Draw) -> float:
    """Go through an hour of each chain, one frame in so many late, and take the drive's part of it."""
    every = 10_000 // p.per_ten_thousand
    pattern = [number == 0 for number in range(every)]
    late = sum(tail_draws.late_in_an_hour(pattern=pattern, frames_per_s=p.rate) for _chain in range(p.chains))
    return float(late / 60 * p.minutes)


MISSES = Drill(
    key="deadlines-misses",
    taught=TAUGHT,
    title="Late frames in a drive",
    unit="",
    target_s=75,
    draw=lambda rng: drawn(
        rate=rng.choice((15, 20, 25, 30, 36)),
        chains=rng.choice((3, 5, 7)),
        minutes=rng.choice((20, 25, 35, 40, 45, 90)),
        per_ten_thousand=rng.choice((2, 4, 5, 8, 20)),
    ),
    small=lambda rng: drawn(rate=rng.choice((10, 20)), chains=3, minutes=rng.choice((20, 40)), per_ten_thousand=10),
    prompt=lambda p: (
        f"{p.chains} cameras have a chain each, {p.rate} frames per second. Every chain meets its deadline in"
        f" {100 - p.per_ten_thousand / 100:g} % of the frames. How many late results are to be expected in a drive of"
        f" {p.minutes} minutes, all chains together?"
    ),
    derive=lambda p: Derivation(
        value=_misses(p),
        formula="chains × late share × frames/s × seconds",
        substitution=f"{p.chains} × {p.per_ten_thousand} / 10000 × {p.rate} × {p.minutes} × 60",
        source=TAILS,
    ),
    count=_count_misses,
    slips=(
        Slip("one-chain", lambda p: _misses(p) / p.chains) | "That is one camera's chain.",
        Slip("percent-as-share", lambda p: 100 * _misses(p))
        | "You took percent for a share. A share is a hundredth of that.",
        Slip("minute", lambda p: _misses(p) / p.minutes) | "That is one minute of the drive.",
        Slip("seconds-forgotten", lambda p: _misses(p) / minute) | "You multiplied frames per second by minutes.",
    ),
)

DRILLS = (FRAMES, RATIO, MISSES)
