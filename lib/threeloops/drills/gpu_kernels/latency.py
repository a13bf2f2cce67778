"""Drills on waiting in company: what must be on its way so that a memory is never idle, and how busy a scheduler's
warps keep it.
"""

import random

from threeloops.drills.engine.drill import Derivation, Draw, Drill, Slip, Taught, drawn
from threeloops.inner_loop import latency_hiding
from threeloops.units import TB, GHz

TAUGHT = Taught("inner", "The GPU")

SOURCE_LITTLE = "Little, Operations Research 9(3), 1961, doi:10.1287/opre.9.3.383"
SOURCE_VOLKOV = "Volkov, Understanding Latency Hiding on GPUs, UC Berkeley EECS-2016-143, 2016"

# --- bytes in flight per SM ----------------------------------------------------------------------


def _small_flight(rng: random.Random) -> Draw:
    # 32 bytes per cycle for each SM, or 64
    sms, clock_ghz, per_cycle = rng.choice((3, 5)), rng.choice((1.2, 1.5)), rng.choice((32, 64))
    return drawn(sms=sms, tb=sms * per_cycle * clock_ghz * GHz / TB, cycles=rng.choice((40, 60)), clock_ghz=clock_ghz)


def _flight(p: Draw, factor: float = 1) -> float:
    latency_s = latency_hiding.latency_s(cycles=p.cycles, clock_hz=p.clock_ghz * GHz)
    return float(factor * latency_hiding.bytes_in_flight(memory_bytes_per_s=p.tb * TB, latency_s=latency_s) / p.sms)


def _count_flight(p: Draw) -> float:
    """A memory that sends every SM its share in each cycle, and the requests that had to be out for it: watched until
    the number is steady.
    """
    asked_per_cycle = p.tb * TB / (p.clock_ghz * GHz) / p.sms
    on_the_way: list[int] = []
    for now in range(3 * p.cycles):
        on_the_way = [back for back in on_the_way if back > now]
        on_the_way.append(now + p.cycles)
    return float(len(on_the_way) * asked_per_cycle)


FLIGHT = Drill(
    key="gpu-bytes-in-flight",
    taught=TAUGHT,
    title="Bytes on their way",
    unit="B",
    target_s=90,
    draw=lambda rng: drawn(
        sms=rng.randrange(60, 180, 6),
        tb=rng.choice((1.3, 1.7, 2.6, 3.7, 5.3)),
        cycles=rng.randrange(430, 900, 30),
        clock_ghz=rng.choice((1.2, 1.3, 1.6, 1.8)),
    ),
    small=_small_flight,
    prompt=lambda p: (
        f"A card's memory delivers {p.tb:g} TB/s. A load takes {p.cycles} cycles at {p.clock_ghz} GHz until its value"
        f" is there. The card has {p.sms} SMs, all with the same work. How many bytes must one SM have asked for, and"
        " not yet received, at any moment, for the memory to deliver all it can?"
    ),
    derive=lambda p: Derivation(
        value=_flight(p),
        formula="bandwidth × latency / SMs, the latency being cycles / clock",
        substitution=f"{p.tb}e12 × {p.cycles} / {p.clock_ghz}e9 / {p.sms}",
        source=SOURCE_LITTLE,
    ),
    count=_count_flight,
    slips=(
        Slip("whole-card", lambda p: _flight(p, p.sms))
        | "That is what the whole card has in flight. The SMs share it.",
        Slip("cycles-as-ns", lambda p: _flight(p, p.clock_ghz))
        | "You took a cycle for a nanosecond. How long is one at this clock?",
        Slip("clock-wrong-way", lambda p: _flight(p, p.clock_ghz**2))
        | "You multiplied the cycles by the clock. A faster clock makes a cycle shorter.",
        Slip("bits", lambda p: _flight(p, 1 / 8))
        | "You divided by eight, as if the bandwidth were in bits. It is in bytes.",
        Slip("there-and-back", lambda p: _flight(p, 2))
        | "You counted the latency twice. It is already the way there and back.",
        Slip("per-warp-slot", lambda p: _flight(p, 1 / 64))
        | "You divided by the 64 places for warps as well. The question was about an SM.",
    ),
)

# --- how busy a scheduler is ---------------------------------------------------------------------


def _turn(p: Draw) -> latency_hiding.Turn:
    return latency_hiding.Turn(loads=1, instructions=p.instructions, latency_cycles=p.cycles)


def _count_issue(p: Draw) -> float:
    from threeloops.simulate.inner_loop import warp_scheduler

    played = warp_scheduler.play(
        warps=p.warps, turns=8, loads=1, instructions=p.instructions, latency_cycles=p.cycles, policy="greedy"
    )
    return played.issue_share(skip_turns=3)


ISSUE = Drill(
    key="gpu-issue-share",
    taught=TAUGHT,
    title="A scheduler and its warps",
    unit="",
    target_s=90,
    draw=lambda rng: drawn(
        warps=rng.choice((5, 6, 7)), instructions=rng.randrange(13, 30), cycles=rng.randrange(500, 840, 20)
    ),
    small=lambda rng: drawn(warps=rng.choice((3, 4)), instructions=rng.choice((5, 7)), cycles=rng.choice((41, 53))),
    prompt=lambda p: (
        f"A scheduler has {p.warps} resident warps. Each of them repeats: one load, whose value can be used {p.cycles}"
        f" cycles after the load was issued, then {p.instructions} instructions that need it, one per cycle. The"
        " scheduler issues at most one instruction per cycle, the load included, and the warps do not get in each"
        " other's way. In what share of the cycles does it issue anything?"
    ),
    derive=lambda p: Derivation(
        value=latency_hiding.issue_share(_turn(p), warps=p.warps),
        formula="warps × (1 + instructions) / (latency + instructions), at most 1",
        substitution=f"min(1, {p.warps} × (1 + {p.instructions}) / ({p.cycles} + {p.instructions}))",
        source=SOURCE_VOLKOV,
    ),
    count=_count_issue,
    slips=(
        Slip("alone", lambda p: latency_hiding.issue_share(_turn(p), warps=1))
        | "That is the share of one warp alone. While it waits, the others may issue.",
        Slip("others-only", lambda p: (p.warps - 1) * (1 + p.instructions) / (p.cycles + p.instructions))
        | "You left out the warp that waits. It issues too, in its own turn.",
        Slip("loads-only", lambda p: p.warps / (p.cycles + p.instructions))
        | "You counted the loads. The instructions that follow are issued as well.",
        Slip("waiting", lambda p: 1 - p.warps * (1 + p.instructions) / (p.cycles + p.instructions))
        | "That is the share in which nothing is issued.",
        Slip("lanes", lambda p: 32 * p.warps * (1 + p.instructions) / (p.cycles + p.instructions))
        | "You counted 32 issues per instruction. One issue serves a whole warp.",
    ),
)

DRILLS = (FLIGHT, ISSUE)
