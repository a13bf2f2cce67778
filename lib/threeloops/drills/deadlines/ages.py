"""Drills on the age of data: along a chain with several clocks, around a late frame, and until a fault is handled."""

import random

from threeloops.drills.engine.drill import AsFunction, Derivation, Draw, Drill, Slip, Taught, drawn
from threeloops.driving import data_age, fault_times
from threeloops.simulate.driving import hand_overs, heartbeat, late_frames
from threeloops.units import ms

TAUGHT = Taught("driving", "Tails and schedules")
DAVARE = "Davare et al., Design Automation Conference, 2007, doi:10.1145/1278480.1278553"
AGE = "age as in Kaul, Yates and Gruteser, Real-time status: how often should one update?, INFOCOM, 2012"
ISO = "ISO 26262-1:2018, 3.55 to 3.61, as quoted by kVA (FHTI = FDTI + FRTI; FTTI belongs to the item)"

# --- a chain -------------------------------------------------------------------------------------


def _draw_chain(rng: random.Random) -> Draw:
    periods = (rng.choice((33, 40, 50)), rng.choice((60, 80, 100)), rng.choice((10, 15, 20)))
    responses = (rng.randrange(18, 32), rng.randrange(25, 55), rng.randrange(2, 9))
    return drawn(periods_ms=periods, responses_ms=responses)


def _chain(p: Draw) -> float:
    return data_age.worst_reaction_s(
        [(period * ms, response * ms) for period, response in zip(p.periods_ms, p.responses_ms, strict=True)]
    )


CHAIN = Drill(
    key="deadlines-chain",
    taught=TAUGHT,
    title="A chain with three clocks",
    unit="s",
    target_s=90,
    apart=1.06,
    draw=_draw_chain,
    small=lambda rng: drawn(
        periods_ms=(rng.randrange(3, 6), rng.randrange(6, 9), rng.randrange(2, 4)),
        responses_ms=(rng.randrange(2, 5), rng.randrange(3, 6), rng.randrange(1, 3)),
    ),
    prompt=lambda p: (
        f"Perception starts every {p.periods_ms[0]} ms and takes up to {p.responses_ms[0]} ms; planning starts every"
        f" {p.periods_ms[1]} ms and takes up to {p.responses_ms[1]} ms; control starts every {p.periods_ms[2]} ms and"
        f" takes up to {p.responses_ms[2]} ms. Each reads the newest value when it starts and writes when it ends; the"
        " clocks are not aligned. What is the longest time from an event to the end of the first control step that"
        " knows of it?"
    ),
    derive=lambda p: Derivation(
        value=_chain(p),
        formula="sum over stages of (period + response time)",
        substitution=f"({' + '.join(map(str, (*p.periods_ms, *p.responses_ms)))}) / 1000",
        source=DAVARE,
    ),
    count=lambda p: hand_overs.slowest(list(zip(p.periods_ms, p.responses_ms, strict=True))) * ms,
    slips=(
        Slip("responses-only", lambda p: sum(p.responses_ms) * ms)
        | "You added up computing alone. Between two stages a value waits for the next one to start.",
        Slip("periods-only", lambda p: sum(p.periods_ms) * ms)
        | "You added up the waits alone. Each stage computes as well before it writes.",
        Slip("half-periods", lambda p: (sum(p.periods_ms) / 2 + sum(p.responses_ms)) * ms)
        | "That is the mean wait at each hand-over. The longest one has just missed a start.",
        Slip("no-sampling", lambda p: _chain(p) - p.periods_ms[0] * ms)
        | "You let the event fall just before the first stage starts. It may fall just after.",
    ),
    function=AsFunction(
        takes=("periods_ms", "responses_ms"),
        limit=lambda p: {"periods_ms": p.periods_ms[:1], "responses_ms": p.responses_ms[:1]},
        limit_case="a chain of a single stage",
    ),
)

# --- a late frame --------------------------------------------------------------------------------


