"""Drills on what a draft shares with its target: how often a token is accepted, what comes after a refusal, what a
built-in head wins, what a batch takes away, and what refused work costs.
"""

import itertools
import math
import random
from fractions import Fraction

from threeloops.drills.engine.drill import AsFunction, Derivation, Draw, Drill, Slip, Taught, drawn
from threeloops.product_loop import speculative
from threeloops.simulate.product_loop import decoding, exact_speculation
from threeloops.units import ms

TAUGHT = Taught("product", "Speculative decoding")
PARTS = 1000  # shares are drawn in thousandths
LEVIATHAN = "Leviathan et al., 2023, arXiv:2211.17192"


def _fractions(thousandths: tuple[int, ...]) -> list[Fraction]:
    return [Fraction(one, PARTS) for one in thousandths]


def _told(thousandths: tuple[int, ...]) -> str:
    return ", ".join(f"{one / PARTS:g}" for one in thousandths)


# --- overlap -------------------------------------------------------------------------------------


def _draw_overlap(rng: random.Random) -> Draw:
    """The target has more of the first token only."""
    first, second = rng.randrange(690, 730), rng.randrange(90, 130)
    shown, third = rng.randrange(270, 320), rng.randrange(340, 370)
    return drawn(target=(first, second, PARTS - first - second), draft=(shown, PARTS - shown - third, third))


def _overlap(p: Draw) -> float:
    return speculative.acceptance([t / PARTS for t in p.target], [d / PARTS for d in p.draft])


def _pairs(p: Draw) -> list[tuple[float, float]]:
    return [(t / PARTS, d / PARTS) for t, d in zip(p.target, p.draft, strict=True)]


OVERLAP = Drill(
    key="spec-overlap",
    taught=TAUGHT,
    title="How often two models agree",
    unit="",
    target_s=75,
    draw=_draw_overlap,
    small=_draw_overlap,
    prompt=lambda p: (
        f"For the next of three tokens the target's shares are {_told(p.target)}, the draft's {_told(p.draft)}. The"
        " draft samples a token, and it is accepted with probability min(1, target / draft). What is the chance that"
        " it is accepted?"
    ),
    derive=lambda p: Derivation(
        value=_overlap(p),
        formula="sum over tokens of min(target, draft)",
        substitution=" + ".join(f"{min(pair)}" for pair in _pairs(p)),
        source=f"{LEVIATHAN}, theorem 3.5",
    ),
    count=lambda p: float(
        exact_speculation.mean_tokens([_fractions(p.target)] * 3, [_fractions(p.draft)] * 3, drafted=1) - 1
    ),
    slips=(
        Slip("both-drawn", lambda p: sum(t * d for t, d in _pairs(p)))
        | "That is the chance that both models draw the same token. A draft may be accepted without that.",
        Slip("twice-the-distance", lambda p: 1 - sum(abs(t - d) for t, d in _pairs(p)))
        | "You took the whole difference off. What one has more, the other has less: it counts once.",
        Slip("likeliest", lambda p: max(p.target) / PARTS)
        | "That is the share of the target's likeliest token. The draft has less of it.",
        Slip("refused", lambda p: 1 - _overlap(p)) | "That is the chance of a refusal.",
    ),
)

# --- after a refusal -----------------------------------------------------------------------------


def _draw_after(rng: random.Random) -> Draw:
    """The target has more of the first two tokens, the draft of the third."""
    first, second = rng.randrange(460, 500), rng.randrange(360, 400)
    shown, other = rng.randrange(330, 360), rng.randrange(60, 90)
    return drawn(target=(first, second, PARTS - first - second), draft=(shown, other, PARTS - shown - other))


def _after(p: Draw) -> float:
    return speculative.after_refusal([t / PARTS for t in p.target], [d / PARTS for d in p.draft])[0]


def _count_after(p: Draw) -> float:
    """Follow every branch of one check; of those in which nothing was accepted, the share that yields the first
    token.
    """
    target, draft = [_fractions(p.target)] * 3, [_fractions(p.draft)] * 3
    refused = {token: Fraction(0) for token in range(3)}
    for new, chance in exact_speculation.checked(target, draft, 0, 1):
        if len(new) == 1:
            refused[new[0]] += chance
    return float(refused[0] / sum(refused.values()))


