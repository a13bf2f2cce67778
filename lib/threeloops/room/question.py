"""One question as it is asked: what is read, what may be hinted, how an answer is judged, and what is shown
afterwards.

Every kind of question ends up as one of these, so that the terminal, the widget and the scheduler need to know
nothing of kinds.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

from threeloops import units
from threeloops.drills.engine.drill import Draw, Drill, seeded
from threeloops.drills.engine.judge import Verdict, judge

# Words a minute. Plain prose is read at about 240 (Brysbaert, 2019, Journal of Memory and Language 109, 104047);
# figures and options are read more slowly.
READ_PER_MINUTE = 180

# What taking a hint costs, said before it is taken. The third leaves nothing to find.
HINT_COSTS = (
    "A right answer after one hint counts as slow.",
    "A right answer after two hints counts as slow, and is asked again in this session.",
    "After the third hint the question counts as not known.",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """What every kind of question says of itself: its key, under which it is counted, scheduled and got wrong, and
    where the book teaches it.
    """

    key: str
    title: str
    topic: str
    loop: str
    section: str
    target_s: float
    prerequisites: tuple[str, ...] = ()

    def as_question(
        self,
        *,
        kind: str,
        seed: str,
        text: str,
        hints: tuple[str, str, str],
        judge: Callable[[str], Verdict],
        working: str,
        unmarked: str = "",
        starter: str = "",
    ) -> "Question":
        """It, asked."""
        return Question(
            idea=self.key,
            kind=kind,
            seed=seed,
            title=self.title,
            topic=self.topic,
            loop=self.loop,
            section=self.section,
            target_s=self.target_s,
            text=text,
            hints=hints,
            judge=judge,
            working=working,
            unmarked=unmarked,
            prerequisites=self.prerequisites,
            starter=starter,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """A question with its numbers: made again from (idea, kind, seed), in any process, to the last letter."""

    idea: str
    kind: str
    seed: str
    title: str
    topic: str
    loop: str
    section: str
    target_s: float
    text: str
    hints: tuple[str, str, str]
    judge: Callable[[str], Verdict]
    working: str
    unmarked: str = ""  # the points of a talk: what whoever gives up has not seen, and whoever marked them has
    prerequisites: tuple[str, ...] = ()
    starter: str = ""  # of a task in code: the file to be finished; what is answered is the whole file

    @property
    def reading_s(self) -> float:
        """What reading takes, by the length of the text: on top of the target, which is for thinking and typing."""
        return float(round(len(self.text.split()) / READ_PER_MINUTE * units.minute))

    @property
    def allowed_s(self) -> float:
        """What the clock allows, before any extra time."""
        return self.target_s + self.reading_s


def subject_of(drill: Drill) -> Subject:
    """A drill as the room knows it."""
    return Subject(
        key=drill.key,
        title=drill.title,
        topic=drill.family,
        loop=drill.loop,
        section=drill.section,
        target_s=drill.target_s,
        prerequisites=drill.prerequisites,
    )


def draw_of(drill: Drill, seed: str) -> Draw:
    """The numbers of this drill under this seed."""
    return drill.draw(seeded("room", seed, drill.key))


def number(drill: Drill, seed: str) -> Question:
    """A drill as it is: fresh numbers, an answer with a unit, slips told apart."""
    return number_with(drill, draw_of(drill, seed), seed=seed)


def number_with(drill: Drill, p: Draw, *, seed: str, text: str = "") -> Question:
    """A drill asked with given numbers, in its own words or in others (a follow-up is shorter)."""
    return subject_of(drill).as_question(
        kind="number",
        seed=seed,
        text=text or drill.ask(p),
        hints=hints(drill, p),
        judge=lambda written: judge(drill, p, written),
        working=drill.working(p),
    )


def hints(drill: Drill, p: Draw) -> tuple[str, str, str]:
    """The size of the answer, then the formula, then the formula with the numbers in it: one step less to do each
    time.
    """
    derivation = drill.derive(p)
    return (
        f"The answer is {size(derivation.value, drill)}.",
        f"The formula: {derivation.formula}",
        f"With your numbers: {derivation.in_numbers}",
    )


def size(value: float, drill: Drill) -> str:
    """Between which powers of ten a value lies, never closer than a factor of two.

    >>> from threeloops.drills.engine.bank import DRILLS
    >>> size(24.5e9, DRILLS["kv-bytes-per-token"])
    'between 10.0 GB and 100 GB'
    """
    if value == 0:
        return "smaller than one would think"
    low = math.floor(math.log10(abs(value)))
    if abs(value) < 2 * 10**low:
        return f"between {_plain(10**low / 2, drill)} and {_plain(10**low * 5, drill)}"
    if abs(value) > 5 * 10**low:
        return f"between {_plain(2 * 10**low, drill)} and {_plain(20 * 10**low, drill)}"
    return f"between {_plain(10.0**low, drill)} and {_plain(10.0 ** (low + 1), drill)}"


def _plain(value: float, drill: Drill) -> str:
    return units.fmt_bytes(value, base=10) if drill.unit == "B" else drill.shown(value)