def _draw_late(rng: random.Random) -> Draw:
    period = rng.choice((33, 40, 50))
    return drawn(
        period_ms=period,
        usual_ms=rng.randrange(period * 5 // 10, period * 9 // 10),
        late_ms=rng.randrange(2 * period + 2, 3 * period - 1),
    )


def _age(p: Draw, policy: str) -> float:
    return data_age.oldest_after_late_frame_s(policy=policy, period_s=p.period_ms, usual_s=p.usual_ms, late_s=p.late_ms)


def _count_late(p: Draw) -> float:
    takes = [p.usual_ms] * 3 + [p.late_ms] + [p.usual_ms] * 4
    return float(late_frames.oldest(late_frames.play(takes, period=p.period_ms, policy="skip")) * ms)


LATE = Drill(
    key="deadlines-late-frame",
    taught=TAUGHT,
    title="One late frame, and its successors dropped",
    unit="s",
    target_s=150,
    apart=1.06,
    draw=_draw_late,
    small=_draw_late,
    prompt=lambda p: (
        f"A frame comes every {p.period_ms} ms and usually takes {p.usual_ms} ms. Once it takes {p.late_ms} ms. A frame"
        " that comes while another one is worked on is dropped; after that everything is as usual. How old does the"
        " newest result get, counted from the capture of its frame?"
    ),
    derive=lambda p: Derivation(
        value=_age(p, "skip") * ms,
        formula="max(period + late, ceil(late / period) × period + usual)",
        substitution=(
            f"max({p.period_ms} + {p.late_ms}, ceil({p.late_ms} / {p.period_ms}) × {p.period_ms} + {p.usual_ms}) / 1000"
        ),
        source=AGE,
    ),
    count=_count_late,
    slips=(
        Slip("late-only", lambda p: p.late_ms * ms)
        | "That is how old the late result is when it comes. It is used until the next result stands.",
        Slip("queued", lambda p: (p.late_ms + p.usual_ms) * ms)
        | "You began the next frame when the late one ended. There was none: those that came were dropped.",
        Slip("aborted", lambda p: _age(p, "abort") * ms)
        | "You gave the late frame up when its successor came. Here it is worked on to its end.",
        Slip("degraded", lambda p: _age(p, "degrade") * ms)
        | "You let a cheap result stand in time. Here nothing stands in for the late frame.",
    ),
)

# --- a watchdog ----------------------------------------------------------------------------------


def _timeout(p: Draw) -> int:
    return int(p.beat_ms * p.missed)


def _left(p: Draw) -> float:
    found_s = fault_times.heartbeat_detection_s(timeout_s=_timeout(p) * ms, poll_s=p.poll_ms * ms)
    return fault_times.reaction_left_s(ftti_s=p.ftti_ms * ms, detection_s=found_s)


WATCHDOG = Drill(
    key="deadlines-watchdog",
    taught=TAUGHT,
    title="What detection leaves of the FTTI",
    unit="s",
    target_s=100,
    apart=1.06,
    draw=lambda rng: drawn(
        ftti_ms=rng.randrange(400, 620, 5),
        beat_ms=rng.choice((20, 30, 40)),
        missed=rng.choice((3, 4, 5)),
        poll_ms=rng.choice((50, 60, 70, 80)),
    ),
    small=lambda rng: drawn(
        ftti_ms=rng.randrange(60, 90), beat_ms=rng.randrange(4, 7), missed=3, poll_ms=rng.randrange(5, 12)
    ),
    prompt=lambda p: (
        f"An item's hazard analysis gives a fault tolerant time interval (FTTI) of {p.ftti_ms} ms. The perception"
        f" process sends a heartbeat every {p.beat_ms} ms; each one sets a timer to {p.missed} heartbeat periods, and a"
        f" supervisor looks every {p.poll_ms} ms whether the timer has run out. The process hangs. How much time is"
        " left, in the worst case, from the detection to the safe state?"
    ),
    derive=lambda p: Derivation(
        value=_left(p),
        formula="FTTI − (timeout + poll period): hung just after a heartbeat, the supervisor having just looked",
        substitution=f"({p.ftti_ms} − ({p.missed} × {p.beat_ms} + {p.poll_ms})) / 1000",
        source=ISO,
    ),
    count=lambda p: (
        (p.ftti_ms - heartbeat.slowest_detection(heartbeat=p.beat_ms, timeout=_timeout(p), poll=p.poll_ms)) * ms
    ),
    slips=(
        Slip("no-poll", lambda p: (p.ftti_ms - _timeout(p)) * ms)
        | "You detected the hang when the timer ran out. A watchdog still has to read the timer.",
        Slip("mean-poll", lambda p: (p.ftti_ms - _timeout(p) - p.poll_ms / 2) * ms)
        | "You let the supervisor look in the middle, as it does on average. It may just have looked.",
        Slip("detection", lambda p: (_timeout(p) + p.poll_ms) * ms)
        | "That is the time until detection. What is left after it?",
        Slip("one-beat", lambda p: (p.ftti_ms - p.beat_ms - p.poll_ms) * ms)
        | "You let one missing heartbeat trip the timer. It waits for several periods.",
    ),
)

DRILLS = (CHAIN, LATE, WATCHDOG)