AFTER = Drill(
    key="spec-after-refusal",
    taught=TAUGHT,
    title="What comes after a refusal",
    unit="",
    target_s=110,
    draw=_draw_after,
    small=_draw_after,
    prompt=lambda p: (
        f"For the next of three tokens the target's shares are {_told(p.target)}, the draft's {_told(p.draft)}. The"
        " drafted token was refused. With which probability does exact speculative sampling now yield the first of the"
        " three?"
    ),
    derive=lambda p: Derivation(
        value=_after(p),
        formula="max(0, target − draft) of the token / the sum of that over all tokens",
        substitution=(
            f"({p.target[0]} − {p.draft[0]}) / ({p.target[0]} − {p.draft[0]} + {p.target[1]} − {p.draft[1]})"
        ),
        source=f"{LEVIATHAN}, algorithm 1",
    ),
    count=_count_after,
    prerequisites=("spec-overlap",),
    slips=(
        Slip("as-the-target", lambda p: p.target[0] / PARTS)
        | "You drew from the target as it is. What both models like would then come too often.",
        Slip("not-scaled", lambda p: (p.target[0] - p.draft[0]) / PARTS)
        | "You took the difference as it is. It has to be scaled, so that the shares sum to one.",
        Slip("all-but-the-refused", lambda p: p.target[0] / (p.target[0] + p.target[1]))
        | "You left out the refused token and kept the target's shares of the others.",
        Slip("the-other", lambda p: 1 - _after(p)) | "That is the chance of the second token.",
    ),
)

# --- a built-in head -----------------------------------------------------------------------------


def _draw_head(rng: random.Random) -> Draw:
    return drawn(accepted=rng.randrange(80, 89) / 100, cost=rng.randrange(20, 29) / 100)


def _one_drafted(p: Draw) -> float:
    return float(decoding.tokens_per_check(accepted=Fraction(round(100 * p.accepted), 100), drafted=1))


HEAD = Drill(
    key="spec-one-head",
    taught=TAUGHT,
    title="A model that brings its own draft",
    unit="",
    target_s=75,
    draw=_draw_head,
    small=_draw_head,
    prompt=lambda p: (
        "A model was trained with a module that predicts one further token. In decoding, the module drafts that token,"
        f" which takes {p.cost:g} of a step, and the model's next step checks it and makes one of its own. The drafted"
        f" token is accepted with probability {p.accepted:g}. How many times faster do tokens come?"
    ),
    derive=lambda p: Derivation(
        value=speculative.speedup(accepted_share=p.accepted, drafted=1, draft_cost=p.cost),
        formula="(1 + accepted) / (1 + draft cost)",
        substitution=f"(1 + {p.accepted}) / (1 + {p.cost})",
        source="DeepSeek-V3, 2024, arXiv:2412.19437, section 5.4.3 (multi-token prediction used for speculation)",
    ),
    count=lambda p: _one_drafted(p) / (1.0 + p.cost),
    prerequisites=("serving-tokens-per-check",),
    slips=(
        Slip("free", _one_drafted) | "You drafted for nothing. The module takes time, too.",
        Slip("two-tokens", lambda p: 2 / (1 + p.cost)) | "You accepted every drafted token.",
        Slip("own-forgotten", lambda p: p.accepted / (1 + p.cost))
        | "You left out the model's own token. Every step yields it.",
        Slip("paid-twice", lambda p: (1 + p.accepted) / (1 + 2 * p.cost))
        | "You let the module run twice a step. It drafts one token.",
    ),
)

# --- in a batch ----------------------------------------------------------------------------------


def _draw_batch(rng: random.Random) -> Draw:
    plain = rng.randrange(22, 31)
    return drawn(
        plain_ms=plain,
        check_ms=plain + rng.randrange(21, 27),
        draft_ms=2,
        accepted=rng.randrange(66, 75) / 100,
        drafted=4,
    )


def _batch_yield(p: Draw) -> float:
    return speculative.tokens_per_check(accepted_share=p.accepted, drafted=p.drafted)


def _count_batch(p: Draw) -> float:
    """A clock that goes through one check, step by step."""
    now_ms = 0.0
    for _ in range(p.drafted):
        now_ms += p.draft_ms
    now_ms += p.check_ms
    tokens = float(decoding.tokens_per_check(accepted=Fraction(round(100 * p.accepted), 100), drafted=p.drafted))
    return float(tokens * p.plain_ms / now_ms)


