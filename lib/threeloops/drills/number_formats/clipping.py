"""Drills on the loss scale in a training loop: what clipping sees, and how long a burst of overflows is felt."""

import math
import random

from threeloops.drills.engine.drill import Derivation, Draw, Drill, Slip, Taught, drawn
from threeloops.simulate.training_loop import loss_scaler
from threeloops.training_loop.updates import loss_scaling

TAUGHT = Taught("training", "Mixed precision")

SOURCE_CLIPPING = 'PyTorch documentation, Automatic Mixed Precision examples, "Gradient clipping", 2026'
SOURCE_SCALER = "torch.amp.GradScaler 2.13, 2026; Micikevicius et al., 2018, arXiv:1710.03740, section 3.2"

# --- clipped before the scale is taken out -------------------------------------------------------


def _step(p: Draw, *, unscaled: bool) -> float:
    return float(p.rate * loss_scaling.clipped_norm(norm=p.norm, largest=p.largest, scale=p.scale, unscaled=unscaled))


def _draw_clipped(rng: random.Random) -> Draw:
    largest = rng.choice((0.5, 1.5, 2.0, 3.0, 5.0))
    return drawn(
        scale=2 ** rng.randrange(9, 17),
        largest=largest,
        norm=round(largest * rng.uniform(0.2, 0.8), 2),
        rate=rng.choice((0.3, 0.2, 0.15, 0.05, 0.02)),
    )


def _count_clipped(p: Draw) -> float:
    """Three weights, their gradients scaled, clipped, divided again and stepped along."""
    true = [p.norm * part for part in (2 / 7, 3 / 7, 6 / 7)]
    scaled = [part * p.scale for part in true]
    length = math.hypot(*scaled)
    if length > p.largest:
        scaled = [part * p.largest / length for part in scaled]
    weights = [0.0, 0.0, 0.0]
    after = [weight - p.rate * (part / p.scale) for weight, part in zip(weights, scaled, strict=True)]
    return math.dist(weights, after)


CLIPPED = Drill(
    key="precision-clipped-scaled",
    taught=TAUGHT,
    title="Clipped before the scale was taken out",
    unit="",
    target_s=90,
    apart=1.06,
    draw=_draw_clipped,
    small=_draw_clipped,
    prompt=lambda p: (
        f"An FP16 loop multiplies its loss by {p.scale:,}, calls backward, clips the norm of all gradients to"
        f" {p.largest:g}, and then lets the scaler divide by the scale and step with plain SGD at a learning rate of"
        f" {p.rate:g}. Unscaled, the gradient would have a norm of {p.norm:g}. What is the norm of the change of the"
        " weights?"
    ),
    derive=lambda p: Derivation(
        value=_step(p, unscaled=False),
        formula="learning rate × min(scale × norm, limit) / scale",
        substitution=f"{p.rate} × min({p.scale} × {p.norm}, {p.largest}) / {p.scale}",
        source=SOURCE_CLIPPING,
    ),
    count=_count_clipped,
    prerequisites=("format-loss-scale",),
    slips=(
        Slip("unscaled-first", lambda p: _step(p, unscaled=True))
        | "That is a loop that unscales before it clips. In which unit is the norm here?",
        Slip("still-in-the-limit", lambda p: p.rate * p.largest)
        | "You clipped and stepped. The scaler still divides in between.",
        Slip("rate-forgotten", lambda p: p.largest / p.scale)
        | "That is the gradient that arrives. SGD multiplies it by something.",
        Slip("never-clipped", lambda p: p.rate * p.norm / p.scale)
        | "You divided a gradient that had not been multiplied. Follow the scale through the loop.",
        Slip("never-divided", lambda p: p.rate * p.scale * p.norm)
        | "You stepped with the scaled gradient, neither clipped nor divided.",
    ),
)

# --- how long a burst is felt --------------------------------------------------------------------


def _recovery_steps(p: Draw) -> int:
    scaler = loss_scaling.Scaler(backoff=1 / p.backoff, interval=p.interval)
    return loss_scaling.recovery_steps(scaler, bad_steps=p.bad)


def _count_recovery(p: Draw) -> float:
    """Play the burst and then good steps, until a step has the old scale again."""
    burst = [math.nan] * p.bad
    scales = loss_scaler.play(
        [*burst, *[1e-9] * (p.interval * p.bad * 4)], limit=65520.0, backoff=1 / p.backoff, interval=p.interval
    ).scales
    return float(next(step for step, scale in enumerate(scales) if step >= p.bad and scale >= scales[0]) - p.bad)


RECOVERY = Drill(
    key="precision-scale-recovery",
    taught=TAUGHT,
    title="How long a burst of overflows is felt",
    unit="",
    whole="exact",
    target_s=90,
    apart=1.06,
    draw=lambda rng: drawn(
        backoff=rng.choice((4, 8)), bad=rng.choice((4, 5, 6, 7, 9)), interval=rng.randrange(300, 2500, 50)
    ),
    small=lambda rng: drawn(backoff=rng.choice((4, 8)), bad=rng.choice((4, 5, 6)), interval=rng.randrange(7, 40)),
    prompt=lambda p: (
        f"A loss scaler divides its scale by {p.backoff} at every step with an overflow and doubles it after"
        f" {p.interval:,} good steps in a row. A damaged shard of data makes {p.bad} steps in a row overflow; after"
        " them everything is as before, and nothing overflows again. How many good steps later is the scale what it"
        " was before the burst?"
    ),
    derive=lambda p: Derivation(
        value=_recovery_steps(p),
        formula="bad steps × log2(divisor) doublings, each after one interval",
        substitution=f"{p.bad} × {int(math.log2(p.backoff))} × {p.interval}",
        source=SOURCE_SCALER,
    ),
    count=_count_recovery,
    prerequisites=("format-loss-scale",),
    slips=(
        Slip("one-doubling-each", lambda p: p.bad * p.interval)
        | "One doubling per bad step does not undo it. How much did each bad step take?",
        Slip("up-as-fast-as-down", lambda p: _recovery_steps(p) // p.interval)
        | "Those are the doublings. Each of them has to be waited for.",
        Slip("one-bad-step", lambda p: _recovery_steps(p) // p.bad)
        | "That makes up for a single overflow. There were several in a row.",
        Slip("factor-as-steps", lambda p: p.interval * p.backoff**p.bad)
        | "You multiplied by the factor that was lost. It comes back by doubling, not by adding.",
        Slip("a-single-interval", lambda p: p.interval) | "After one interval the scale doubles once.",
    ),
)

DRILLS = (CLIPPED, RECOVERY)
