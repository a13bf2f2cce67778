"""Drills on speculative decoding: what a check yields, how much faster tokens come, and what a draft may cost."""

import random
from fractions import Fraction

from threeloops.drills.engine.drill import AsFunction, Derivation, Draw, Drill, Slip, Taught, drawn
from threeloops.drills.engine.searches import holds_up_to
from threeloops.product_loop import speculative
from threeloops.simulate.product_loop import decoding
from threeloops.units import ms

TAUGHT = Taught("product", "Speculative decoding")
LEVIATHAN = "Leviathan et al., 2023, arXiv:2211.17192"


def _yield(p: Draw) -> float:
    return speculative.tokens_per_check(accepted_share=p.accepted, drafted=p.drafted)


def _walked(p: Draw) -> float:
    return float(decoding.tokens_per_check(accepted=Fraction(round(100 * p.accepted), 100), drafted=p.drafted))


def _one_minus(p: Draw) -> str:
    return f"(1 − {p.accepted}**({p.drafted} + 1)) / (1 − {p.accepted})"


# --- tokens of a check --------------------------------------------------------------------------


def _draw_yield(rng: random.Random) -> Draw:
    return drawn(accepted=rng.randrange(70, 86) / 100, drafted=rng.choice((3, 4, 5)))


YIELD = Drill(
    key="serving-tokens-per-check",
    taught=TAUGHT,
    title="What one check yields",
    unit="",
    target_s=90,
    draw=_draw_yield,
    small=_draw_yield,
    prompt=lambda p: (
        f"A small model drafts {p.drafted} tokens, and the large one checks them in one step. Each is accepted with"
        f" probability {p.accepted:g}, whatever the others are; the first rejected one discards the rest of the draft."
        " How many tokens does a check yield on average, the one of the large model's own included?"
    ),
    derive=lambda p: Derivation(
        value=_yield(p),
        formula="(1 − accepted^(drafted + 1)) / (1 − accepted)",
        substitution=_one_minus(p),
        source=f"{LEVIATHAN}, equation 1",
    ),
    count=_walked,
    slips=(
        Slip("all-tried", lambda p: p.accepted * p.drafted + 1)
        | "You tried every token of the draft. After the first rejected one the rest is gone.",
        Slip("no-own", lambda p: _yield(p) - 1)
        | "You left out the large model's own token. Even a rejected draft yields it.",
        Slip("one-less", lambda p: (1 - p.accepted**p.drafted) / (1 - p.accepted))
        | "You stopped one token early. A draft that is accepted as a whole yields one more.",
        Slip("all-accepted", lambda p: p.drafted + 1.0)
        | "You accepted every draft. Some are rejected, and take the rest with them.",
    ),
    function=AsFunction(
        takes=("accepted", "drafted"), limit={"accepted": 0.0}, limit_case="a draft that is never right"
    ),
)

# --- speed-up ------------------------------------------------------------------------------------


def _draw_faster(rng: random.Random) -> Draw:
    return drawn(
        accepted=rng.randrange(68, 81) / 100, drafted=rng.choice((4, 5)), cost=rng.choice((0.09, 0.11, 0.12, 0.13))
    )


def _count_faster(p: Draw) -> float:
    """Run the small model as often as it drafts and the large one once; compare with the large one alone for as many
    tokens.
    """
    tokens = _walked(p)
    spent = 1.0
    for _draft in range(p.drafted):
        spent += p.cost
    return tokens * 1.0 / spent


FASTER = Drill(
    key="serving-draft-speedup",
    taught=TAUGHT,
    title="How much faster a draft makes it",
    unit="",
    target_s=110,
    draw=_draw_faster,
    small=_draw_faster,
    prompt=lambda p: (
        f"A small model drafts {p.drafted} tokens at a time; a step of it takes {p.cost:g} of a step of the large one."
        " The large one checks the draft in one step of usual length, and accepts each token with probability"
        f" {p.accepted:g} until the first rejected one. How many times faster do tokens come than without drafts?"
    ),
    derive=lambda p: Derivation(
        value=speculative.speedup(accepted_share=p.accepted, drafted=p.drafted, draft_cost=p.cost),
        formula="(1 − accepted^(drafted + 1)) / (1 − accepted) / (drafted × draft cost + 1)",
        substitution=f"{_one_minus(p)} / ({p.drafted} × {p.cost} + 1)",
        source=f"{LEVIATHAN}, theorem 3.8",
    ),
    count=_count_faster,
    prerequisites=("serving-tokens-per-check",),
    slips=(
        Slip("free-draft", _yield) | "You drafted for nothing. The small model takes time, too.",
        Slip("one-draft-step", lambda p: _yield(p) / (1 + p.cost))
        | "You ran the small model once. It makes its tokens one after the other.",
        Slip("no-check", lambda p: _yield(p) / (p.drafted * p.cost))
        | "You left out the large model's step. It has to check the draft.",
        Slip("no-own", lambda p: (_yield(p) - 1) / (p.drafted * p.cost + 1))
        | "You left out the large model's own token. Every check yields it.",
    ),
)

# --- what a draft may cost -----------------------------------------------------------------------


def _draw_cost(rng: random.Random) -> Draw:
    return drawn(accepted=rng.randrange(61, 77) / 100, drafted=rng.choice((3, 4, 5)), large_ms=rng.randrange(32, 60, 2))


def _count_cost(p: Draw) -> float:
    """Make the small model slower, halving the interval, until drafting takes as long as not drafting."""
    most = _walked(p) * p.large_ms
    return holds_up_to(lambda small: sum([small] * p.drafted) + p.large_ms < most, high=p.large_ms) * ms


COST = Drill(
    key="serving-draft-break-even",
    taught=TAUGHT,
    title="A draft that is not worth it",
    unit="s",
    target_s=120,
    draw=_draw_cost,
    small=_draw_cost,
    prompt=lambda p: (
        f"A step of the large model takes {p.large_ms} ms, whether it makes one token or checks {p.drafted} drafted"
        f" ones. Each drafted token is accepted with probability {p.accepted:g} until the first rejected one. How long"
        " may a step of the small model take at most, if drafting shall not make things slower?"
    ),
    derive=lambda p: Derivation(
        value=(_yield(p) - 1) / p.drafted * p.large_ms * ms,
        formula=(
            "(tokens per check − 1) × step of the large model / drafted: the draft may take as long as the tokens it"
            " saves"
        ),
        substitution=f"({_one_minus(p)} − 1) × {p.large_ms} / 1000 / {p.drafted}",
        source=f"{LEVIATHAN}, theorem 3.8 (speed-up of 1)",
    ),
    count=_count_cost,
    prerequisites=("serving-draft-speedup",),
    slips=(
        Slip("own-for-draft", lambda p: _yield(p) / p.drafted * p.large_ms * ms)
        | "You credited the draft with the large model's own token. It would have come anyway.",
        Slip("whole-draft", lambda p: (_yield(p) - 1) * p.large_ms * ms)
        | "That is for the whole draft. The small model makes several steps for it.",
        Slip("all-accepted", lambda p: p.large_ms * ms)
        | "You let every drafted token save a step. After a rejected one the rest is lost.",
        Slip("per-token", lambda p: p.large_ms / p.drafted * ms)
        | "You divided one step of the large model. How many of its steps does a check save?",
    ),
)

DRILLS = (YIELD, FASTER, COST)