BATCH = Drill(
    key="spec-in-a-batch",
    taught=TAUGHT,
    title="The check is no longer free",
    unit="",
    target_s=130,
    draw=_draw_batch,
    small=_draw_batch,
    prompt=lambda p: (
        f"In a large batch a plain decode step takes {p.plain_ms} ms. A step that checks {p.drafted} drafted tokens of"
        f" every request takes {p.check_ms} ms, and one step of the draft model {p.draft_ms} ms. Each drafted token is"
        f" accepted with probability {p.accepted:g} until the first refusal. How many times faster do tokens come with"
        " drafts (below 1: slower)?"
    ),
    derive=lambda p: Derivation(
        value=_batch_yield(p) * p.plain_ms * ms / ((p.drafted * p.draft_ms + p.check_ms) * ms),
        formula="tokens per check × plain step / (drafted × draft step + check)",
        substitution=(
            f"(1 − {p.accepted}**({p.drafted} + 1)) / (1 − {p.accepted}) × {p.plain_ms} / ({p.drafted} × {p.draft_ms} +"
            f" {p.check_ms})"
        ),
        source=f"{LEVIATHAN}, theorem 3.8, with a check that takes longer than a step",
    ),
    count=_count_batch,
    prerequisites=("serving-draft-speedup",),
    slips=(
        Slip("check-as-step", lambda p: _batch_yield(p) * p.plain_ms / (p.drafted * p.draft_ms + p.plain_ms))
        | "You let the check take as long as a plain step. In a large batch its further tokens take time.",
        Slip("free-draft", lambda p: _batch_yield(p) * p.plain_ms / p.check_ms) | "You drafted for nothing.",
        Slip("no-own", lambda p: (_batch_yield(p) - 1) * p.plain_ms / (p.drafted * p.draft_ms + p.check_ms))
        | "You left out the target's own token. Every check yields it.",
        Slip("all-tried", lambda p: (p.accepted * p.drafted + 1) * p.plain_ms / (p.drafted * p.draft_ms + p.check_ms))
        | "You tried every token of the draft. After the first refusal the rest is gone.",
    ),
    function=AsFunction(
        takes=("plain_ms", "check_ms", "draft_ms", "accepted", "drafted"),
        limit=lambda p: {"drafted": 0, "check_ms": p.plain_ms},
        limit_case="nothing drafted at all",
    ),
)

# --- work ----------------------------------------------------------------------------------------


def _draw_work(rng: random.Random) -> Draw:
    return drawn(
        accepted=rng.randrange(62, 78) / 100, drafted=rng.choice((4, 5)), operations=rng.choice((0.12, 0.14, 0.16))
    )


def _work_yield(p: Draw) -> float:
    return speculative.tokens_per_check(accepted_share=p.accepted, drafted=p.drafted)


def _count_work(p: Draw) -> float:
    """Add up what a check computes, token by token, and share it among the tokens that it yields."""
    spent = sum(p.operations for _drafted in range(p.drafted)) + sum(1 for _checked in range(p.drafted + 1))
    tokens = decoding.tokens_per_check(accepted=Fraction(round(100 * p.accepted), 100), drafted=p.drafted)
    return float(spent / float(tokens))


WORK = Drill(
    key="spec-extra-work",
    taught=TAUGHT,
    title="What refused tokens cost",
    unit="",
    target_s=120,
    draw=_draw_work,
    small=_draw_work,
    prompt=lambda p: (
        f"A draft model that computes {p.operations:g} of the target's operations per token drafts {p.drafted} tokens"
        f" at a time; each is accepted with probability {p.accepted:g} until the first refusal. How many times as much"
        " arithmetic does a produced token take as with the target alone?"
    ),
    derive=lambda p: Derivation(
        value=speculative.extra_operations(accepted_share=p.accepted, drafted=p.drafted, draft_operations=p.operations),
        formula="(drafted × draft operations + drafted + 1) / tokens per check",
        substitution=(
            f"({p.drafted} × {p.operations} + {p.drafted} + 1) / ((1 − {p.accepted}**({p.drafted} + 1)) / (1 −"
            f" {p.accepted}))"
        ),
        source=f"{LEVIATHAN}, theorem 3.11",
    ),
    count=_count_work,
    prerequisites=("serving-tokens-per-check",),
    slips=(
        Slip("no-draft", lambda p: (p.drafted + 1) / _work_yield(p)) | "You left out what the draft model computes.",
        Slip("one-check", lambda p: (p.drafted * p.operations + 1) / _work_yield(p))
        | "You let the check compute one token. It computes one for every drafted token and one more.",
        Slip("per-check", lambda p: p.drafted * p.operations + p.drafted + 1)
        | "That is the work of a check. How many tokens share it?",
        Slip("no-own", lambda p: (p.drafted * p.operations + p.drafted + 1) / (_work_yield(p) - 1))
        | "You left out the target's own token. Every check yields it.",
    ),
    function=AsFunction(
        takes=("accepted", "drafted", "operations"), limit={"drafted": 1}, limit_case="a single drafted token"
    ),
)

# --- a whole draft -------------------------------------------------------------------------------


def _draw_whole(rng: random.Random) -> Draw:
    return drawn(accepted=rng.randrange(60, 77) / 100, drafted=rng.choice((4, 5, 6)))


