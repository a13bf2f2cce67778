"""Follow-ups on faster decoding for one user: a draft, narrow weights."""

import random

from threeloops.drills.engine.drill import Draw, changed, drawn
from threeloops.room.kinds.chains.chain import Chain, Step
from threeloops.room.kinds.chains.change import Best, Change, redrawn, told_apart
from threeloops.units import GB, TB, TFLOP

H200 = 4.8 * TB  # bytes per second, as its datasheet has it

# --- a draft -------------------------------------------------------------------------------------


def _draw_draft(rng: random.Random) -> Draw:
    return drawn(
        accepted=rng.choice((0.62, 0.7, 0.78)),
        drafted=rng.choice((3, 4, 5)),
        cost=rng.choice((0.06, 0.1, 0.16, 0.24)),
        more=rng.choice((0.04, 0.08)),
        plain_ms=rng.choice((22, 28)),
        check_ms=rng.choice((34, 41, 52)),
        draft_ms=rng.choice((1.5, 2.5)),
    )


DRAFT_STEPS = (
    Step(drill="serving-tokens-per-check", numbers=lambda p: p),
    Step(
        drill="serving-draft-speedup",
        numbers=lambda p: p,
        text=lambda p: (
            f"A step of the draft takes {p.cost:g} of a step of the large model; {p.drafted} tokens are drafted, each"
            f" accepted with probability {p.accepted:g} until the first refusal, and a check takes one usual step. How"
            " many times faster do tokens come than without drafts?"
        ),
    ),
    Step(drill="spec-in-a-batch", numbers=lambda p: p),
)
DRAFT_CHOICE = Best(
    drill="serving-draft-speedup",
    now=lambda p: p,
    more=True,
    text=lambda p: (
        f"One user again: {p.drafted} drafted tokens, acceptance {p.accepted:g}, a draft step of {p.cost:g} of a large"
        " step. Which change makes tokens come fastest?"
    ),
    changes=(
        Change(
            key="better",
            text=lambda p: f"acceptance {p.accepted + p.more:g} by training the draft on real answers",
            numbers=lambda p: changed(p, accepted=p.accepted + p.more),
        ),
        Change(
            key="cheaper",
            text=lambda p: "a draft step that takes half as long, accepted as often",
            numbers=lambda p: changed(p, cost=p.cost / 2),
        ),
        Change(
            key="longer",
            text=lambda p: f"{p.drafted + 2} drafted tokens",
            numbers=lambda p: changed(p, drafted=p.drafted + 2),
        ),
    ),
)
DRAFT = Chain(
    key="draft",
    title="A draft",
    draw=redrawn(_draw_draft, lambda p: told_apart(DRAFT_STEPS, p) and DRAFT_CHOICE.clear(p)),
    steps=DRAFT_STEPS,
    decision=DRAFT_CHOICE.decision,
)

# --- narrow weights ------------------------------------------------------------------------------


def _draw_narrow(rng: random.Random) -> Draw:
    narrow, wide = rng.choice(((28, 4), (62, 8), (13, 3)))
    return drawn(
        narrow=narrow,
        wide=wide,
        unit=GB,
        bits=4,
        group=rng.choice((16, 32)),
        billions=float(narrow + wide),
        bandwidth=H200,
        cache=rng.choice((6, 15, 40)) * GB,
        peak=990 * TFLOP,
    )


NARROW_STEPS = (
    Step(drill="compression-model-bytes", numbers=lambda p: p),
    Step(drill="decode-latency-floor", numbers=lambda p: p),
    Step(
        drill="compression-decode-speedup",
        numbers=lambda p: p,
        text=lambda p: (
            f"All {p.billions:g} billion weights go from 16 bits to {p.bits} in groups of {p.group}, each group with a"
            f" scale of 16 bits and a zero point of {p.bits}. The batch's caches take {p.cache / GB:g} GB and stay;"
            " reading sets the pace. How many times faster does a step become?"
        ),
    ),
)
NARROW_CHOICE = Best(
    drill="compression-decode-speedup",
    now=lambda p: p,
    more=True,
    text=lambda p: (
        f"A step now reads {p.bits}-bit weights in groups of {p.group} and {p.cache / GB:g} GB of caches. What more"
        " would raise that factor over the old step most?"
    ),
    changes=(
        Change(key="bits", text=lambda p: "weights and zero points in 3 bits", numbers=lambda p: changed(p, bits=3)),
        Change(
            key="groups", text=lambda p: "groups four times as large", numbers=lambda p: changed(p, group=4 * p.group)
        ),
        Change(
            key="caches",
            text=lambda p: "a batch of half the caches, in both steps",
            numbers=lambda p: changed(p, cache=p.cache / 2),
        ),
    ),
)
NARROW = Chain(
    key="narrow",
    title="Narrow weights",
    draw=redrawn(_draw_narrow, lambda p: told_apart(NARROW_STEPS, p) and NARROW_CHOICE.clear(p)),
    steps=NARROW_STEPS,
    decision=NARROW_CHOICE.decision,
)
