"""Drills on the bounds of a plan: GPUs whose slots are all taken, and the gap between tokens."""

import math
import random

from threeloops.drills.engine.drill import AsFunction, Derivation, Draw, Drill, Slip, Taught, drawn
from threeloops.product_loop import capacity
from threeloops.units import ms, us

TAUGHT = Taught("product", "Capacity and cost")

# --- work with full slots -----------------------------------------------------------------------


def _draw_full(rng: random.Random) -> Draw:
    # so many that the answer is larger than any of the small figures in the question
    return drawn(
        rate=rng.randrange(603, 997, 7),
        output=rng.randrange(1000, 1400, 50),
        slots=rng.randrange(30, 46, 3),
        prefill_ms=rng.randrange(56, 80, 2),
        cache_ms=rng.randrange(20, 36, 2),
        weights_us=rng.randrange(3600, 5400, 200),
    )


def _work_s(p: Draw, weights_ms: float) -> float:
    return float((p.prefill_ms + p.cache_ms + weights_ms) * ms)


def _shared_ms(p: Draw) -> float:
    """A request's share of all reads of the weights during its answer."""
    return float(p.output * p.weights_us * us / ms / p.slots)


def _full_gpus(p: Draw) -> float:
    """By the library, on a replica that takes the times of the draw and computes a decode step in no time."""
    rate, share = 7e12, 3e-7
    load = capacity.Load(requests_per_s=p.rate, prompt_tokens=1, output_tokens=p.output)
    replica = capacity.Replica(
        num_gpus=1,
        weights_bytes=p.weights_us * us * rate,
        free_bytes=rate,
        cache_bytes_per_token=p.cache_ms * ms * rate / (p.output * load.mean_context),
        flops_per_token=p.prefill_ms * ms * rate,
        memory_bytes_per_s=rate,
        peak_flops_per_s=rate / share,
        prefill_utilisation=share,
    )
    work_s = capacity.request_work_s(load, replica, batch=p.slots)
    return float(math.ceil(p.rate * work_s * (1 - 1e-12)))


def _count_full(p: Draw) -> float:
    """A GPU takes as many requests as it has slots, reads their prompts, then takes step after step; GPUs are added
    until they serve as many per second as come.
    """
    group_s = 0.0
    for _request in range(p.slots):
        group_s += p.prefill_ms * ms + p.cache_ms * ms
    for _step in range(p.output):
        group_s += p.weights_us * us
    gpus, served_per_s = 0, 0.0
    while served_per_s < p.rate * (1 - 1e-9):
        gpus, served_per_s = gpus + 1, served_per_s + p.slots / group_s
    return float(gpus)


FULL = Drill(
    key="capacity-full-slots",
    taught=TAUGHT,
    title="GPUs when every slot is taken",
    unit="",
    whole="up",
    target_s=150,
    draw=_draw_full,
    small=lambda rng: drawn(
        rate=rng.choice((30, 50)), output=11, slots=4, prefill_ms=rng.choice((40, 60)), cache_ms=20, weights_us=4000
    ),
    prompt=lambda p: (
        f"{p.rate} requests arrive per second, each with an answer of {p.output:,} tokens. A GPU has room for the whole"
        f" KV caches of {p.slots} requests at a time. One request costs {p.prefill_ms} ms of prefill, and all the reads"
        f" of its own cache together take {p.cache_ms} ms. Every step reads the weights once, in"
        f" {p.weights_us * us / ms:g} ms, for all who are inside. How many GPUs are just enough, with every slot taken?"
    ),
    derive=lambda p: Derivation(
        value=_full_gpus(p),
        formula="⌈rate × (prefill + cache reads + output × weights / slots)⌉",
        substitution=(
            f"ceil({p.rate} × ({p.prefill_ms} + {p.cache_ms} + {p.output} × {p.weights_us} / 1000 / {p.slots}) / 1000)"
        ),
        source="Pope et al., 2022, arXiv:2211.05102, section 2 (weights once per step, caches once per request)",
    ),
    count=_count_full,
    prerequisites=("serving-in-flight", "kv-largest-batch"),
    slips=(
        Slip("weights-alone", lambda p: p.rate * _work_s(p, _shared_ms(p) * p.slots))
        | "You let every request pay for all reads of the weights. Those in the other slots share them.",
        Slip("no-weights", lambda p: p.rate * _work_s(p, 0))
        | "You left the weights out. Every step of the answer reads them, and only the slots share that.",
        Slip("decode-only", lambda p: p.rate * (p.cache_ms + _shared_ms(p)) * ms)
        | "You left prefill to other GPUs. Here it happens on the same GPUs.",
        Slip("no-caches", lambda p: p.rate * (p.prefill_ms + _shared_ms(p)) * ms)
        | "You forgot that caches are read, too, and that requests do not share them.",
    ),
    function=AsFunction(
        takes=("rate", "output", "slots", "prefill_ms", "cache_ms", "weights_us"),
        limit={"slots": 1},
        limit_case="GPUs with room for one request each",
    ),
)

