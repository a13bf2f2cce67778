"""Drills on answers that should come out alike at temperature 0, and do not."""

import random

from threeloops.drills.engine.drill import Derivation, Draw, Drill, Slip, Taught, drawn
from threeloops.drills.engine.searches import holds_up_to
from threeloops.product_loop.operating import repeats

TAUGHT = Taught("product", "Batching")

SOURCE_ALIKE = "by definition, 2026: after the first other token an answer is another one"

# --- how many agree ------------------------------------------------------------------------------


def _draw_alike(rng: random.Random) -> Draw:
    one_in = rng.randrange(300, 3000, 10)
    tokens = one_in // 10 * rng.randrange(31, 85) // 100 * 10
    return drawn(runs=rng.randrange(200, 2000, 50), one_in=one_in, tokens=tokens)


def _count_alike(p: Draw) -> float:
    """Those that are still alike, token after token."""
    alike = float(p.runs)
    for _token in range(p.tokens):
        alike -= alike / p.one_in
    return alike


ALIKE = Drill(
    key="batch-alike-answers",
    taught=TAUGHT,
    title="The same prompt, a thousand times",
    unit="",
    target_s=90,
    draw=_draw_alike,
    small=_draw_alike,
    wanted=lambda p: 0.3 < p.tokens / p.one_in < 0.85,
    prompt=lambda p: (
        f"A prompt is sent {p.runs} times at temperature 0. Batches differ, so sums are taken in other orders, and at"
        f" each token there is a chance of 1 in {p.one_in} that two logits which lie very close change places. Answers"
        f" have {p.tokens} tokens. How many of the runs give, to the last token, the answer that a run without any"
        " such change gives? (On average.)"
    ),
    derive=lambda p: Derivation(
        value=p.runs * repeats.alike_share(flip=1 / p.one_in, tokens=p.tokens),
        formula="runs × (1 − chance of another token)^tokens",
        substitution=f"{p.runs} × (1 − 1 / {p.one_in})**{p.tokens}",
        source=SOURCE_ALIKE,
    ),
    count=_count_alike,
    slips=(
        Slip("differ", lambda p: p.runs * (1 - (1 - 1 / p.one_in) ** p.tokens))
        | "Those are the answers that differ somewhere.",
        Slip("all-alike", lambda p: float(p.runs))
        | "You took temperature 0 for a promise. The sums themselves differ.",
        Slip("linear", lambda p: p.runs * (1 - p.tokens / p.one_in))
        | "You took away the same number of runs at every token. Only those that still agree can leave.",
        Slip("changes", lambda p: p.runs * p.tokens / p.one_in)
        | "You counted changes over all runs. Some runs have several, and runs are asked for.",
    ),
)

# --- how long until half of them differ ----------------------------------------------------------


def _draw_length(rng: random.Random) -> Draw:
    return drawn(one_in=rng.randrange(300, 6000, 10), percent=rng.choice((10, 20, 25, 30, 40, 60, 70, 75, 80, 90, 95)))


def _length(p: Draw, share: float) -> float:
    return repeats.tokens_alike(flip=1 / p.one_in, share=share)


def _count_length(p: Draw) -> float:
    """Between no token and many: halved until as many agree as wanted."""
    return holds_up_to(lambda tokens: (1 - 1 / p.one_in) ** tokens > p.percent / 100, high=100_000)


LENGTH = Drill(
    key="batch-alike-length",
    taught=TAUGHT,
    title="How far answers agree",
    unit="token",
    target_s=90,
    draw=_draw_length,
    small=_draw_length,
    prompt=lambda p: (
        "A prompt is sent many times at temperature 0 to a server whose kernels depend on the batch. At each token"
        f" the chance is 1 in {p.one_in} that another one comes out than in a run without such changes. After how many"
        f" tokens do {p.percent} % of the runs still agree with that run?"
    ),
    derive=lambda p: Derivation(
        value=_length(p, p.percent / 100.0),
        formula="log2(share that agrees) / log2(1 − chance of another token)",
        substitution=f"log2({p.percent} / 100) / log2(1 − 1 / {p.one_in})",
        source=SOURCE_ALIKE,
    ),
    count=_count_length,
    slips=(
        Slip("differ", lambda p: _length(p, 1 - p.percent / 100.0))
        | "You asked when that share has gone. So many shall still agree.",
        Slip("expected-change", lambda p: float(p.one_in))
        | "That is the mean length up to a change. How many agree by then?",
        Slip("linear", lambda p: p.one_in * (1 - p.percent / 100.0))
        | "You took away the same number of runs at every token. Only those that still agree can leave.",
        Slip("inverted", lambda p: p.one_in * p.percent / 100.0)
        | "You multiplied the share and the mean length. Chances over many tokens multiply with each other.",
    ),
)

DRILLS = (ALIKE, LENGTH)
