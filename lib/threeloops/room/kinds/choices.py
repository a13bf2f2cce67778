"""A drill with its answers laid out: choose the right one and say which of the others a named mistake leads to.

The distractors are computed, not invented: each is what a candidate who made that slip would have answered.
"""

from collections.abc import Callable
from dataclasses import replace

from threeloops.drills.engine.drill import Draw, Drill, Slip, seeded
from threeloops.drills.engine.judge import Verdict
from threeloops.room import letters as spelled
from threeloops.room.letters import LETTERS
from threeloops.room.question import Question, draw_of, number_with

MOST_SLIPS = 4


def choice(drill: Drill, seed: str) -> Question:
    """The question with up to five answers, one right; and one mistake, to be matched with the answer it leads to."""
    p = draw_of(drill, seed)
    rng = seeded("choice", seed, drill.key)
    slips = rng.sample(drill.slips, min(MOST_SLIPS, len(drill.slips)))
    options: list[Slip | None] = rng.sample([None, *slips], len(slips) + 1)
    quoted = rng.choice(slips)
    right, culprit = LETTERS[options.index(None)], LETTERS[options.index(quoted)]
    lines = [
        f"  {letter}  {drill.shown(slip.wrong(p) if slip else drill.derive(p).value)}"
        for letter, slip in zip(LETTERS, options, strict=False)
    ]
    text = (
        f"{drill.prompt(p)}\n"
        + "\n".join(lines)
        + f"\nWhich is right? And which of the others comes from this mistake: “{quoted.story}”\n"
        f"Answer with two letters, the right one first, like {_example(right, culprit)}."
    )
    told = f"  {right} is right; the mistake leads to {culprit}."
    return _letters(drill, p, seed, "choice", text, told, lambda written: _judged(written, options, right, culprit))


def diagnosis(drill: Drill, seed: str) -> Question:
    """A colleague's wrong number: which mistake did they make?"""
    p = draw_of(drill, seed)
    rng = seeded("diagnosis", seed, drill.key)
    slips = rng.sample(drill.slips, min(MOST_SLIPS, len(drill.slips)))
    made = rng.choice(slips)
    letter = LETTERS[slips.index(made)]
    lines = [f"  {mark}  {slip.story}" for mark, slip in zip(LETTERS, slips, strict=False)]
    text = (
        f"{drill.prompt(p)}\nA colleague says: {drill.shown(made.wrong(p))}. That is wrong. What would you tell them?\n"
        + "\n".join(lines)
        + "\nAnswer with a letter."
    )
    told = f"  The mistake was {letter}. {made.story}"
    return _letters(
        drill, p, seed, "diagnosis", text, told, lambda written: _diagnosed(written, slips, letter, drill, p)
    )


def _letters(
    drill: Drill, p: Draw, seed: str, kind: str, text: str, told: str, judge: Callable[[str], Verdict]
) -> Question:
    """The drill as a question of letters; its working begins with the right ones."""
    asked = number_with(drill, p, seed=seed, text=text)
    return replace(asked, kind=kind, judge=judge, working=f"{told}\n{asked.working}")


def _example(*used: str) -> str:
    """Two letters that are not the answer."""
    return next(pair for pair in ("A C", "B A") if pair != " ".join(used))


def _judged(written: str, options: list[Slip | None], right: str, culprit: str) -> Verdict:
    letters = spelled.read(written, [len(options)] * 2)
    if isinstance(letters, Verdict):
        return letters
    if letters == [right, culprit]:
        return Verdict(status="right", message="Right, both.")
    chosen = options[LETTERS.index(letters[0])]
    half = 0.5 if letters[0] == right or letters[1] == culprit else 0.0
    if chosen is not None:
        told = f"{letters[0]} is not the answer. {chosen.story}"
        return Verdict(status="slip", message=told, slips=(chosen.key,), share=half)
    told = f"{letters[0]} is the answer, but the mistake in question does not lead to {letters[1]}."
    return Verdict(status="off", message=told, share=half)


def _diagnosed(written: str, slips: list[Slip], letter: str, drill: Drill, p: Draw) -> Verdict:
    letters = spelled.read(written, [len(slips)])
    if isinstance(letters, Verdict):
        return letters
    if letters == [letter]:
        return Verdict(status="right", message="Right.")
    told = slips[LETTERS.index(letters[0])]
    message = f"It is not {letters[0]}: that mistake would have given {drill.shown(told.wrong(p))}."
    return Verdict(status="off", message=message)
