"""Follow-ups on serving: a decode step, how many share it, what a token costs, and what to change first."""

import random

from threeloops.drills.engine.drill import Draw, changed, drawn
from threeloops.drills.engine.searches import wanted
from threeloops.room.kinds.chains.chain import Chain, Decision, Step, best, clear
from threeloops.room.kinds.chains.change import value_of
from threeloops.room.letters import Option
from threeloops.units import MB, TB, fmt_seconds

H100, H200 = 3.35 * TB, 4.8 * TB  # bytes per second, as their datasheets have them
KEPT = 131_072  # bytes that a token of Llama 3 8B leaves in 16 bits


def _draw(rng: random.Random) -> Draw:
    """Until one of the three changes is clearly the best."""

    def draw() -> Draw:
        context = rng.choice((500, 1000, 2000, 4000))
        p = drawn(
            billions=8.0,
            bandwidth=H100,
            batch=rng.choice((8, 16, 32, 64, 128)),
            per_request=round(context * KEPT / MB) * round(MB),
            itl_ms=rng.choice((20, 25, 30)),
            cents=rng.choice((200, 250, 300)),
            gpus=1,
            busy=rng.choice((0.4, 0.5, 0.6)),
        )
        p.rate = round(p.batch / value_of("serving-decode-step", p) / 100) * 100
        return p

    return wanted(draw, lambda p: clear(_gains(p)) and value_of("serving-batch-for-itl", p) > 0)


def _gains(p: Draw) -> dict[str, float]:
    """How many seconds of a step each change takes away."""
    now = value_of("serving-decode-step", p)
    changes = {
        "weights": changed(p, billions=p.billions / 2),  # half of the bytes: as if half of the parameters
        "caches": changed(p, per_request=p.per_request / 2),
        "memory": changed(p, bandwidth=H200),
    }
    return {key: now - value_of("serving-decode-step", q) for key, q in changes.items()}


def _because(p: Draw) -> str:
    gains, now = _gains(p), value_of("serving-decode-step", p)
    words = {"weights": "8-bit weights", "caches": "8-bit caches", "memory": "the H200"}
    left = ", ".join(f"{fmt_seconds(now - gains[key])} with {words[key]}" for key in words)
    return f"A step takes {fmt_seconds(now)} as it is; {left}."


SERVER = Chain(
    key="server",
    title="A server",
    draw=_draw,
    steps=(
        Step(drill="serving-decode-step", numbers=lambda p: p),
        Step(drill="serving-batch-for-itl", numbers=lambda p: p),
        Step(
            drill="serving-price-per-million",
            numbers=lambda p: p,
            text=lambda p: (
                f"With {p.batch} requests in each step, as at first, 1 GPU makes {p.rate:,} tokens per second. It has"
                f" work for a share of {p.busy:g} of the day and costs {p.cents / 100:.2f} dollars an hour all day."
                " What does a million tokens cost?"
            ),
        ),
    ),
    decision=Decision(
        drill="serving-decode-step",
        text=lambda p: (
            f"{p.batch} requests share a step on the H100 ({p.bandwidth / TB:g} TB/s): {p.billions:g} billion weights"
            f" in 16 bits, {p.per_request / MB:,.0f} MB of cache each. Which single change makes the step"
            " shortest?"
        ),
        options=lambda p: (
            Option(key="weights", text="weights in 8 bits, caches as they are"),
            Option(key="caches", text="caches in 8 bits, weights as they are"),
            Option(key="memory", text=f"an H200 with {H200 / TB:g} TB/s, all in 16 bits"),
        ),
        right=lambda p: best(_gains(p)),
        because=_because,
    ),
)
