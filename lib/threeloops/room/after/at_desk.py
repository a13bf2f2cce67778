"""How sure an answer on a notebook's card was: judged once more, and kept for the calibration. Nothing else of it is
kept: the cell has the answer, and a card has no clock.
"""

from threeloops import wall_clock
from threeloops.drills.engine.bank import DRILLS
from threeloops.drills.engine.judge import judge
from threeloops.drills.engine.student_draws import HOME_COURSE, HOME_STUDENT, plain_id, posed
from threeloops.room.after import sure as confidence
from threeloops.room.attempts import DESK, Ask, Attempt
from threeloops.room.history import History
from threeloops.room.ideas import IDEAS


def heard(history: History, *, key: str, written: str, sure: str, student: str = "", course: str = "") -> str:
    """Keep how sure an answer was, the first readable one to this reader's question; what is said of it.

    >>> from threeloops.room.history import NOWHERE
    >>> heard(History(NOWHERE), key="kv-latent", written="3 kB", sure="90 %")
    'You were 90 % sure of it: a mistake that feels right comes back, so write down what was wrong.'

    Raises: ValueError for a confidence that is no percentage, KeyError for a drill that this edition has not
    """
    percent = confidence.read(sure)
    if percent is None:
        return ""
    whose = f"{plain_id(course) or HOME_COURSE}/{plain_id(student) or HOME_STUDENT}"
    drill = DRILLS[key]
    verdict = judge(drill, posed(drill, course=course or HOME_COURSE, student=student or HOME_STUDENT), written)
    if verdict.status in ("unreadable", "unanswered"):
        return ""
    if any((one.idea, one.kind, one.seed) == (key, DESK, whose) for one in history.attempts(desk=True)):
        return "Your first answer to this question is the one that counts for how sure you are."
    _keep(history, key, whose, written, percent, right=verdict.right)
    return confidence.told(percent, right=verdict.right) or f"Noted: {percent:g} % sure. `progress` compares."


def _keep(history: History, key: str, whose: str, written: str, percent: float, *, right: bool) -> None:
    """One attempt, in a sitting of its own that is over at once."""
    sitting = history.begin(DESK, {}, [Ask(idea=key, kind=DESK, seed=whose)])
    history.end(sitting)
    history.record(
        Attempt(
            session=sitting,
            position=0,
            idea=key,
            topic=IDEAS[key].topic,
            kind=DESK,
            seed=whose,
            written=written[:500],
            status="right" if right else "wrong",
            slips="",
            seconds=0.0,
            target_s=float(DRILLS[key].target_s),
            extra=1.0,
            hints=0,
            at_s=wall_clock.now_s(),
            sure=percent,
        )
    )
