"""Follow-ups on a perception stack: how old its knowledge gets, what that costs in road, how often it is late, and what
to change first.
"""

import random

from threeloops.drills.engine.drill import Draw, drawn
from threeloops.drills.engine.searches import wanted
from threeloops.room.kinds.chains.chain import Chain, Decision, Step, best, clear
from threeloops.room.kinds.chains.change import value_of
from threeloops.room.letters import Option
from threeloops.units import fmt_seconds, ms

BRAKES_MS = 300  # from a command until the brakes bite
STAGES = ("perception", "planning", "control")


def _draw(rng: random.Random) -> Draw:
    """Stages that need less than half of their period, so that each could be run twice as often."""

    def draw() -> Draw:
        periods = (rng.choice((40, 50, 60, 80)), rng.choice((50, 60, 100, 120)), rng.choice((10, 20)))
        return drawn(
            periods_ms=periods,
            responses_ms=tuple(rng.randrange(round(0.25 * period), period // 2) for period in periods),
            saved_ms=rng.choice((10, 15, 20)),
            kmh=rng.choice((50, 60, 80, 100)),
            braking=rng.choice((5.0, 6.0, 7.0)),
            rate=rng.choice((15, 20, 25)),
            chains=rng.choice((6, 7, 8)),
            minutes=rng.choice((30, 45, 90)),
            per_ten_thousand=rng.choice((3, 5, 12)),
        )

    return wanted(draw, lambda p: p.saved_ms < p.responses_ms[0] and clear(_gains(p)))


def _with(p: Draw, place: int, **changed: int) -> Draw:
    """The chain with one stage's period or response time changed."""
    new = {name: list(getattr(p, name)) for name in ("periods_ms", "responses_ms")}
    for name, value in changed.items():
        new[name][place] = value
    return drawn(**{name: tuple(values) for name, values in new.items()})


def _gains(p: Draw) -> dict[str, float]:
    """How many seconds each change takes off the longest way from an event to a command."""
    now = value_of("deadlines-chain", p)
    changed = {
        "perception": _with(p, 0, periods_ms=p.periods_ms[0] // 2),
        "planning": _with(p, 1, periods_ms=p.periods_ms[1] // 2),
        "network": _with(p, 0, responses_ms=p.responses_ms[0] - p.saved_ms),
    }
    return {key: now - value_of("deadlines-chain", q) for key, q in changed.items()}


def _stopping(p: Draw) -> Draw:
    reaction = value_of("deadlines-chain", p) / ms + BRAKES_MS
    return drawn(kmh=p.kmh, braking=p.braking, reaction_ms=round(reaction))


def _stages(p: Draw) -> str:
    rows = zip(STAGES, p.periods_ms, p.responses_ms, strict=True)
    return "; ".join(f"{name} every {period} ms, up to {response} ms" for name, period, response in rows)


def _because(p: Draw) -> str:
    gains = _gains(p)
    words = {"perception": "perception twice as often", "planning": "planning twice as often", "network": "the network"}
    return ", ".join(f"{words[key]} saves {fmt_seconds(gain)}" for key, gain in gains.items()) + "."


STACK = Chain(
    key="stack",
    title="A perception stack",
    draw=_draw,
    steps=(
        Step(drill="deadlines-chain", numbers=lambda p: p),
        Step(
            drill="latency-stopping-distance",
            numbers=_stopping,
            text=lambda p: (
                f"Stages again: {_stages(p)}; each reads the newest value when it starts, clocks are not aligned. After"
                f" the command the brakes take {BRAKES_MS} ms; then the car slows by {p.braking} m/s². At {p.kmh} km/h,"
                " how far does it travel from the event to standstill, at worst?"
            ),
        ),
        Step(
            drill="deadlines-misses",
            numbers=lambda p: p,
            text=lambda p: (
                f"{p.chains} cameras have such a chain each, {p.rate} frames per second. Each chain is late in"
                f" {p.per_ten_thousand} of 10,000 frames. How many late results are to be expected in a drive of"
                f" {p.minutes} minutes, all chains together?"
            ),
        ),
    ),
    decision=Decision(
        drill="deadlines-chain",
        text=lambda p: (
            f"{_stages(p)}; clocks not aligned, each stage reads the newest value when it starts. You may change one"
            " thing. What shortens the longest way from event to command most?"
        ),
        options=lambda p: (
            Option(key="perception", text="run perception twice as often, each run as long as before"),
            Option(key="planning", text="run planning twice as often, each run as long as before"),
            Option(key="network", text=f"a network that answers {p.saved_ms} ms sooner, as often as before"),
        ),
        right=lambda p: best(_gains(p)),
        because=_because,
    ),
)
