"""Drills on Amdahl's law: what a repair of one part brings, what it would have to be, and what several repairs bring
together.

Shares are drawn as whole percent, so that a second of the job can be counted in hundredths.
"""

import random

from threeloops.drills.engine.drill import Derivation, Draw, Drill, Slip, Taught, drawn
from threeloops.inner_loop import scaling
from threeloops.simulate.inner_loop import ticks

TAUGHT = Taught("inner", "Three loops")

SOURCE_AMDAHL = "Amdahl, AFIPS Spring Joint Computer Conference, 1967, doi:10.1145/1465482.1465560"
WHOLE = 100  # hundredths of the time before the repair


def share(percent: float) -> float:
    """A share, from percent as they stand in a question."""
    return percent / WHOLE


# --- one part -----------------------------------------------------------------------------------


def _draw_one(rng: random.Random) -> Draw:
    return drawn(
        products=rng.randrange(64, 81), waiting=rng.choice((7, 9, 11)), factor=rng.choice((1.8, 1.9, 2.1, 2.2, 2.3))
    )


ONE_PART = Drill(
    key="amdahl-one-part",
    taught=TAUGHT,
    title="A part made faster",
    unit="",
    target_s=60,
    draw=_draw_one,
    small=_draw_one,
    prompt=lambda p: (
        f"A profile of a training step: {p.products} % of the time in matmuls, {p.waiting} % waiting for other"
        f" GPUs, the rest in small kernels, all one after another. A new library makes the matmuls {p.factor}"
        " times faster. How many times faster is the step?"
    ),
    derive=lambda p: Derivation(
        value=scaling.amdahl_speedup(accelerated_share=share(p.products), factor=p.factor),
        formula="1 / (1 − share + share / factor)",
        substitution=f"1 / (1 − {p.products} / 100 + {p.products} / 100 / {p.factor})",
        source=SOURCE_AMDAHL,
    ),
    count=lambda p: float(WHOLE / ticks.one_after_another([(p.products, p.factor), (WHOLE - p.products, 1)])),
    slips=(
        Slip("the-part", lambda p: p.factor)
        | "That is how much faster the matmuls are. The rest of the step takes what it took.",
        Slip("mean-of-speeds", lambda p: 1 + share(p.products) * (p.factor - 1))
        | "You averaged how fast the parts are. Times add up; speeds do not.",
        Slip("cap", lambda p: scaling.amdahl_limit(accelerated_share=share(p.products)))
        | "You let the matmuls vanish. They are faster, and still there.",
        Slip("other-part", lambda p: scaling.amdahl_speedup(accelerated_share=1 - share(p.products), factor=p.factor))
        | "You made the rest faster and left the matmuls alone. Which of them did the library touch?",
        Slip("saved-share", lambda p: 1 + share(p.products) * (1 - 1 / p.factor))
        | "You added the share that is saved. A speed-up compares the old time with what is left.",
    ),
)

# --- which share a promise needs -----------------------------------------------------------------


def _small_share(rng: random.Random) -> Draw:
    """Speeds that a share in whole percent leads to, found by counting."""
    percent, factor = rng.randrange(22, 41), rng.choice((4, 5))
    return drawn(
        factor=factor, speedup=float(WHOLE / ticks.one_after_another([(percent, factor), (WHOLE - percent, 1)]))
    )


def _count_share(p: Draw) -> float:
    """Try every whole percent, and take the one whose job comes out as fast as promised."""
    tried = {
        percent: float(WHOLE / ticks.one_after_another([(percent, p.factor), (WHOLE - percent, 1)]))
        for percent in range(1, WHOLE)
    }
    return share(min(tried, key=lambda percent: abs(tried[percent] - p.speedup)))


