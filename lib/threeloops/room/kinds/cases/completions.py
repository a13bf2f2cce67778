"""A case of one impatient user: completions that have to keep up with typing. Loads and prices are invented; model
and card are the catalogue's.
"""

import random

from threeloops.drills.engine import catalogued
from threeloops.drills.engine.drill import Draw, changed, drawn
from threeloops.models.parameters import model_parameters
from threeloops.room.kinds.cases.case import Case, design, requirements
from threeloops.room.kinds.chains.chain import Step
from threeloops.room.kinds.chains.change import Best, Change, shown, value_of
from threeloops.units import GB, billion, fmt_percent, ms


def _printed_ms(p: Draw) -> float:
    """A step as it is printed, so that what follows from it follows from the printed figure too."""
    return float(f"{value_of('decode-tensor-parallel-step', p) / ms:.3g}")


def _draw_coder(rng: random.Random) -> Draw:
    card, model = catalogued.part("h200-sxm"), catalogued.model("qwen3-32b")
    p = drawn(
        name=catalogued.model_name("qwen3-32b"),
        card=card.name,
        billions=round(model_parameters(model).total / billion, 1),
        layers=model.num_layers,
        tp=rng.choice((2, 4)),
        bandwidth=card["memory_bytes_per_s"],
        cache=rng.choice((5, 10, 20)) * GB,
        latency_us=rng.choice((8, 12, 16)),
        deadline_ms=rng.choice((400, 600, 900)),
        ttft_ms=rng.choice((90, 120, 180)),
        requests=1000,
        shared=rng.choice((3000, 4500, 6000)),
        own=rng.choice((300, 450, 700)),
        hit=rng.choice((0.6, 0.7, 0.85)),
        accepted=rng.choice((0.66, 0.72, 0.78)),
        better=rng.choice((0.04, 0.1, 0.14)),
        drafted=rng.choice((3, 4, 5)),
        draft_tenths=rng.choice((6, 9, 14, 20)),
        answer=rng.choice((40, 60, 90)),
        check=rng.choice((1.4, 1.7, 2.1)),
        cents=rng.choice((320, 370, 430)),
        price_cents=rng.choice((60, 80, 120)),
    )
    p.step_ms = _printed_ms(p)
    p.narrow_ms = _printed_ms(changed(p, billions=p.billions / 2))
    return p


def _coder_deadline(p: Draw) -> Draw:
    return drawn(deadline_ms=p.deadline_ms, ttft_ms=p.ttft_ms, itl_ms=p.step_ms)


def _coder_draft(p: Draw) -> Draw:
    return drawn(accepted=p.accepted, drafted=p.drafted, cost=round(p.draft_tenths / 10 / p.step_ms, 2))


def _coder_answer(p: Draw) -> Draw:
    return drawn(
        tokens=p.answer,
        target_ms=p.step_ms,
        draft_ms=p.draft_tenths / 10,
        accepted=p.accepted,
        drafted=p.drafted,
    )


def _coder_rush(p: Draw) -> Draw:
    return changed(
        _coder_answer(p),
        plain_ms=round(p.step_ms * 4, 1),
        check_ms=round(p.step_ms * 4 * p.check, 1),
        draft_ms=p.draft_tenths / 5,
    )


