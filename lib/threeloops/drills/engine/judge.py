"""Right, or which slip, or how far off: what a drill says to an answer. It contains no formula of the field."""

import itertools
import math
from dataclasses import dataclass

from threeloops.drills.engine import spelling
from threeloops.drills.engine.answers import Answer, UnreadableError, parse
from threeloops.drills.engine.drill import Draw, Drill, Slip
from threeloops.drills.engine.exactness import Exactness, is_whole
from threeloops.drills.engine.unit_slips import Mistaken, more_for_times, turned

# How far off, in words too coarse to give the answer away: for what is too large, and for what is too small.
DISTANCES = (
    (1.1, "close, but a little too large", "close, but a little too small"),
    (1.5, "too large, by less than half", "too small, by less than half"),
    (3, "about twice what it should be", "about half of what it should be"),
    (7, "several times too large", "several times too small"),
)
TO_THE_DIGIT = 0.002  # three digits as people write them
TENS = ("ten", "a hundred", "a thousand", "ten thousand", "a hundred thousand", "a million")  # times, beyond those


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What to tell the learner."""

    status: str  # right, slip, pair, unit, off, unreadable
    message: str
    slips: tuple[str, ...] = ()  # keys of the slips that were named
    share: float = 0.0  # of an answer in several parts that is not right: how much of it is

    @property
    def right(self) -> bool:
        return self.status == "right"


def close(value: float, target: float, tolerance: float) -> bool:
    """Within a relative tolerance of the target (a target of 0 is met by 0 alone)."""
    return abs(value - target) <= tolerance * abs(target)


def judge(drill: Drill, p: Draw, written: object) -> Verdict:
    """Judge one answer: never raises at a learner, never prints the answer."""
    try:
        prompt = drill.prompt(p)
        nouns, example = spelling.nouns(drill.ask(p)), drill.example(prompt)
        answer = parse(written, like=drill.unit, nouns=nouns, example=example)
    except UnreadableError as refusal:
        return Verdict(status="unreadable", message=str(refusal)[:1].upper() + str(refusal)[1:] + ".")
    target = drill.derive(p).value
    if asked := unclear(answer, target, drill.exactness):
        return asked
    if unrounded := not_rounded(drill, p, answer.value, within=drill.tolerance):
        return unrounded
    if drill.exactness.takes(answer.value, target):
        return Verdict(status="right", message="Right.")
    return (
        _near_slip(drill, p, answer)
        or _named_slip(drill, p, answer)
        or miscounted(drill.exactness, answer.value, target)
        or unit_slip(answer, target, like=drill.unit, tolerance=drill.tolerance, question=prompt)
        or _pair(drill, p, answer, target)
        or _twofold(answer.value, target, drill)
        or _tenfold(answer.value, target, drill)
        or _how_far(answer.value, target)
    )


def unclear(answer: Answer, target: float, exactness: Exactness) -> Verdict | None:
    """An answer with two readings, of which the one that was not taken is nearer: which was meant is asked."""
    other = answer.other
    if other is None or not answer.doubtful(target) or (exactness.whole and not is_whole(other)):
        return None
    if exactness.takes(answer.value, target):
        return None
    return Verdict(status="unreadable", message=f"{answer.doubt}.")


def not_rounded(drill: Drill, p: Draw, value: float, *, within: float) -> Verdict | None:
    """A count with a fraction, which is the answer but for its rounding: no half of a replica can be bought."""
    if drill.whole not in ("up", "down") or is_whole(value):
        return None
    target = drill.derive(p).value
    rounded = math.ceil(value) if drill.whole == "up" else math.floor(value)
    explained = any(close(value, slip.wrong(p), drill.tolerance) for slip in drill.slips)
    if not close(value, target, within) and (rounded != target or explained):
        return None
    why = "less is not enough" if drill.whole == "up" else "there is no room for a part of the next one"
    return Verdict(
        status="slip",
        slips=(f"not-rounded-{drill.whole}",),
        message=f"Not rounded {drill.whole}: these come whole, and {why}.",
    )


def miscounted(exactness: Exactness, value: float, target: float) -> Verdict | None:
    """A count beside the right one, which no tolerance makes right."""
    found = exactness.beside(value, target)
    return Verdict(status="slip", message=found.story, slips=(found.slip,)) if found else None


def makes(drill: Drill, slip: Slip, p: Draw, value: float) -> bool:
    """Whether an answer is what this slip gives; of a count also rounded to the next whole number, either way."""
    wrong = slip.wrong(p)
    rounded = bool(drill.whole) and value in (math.floor(wrong), math.ceil(wrong))
    return rounded or close(value, wrong, drill.tolerance)


def _near_slip(drill: Drill, p: Draw, answer: Answer) -> Verdict | None:
    """A mistake so near the answer that no draw could tell it from others within the tolerance: met to the digit."""
    hit = next((slip for slip in drill.near if close(answer.value, slip.wrong(p), TO_THE_DIGIT)), None)
    return Verdict(status="slip", message=hit.story, slips=(hit.key,)) if hit else None


def _named_slip(drill: Drill, p: Draw, answer: Answer) -> Verdict | None:
    hits = [slip for slip in drill.slips if makes(drill, slip, p, answer.value)]
    if not hits:
        return None
    nearest = min(hits, key=lambda slip: abs(answer.value - slip.wrong(p)))
    return Verdict(status="slip", message=nearest.story, slips=(nearest.key,))


def unit_slip(answer: Answer, target: float, *, like: str, tolerance: float, question: str) -> Verdict | None:
    """Mistakes that belong to no idea (unit_slips.py)."""
    more = more_for_times(answer.value, target, answer.unit, tolerance=tolerance) if like == "" else None
    mistaken = Mistaken(
        value=answer.value, target=target, like=like, unit=answer.unit, tolerance=tolerance, question=question
    )
    turn = turned(answer.value, target, tolerance=tolerance) if like == "" and not is_whole(target) else None
    found = more or mistaken.named() or turn
    return Verdict(status="unit", slips=(found.slip,), message=found.story) if found else None


def _pair(drill: Drill, p: Draw, answer: Answer, target: float) -> Verdict | None:
    """Two slips at once, only when exactly one pair explains the answer. Of a plain number, two that cancel to 1
    explain nothing: 1 - x and x / (1 - x) do so of every share, and 1 is answered without any reckoning.
    """
    if not target:
        return None
    both = {pair: pair[0].wrong(p) * pair[1].wrong(p) / target for pair in itertools.combinations(drill.slips, 2)}
    pairs = [
        pair
        for pair, wrong in both.items()
        if close(answer.value, wrong, drill.tolerance) and (drill.unit or not math.isclose(wrong, 1))
    ]
    if len(pairs) != 1:
        return None
    one, two = pairs[0]
    return Verdict(status="pair", message=f"Perhaps both: {one.story} And: {two.story}", slips=(one.key, two.key))


def _twofold(value: float, target: float, drill: Drill) -> Verdict | None:
    """A plain factor of two, which half of all wrong answers are: said where nothing better fits."""
    if target and close(value, 2 * target, drill.tolerance):
        told = "Exactly twice too large: is something counted twice, such as both directions or both copies?"
    elif target and close(value, target / 2, drill.tolerance):
        told = "Exactly half: is something counted once that is there twice, such as a multiply and its add?"
    else:
        return None
    return Verdict(status="unit", slips=("factor-two",), message=told)


def _tenfold(value: float, target: float, drill: Drill) -> Verdict | None:
    """A power of ten with the right digits, where no prefix explains it."""
    for factor, times in ((10, TENS[0]), (100, TENS[1])):
        for wrong, way in ((target * factor, "large"), (target / factor, "small")):
            if not close(value, wrong, drill.tolerance):
                continue
            percent = factor == 100 and not drill.unit
            asked = "percent, or a plain share?" if percent else "is the decimal point in its place?"
            told = f"The digits are right, but it is {times} times too {way}: {asked}"
            return Verdict(status="unit", slips=("decimal-point",), message=told)
    return None


def _how_far(value: float, target: float) -> Verdict:
    if value == 0 or target == 0 or (value < 0) != (target < 0):
        return Verdict(
            status="off", message="Not right, and of the wrong sign or zero. Start from what is being counted."
        )
    # the ratio itself may be too large or too small to compute
    decades = math.log10(abs(value)) - math.log10(abs(target))
    for limit, above, below in DISTANCES:
        if abs(decades) < math.log10(limit):
            return _off(above if decades > 0 else below)
    powers = round(abs(decades))
    times = f"about {TENS[powers - 1]}" if powers <= len(TENS) else f"more than {TENS[-1]}"
    return _off(f"{times} times too {'large' if decades > 0 else 'small'}")


def _off(how_far: str) -> Verdict:
    return Verdict(status="off", message=f"Not right: {how_far}. None of the usual mistakes leads there.")
