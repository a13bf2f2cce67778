"""Interview numbers: a drill asked with the figures that people really ask, and judged as mental arithmetic is.

Round numbers (8 GPUs, 8,192 tokens) make mistakes look alike. Where two of them would have given the same answer, the
verdict asks which it was.
"""

from dataclasses import replace

from threeloops.drills.engine.drill import Draw, Drill, Slip, seeded
from threeloops.drills.engine.exactness import Exactness
from threeloops.drills.engine.judge import Verdict, close, judge, makes, miscounted, not_rounded, unclear
from threeloops.room import examples
from threeloops.room.kinds.band_draws import MAGNITUDE, draws
from threeloops.room.question import Question, number_with

BAND, BONUS = 0.2, 0.05
DECADE = 10**0.5  # half a power of ten either way
QUICK = 0.6  # of the drill's target time, where an order of magnitude is all that is asked


def band(drill: Drill, seed: str) -> Question:
    """The drill with one of its interview draws."""
    p = seeded("band", seed, drill.key).choice(draws(drill.key))
    return asked_in_bands(drill, p, seed=seed, kind="band", text=drill.prompt(p), magnitude=drill.key in MAGNITUDE)


def asked_in_bands(
    drill: Drill, p: Draw, *, seed: str, kind: str, text: str, title: str = "", magnitude: bool = False
) -> Question:
    """A drill with given numbers and words, judged in bands."""
    return replace(
        number_with(drill, p, seed=seed, text=f"{text}\n{rules(drill, text, magnitude=magnitude)}"),
        kind=kind,
        title=title or drill.title,
        judge=lambda written: judged(drill, p, written, magnitude=magnitude),
        target_s=drill.target_s * (QUICK if magnitude else 1),
    )


def rules(drill: Drill, question: str, *, magnitude: bool) -> str:
    """What unit to answer in and what counts."""
    unit = examples.wanted(drill.unit, question, whole=bool(drill.whole))
    if magnitude:
        return f"{unit}; the order of magnitude is what counts: within a factor of 3 is right."
    if drill.whole == "exact":
        return f"{unit}; in your head: {drill.exactness.told}."
    return f"{unit}; in your head: {_in_head(drill).told}; within 5 % is a bonus."


def _in_head(drill: Drill, within: float = BAND) -> Exactness:
    """How exact mental arithmetic has to be: in a band, and of a bound on its safe side."""
    return Exactness(tolerance=within, whole=drill.whole, loose="bound")


def judged(drill: Drill, p: Draw, written: object, *, magnitude: bool = False) -> Verdict:
    """In the band, or which mistake, or which of two."""
    answer = examples.read(written, drill.unit, question=drill.ask(p), whole=bool(drill.whole))
    if isinstance(answer, str):
        return Verdict(status="unreadable", message=answer)
    value, target = answer.value, drill.derive(p).value
    if asked := unclear(answer, target, _in_head(drill)):
        return asked
    if magnitude:
        right = target > 0 and 1 / DECADE <= value / target <= DECADE
        return (
            Verdict(status="right", message="Right, that is the size of it.")
            if right
            else _slipped(drill, p, value) or judge(drill, p, written)
        )
    if unrounded := not_rounded(drill, p, value, within=BAND):
        return unrounded
    if _in_head(drill, BONUS).takes(value, target):
        bonus = "Right." if drill.whole == "exact" else "Right, and within 5 %: bonus."
        return Verdict(status="right", message=bonus)
    if _in_head(drill).takes(value, target):
        return Verdict(status="right", message=_in_band(drill, p, value))
    named = any(makes(drill, slip, p, value) for slip in drill.slips)
    beside = None if named else miscounted(_in_head(drill), value, target)
    return beside or _slipped(drill, p, value) or judge(drill, p, written)


def suspects(drill: Drill, p: Draw, value: float) -> list[Slip]:
    """The mistakes that would have given this answer, the nearest first: those within 5 %, or if there is none within
    20 %.
    """
    for tolerance in (BONUS, BAND):
        found = [slip for slip in drill.slips if close(value, slip.wrong(p), tolerance)]
        if found:
            return sorted(found, key=lambda slip: abs(value - slip.wrong(p)))
    return []


def _slipped(drill: Drill, p: Draw, value: float) -> Verdict | None:
    found = suspects(drill, p, value)
    if not found:
        return None
    if len(found) == 1:
        return Verdict(status="slip", message=found[0].story, slips=(found[0].key,))
    stories = " Or: ".join(slip.story for slip in found)
    return Verdict(
        status="slip",
        message=f"With these numbers {len(found)} mistakes lead there. Either: {stories} Which did you make?",
        slips=tuple(s.key for s in found),
    )


def _in_band(drill: Drill, p: Draw, value: float) -> str:
    """Right within 20 %; but some mistakes cost no more than that, and are worth a question."""
    near = [slip for slip in drill.slips if close(value, slip.wrong(p), drill.tolerance)]
    asked = f" It is also what this would give: {near[0].story} Did you?" if near else ""
    return f"Right, within 20 %.{asked}"
