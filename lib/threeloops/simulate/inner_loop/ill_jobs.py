"""Training jobs with one known illness each, drawn from a seed: cases for whoever learns to read a timeline.

>>> job("starved loader", seed=3).workers < job("healthy", seed=3).workers
True
"""

import random
from dataclasses import replace
from typing import Any

from threeloops.inner_loop.trace import Trace
from threeloops.simulate.inner_loop.training_timeline import Job, Played, play

ILLNESSES = ("starved loader", "hidden syncs", "launch-bound", "memory-bound", "exposed communication", "memory leak")
KINDS = (*ILLNESSES, "healthy")
STEPS = 10
SETTLED, LAST = 3, 7  # a window between the ends of these steps shows neither the start nor the end of the run


def job(kind: str, *, seed: int) -> Job:
    """A job of one kind; the seed draws its size and how ill it is."""
    if kind not in KINDS:
        raise ValueError(f"kind={kind!r} is not known; known: {', '.join(KINDS)}")
    rng = random.Random(f"{kind} {seed}")
    size = rng.uniform(0.8, 1.4)
    healthy = Job(
        layers=6,
        products=4,
        product_s=150e-6 * size,
        vectors=6,
        vector_s=40e-6 * size,
        launch_s=10e-6,
        batch_s=22e-3 * size,
        workers=2,
        ahead=200,
        network_s=rng.uniform(3e-3, 5e-3) * size,
    )
    return replace(healthy, **_change(kind, healthy, rng))


def _change(kind: str, healthy: Job, rng: random.Random) -> dict[str, Any]:
    """What is wrong with a job of this kind."""
    if kind == "starved loader":
        return {"workers": 1, "batch_s": healthy.batch_s * rng.uniform(1.1, 1.6)}
    if kind == "hidden syncs":
        return {"syncs": rng.randrange(36, 60), "sync_return_s": rng.uniform(120e-6, 200e-6)}
    if kind == "launch-bound":
        small = rng.uniform(12, 20)
        return {
            "product_s": healthy.product_s / small,
            "vector_s": healthy.vector_s / small,
            "launch_s": rng.uniform(12e-6, 18e-6),
            "batch_s": healthy.batch_s / small,
            "network_s": healthy.network_s / small,
            "copy_s": 10e-6,
        }
    if kind == "memory-bound":
        return {"product_bus": rng.uniform(0.86, 0.94), "product_units": rng.uniform(0.24, 0.32)}
    if kind == "exposed communication":
        return {"overlap": False, "network_s": rng.uniform(6e-3, 10e-3)}
    return {"leak_bytes": rng.uniform(0.8e9, 1.6e9)} if kind == "memory leak" else {}


def case(kind: str, *, seed: int) -> Played:
    """A played job of one kind."""
    return play(job(kind, seed=seed), steps=STEPS, seed=seed)


def trace(kind: str, *, seed: int) -> Trace:
    """Four steps from the middle of a played job: what a profiler would have been asked to record."""
    return case(kind, seed=seed).window(SETTLED, LAST)


def unnamed(*, seed: int) -> dict[str, Trace]:
    """Letter -> trace: a job of each illness, the letters dealt by the seed, so that the code that draws them as a
    puzzle does not name them.
    """
    order = random.Random(f"letters {seed}").sample(ILLNESSES, k=len(ILLNESSES))
    return {letter: trace(kind, seed=seed) for letter, kind in zip("ABCDEF", order, strict=True)}
