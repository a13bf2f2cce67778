"""Drills on the host's side of a step: workers that prepare batches, and an allocator that takes memory in large
pieces.
"""

import math
import random

from threeloops.drills.engine.drill import Derivation, Draw, Drill, Slip, Taught, drawn
from threeloops.inner_loop import allocator_segments, input_pipeline
from threeloops.simulate.inner_loop import caching_allocator, step
from threeloops.units import TB, MiB, ms

TAUGHT = Taught("inner", "Overheads")

SOURCE_LOADER = "PyTorch documentation, torch.utils.data.DataLoader, 2025"
SOURCE_ALLOCATOR = "PyTorch, c10/cuda/CUDACachingAllocator.cpp, 2025"

# --- workers that feed a device ------------------------------------------------------------------


def _draw_workers(rng: random.Random) -> Draw:
    decode_ms = rng.randrange(80, 140)
    return drawn(
        batch=rng.choice((160, 224, 320, 448)),
        decode_s=decode_ms / 10 * ms,
        augment_s=round(decode_ms * rng.uniform(0.25, 0.7)) / 10 * ms,
        step_s=rng.randrange(33, 57) * ms,
    )


def _workers(sample_s: float, p: Draw) -> float:
    return float(input_pipeline.workers_needed(sample_s=sample_s, samples_per_step=p.batch, step_s=p.step_s))


def _count_workers(p: Draw) -> float:
    """Workers are added until a long run shows a device that no longer waits once it has begun."""
    batch_s, workers = p.batch * (p.decode_s + p.augment_s), 1
    while True:
        played = step.play(num_steps=40 * workers, workers=workers, batch_s=batch_s, queue=2, stages=(p.step_s,))
        if played.pace_s(skip=20 * workers) <= p.step_s * (1 + 1e-9):
            return float(workers)
        workers += 1


WORKERS = Drill(
    key="overheads-loader-workers",
    taught=TAUGHT,
    title="Feeding a device",
    unit="",
    whole="up",
    target_s=90,
    draw=_draw_workers,
    small=lambda rng: drawn(
        batch=rng.choice((6, 10, 14)),
        decode_s=rng.randrange(21, 40) / 10,
        augment_s=rng.randrange(7, 17) / 10,
        step_s=rng.randrange(20, 33) / 10,
    ),
    prompt=lambda p: (
        f"A device takes {p.step_s / ms:.0f} ms for a step of {p.batch} images. Decoding an image takes one worker"
        f" process {p.decode_s / ms:.1f} ms, and augmenting it another {p.augment_s / ms:.1f} ms; every process has a"
        " core of its own. How many worker processes are needed, at least, so that the device does not wait?"
    ),
    derive=lambda p: Derivation(
        value=_workers(p.decode_s + p.augment_s, p),
        formula="ceil(samples per step × (decode + augment) / step)",
        substitution=f"ceil({p.batch} × ({p.decode_s:.7g} + {p.augment_s:.7g}) / {p.step_s:.7g})",
        source=SOURCE_LOADER,
    ),
    count=_count_workers,
    slips=(
        Slip("decode-only", lambda p: _workers(p.decode_s, p))
        | "You decoded the images and did not augment them. A worker does both.",
        Slip("augment-only", lambda p: _workers(p.augment_s, p))
        | "You augmented images that were not decoded. A worker does both.",
        Slip("one-image", lambda p: (p.decode_s + p.augment_s) / p.step_s)
        | "You prepared one image per step. How many does a step use up?",
        Slip("images-per-worker", lambda p: p.step_s / (p.decode_s + p.augment_s))
        | "That is how many images one worker prepares during a step. How many workers does a whole batch take?",
    ),
)

# --- what an allocator reserves ------------------------------------------------------------------

# Sizes between 1 and 10 MiB of which a segment of 20 MiB holds a few and leaves a good part of itself unused.
SIZES = (2.625, 2.875, 4.25, 4.375, 4.625, 5.125, 5.375, 5.875, 6.125, 7.125, 7.375, 8.125, 8.625)


def _bytes(p: Draw) -> int:
    return int(p.size_mib * MiB)


def _reserved(p: Draw) -> float:
    return float(allocator_segments.reserved_bytes(num_tensors=p.tensors, requested_bytes=_bytes(p)))


def _count_reserved(p: Draw) -> float:
    device = caching_allocator.CachingAllocator(capacity_bytes=TB)
    for _ in range(p.tensors):
        device.allocate(_bytes(p))
    return float(device.reserved_bytes)


RESERVED = Drill(
    key="overheads-reserved-memory",
    taught=TAUGHT,
    title="Reserved is not allocated",
    unit="B",
    capacity=True,
    target_s=120,
    draw=lambda rng: drawn(tensors=rng.randrange(60, 400), size_mib=rng.choice(SIZES)),
    small=lambda rng: drawn(tensors=rng.randrange(37, 80), size_mib=rng.choice(SIZES)),
    prompt=lambda p: (
        f"A program allocates {p.tensors} tensors of {p.size_mib:g} MiB with PyTorch's caching allocator (default"
        " settings, one stream, empty before), and keeps them all. For requests of this size the allocator takes"
        " segments of 20 MiB from the device and cuts them up. How much memory is reserved?"
    ),
    derive=lambda p: Derivation(
        value=_reserved(p),
        formula=(
            "ceil(tensors / floor(segment / tensor)) × segment, a segment being 20 MiB for requests between 1 and"
            " 10 MiB"
        ),
        substitution=f"ceil({p.tensors} / floor(20 / {p.size_mib})) × 20 × {MiB}",
        source=SOURCE_ALLOCATOR,
    ),
    count=_count_reserved,
    slips=(
        Slip("allocated", lambda p: float(p.tensors * _bytes(p)))
        | "That is what the tensors hold. The allocator takes memory in whole segments.",
        Slip("segment-each", lambda p: float(p.tensors * 20 * MiB))
        | "You gave each tensor a segment of its own. A segment is cut up.",
        Slip("half-segments", lambda p: _reserved(p) / 2) | "Your segments are half as large as those in the question.",
        Slip("power-of-two", lambda p: float(p.tensors * 2 ** math.ceil(math.log2(p.size_mib)) * MiB))
        | "You rounded each tensor up to a power of two, as allocators of another kind do. Here tensors share"
        " segments.",
    ),
)

DRILLS = (WORKERS, RESERVED)