NEEDED_SHARE = Drill(
    key="amdahl-needed-share",
    taught=TAUGHT,
    title="What a promise takes for granted",
    unit="",
    target_s=90,
    draw=lambda rng: drawn(factor=rng.choice((3.2, 3.6, 3.9, 4.2, 4.6)), speedup=rng.randrange(118, 138) / WHOLE),
    small=_small_share,
    prompt=lambda p: (
        f"A kernel library makes attention {p.factor} times faster, and its authors say that training gets"
        f" {p.speedup:g} times faster with it. Nothing else changes, and nothing overlaps. What share of a step's time"
        " must attention have had before, for both figures to be true?"
    ),
    derive=lambda p: Derivation(
        value=scaling.needed_share(speedup=p.speedup, factor=p.factor),
        formula="(1 − 1 / speed-up of the whole) / (1 − 1 / factor of the part)",
        substitution=f"(1 − 1 / {p.speedup:.15g}) / (1 − 1 / {p.factor})",
        source=SOURCE_AMDAHL,
    ),
    count=_count_share,
    prerequisites=("amdahl-one-part",),
    slips=(
        Slip("part-vanishes", lambda p: 1 - 1 / p.speedup)
        | "That is the share of the time that was saved. Attention still takes some time, so it must have had"
        " more.",
        Slip("mean-of-speeds", lambda p: (p.speedup - 1) / (p.factor - 1))
        | "You solved for a mean of speeds, or gave attention's share after the repair. Write down what the step"
        " took and what it takes, in times.",
        Slip("saved-of-the-new", lambda p: (p.speedup - 1) / (1 - 1 / p.factor))
        | "You measured what was saved against the new step. A share from before is one of the old step.",
        Slip("rest", lambda p: 1 - scaling.needed_share(speedup=p.speedup, factor=p.factor))
        | "That is the share of everything else.",
    ),
)

# --- how fast a part would have to be ------------------------------------------------------------


def _small_factor(rng: random.Random) -> Draw:
    """Speed-ups that a part whole times faster leads to."""
    products, factor = rng.randrange(52, 61), rng.choice((3, 4))
    return drawn(
        products=products, speedup=float(WHOLE / ticks.one_after_another([(products, factor), (WHOLE - products, 1)]))
    )


def _count_factor(p: Draw) -> float:
    """Try one whole factor after another until the job is as fast as asked."""
    tried = {
        factor: float(WHOLE / ticks.one_after_another([(p.products, factor), (WHOLE - p.products, 1)]))
        for factor in range(1, 10)
    }
    return float(min(tried, key=lambda factor: abs(tried[factor] - p.speedup)))


NEEDED_FACTOR = Drill(
    key="amdahl-needed-factor",
    taught=TAUGHT,
    title="How fast the part would have to be",
    unit="",
    target_s=90,
    draw=lambda rng: drawn(products=rng.randrange(52, 59), speedup=rng.randrange(166, 178, 2) / WHOLE),
    small=_small_factor,
    prompt=lambda p: (
        f"Matmuls take {p.products} % of a training step; all else stays as it is, and nothing overlaps. A"
        f" deadline asks for a step that is {p.speedup:g} times faster. How many times faster must the matmuls become?"
    ),
    derive=lambda p: Derivation(
        value=scaling.needed_factor(speedup=p.speedup, accelerated_share=share(p.products)),
        formula="share / (1 / speed-up of the whole − (1 − share))",
        substitution=f"{p.products} / 100 / (1 / {p.speedup:.15g} − (1 − {p.products} / 100))",
        source=SOURCE_AMDAHL,
    ),
    count=_count_factor,
    prerequisites=("amdahl-one-part",),
    slips=(
        Slip("target", lambda p: p.speedup)
        | "You asked of the part what is asked of the whole. The rest gets no faster, so the part must make up"
        " for it.",
        Slip("divided", lambda p: p.speedup / share(p.products))
        | "You divided the speed-up by the share. Start from the time that is left for the matmuls when the rest"
        " has had its own.",
        Slip("mean-of-speeds", lambda p: 1 + (p.speedup - 1) / share(p.products))
        | "You solved for a mean of speeds. Times add up; speeds do not.",
        Slip("whole-step", lambda p: share(p.products) * p.speedup)
        | "You gave the matmuls the whole of the new step. The rest needs its time, too.",
    ),
)

DRILLS = (ONE_PART, NEEDED_SHARE, NEEDED_FACTOR)
