"""Follow-ups on a server that others measured: what a user sees, how far above its floor it is, what to change."""

import functools
import random

from threeloops.drills.engine.drill import Draw, drawn
from threeloops.drills.engine.searches import wanted
from threeloops.drills.measured.loads import two_loads, with_lighter
from threeloops.drills.measured.rows import took
from threeloops.drills.measured.served import server
from threeloops.drills.measured.servers import caches_bytes, config_of, is_dense
from threeloops.drills.measured.users import total_per_gpu
from threeloops.facts.served_points import ServedPoint
from threeloops.product_loop import batching
from threeloops.room.kinds.chains.chain import Chain, Decision, Step, best, clear
from threeloops.room.kinds.chains.change import redrawn, told_apart
from threeloops.room.letters import Option
from threeloops.units import fmt_seconds

FEW, SHARE = 8, (0.01, 0.7)  # requests beside which a prompt is hardly held up; of a TPOT, the prompts of others


@functools.cache
def _pairs() -> tuple[tuple[ServedPoint, ServedPoint], ...]:
    """A server under two loads, the lighter one first, whose model has a floor that can be said."""
    return tuple(pair for pair in two_loads() if pair[0].requests <= FEW and is_dense(pair[1]))


def published_server(rng: random.Random) -> Draw:
    """One of them, with its model's numbers, as long as the prompts of others are a part of its TPOT and not most."""

    def draw() -> Draw:
        light, heavy = rng.choice(_pairs())
        return drawn(**(config_of(heavy) | vars(with_lighter(light, heavy))))

    p = wanted(draw, lambda p: SHARE[0] < others_s(p) / p.tpot_s < SHARE[1])
    p.total = total_per_gpu(p)
    return p


def others_s(p: Draw) -> float:
    """What the prompts of others add to a TPOT."""
    return batching.others_prompts_s(requests=p.requests, output_tokens=p.answer, prompt_s=p.light_ttft_s)


def weights_s(p: Draw) -> float:
    """What one reading of the weights takes, through all memories at once."""
    return float(p.parameters * p.width / (p.tp * p.memory))


def caches_s(p: Draw) -> float:
    """The same of all caches."""
    return float(caches_bytes(p) / (p.tp * p.memory))


def _gains(p: Draw) -> dict[str, float]:
    """Seconds of the TPOT that each change takes away at most."""
    return {"prompts": others_s(p), "weights": weights_s(p) / 2, "caches": caches_s(p) / 2}


def _because(p: Draw) -> str:
    gains = _gains(p)
    return (
        f"Of a TPOT of {took(p.tpot_s)} the prompts of others take {fmt_seconds(gains['prompts'])}; half of the weights"
        f" is read in {fmt_seconds(gains['weights'])}, half of the caches in {fmt_seconds(gains['caches'])}."
    )


STEPS = (
    Step(drill="measured-user-rate", numbers=lambda p: p),
    Step(drill="measured-over-the-floor", numbers=lambda p: p),
    Step(drill="measured-prompts-of-others", numbers=lambda p: p),
)

PUBLISHED = Chain(
    key="published-server",
    title="A published server",
    draw=redrawn(published_server, lambda p: told_apart(STEPS, p) and clear(_gains(p))),
    steps=STEPS,
    decision=Decision(
        drill="measured-prompts-of-others",
        text=lambda p: (
            f"{server(p)}; TPOT {took(p.tpot_s)}. You may change one thing. Take from the answers before how long"
            " weights, caches and the prompts of others take. What shortens TPOT most?"
        ),
        options=lambda p: (
            Option(key="prompts", text="other GPUs read the prompts, and send the caches"),
            Option(key="weights", text=f"weights in {4 * p.width} bits instead of {8 * p.width}"),
            Option(key="caches", text=f"caches in {4 * p.cache_width} bits instead of {8 * p.cache_width}"),
        ),
        right=lambda p: best(_gains(p)),
        because=_because,
    ),
)