CODER = Case(
    key="case-code-completion",
    title="Completions that keep up with typing",
    loop="product",
    section="Speculative decoding",
    draw=_draw_coder,
    requirements=requirements(
        lambda p: f"Put {p.name} into our editor: it should complete code while people type.",
        (
            "when a completion is too late to be useful",
            lambda p: f"{p.deadline_ms} ms after the key; the first token alone takes {p.ttft_ms} ms",
        ),
        (
            "how long a completion is, and whether it may arrive word by word",
            lambda p: f"{p.answer} tokens at most; shown as a whole",
        ),
        (
            "what stands in the prompt, and how much of it changes from key to key",
            lambda p: f"{p.shared:,} tokens of files that stay, {p.own} around the cursor that change",
        ),
        (
            "how many requests come at once: one impatient user, or a floor of them",
            lambda p: "few at night, dozens on one replica at eleven in the morning",
        ),
        (
            "how acceptance is counted: shown, taken, still there after a minute",
            lambda p: "by completions still there after a minute",
        ),
        (
            "whether code may leave the house",
            lambda p: f"no; there are nodes with {p.card}, {p.cents / 100:.2f} dollars an hour each",
        ),
    ),
    estimates=(
        Step(drill="decode-tensor-parallel-step", numbers=lambda p: p),
        Step(
            drill="serving-tokens-before-deadline",
            numbers=_coder_deadline,
            text=lambda p: (
                f"A completion must be whole within {p.deadline_ms} ms. The first token takes {p.ttft_ms} ms, each"
                f" further one a step of {p.step_ms} ms. How many tokens may it have?"
            ),
        ),
        Step(drill="serving-prefix-savings", numbers=lambda p: p),
        Step(drill="serving-draft-speedup", numbers=_coder_draft),
    ),
    design=design(
        lambda p: (
            f"Now the design: {p.name} on {p.tp} {p.card}, completions whole within {p.deadline_ms} ms. What runs"
            " where, and what makes it fast enough?"
        ),
        (
            "latency per user decides, not tokens per second of the machine: small batches, tensor parallelism",
            "the prompt ordered so that what stays comes first, and a prefix cache that survives the next key",
            "a draft (small model, or n-grams of the open file: code repeats itself) and what it must accept to pay",
            "requests that are out of date are cancelled at once: the next key makes the last answer worthless",
            "a short completion by default; long ones only when asked for",
            "a fallback when the machine is full: shorter drafts, shorter completions, none",
        ),
        lambda p: (
            f"On {p.tp} cards a step takes {shown('decode-tensor-parallel-step', p)}, so without help"
            f" {shown('serving-tokens-before-deadline', _coder_deadline(p))} fit before the deadline. The files that"
            " stay come first in the prompt: the prefix cache saves"
            f" {fmt_percent(value_of('serving-prefix-savings', p))} of all prompt tokens. A draft of {p.drafted}"
            f" tokens, accepted at {p.accepted:g} each, makes it {shown('serving-draft-speedup', _coder_draft(p))}"
            f" times faster: {p.answer} tokens then take {shown('spec-answer-time', _coder_answer(p))}. Every key"
            " cancels what is under way."
        ),
    ),
    trade_off=Best(
        drill="spec-answer-time",
        now=_coder_answer,
        text=lambda p: (
            f"A completion of {p.answer} tokens: a step of the target takes {p.step_ms} ms, also when it checks"
            f" {p.drafted} drafted tokens; a step of the draft {p.draft_tenths / 10:g} ms; a token is accepted with"
            f" probability {p.accepted:g}. Which single change shortens decoding most?"
        ),
        changes=(
            Change(
                key="draft",
                text=lambda p: "a draft that takes half as long and is accepted as often",
                numbers=lambda p: changed(_coder_answer(p), draft_ms=p.draft_tenths / 20),
            ),
            Change(
                key="acceptance",
                text=lambda p: f"a draft trained on our code: acceptance {p.accepted + p.better:g}",
                numbers=lambda p: changed(_coder_answer(p), accepted=p.accepted + p.better),
            ),
            Change(
                key="weights",
                text=lambda p: f"the target's weights in 8 bits: a step of {p.narrow_ms:g} ms",
                numbers=lambda p: changed(_coder_answer(p), target_ms=p.narrow_ms),
            ),
        ),
    ),
    price=(
        "drafts change no answer, narrow weights do: only the second needs an evaluation",
        "a trained draft has to be trained again with every new target",
        "all of this is for few users at a time; in a large batch a check is no longer free",
    ),
    follow_ups=(
        Step(drill="spec-in-a-batch", numbers=_coder_rush),
        Step(
            drill="serving-rent-or-api",
            numbers=lambda p: drawn(gpus=p.tp, cents=p.cents, price_cents=p.price_cents),
        ),
    ),
)