# --- the gap between tokens ----------------------------------------------------------------------


def _draw_gap(rng: random.Random) -> Draw:
    gpus = rng.choice((4, 5, 6, 7))
    prefill_ms, cache_ms = rng.randrange(34, 60, 2), rng.randrange(14, 28, 2)
    return drawn(
        weights_us=rng.randrange(3600, 6200, 200),
        prefill_ms=prefill_ms,
        cache_ms=cache_ms,
        gpus=gpus,
        rate=round(gpus * rng.randrange(55, 75) / 100 / ((prefill_ms + cache_ms) * ms)),
    )


def _busy(p: Draw, spent_ms: float) -> float:
    return float(p.rate / p.gpus * spent_ms * ms)


def _gap(p: Draw, busy: float) -> float:
    return float(p.weights_us * us / (1 - busy))


def _replica(p: Draw) -> tuple[capacity.Load, capacity.Replica]:
    """A load of one token, and a replica of one byte and one FLOP a second, so that bytes and FLOP are seconds."""
    load = capacity.Load(requests_per_s=p.rate, prompt_tokens=1, output_tokens=1)
    return load, capacity.Replica(
        num_gpus=1,
        weights_bytes=p.weights_us * us,
        free_bytes=1,
        cache_bytes_per_token=p.cache_ms * ms / load.mean_context,
        flops_per_token=p.prefill_ms * ms,
        memory_bytes_per_s=1,
        peak_flops_per_s=1,
        prefill_utilisation=1,
    )


def _count_gap(p: Draw) -> float:
    """A first gap only reads weights; what arrives in a gap lengthens it, by which more arrives, and so on."""
    gap = 0.0
    for _ in range(400):
        came = gap * p.rate / p.gpus
        gap = p.weights_us * us + came * p.prefill_ms * ms + came * p.cache_ms * ms
    return gap


def _derive_gap(p: Draw) -> Derivation:
    load, replica = _replica(p)
    return Derivation(
        value=capacity.mean_gap_s(load, replica, replicas=p.gpus),
        formula="weights / (1 − requests per second and GPU × (prefill + cache reads))",
        substitution=f"{p.weights_us} / 1000000 / (1 − {p.rate} / {p.gpus} × ({p.prefill_ms} + {p.cache_ms}) / 1000)",
        source="Pope et al., 2022, arXiv:2211.05102, section 2 (weights once per step, caches once per request)",
    )


GAP = Drill(
    key="capacity-gap-between-tokens",
    taught=TAUGHT,
    title="How far tokens are apart",
    unit="s",
    target_s=150,
    draw=_draw_gap,
    small=lambda rng: drawn(
        weights_us=rng.choice((4000, 5000)),
        prefill_ms=rng.choice((40, 60)),
        cache_ms=rng.choice((15, 25)),
        gpus=2,
        rate=12,
    ),
    prompt=lambda p: (
        f"{p.gpus} equal GPUs share {p.rate} requests per second evenly. Each GPU reads its weights in"
        f" {p.weights_us * us / ms:g} ms, once per token of every request. A request costs {p.prefill_ms} ms of"
        f" prefill, and all the reads of its cache together take {p.cache_ms} ms; both happen between other people's"
        " tokens. What is the mean gap between two tokens of a request?"
    ),
    derive=_derive_gap,
    count=_count_gap,
    slips=(
        Slip("no-prefill", lambda p: _gap(p, _busy(p, p.cache_ms)))
        | "You left prefill to other GPUs. Here it happens on the same GPUs.",
        Slip("no-caches", lambda p: _gap(p, _busy(p, p.prefill_ms))) | "You forgot that caches are read, too.",
        Slip("multiplied", lambda p: p.weights_us * us * (1 - _busy(p, p.prefill_ms + p.cache_ms)))
        | "You multiplied by the share that is left. Less of it makes the gap longer, not shorter.",
        Slip("one-of-each", lambda p: p.weights_us * us + (p.prefill_ms + p.cache_ms) * ms)
        | "You put one whole request into every gap. How many arrive in a gap?",
    ),
)

DRILLS = (FULL, GAP)
