"""Drills on answers that a grammar holds to: masks, and steps that wait for them."""

import random

from threeloops.drills.engine.drill import Derivation, Draw, Drill, Slip, Taught, drawn
from threeloops.product_loop.operating import guided
from threeloops.units import ms, us

TAUGHT = Taught("product", "Engines and compilers")

SOURCE_MASK = (
    "dottxt, outlines-core, python/outlines_core/kernels/torch.py, 2025 ((vocabulary + 31) // 32 words of int32)"
)
SOURCE_STEP = "by definition, 2026: the later of two that run side by side"

# --- masks ---------------------------------------------------------------------------------------


def _masks(p: Draw) -> int:
    return guided.mask_bytes(vocabulary=p.vocabulary, sequences=p.sequences)


def _count_masks(p: Draw) -> float:
    """A bit for each token, a new word where the last one is full."""
    words = 0
    for _sequence in range(p.sequences):
        free = 0
        for _token in range(p.vocabulary):
            if free == 0:
                words, free = words + 1, 32
            free -= 1
    return words * 4.0


MASKS = Drill(
    key="guided-mask-bytes",
    taught=TAUGHT,
    title="What a grammar sends at every step",
    unit="B",
    target_s=60,
    draw=lambda rng: drawn(
        vocabulary=rng.choice((32_000, 50_257, 65_024, 100_352, 128_256, 131_072, 151_936, 152_064, 200_064, 256_000)),
        sequences=rng.randrange(24, 400),
    ),
    small=lambda rng: drawn(vocabulary=rng.choice((320, 500, 650, 1003, 1282)), sequences=rng.randrange(2, 9)),
    prompt=lambda p: (
        f"{p.sequences} sequences decode together, each held to a JSON schema. For every step the host makes a mask"
        f" for each of them, a bit for each of the {p.vocabulary:,} tokens of the vocabulary in words of 32 bits, and"
        " copies the masks to the GPU. How many bytes are that per step?"
    ),
    derive=lambda p: Derivation(
        value=float(_masks(p)),
        formula="sequences × ceil(vocabulary / 32) × 4 bytes",
        substitution=f"{p.sequences} × ceil({p.vocabulary} / 32) × 4",
        source=SOURCE_MASK,
    ),
    count=_count_masks,
    slips=(
        Slip("one-byte", lambda p: float(p.sequences * p.vocabulary))
        | "You took a byte for each token. A yes or no is one bit.",
        Slip("logits", lambda p: p.sequences * p.vocabulary * 4.0)
        | "You counted a number for each token, as logits have. A mask has bits.",
        Slip("words", lambda p: _masks(p) / 4) | "You counted words. A word of 32 bits has four bytes.",
        Slip("one-sequence", lambda p: _masks(p) / p.sequences)
        | "That is one sequence. Each is at another place of its grammar.",
    ),
)

# --- a step that waits for its masks -------------------------------------------------------------


def _draw_step(rng: random.Random) -> Draw:
    return drawn(
        gpu_ms=rng.randrange(70, 130) / 10,
        mask_us=rng.randrange(380, 900, 10),
        sequences=rng.randrange(180, 400),
        workers=rng.choice((2, 3, 4, 6)),
        sample_us=rng.randrange(200, 900, 10),
    )


def _step(p: Draw, *, workers: int) -> float:
    return guided.guided_step_s(
        gpu_s=p.gpu_ms * ms,
        mask_s=p.mask_us * us,
        sequences=p.sequences,
        workers=workers,
        sample_s=p.sample_us * us,
    )


def _count_step(p: Draw) -> float:
    """Masks go to the worker that is free first."""
    free = [0.0] * p.workers
    for _mask in range(p.sequences):
        first = free.index(min(free))
        free[first] += p.mask_us
    ready = max(*free, p.gpu_ms * ms / us)
    return float((ready + p.sample_us) * us)


STEP = Drill(
    key="guided-step-time",
    taught=TAUGHT,
    title="A step that waits for its grammar",
    unit="s",
    target_s=100,
    draw=_draw_step,
    small=lambda rng: _draw_step(rng),
    wanted=lambda p: p.sequences / p.workers * p.mask_us * us > 1.15 * p.gpu_ms * ms,
    prompt=lambda p: (
        f"A decode step of {p.sequences} sequences takes {p.gpu_ms} ms on the GPU, and then {p.sample_us} µs to mask"
        f" and sample. All sequences are held to grammars: {p.workers} workers on the host make their masks,"
        f" {p.mask_us} µs for each, while the GPU computes the step. How long does the whole step take?"
    ),
    derive=lambda p: Derivation(
        value=_step(p, workers=p.workers),
        formula="max(step on the GPU, ceil(sequences / workers) × time of a mask) + sampling",
        substitution=(f"max({p.gpu_ms}e-3, ceil({p.sequences} / {p.workers}) × {p.mask_us}e-6) + {p.sample_us}e-6"),
        source=SOURCE_STEP,
    ),
    count=_count_step,
    slips=(
        Slip("masks-hidden", lambda p: p.gpu_ms * ms + p.sample_us * us)
        | "You hid the masks behind the GPU. Compare the two times.",
        Slip("one-after-the-other", lambda p: _step(p, workers=p.workers) + p.gpu_ms * ms)
        | "You added the GPU's time and the host's. They run side by side.",
        Slip("one-worker", lambda p: _step(p, workers=1)) | "You let one worker make all masks. There are more.",
        Slip("one-mask", lambda p: p.gpu_ms * ms + p.mask_us * us + p.sample_us * us)
        | "You made one mask. Each sequence needs its own.",
    ),
)

DRILLS = (MASKS, STEP)