def _count_whole(p: Draw) -> float:
    """Every way in which the tokens of a draft can be accepted or refused, with its chance."""
    share, found = Fraction(round(100 * p.accepted), 100), Fraction(0)
    for fates in itertools.product((True, False), repeat=p.drafted):
        chance = math.prod((share if fate else 1 - share for fate in fates), start=Fraction(1))
        found += chance if all(fates) else 0
    return float(found)


WHOLE = Drill(
    key="spec-whole-draft",
    taught=TAUGHT,
    title="A draft without a refusal",
    unit="",
    target_s=60,
    draw=_draw_whole,
    small=_draw_whole,
    prompt=lambda p: (
        f"A small model drafts {p.drafted} tokens; each is accepted with probability {p.accepted:g}, whatever the"
        " others are. What is the chance that a check accepts the whole draft?"
    ),
    derive=lambda p: Derivation(
        value=speculative.whole_draft_chance(accepted_share=p.accepted, drafted=p.drafted),
        formula="accepted^drafted: every token has to be accepted",
        substitution=f"{p.accepted}**{p.drafted}",
        source=f"{LEVIATHAN}, equation 1 (the last term of its sum)",
    ),
    count=_count_whole,
    slips=(
        Slip("own-too", lambda p: p.accepted ** (p.drafted + 1))
        | "You let the target's own token be accepted, too. No draft stands for that one.",
        Slip("one-less", lambda p: p.accepted ** (p.drafted - 1))
        | "You took the first token for granted. It is checked like the others.",
        Slip("some-refusal", lambda p: 1 - p.accepted**p.drafted) | "That is the chance that some token is refused.",
        Slip("mean-number", lambda p: _work_yield(p) - 1)
        | "That is how many tokens are accepted on average, not the chance that all are.",
    ),
)

# --- a whole answer ------------------------------------------------------------------------------


def _draw_answer(rng: random.Random) -> Draw:
    target = rng.randrange(20, 34, 2)
    return drawn(
        tokens=rng.randrange(310, 900, 10),
        target_ms=target,
        draft_ms=round(target * rng.randrange(11, 15) / 100, 1),
        accepted=rng.randrange(66, 80) / 100,
        drafted=rng.choice((4, 5)),
    )


def _round_ms(p: Draw) -> float:
    return float(p.drafted * p.draft_ms + p.target_ms)


def _count_answer(p: Draw) -> float:
    """Draft step by draft step and check by check, until the tokens are there; the last check counts by the share of
    it that is needed.
    """
    share = Fraction(round(100 * p.accepted), 100)
    each, now_ms, left = decoding.tokens_per_check(accepted=share, drafted=p.drafted), 0.0, Fraction(p.tokens)
    while left > 0:
        needed = float(min(Fraction(1), left / each))
        for _ in range(p.drafted):
            now_ms += p.draft_ms * needed
        now_ms += p.target_ms * needed
        left -= each
    return now_ms * ms


ANSWER = Drill(
    key="spec-answer-time",
    taught=TAUGHT,
    title="How long the whole answer takes",
    unit="s",
    target_s=120,
    draw=_draw_answer,
    small=_draw_answer,
    prompt=lambda p: (
        f"An answer has {p.tokens} tokens. A step of the target takes {p.target_ms} ms, also when it checks"
        f" {p.drafted} drafted tokens; a step of the draft model takes {p.draft_ms:g} ms. Each is accepted"
        f" with probability {p.accepted:g} until the first refusal. How long does decoding take on average?"
    ),
    derive=lambda p: Derivation(
        value=p.tokens / _work_yield(p) * _round_ms(p) * ms,
        formula="tokens / tokens per check × (drafted × draft step + target step)",
        substitution=(
            f"{p.tokens} / ((1 − {p.accepted}**({p.drafted} + 1)) / (1 − {p.accepted})) × ({p.drafted} × {p.draft_ms} +"
            f" {p.target_ms}) / 1000"
        ),
        source=f"{LEVIATHAN}, theorem 3.8",
    ),
    count=_count_answer,
    prerequisites=("serving-tokens-per-check",),
    slips=(
        Slip("no-own", lambda p: p.tokens / (_work_yield(p) - 1) * _round_ms(p) * ms)
        | "You left out the target's own token. Every check yields it.",
        Slip("free-draft", lambda p: p.tokens / _work_yield(p) * p.target_ms * ms)
        | "You drafted for nothing. The small model takes time, too.",
        Slip("one-draft-step", lambda p: p.tokens / _work_yield(p) * (p.draft_ms + p.target_ms) * ms)
        | "You ran the small model once a check. It makes its tokens one after the other.",
        Slip("one-token-a-check", lambda p: p.tokens * _round_ms(p) * ms)
        | "You took one token from each check. It yields more than that on average.",
    ),
)

DRILLS = (OVERLAP, AFTER, HEAD, BATCH, WORK, WHOLE, ANSWER)
